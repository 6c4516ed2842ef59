// The energies of NWChem that were recorded with the molecules, and the comparison with ours.
#pragma once

#include <string>

#include "basis.hpp"

namespace fock {

inline constexpr double allowed_difference = 1e-8;  // Hartree

struct Reference {
  double energy = 0;
  std::string program;
};

// Finds the record for this molecule and basis set in `file`. Throws InputError where there is none, or where its
// nuclei are not where ours are.
Reference find_reference(const std::string& file, const Molecule& molecule, const Basis& basis, int charge);

}  // namespace fock
