// Nuclei of a molecule and the .xyz reader. All coordinates are bohr from here on; the reader alone converts.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace fock {

struct Atom {
  int charge = 0;  // nuclear charge, that is the atomic number
  std::array<double, 3> at{};
};

struct Molecule {
  std::string name;
  std::vector<Atom> atoms;
};

// Which unit an .xyz file is in. `from_file` takes the comment line's "units=bohr" or "units=angstrom", else angstrom.
enum class LengthUnit { from_file, angstrom, bohr };

// CODATA 2018.
inline constexpr double bohr_in_angstrom = 0.529177210903;

// Throws InputError: file not readable, malformed line (with its number), unknown element, two nuclei at one place.
Molecule read_xyz(const std::string& path, LengthUnit unit);
Molecule parse_xyz(std::string_view text, const std::string& name, LengthUnit unit);

double nuclear_repulsion(const Molecule& molecule);

// Electrons of the molecule with the given total charge. Throws InputError where the number is odd or not positive.
int electron_count(const Molecule& molecule, int total_charge);

// 0 for an unknown symbol; case does not matter.
int atomic_number(std::string_view symbol);
std::string_view element_symbol(int charge);

}  // namespace fock
