// What lab-bench times: one kernel each, with the check of its answer.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/window.hpp"

namespace lab {

constexpr int origin_rank = 0;
constexpr int owner_rank = 1;

// The pair of ranks and what their kernels work on.
struct Bench {
  MPI_Comm pair;
  int rank;  // origin_rank or owner_rank
  MemoryKind memory;
  MPI_Win win;
  void* window_memory;  // this rank's part of the window
  std::byte* buffer;    // the origin's, as large
  std::size_t bytes;
};

// The epoch in which a kernel runs; the driver opens and closes it at the origin.
enum class Epoch : int { none, lock_all };
// Who calls: the origin alone, both ranks, or the origin with nobody to wait for.
enum class Callers : int { origin, both, origin_locally };

// prepare and check are called by both ranks outside any epoch; run by the callers.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  virtual void prepare() {}
  virtual void run(long operations) = 0;
  // True if this rank finds what so many operations since prepare must leave.
  [[nodiscard]] virtual bool check(long operations) = 0;
};

struct Case {
  std::string name;
  std::size_t bytes;  // moved by one operation; 0 where that says nothing
  Epoch epoch;
  Callers callers;
  std::unique_ptr<Kernel> (*make)(const Bench&, std::size_t bytes);
};

const std::vector<Case>& all_cases();
constexpr std::size_t window_bytes = std::size_t{2} << 20U;

}  // namespace lab
