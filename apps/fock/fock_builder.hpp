// The two-electron part of the Fock matrix, built by all ranks together from tasks that the shared counter deals out.
#pragma once

#include <functional>
#include <vector>

#include "block_matrix.hpp"
#include "integrals.hpp"
#include "task_counter.hpp"

namespace fock {

// What one ticket stands for: one block quartet (ij|kl), or all kl of one block pair ij.
enum class TaskSize { quartet, pair };

struct BuildOptions {
  TaskSize task = TaskSize::quartet;
  apps::CounterKind counter = apps::CounterKind::strict;
  double threshold = 1e-13;  // integrals times density below this are left out
};

class FockBuilder {
 public:
  // Collective. The arguments must outlive the builder.
  FockBuilder(Job& job, Integrals& integrals, const BlockLayout& layout, const BuildOptions& options);

  // Adds to `repulsion` the unfinished repulsion matrix of `density`, which is symmetric and published. Collective;
  // returns once all ranks' blocks have arrived. The repulsion matrix of a density D is ((A + A^T) / 2)_ij where A is
  // the sum over quartets; blocks of `repulsion` hold A + A^T off the diagonal and A on it: see finished(). `progress`
  // gets the share of tickets dealt out, now and then.
  void add_repulsion(BlockMatrix& density, BlockMatrix& repulsion, const std::function<void(double)>& progress);

  // The finished value of an element of a block pair accumulated by add_repulsion.
  static double finished(const double* block, const BlockLayout::Place& place, bool on_diagonal, int row, int column);

 private:
  void share_block_norms(BlockMatrix& density);
  [[nodiscard]] BlockQuartet quartet_of(std::uint64_t ticket) const;
  [[nodiscard]] bool negligible(const BlockQuartet& quartet) const;
  void do_ticket(std::uint64_t ticket, BlockMatrix& density, BlockMatrix& repulsion);
  void do_quartet(const BlockQuartet& quartet, BlockMatrix& density, BlockMatrix& repulsion);
  void fetch(const QuartetBlocks& blocks, BlockMatrix& density);
  void contract(const BlockQuartet& quartet, const QuartetBlocks& blocks);
  void contract_shells(int a, int b, int c, int d, double degeneracy, const std::array<const Block*, 4>& home);
  void combine_roles(const QuartetBlocks& blocks);

  Job& job_;
  Integrals& integrals_;
  const BlockLayout& layout_;
  BuildOptions options_;
  TaskCounter counter_;
  std::vector<double> block_bounds_;  // largest Schwarz bound in each block pair
  std::vector<double> block_norms_;   // largest |density| in each block pair

  // One buffer per role, row-major in the role's own orientation.
  std::array<std::vector<double>, role_count> role_density_;
  std::array<std::vector<double>, role_count> role_fock_;
  std::array<int, role_count> role_columns_{};
  // One buffer per distinct stored block: fetched density, and Fock under way to its owner.
  std::array<std::vector<double>, role_count> slot_density_;
  std::array<std::vector<double>, role_count> slot_fock_;
};

}  // namespace fock
