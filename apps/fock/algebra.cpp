#include "algebra.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/LU>

namespace fock {

Matrix product(const Matrix& left, const Matrix& right) { return left * right; }

Matrix transposed(const Matrix& matrix) { return matrix.transpose(); }

Eigenpairs eigenpairs_of_symmetric(const Matrix& matrix) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(matrix);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

std::vector<double> solve(const Matrix& system, const std::vector<double>& right) {
  const Eigen::Map<const Eigen::VectorXd> given(right.data(), static_cast<Eigen::Index>(right.size()));
  const Eigen::VectorXd solution = system.fullPivLu().solve(given);
  return {solution.begin(), solution.end()};
}

}  // namespace fock
