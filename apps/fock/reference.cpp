#include "reference.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "input_error.hpp"

namespace fock {
namespace {

constexpr double same_place_bohr = 1e-9;

std::string angular_name(Angular angular) { return angular == Angular::cartesian ? "cartesian" : "spherical"; }

bool same_nuclei(const nlohmann::json& atoms, const Molecule& molecule) {
  if (atoms.size() != molecule.atoms.size()) return false;
  for (std::size_t a = 0; a < molecule.atoms.size(); ++a) {
    if (atomic_number(atoms[a].at(0).get<std::string>()) != molecule.atoms[a].charge) return false;
    for (std::size_t x = 0; x < 3; ++x) {
      if (std::abs(atoms[a].at(x + 1).get<double>() - molecule.atoms[a].at[x]) > same_place_bohr) return false;
    }
  }
  return true;
}

Reference find_in(const nlohmann::json& document, const std::string& file, const Molecule& molecule, const Basis& basis,
                  int charge) {
  for (const auto& record : document.at("records")) {
    if (record.at("molecule") != molecule.name || record.at("basis") != basis.name ||
        record.at("angular") != angular_name(basis.angular) || record.at("charge") != charge) {
      continue;
    }
    if (!same_nuclei(record.at("atoms_bohr"), molecule)) {
      throw InputError(
          fmt::format("{}: the record of {} has its nuclei elsewhere than the molecule file", file, molecule.name));
    }
    return {record.at("energy_hartree").get<double>(), document.at("program").get<std::string>()};
  }
  throw InputError(fmt::format("{} has no record of {} with charge {} in {} ({})", file, molecule.name, charge,
                               basis.name, angular_name(basis.angular)));
}

}  // namespace

Reference find_reference(const std::string& file, const Molecule& molecule, const Basis& basis, int charge) {
  std::ifstream stream(file);
  if (!stream) throw InputError(fmt::format("cannot read reference file '{}'", file));
  try {
    return find_in(nlohmann::json::parse(stream), file, molecule, basis, charge);
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("reference file '{}' is not as expected: {}", file, error.what()));
  }
}

}  // namespace fock
