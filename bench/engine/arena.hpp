// Memory that both processes of a benchmark share without Farsum: gates between phases, flags, and the words that the
// raw limits work on. Phases must not be kept in step by the library that is measured.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "counters.hpp"

namespace bench {

constexpr int rank_count = 2;

// One cache line for each word, so that no phase disturbs another's.
struct ArenaWords {
  alignas(64) std::atomic<std::uint32_t> gate_arrived;  // written by both ranks
  alignas(64) std::atomic<std::uint32_t> gate_epoch;    // written by the last to arrive
  alignas(64) std::atomic<std::uint32_t> line_arrived;  // written by both ranks
  alignas(64) std::atomic<std::uint32_t> line_epoch;    // written by the last to arrive
  alignas(64) std::atomic<std::uint32_t> stop;          // written by rank 0
  alignas(64) std::atomic<std::uint32_t> computing;     // written by rank 1
  alignas(64) std::atomic<std::uint32_t> request;       // written by rank 0: the raw hand-over
  alignas(64) std::atomic<std::uint32_t> answer;        // written by rank 1: the raw hand-over
  struct alignas(64) FromRank {                         // written by that rank before a gate, read by all after it
    Counters counters;
    std::array<double, 4> figures;
    std::uint64_t operations;
  };
  std::array<FromRank, rank_count> from_rank;
};

// Two processes, one thread of each. Lives to the end of the process; the kernel takes the memory back.
class Arena {
 public:
  // Collective over the living Farsum job of two ranks.
  explicit Arena(int rank);

  ArenaWords& words() { return *words_; }
  ArenaWords::FromRank& mine() { return words_->from_rank[static_cast<std::size_t>(rank_)]; }
  [[nodiscard]] const ArenaWords::FromRank& of(int rank) const {
    return words_->from_rank[static_cast<std::size_t>(rank)];
  }

  // Returns once both have come. The first sleeps in the kernel, so that its processor is free for its agent.
  void gate();
  // The same by spinning: both leave within a cache miss of each other.
  void start_together();

 private:
  ArenaWords* words_;
  int rank_;
};

// Sleeps while `word` is `seen`, or until woken. Between processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen);
// Wakes one sleeper; says whether there was one.
bool futex_wake(std::atomic<std::uint32_t>& word);

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace bench
