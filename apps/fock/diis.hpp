// Pulay's extrapolation (DIIS) over Fock and error matrices that stay distributed: each rank multiplies and mixes the
// blocks it owns; only the small system of equations is solved in one place.
#pragma once

#include <vector>

#include "block_matrix.hpp"

namespace fock {

class Diis {
 public:
  // Collective. Keeps the last `depth` pairs of matrices.
  Diis(Job& job, const BlockLayout& layout, int depth);

  // The plane for the next error matrix: the diagonalising rank scatters the error there before add().
  [[nodiscard]] BlockMatrix& errors() { return errors_; }
  [[nodiscard]] int next_plane() const { return next_; }

  // Takes over the local blocks of `fock` and the error scattered to next_plane(), and overwrites the local blocks of
  // `fock` by the extrapolation. Collective; the errors must have arrived (a barrier before). Publishes nothing.
  void extrapolate(BlockMatrix& fock);

 private:
  [[nodiscard]] std::vector<double> coefficients();

  Job& job_;
  int depth_;
  BlockMatrix focks_;
  BlockMatrix errors_;
  Matrix products_;  // of each kept error with each other
  int next_ = 0;
  int kept_ = 0;
};

}  // namespace fock
