#include "molecule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "input_error.hpp"

namespace fock {
namespace {

constexpr std::array<std::string_view, 87> symbols = {
    "",   "H",  "He", "Li", "Be", "B",  "C",  "N",  "O",  "F",  "Ne", "Na", "Mg", "Al", "Si", "P",  "S",  "Cl",
    "Ar", "K",  "Ca", "Sc", "Ti", "V",  "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As", "Se", "Br",
    "Kr", "Rb", "Sr", "Y",  "Zr", "Nb", "Mo", "Tc", "Ru", "Rh", "Pd", "Ag", "Cd", "In", "Sn", "Sb", "Te", "I",
    "Xe", "Cs", "Ba", "La", "Ce", "Pr", "Nd", "Pm", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu",
    "Hf", "Ta", "W",  "Re", "Os", "Ir", "Pt", "Au", "Hg", "Tl", "Pb", "Bi", "Po", "At", "Rn"};

constexpr double closest_nuclei_bohr = 0.1;

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

LengthUnit unit_of_comment(std::string_view comment) {
  std::string lower(comment);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower.find("units=bohr") != std::string::npos) return LengthUnit::bohr;
  return LengthUnit::angstrom;
}

Atom parse_atom_line(const std::string& line, const std::string& where) {
  std::istringstream fields(line);
  std::string symbol;
  Atom atom;
  if (!(fields >> symbol >> atom.at[0] >> atom.at[1] >> atom.at[2])) {
    throw InputError(fmt::format("{}: expected 'symbol x y z', found '{}'", where, line));
  }
  atom.charge = atomic_number(symbol);
  if (atom.charge == 0) throw InputError(fmt::format("{}: unknown element '{}'", where, symbol));
  for (double x : atom.at) {
    if (!std::isfinite(x)) throw InputError(fmt::format("{}: coordinates must be finite numbers", where));
  }
  return atom;
}

double distance(const Atom& a, const Atom& b) {
  return std::hypot(a.at[0] - b.at[0], a.at[1] - b.at[1], a.at[2] - b.at[2]);
}

void refuse_coincident_nuclei(const Molecule& molecule) {
  for (std::size_t a = 0; a < molecule.atoms.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (distance(molecule.atoms[a], molecule.atoms[b]) < closest_nuclei_bohr) {
        throw InputError(fmt::format("{}: atoms {} and {} are less than {} bohr apart", molecule.name, b + 1, a + 1,
                                     closest_nuclei_bohr));
      }
    }
  }
}

}  // namespace

int atomic_number(std::string_view symbol) {
  for (std::size_t z = 1; z < symbols.size(); ++z) {
    if (same_letters(symbols[z], symbol)) return static_cast<int>(z);
  }
  return 0;
}

std::string_view element_symbol(int charge) { return symbols.at(static_cast<std::size_t>(charge)); }

Molecule parse_xyz(std::string_view text, const std::string& name, LengthUnit unit) {
  std::istringstream lines{std::string(text)};
  std::string line;
  std::getline(lines, line);
  long count = 0;
  std::istringstream first(line);
  std::string rest;
  if (!(first >> count) || count < 1 || (first >> rest)) {
    throw InputError(fmt::format("{}: line 1 must be the number of atoms, found '{}'", name, line));
  }
  std::getline(lines, line);
  if (unit == LengthUnit::from_file) unit = unit_of_comment(line);
  const double to_bohr = unit == LengthUnit::bohr ? 1.0 : 1.0 / bohr_in_angstrom;

  Molecule molecule{name, {}};
  for (long n = 0; n < count; ++n) {
    if (!std::getline(lines, line)) {
      throw InputError(fmt::format("{}: line 1 promises {} atoms, the file has {}", name, count, n));
    }
    Atom atom = parse_atom_line(line, fmt::format("{}: line {}", name, n + 3));
    for (double& x : atom.at) x *= to_bohr;
    molecule.atoms.push_back(atom);
  }
  refuse_coincident_nuclei(molecule);
  return molecule;
}

Molecule read_xyz(const std::string& path, LengthUnit unit) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path))
    throw InputError(fmt::format("cannot read molecule file '{}'", path));
  std::ostringstream text;
  text << file.rdbuf();
  Molecule molecule = parse_xyz(text.str(), path, unit);
  molecule.name = std::filesystem::path(path).stem().string();
  return molecule;
}

double nuclear_repulsion(const Molecule& molecule) {
  double energy = 0;
  for (std::size_t a = 0; a < molecule.atoms.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      energy += molecule.atoms[a].charge * molecule.atoms[b].charge / distance(molecule.atoms[a], molecule.atoms[b]);
    }
  }
  return energy;
}

int electron_count(const Molecule& molecule, int total_charge) {
  int electrons = -total_charge;
  for (const Atom& atom : molecule.atoms) electrons += atom.charge;
  if (electrons < 1) throw InputError(fmt::format("charge {} leaves no electrons", total_charge));
  if (electrons % 2 != 0) {
    throw InputError(fmt::format("restricted Hartree-Fock needs an even number of electrons; {} with charge {} has {}",
                                 molecule.name, total_charge, electrons));
  }
  return electrons;
}

}  // namespace fock
