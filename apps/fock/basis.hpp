// Named basis sets: text in NWChem's format, embedded or from a file, turned into contracted shells on the atoms of a
// molecule. Refuses effective core potentials. Knows nothing of the integral library.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "molecule.hpp"

namespace fock {

// A contracted shell of one element, coefficients for normalised primitives.
struct ElementShell {
  int momentum = 0;
  std::vector<double> exponents;
  std::vector<double> coefficients;
};

using ElementBasis = std::map<int, std::vector<ElementShell>>;  // by atomic number

enum class Angular { cartesian, spherical };

struct PlacedShell {
  ElementShell shell;
  int atom = 0;
  int functions = 0;
  int first_function = 0;
};

struct Basis {
  std::string name;
  Angular angular = Angular::cartesian;
  std::vector<PlacedShell> shells;  // grouped by atom, in the molecule's order
  int functions = 0;
};

// Throws InputError naming `origin` and the line.
ElementBasis parse_basis(std::string_view text, const std::string& origin);

// `file` empty: `name` is looked for among the embedded sets, then in NWChem's library folder (NWCHEM_BASIS_LIBRARY, or
// /usr/share/nwchem/libraries). Throws InputError where the set or an element of the molecule is missing.
Basis make_basis(const Molecule& molecule, const std::string& name, const std::string& file, Angular angular);

// Text of an embedded set, empty when there is none of that name; and the list of their names for messages.
std::string_view embedded_basis(std::string_view name);
std::string embedded_basis_names();

}  // namespace fock
