// Densities to start from. Whole matrices: used by the diagonalising rank only, which scatters the result.
#pragma once

#include "block_matrix.hpp"
#include "molecule.hpp"

namespace fock {

// Spherically averaged densities of the free atoms, each from a small Hartree-Fock calculation of its own.
[[nodiscard]] Matrix atomic_densities(const Molecule& molecule, const Basis& basis);

// X with X^T S X = 1, one column per function kept; combinations with overlap eigenvalues below 1e-7 are dropped.
[[nodiscard]] Matrix orthogonaliser(const Matrix& overlap);

// Orbital energies and coefficients (columns) of a Fock matrix.
struct Orbitals {
  Eigen::VectorXd energies;
  Matrix coefficients;
};
[[nodiscard]] Orbitals diagonalise(const Matrix& fock, const Matrix& orthogonaliser);

}  // namespace fock
