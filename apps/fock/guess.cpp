#include "guess.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "integrals.hpp"

namespace fock {
namespace {

constexpr double smallest_overlap_eigenvalue = 1e-7;
constexpr int atomic_iterations = 25;       // a guess need not converge
constexpr double degenerate_within = 1e-4;  // Hartree

// Coulomb minus half exchange of a whole density, by plain loops: an atom has few functions.
Matrix dense_repulsion(Integrals& integrals, const Matrix& density) {
  Matrix result = Matrix::Zero(density.rows(), density.cols());
  const int shells = integrals.shell_count();
  for (int a = 0; a < shells; ++a)
    for (int b = 0; b < shells; ++b)
      for (int c = 0; c < shells; ++c)
        for (int d = 0; d < shells; ++d) {
          const double* values = integrals.repulsion(a, b, c, d);
          if (values == nullptr) continue;
          for (int i = 0; i < integrals.functions_of(a); ++i)
            for (int j = 0; j < integrals.functions_of(b); ++j)
              for (int k = 0; k < integrals.functions_of(c); ++k)
                for (int l = 0; l < integrals.functions_of(d); ++l) {
                  const int p = integrals.first_function_of(a) + i, q = integrals.first_function_of(b) + j;
                  const int r = integrals.first_function_of(c) + k, s = integrals.first_function_of(d) + l;
                  result(p, q) += 2 * density(r, s) * *values;
                  result(p, r) -= density(q, s) * *values++;
                }
        }
  return result;
}

// Electron pairs per orbital, lowest first, spread evenly over orbitals of one energy, so that the density stays
// spherical.
Eigen::VectorXd occupations(const Eigen::VectorXd& energies, double pairs) {
  Eigen::VectorXd result = Eigen::VectorXd::Zero(energies.size());
  for (Eigen::Index first = 0; first < energies.size() && pairs > 0;) {
    Eigen::Index end = first + 1;
    while (end < energies.size() && energies[end] - energies[first] < degenerate_within) ++end;
    const double each = std::min(1.0, pairs / static_cast<double>(end - first));
    result.segment(first, end - first).setConstant(each);
    pairs -= each * static_cast<double>(end - first);
    first = end;
  }
  return result;
}

Matrix atomic_density(const Atom& atom, const Basis& basis) {
  const Molecule alone{"", {atom}};
  Integrals integrals(alone, basis);
  const Matrix x = orthogonaliser(integrals.overlap());
  const Block all{0, integrals.shell_count(), 0, basis.functions};
  Matrix core(basis.functions, basis.functions);
  integrals.core_hamiltonian(all, all, core.data());
  Matrix density = Matrix::Zero(basis.functions, basis.functions);
  for (int n = 0; n < atomic_iterations; ++n) {
    const Orbitals orbitals = diagonalise(core + dense_repulsion(integrals, density), x);
    const Eigen::VectorXd occupied = occupations(orbitals.energies, atom.charge / 2.0);
    const Matrix weighted = orbitals.coefficients * occupied.asDiagonal();
    const Matrix next = product(weighted, transposed(orbitals.coefficients));
    density = n == 0 ? next : Matrix((density + next) / 2);
  }
  return density;
}

// The shells of one atom of the molecule, as the basis of that atom alone.
Basis basis_of_atom(const Basis& basis, int atom) {
  Basis result{.name = basis.name, .angular = basis.angular, .shells = {}, .functions = 0};
  for (PlacedShell shell : basis.shells) {
    if (shell.atom != atom) continue;
    shell.atom = 0;
    shell.first_function = result.functions;
    result.functions += shell.functions;
    result.shells.push_back(shell);
  }
  return result;
}

}  // namespace

Matrix atomic_densities(const Molecule& molecule, const Basis& basis) {
  Matrix whole = Matrix::Zero(basis.functions, basis.functions);
  std::map<int, Matrix> known;  // by nuclear charge
  int first = 0;
  for (std::size_t a = 0; a < molecule.atoms.size(); ++a) {
    const Atom& atom = molecule.atoms[a];
    auto found = known.find(atom.charge);
    if (found == known.end()) {
      found = known.emplace(atom.charge, atomic_density(atom, basis_of_atom(basis, static_cast<int>(a)))).first;
    }
    const Matrix& density = found->second;
    whole.block(first, first, density.rows(), density.cols()) = density;
    first += static_cast<int>(density.rows());
  }
  return whole;
}

Matrix orthogonaliser(const Matrix& overlap) {
  const Eigenpairs pairs = eigenpairs_of_symmetric(overlap);
  const Eigen::VectorXd& values = pairs.values;
  Eigen::Index dropped = 0;
  while (dropped < values.size() && values[dropped] < smallest_overlap_eigenvalue) ++dropped;
  const Eigen::Index kept = values.size() - dropped;
  return pairs.vectors.rightCols(kept) * values.tail(kept).cwiseSqrt().cwiseInverse().asDiagonal();
}

Orbitals diagonalise(const Matrix& fock, const Matrix& x) {
  const Eigenpairs pairs = eigenpairs_of_symmetric(product(product(transposed(x), fock), x));
  return {pairs.values, product(x, pairs.vectors)};
}

}  // namespace fock
