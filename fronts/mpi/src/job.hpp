// The ranks that an engine is to begin with: how many, which of them are on this node, and what all of them can do.
#pragma once

#include <cstddef>
#include <optional>

#include "farsum.h"
#include "library.hpp"

namespace farsum::mpi {

// What `comm` holds beside this node. Owns `node`, which goes with it.
class Job {
 public:
  // Collective; nothing where the library does not say who shares this node.
  static std::optional<Job> of(MPI_Comm comm);

  Job(Job&& other) noexcept;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  Job& operator=(Job&&) = delete;
  ~Job();

  MPI_Comm comm() const { return comm_; }
  MPI_Comm node() const { return node_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  int node_size() const { return node_size_; }
  bool has_other_nodes() const { return node_size_ < size_; }

  // Gives the ranks of several nodes the secret by which they know each other. False: the first rank has none.
  bool share_secret(farsum_init_options& options) const;
  struct Abilities {
    bool has_all = false;   // what it needs for the engine
    bool may_copy = false;  // from and to others of its node, as far as the kernel goes
  };
  // What every rank has, where `mine` are this one's. Collective.
  Abilities of_all_ranks(const Abilities& mine) const;

 private:
  Job() = default;

  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Comm node_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 0;
  int node_size_ = 0;
};

// A farsum_allgather_fn over the communicator that `comm` points at.
int gather_over_mpi(const void* mine, void* all, std::size_t bytes, void* comm);

}  // namespace farsum::mpi
