// Whole matrices: products, eigenvectors, linear systems. Eigen's solvers and its blocked product take long to compile,
// so they are compiled here alone, each for one kind of matrix.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace fock {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

[[nodiscard]] Matrix product(const Matrix& left, const Matrix& right);
[[nodiscard]] Matrix transposed(const Matrix& matrix);

// Ascending values, and a column for each.
struct Eigenpairs {
  Eigen::VectorXd values;
  Matrix vectors;
};
[[nodiscard]] Eigenpairs eigenpairs_of_symmetric(const Matrix& matrix);

// The x with `system` x = `right`.
[[nodiscard]] std::vector<double> solve(const Matrix& system, const std::vector<double>& right);

}  // namespace fock
