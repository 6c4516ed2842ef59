// The ranks of the engine's context, in its order: who they are, who is on this node, and what they tell each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "job.hpp"
#include "library.hpp"

namespace farsum::mpi {

// Begun and ended by the thread that starts or stops the engine. Any thread may ask meanwhile.
class ContextRanks {
 public:
  // Before the engine is asked for: whether the program may have several threads in MPI at once.
  void ask_for_threads();
  // Makes room for the job's ranks, while the engine knows only those that share its memory. Throws std::bad_alloc.
  void prepare(const Job& job);
  void begin(const Job& job);
  // Where there are several nodes, waits for all ranks.
  void wait_for_all() const;
  void end();

  int size() const { return size_; }
  // Of these, those that share this rank's memory.
  int node_size() const { return node_size_; }
  // The same on all of them, for they have agreed on it when the engine began.
  bool node_is_crowded() const { return node_is_crowded_; }
  bool threads_multiple() const { return threads_multiple_; }
  bool are_on_one_node() const { return is_here_.empty(); }
  bool are_all(std::span<const int> ranks) const;

  // Whether what goes to this rank of the group goes over the network.
  bool is_on_other_node(MPI_Group group, int rank) const;
  // Bytes of every rank, in order; false where that failed. Not for several threads at once.
  bool gather(const void* mine, void* all, std::size_t bytes) const;
  // Whether the same number of every rank is 0. Collective, as `gather`.
  bool all_have_none(std::uint64_t mine) const;

  // Writes the ranks of a communicator to `ranks`, as many as it has. False: some are outside the context.
  bool find(MPI_Group members, std::span<int> ranks) const;
  bool are_on_this_node(std::span<const int> ranks) const;

 private:
  MPI_Group context_ = MPI_GROUP_NULL;
  int size_ = 0;
  int node_size_ = 0;
  bool node_is_crowded_ = false;
  bool threads_multiple_ = false;
  MPI_Comm job_ = MPI_COMM_NULL;  // where they are on several nodes
  std::vector<bool> is_here_;     // by rank, where they are on several nodes
  std::vector<int> everyone_;     // 0, 1, 2, ...
};

}  // namespace farsum::mpi
