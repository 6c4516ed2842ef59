// The three ways to share a counter that paper 3 (van Dam et al., 2008) runs or names. Each next() hands out a number
// once.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "common/window.hpp"

namespace lab {

// Rank 0 of the communicator holds the counter. Made, reset and destroyed by all ranks together.
class Counter {
 public:
  Counter() = default;
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  virtual ~Counter() = default;

  [[nodiscard]] virtual long next() = 0;
  virtual void reset() = 0;
};

// "per-rank-words", "tree", "fetch-op".
const std::vector<std::string>& counter_implementations();
// These and "bare", which is no MPI: a locked addition to a shared word, in memory that MPI allocated only.
const std::vector<std::string>& all_counters();
bool has_memory(const std::string& implementation, MemoryKind memory);
std::unique_ptr<Counter> make_counter(const std::string& implementation, MemoryKind memory, MPI_Comm comm);

}  // namespace lab
