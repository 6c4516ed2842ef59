#include "context_ranks.hpp"

#include <algorithm>
#include <numeric>

#include "farsum.h"
#include "farsum_embed.h"

namespace farsum::mpi {

void ContextRanks::ask_for_threads() {
  int provided = MPI_THREAD_MULTIPLE;
  threads_multiple_ = library().Query_thread(&provided) != MPI_SUCCESS || provided == MPI_THREAD_MULTIPLE;
}

void ContextRanks::prepare(const Job& job) {
  everyone_.resize(static_cast<std::size_t>(job.size()));
  std::iota(everyone_.begin(), everyone_.end(), 0);
  is_here_.clear();
  if (!job.has_other_nodes()) return;
  is_here_.assign(everyone_.size(), false);
  // Before anybody of another node is known: whoever the engine knows shares its memory.
  for (const int rank : everyone_) {
    int node = 0;
    is_here_[static_cast<std::size_t>(rank)] = farsum_node(farsum_world(), rank, &node) == FARSUM_OK;
  }
}

void ContextRanks::begin(const Job& job) {
  library().Comm_group(job.comm(), &context_);
  size_ = job.size();
  node_size_ = job.node_size();
  node_is_crowded_ = farsum_is_crowded() != 0;
  // The program may free its own.
  if (job.has_other_nodes()) library().Comm_dup(job.comm(), &job_);
}

void ContextRanks::wait_for_all() const {
  if (job_ != MPI_COMM_NULL) library().Barrier(job_);
}

void ContextRanks::end() {
  if (job_ != MPI_COMM_NULL) library().Comm_free(&job_);
  library().Group_free(&context_);
}

bool ContextRanks::are_all(std::span<const int> ranks) const {
  return std::equal(ranks.begin(), ranks.end(), everyone_.begin(), everyone_.end());
}

bool ContextRanks::is_on_other_node(MPI_Group group, int rank) const {
  if (is_here_.empty()) return false;
  int in_context = MPI_UNDEFINED;
  if (library().Group_translate_ranks(group, 1, &rank, context_, &in_context) != MPI_SUCCESS) return false;
  return in_context >= 0 && in_context < static_cast<int>(is_here_.size()) &&
         !is_here_[static_cast<std::size_t>(in_context)];
}

bool ContextRanks::gather(const void* mine, void* all, std::size_t bytes) const {
  if (job_ == MPI_COMM_NULL) return farsum_allgather(farsum_world(), mine, all, bytes) == FARSUM_OK;
  // Not all ranks of several nodes may have been introduced to each other.
  MPI_Comm over = job_;
  return gather_over_mpi(mine, all, bytes, &over) == 0;
}

bool ContextRanks::all_have_none(std::uint64_t mine) const {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size_));
  if (!gather(&mine, all.data(), sizeof mine)) return false;
  return std::all_of(all.begin(), all.end(), [](std::uint64_t left) { return left == 0; });
}

bool ContextRanks::find(MPI_Group members, std::span<int> ranks) const {
  library().Group_translate_ranks(members, static_cast<int>(ranks.size()), everyone_.data(), context_, ranks.data());
  return std::find(ranks.begin(), ranks.end(), MPI_UNDEFINED) == ranks.end();
}

bool ContextRanks::are_on_this_node(std::span<const int> ranks) const {
  return is_here_.empty() ||
         std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return is_here_[static_cast<std::size_t>(rank)]; });
}

}  // namespace farsum::mpi
