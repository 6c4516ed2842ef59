// What every case of `farsum bench ranks` is, whoever carries it out. A Job is a set of ranks (rank, size, barrier,
// largest, smallest, sum, all_agree), its Window one-sided calls by MPI, by Farsum's C interface, or by bare
// instructions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "ranks/cases/rows.hpp"

namespace ranks {

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Body>
double timed(long operations, Body&& body) {
  const double start = now_s();
  for (long i = 0; i < operations; ++i) body(i);
  return now_s() - start;
}

// Work that makes no call.
inline void compute_s(double seconds) {
  const double end = now_s() + seconds;
  while (now_s() < end) {
  }
}

// Another stream for each rank, and the same in each run.
class Random {
 public:
  explicit Random(int stream) : state_(88172645463325252ULL + 7919ULL * static_cast<std::uint64_t>(stream)) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  int below(int bound) { return static_cast<int>((next() >> 11) % static_cast<std::uint64_t>(bound)); }

 private:
  std::uint64_t state_;
};

inline constexpr std::size_t line_bytes = 64;
inline constexpr double not_timed = -1;

// All calls are collective, with the same number of operations on each rank.
template <class Job>
class Case {
 public:
  Case() = default;
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  virtual ~Case() = default;

  // Does operations whose effect shows whether each of them was done, and whole. Before anything is timed.
  virtual bool is_right(long operations) = 0;
  // The seconds of this rank's operations, or not_timed.
  virtual double run(long operations) = 0;
  // Whether what `run` has left behind is right, where that shows.
  virtual bool is_still_right() { return true; }
  [[nodiscard]] virtual long checked_operations() const { return 300; }
};

inline constexpr std::size_t page_bytes = 4096;

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using UserMemory = std::unique_ptr<std::byte, FreeMemory>;

inline UserMemory new_user_memory(std::size_t bytes) {
  const std::size_t whole = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  UserMemory memory(static_cast<std::byte*>(std::aligned_alloc(page_bytes, whole)));
  if (memory == nullptr) std::abort();
  std::memset(memory.get(), 0, whole);
  return memory;
}

// A window of zeros, over memory of either kind, and the words in it.
template <class Job>
class Table {
 public:
  using Window = typename Job::Window;

  Table(const Job& job, const std::string& variant, std::size_t bytes)
      : job_(job), user_(variant == user_memory ? new_user_memory(bytes) : nullptr), window_(job, user_.get(), bytes) {
    const UserMemory zeros = new_user_memory(bytes);
    window_.lock_exclusive(job.rank());
    window_.put(job.rank(), 0, zeros.get(), bytes);
    window_.unlock(job.rank());
    job.barrier();
  }

  Window& window() { return window_; }

  // A word of this rank's part, in no epoch.
  std::int64_t own_word(std::size_t offset) {
    std::int64_t value = 0;
    window_.lock_shared(job_.rank());
    window_.get(job_.rank(), offset, &value, sizeof value);
    window_.unlock(job_.rank());
    return value;
  }

 private:
  const Job& job_;
  UserMemory user_;
  Window window_;
};

// A table that all ranks have locked, for as long as it lives.
template <class Job>
class LockedTable {
 public:
  LockedTable(const Job& job, const std::string& variant, std::size_t bytes) : job_(job), table_(job, variant, bytes) {
    table_.window().lock_all();
  }
  LockedTable(const LockedTable&) = delete;
  LockedTable& operator=(const LockedTable&) = delete;
  ~LockedTable() { table_.window().unlock_all(); }

  typename Job::Window& window() { return table_.window(); }

  void read_own(void* to, std::size_t bytes) {
    window().get(job_.rank(), 0, to, bytes);
    window().flush(job_.rank());
  }
  std::int64_t own_word(std::size_t offset) {
    std::int64_t value = 0;
    window().get(job_.rank(), offset, &value, sizeof value);
    window().flush(job_.rank());
    return value;
  }

 private:
  const Job& job_;
  Table<Job> table_;
};

}  // namespace ranks
