// Symmetric or antisymmetric matrices whose blocks (i >= j) live in a window, dealt out to the ranks.
// Several matrices of one layout ("planes") share a window. No rank holds a whole matrix, save between gather and
// scatter.
#pragma once

#include <span>

#include "algebra.hpp"
#include "blocking.hpp"
#include "job.hpp"

namespace fock {

enum class Symmetry { symmetric, antisymmetric };

class BlockMatrix {
 public:
  // Collective. The layout must outlive the matrix. All blocks begin as zero.
  BlockMatrix(Job& job, const BlockLayout& layout, const char* name, int planes = 1);
  ~BlockMatrix();
  BlockMatrix(const BlockMatrix&) = delete;
  BlockMatrix& operator=(const BlockMatrix&) = delete;

  // Starts fetching a block into `into` (place(pair).elements() doubles); complete after finish_gets.
  void start_get(std::uint64_t pair, double* into);
  void finish_gets();
  // Starts adding a block. The buffer may be reused after release_accumulates; targets have it after
  // finish_accumulates.
  void start_accumulate(std::uint64_t pair, const double* block);
  void release_accumulates();
  void finish_accumulates();

  // The blocks that this rank owns, by plain loads and stores. To others they are visible after publish and a barrier,
  // and theirs are seen here after a barrier and publish.
  [[nodiscard]] std::span<double> local(int plane = 0);
  [[nodiscard]] std::span<double> local_block(std::uint64_t pair, int plane = 0);
  void publish();

  // For the diagonalising rank: the whole matrix, and back. Other ranks must not write meanwhile.
  [[nodiscard]] Matrix gather(Symmetry symmetry, int plane = 0);
  void scatter(const Matrix& whole, int plane = 0);

  [[nodiscard]] const BlockLayout& layout() const { return layout_; }
  [[nodiscard]] std::uint64_t local_bytes() const { return bytes_; }

  // Sum over all elements of the product of two planes, this rank's blocks only; off-diagonal blocks count twice.
  [[nodiscard]] double local_dot(int plane, BlockMatrix& other, int other_plane);

 private:
  [[nodiscard]] std::uint64_t byte_offset(std::uint64_t pair, int plane) const;

  Job& job_;
  const BlockLayout& layout_;
  farsum_window window_{};
  double* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace fock
