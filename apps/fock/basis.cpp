#include "basis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "input_error.hpp"

namespace fock {
namespace {

constexpr std::string_view momentum_letters = "SPDFGH";

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

// The momenta of the columns of a shell header: "D" is one for all columns, "SP" one for each.
std::vector<int> momenta_of(const std::string& type, const std::string& where) {
  std::vector<int> momenta;
  for (char letter : type) {
    const auto l = momentum_letters.find(static_cast<char>(std::toupper(static_cast<unsigned char>(letter))));
    if (l == std::string_view::npos) {
      throw InputError(fmt::format(
          "{}: shell type '{}' is not one of S P D F G H SP (core potentials are not supported)", where, type));
    }
    momenta.push_back(static_cast<int>(l));
  }
  return momenta;
}

std::vector<double> numbers_of(std::string line, const std::string& where) {
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == 'D' || c == 'd'; }, 'e');  // Fortran's exponent
  std::istringstream fields(line);
  std::vector<double> numbers;
  std::string field;
  while (fields >> field) {
    char* end = nullptr;
    numbers.push_back(std::strtod(field.c_str(), &end));
    if (*end != '\0') throw InputError(fmt::format("{}: '{}' is not a number", where, field));
  }
  return numbers;
}

// Reads the rows of one shell header and turns each column of coefficients into a shell.
class ShellReader {
 public:
  void open(int element, std::vector<int> momenta) {
    element_ = element;
    momenta_ = std::move(momenta);
    rows_.clear();
  }

  void add_row(const std::vector<double>& row, const std::string& where) {
    const bool width_fits = row.size() >= 2 && (rows_.empty() || row.size() == rows_.front().size());
    const bool type_fits = momenta_.size() == 1 || row.size() == momenta_.size() + 1;
    if (element_ == 0 || !width_fits || !type_fits || row[0] <= 0) {
      throw InputError(fmt::format("{}: expected an exponent and its coefficients", where));
    }
    rows_.push_back(row);
  }

  void close_into(ElementBasis& basis) {
    if (rows_.empty()) return;
    for (std::size_t column = 1; column < rows_.front().size(); ++column) {
      ElementShell shell;
      shell.momentum = momenta_.size() == 1 ? momenta_[0] : momenta_[column - 1];
      for (const auto& row : rows_) {
        if (row[column] == 0) continue;
        shell.exponents.push_back(row[0]);
        shell.coefficients.push_back(row[column]);
      }
      if (!shell.exponents.empty()) basis[element_].push_back(std::move(shell));
    }
    rows_.clear();
  }

 private:
  int element_ = 0;
  std::vector<int> momenta_;
  std::vector<std::vector<double>> rows_;
};

std::string file_name_of_set(const std::string& name) {
  std::string file;
  for (char c : lower_case(name)) {
    if (c == '*') {
      file += 's';
    } else if (c == '(' || c == ' ' || c == ',') {
      file += '_';
    } else if (c != ')' && c != '/') {
      file += c;
    }
  }
  return file;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? text.str() : std::string();
}

std::string basis_text(const std::string& name, const std::string& file) {
  if (!file.empty()) {
    std::string text = read_text(file);
    if (text.empty()) throw InputError(fmt::format("cannot read basis file '{}'", file));
    return text;
  }
  if (std::string_view text = embedded_basis(lower_case(name)); !text.empty()) return std::string(text);
  const char* library = std::getenv("NWCHEM_BASIS_LIBRARY");
  const std::string folder = library != nullptr ? library : "/usr/share/nwchem/libraries";
  const std::string set_file = file_name_of_set(name);
  std::string text = set_file.empty() ? std::string() : read_text(folder + "/" + set_file);
  if (text.empty()) {
    throw InputError(fmt::format("unknown basis set '{}'; built in are {}, others are looked for in {}", name,
                                 embedded_basis_names(), folder));
  }
  return text;
}

int function_count(int momentum, Angular angular) {
  return angular == Angular::spherical && momentum > 1 ? 2 * momentum + 1 : (momentum + 1) * (momentum + 2) / 2;
}

}  // namespace

ElementBasis parse_basis(std::string_view text, const std::string& origin) {
  ElementBasis basis;
  ShellReader reader;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = line.substr(0, line.find('#'));
    std::istringstream fields(line);
    std::string first, second;
    if (!(fields >> first)) continue;
    const std::string where = fmt::format("{}: line {}", origin, number);
    if (std::isalpha(static_cast<unsigned char>(first[0])) == 0) {
      reader.add_row(numbers_of(line, where), where);
      continue;
    }
    reader.close_into(basis);
    const std::string keyword = lower_case(first);
    if (keyword == "basis" || keyword == "end") continue;
    const int element = atomic_number(first);
    if (element == 0 || !(fields >> second)) throw InputError(fmt::format("{}: expected 'element shell-type'", where));
    reader.open(element, momenta_of(second, where));
  }
  reader.close_into(basis);
  return basis;
}

Basis make_basis(const Molecule& molecule, const std::string& name, const std::string& file, Angular angular) {
  const ElementBasis elements = parse_basis(basis_text(name, file), file.empty() ? name : file);
  Basis basis{.name = name, .angular = angular, .shells = {}, .functions = 0};
  for (std::size_t atom = 0; atom < molecule.atoms.size(); ++atom) {
    const auto found = elements.find(molecule.atoms[atom].charge);
    if (found == elements.end()) {
      throw InputError(
          fmt::format("basis set '{}' has no functions for {}", name, element_symbol(molecule.atoms[atom].charge)));
    }
    for (const ElementShell& shell : found->second) {
      const int count = function_count(shell.momentum, angular);
      basis.shells.push_back({shell, static_cast<int>(atom), count, basis.functions});
      basis.functions += count;
    }
  }
  return basis;
}

}  // namespace fock
