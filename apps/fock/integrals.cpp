#include "integrals.hpp"

// GCC 12 takes the move of libint2's small vectors (boost) for a read past their end; the warning is raised in this
// file.
#pragma GCC diagnostic ignored "-Wstringop-overread"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <libint2.hpp>

#include "input_error.hpp"

namespace fock {
namespace {

// Primitive products below this are left out; far below what the energy is asked to (1e-8 Hartree).
constexpr double primitive_precision = 1e-16;
constexpr auto screening = libint2::ScreeningMethod::Conservative;

libint2::Shell to_libint(const PlacedShell& placed, const Molecule& molecule, Angular angular) {
  const ElementShell& shell = placed.shell;
  libint2::svector<double> exponents(shell.exponents.begin(), shell.exponents.end());
  libint2::svector<double> coefficients(shell.coefficients.begin(), shell.coefficients.end());
  const bool pure = angular == Angular::spherical && shell.momentum > 1;
  libint2::svector<libint2::Shell::Contraction> contractions;
  contractions.push_back({shell.momentum, pure, std::move(coefficients)});
  return {std::move(exponents), std::move(contractions), molecule.atoms[static_cast<std::size_t>(placed.atom)].at};
}

// Calls `use(row_shell, column_shell, values)` for every pair of shells of two ranges.
template <typename Use>
void for_each_pair(libint2::Engine& engine, const std::vector<libint2::Shell>& shells, const Block& rows,
                   const Block& columns, Use&& use) {
  for (int a = rows.first_shell; a < rows.end_shell; ++a) {
    for (int b = columns.first_shell; b < columns.end_shell; ++b) {
      engine.compute1(shells[static_cast<std::size_t>(a)], shells[static_cast<std::size_t>(b)]);
      use(a, b, engine.results()[0]);
    }
  }
}

}  // namespace

IntegralLibrary::IntegralLibrary() { libint2::initialize(); }
IntegralLibrary::~IntegralLibrary() { libint2::finalize(); }

struct Integrals::Parts {
  const Basis& basis;
  std::vector<libint2::Shell> shells;
  std::vector<libint2::ShellPair> pairs;  // shell a with shell b, all of both orders
  std::vector<double> bounds;
  libint2::Engine repulsion;
  libint2::Engine overlap;
  libint2::Engine kinetic;
  libint2::Engine attraction;

  void set_bounds();

  [[nodiscard]] std::size_t pair_index(int a, int b) const {
    return static_cast<std::size_t>(a) * shells.size() + static_cast<std::size_t>(b);
  }
};

Integrals::Integrals(const Molecule& molecule, const Basis& basis)
    : parts_(new Parts{basis, {}, {}, {}, {}, {}, {}, {}}) {
  int largest_momentum = 0;
  std::size_t longest = 0;
  for (const PlacedShell& shell : basis.shells) {
    largest_momentum = std::max(largest_momentum, shell.shell.momentum);
    longest = std::max(longest, shell.shell.exponents.size());
  }
  if (largest_momentum > LIBINT2_MAX_AM_eri) {
    throw InputError(fmt::format("basis set '{}' has shells of angular momentum {}; libint2 was built for at most {}",
                                 basis.name, largest_momentum, LIBINT2_MAX_AM_eri));
  }
  Parts& parts = *parts_;
  for (const PlacedShell& shell : basis.shells) parts.shells.push_back(to_libint(shell, molecule, basis.angular));

  using libint2::Operator;
  parts.repulsion = libint2::Engine(Operator::coulomb, longest, largest_momentum, 0);
  parts.repulsion.set(screening);
  parts.overlap = libint2::Engine(Operator::overlap, longest, largest_momentum, 0);
  parts.kinetic = libint2::Engine(Operator::kinetic, longest, largest_momentum, 0);
  parts.attraction = libint2::Engine(Operator::nuclear, longest, largest_momentum, 0);
  std::vector<std::pair<double, std::array<double, 3>>> charges;
  for (const Atom& atom : molecule.atoms) charges.emplace_back(atom.charge, atom.at);
  parts.attraction.set_params(charges);

  parts.set_bounds();
  for (const libint2::Shell& a : parts.shells) {
    for (const libint2::Shell& b : parts.shells) {
      parts.pairs.emplace_back(a, b, std::log(primitive_precision), screening);
    }
  }
}

// Without leaving out primitives: a bound is the root of an integral, so one of 1e-16 still stands for 1e-8.
void Integrals::Parts::set_bounds() {
  repulsion.set_precision(0.0);
  bounds.resize(shells.size() * shells.size());
  for (std::size_t a = 0; a < shells.size(); ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      using libint2::BraKet;
      using libint2::Operator;
      const double* values =
          repulsion.compute2<Operator::coulomb, BraKet::xx_xx, 0>(shells[a], shells[b], shells[a], shells[b])[0];
      const std::size_t n = shells[a].size() * shells[b].size();
      double largest = 0;
      for (std::size_t i = 0; values != nullptr && i < n; ++i) largest = std::max(largest, std::abs(values[i * n + i]));
      bounds[a * shells.size() + b] = bounds[b * shells.size() + a] = std::sqrt(largest);
    }
  }
  repulsion.set_precision(primitive_precision);
}

Integrals::~Integrals() = default;

int Integrals::shell_count() const { return static_cast<int>(parts_->shells.size()); }
int Integrals::functions_of(int shell) const { return parts_->basis.shells[static_cast<std::size_t>(shell)].functions; }
int Integrals::first_function_of(int shell) const {
  return parts_->basis.shells[static_cast<std::size_t>(shell)].first_function;
}

Matrix Integrals::overlap() {
  Matrix result(parts_->basis.functions, parts_->basis.functions);
  const Block all{0, shell_count(), 0, parts_->basis.functions};
  for_each_pair(parts_->overlap, parts_->shells, all, all, [&](int a, int b, const double* values) {
    result.block(first_function_of(a), first_function_of(b), functions_of(a), functions_of(b)) =
        Eigen::Map<const Matrix>(values, functions_of(a), functions_of(b));
  });
  return result;
}

void Integrals::core_hamiltonian(const Block& rows, const Block& columns, double* block) {
  Eigen::Map<Matrix> result(block, rows.functions, columns.functions);
  result.setZero();
  for (libint2::Engine* engine : {&parts_->kinetic, &parts_->attraction}) {
    for_each_pair(*engine, parts_->shells, rows, columns, [&](int a, int b, const double* values) {
      result.block(first_function_of(a) - rows.first_function, first_function_of(b) - columns.first_function,
                   functions_of(a), functions_of(b)) +=
          Eigen::Map<const Matrix>(values, functions_of(a), functions_of(b));
    });
  }
}

double Integrals::schwarz(int a, int b) const { return parts_->bounds[parts_->pair_index(a, b)]; }

const double* Integrals::repulsion(int a, int b, int c, int d) {
  Parts& parts = *parts_;
  const auto shell = [&](int s) -> const libint2::Shell& { return parts.shells[static_cast<std::size_t>(s)]; };
  const auto& values = parts.repulsion.compute2<libint2::Operator::coulomb, libint2::BraKet::xx_xx, 0>(
      shell(a), shell(b), shell(c), shell(d), &parts.pairs[parts.pair_index(a, b)],
      &parts.pairs[parts.pair_index(c, d)]);
  return values[0];
}

}  // namespace fock
