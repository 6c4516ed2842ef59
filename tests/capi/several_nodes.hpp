// Ranks of a job that its embedder starts, on several nodes where the test names them so, and what the ranks tell each
// other without Farsum.
#pragma once

#include <pthread.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "rank_processes.hpp"

namespace farsum::test {

inline constexpr int most_ranks = 4;

// What an embedder brings: ranks that tell each other something without Farsum. Lives in memory that all ranks see.
struct Gathering {
  pthread_barrier_t meeting;
  int ranks;
  std::array<unsigned char, 64 * 1024> pool;

  void open(int of_ranks) {
    ranks = of_ranks;
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&meeting, &attributes, static_cast<unsigned>(of_ranks));
  }
  void meet() { pthread_barrier_wait(&meeting); }
  int gather(int rank, const void* mine, void* all, std::size_t bytes) {
    const std::size_t total = bytes * static_cast<std::size_t>(ranks);
    if (total > pool.size()) return 1;
    meet();
    std::memcpy(pool.data() + static_cast<std::size_t>(rank) * bytes, mine, bytes);
    meet();
    std::memcpy(all, pool.data(), total);
    return 0;
  }
};

struct Caller {
  Gathering* gathering;
  int rank;
};

inline int gather(const void* mine, void* all, std::size_t bytes, void* user) {
  const auto* caller = static_cast<const Caller*>(user);
  return caller->gathering->gather(caller->rank, mine, all, bytes);
}

inline farsum_init_options options_of(Caller& caller) {
  farsum_init_options options{};
  options.struct_bytes = sizeof options;
  options.rank = caller.rank;
  options.size = caller.gathering->ranks;
  options.allgather = gather;
  options.allgather_user = &caller;
  return options;
}

// Runs `body` as each rank of a job that its embedder starts.
inline void run_embedded(const std::vector<Variables>& of_rank, const std::function<void(int, Gathering&)>& body,
                         int ranks = most_ranks) {
  Job job;
  job.ranks = ranks;
  job.starts = false;
  job.of_rank = of_rank;
  const SharedWithRanks<Gathering> everybody;
  everybody->open(job.ranks);
  run_ranks(job, [&](int rank) {
    for (const char* name : {"FARSUM_RANK", "FARSUM_SIZE", "FARSUM_NODE_FD"}) unsetenv(name);
    body(rank, *everybody);
  });
}

// Jobs that mostly wait, each in a process of its own that starts its ranks.
inline void run_jobs_at_once(std::size_t jobs, const std::function<void(int job)>& run_one) {
  Job starters;
  starters.ranks = static_cast<int>(jobs);
  starters.starts = false;
  run_ranks(starters, run_one);
}

inline const std::vector<Variables> two_nodes = {{{"FARSUM_NODE_NAME", "fox"}},
                                                 {{"FARSUM_NODE_NAME", "owl"}},
                                                 {{"FARSUM_NODE_NAME", "owl"}},
                                                 {{"FARSUM_NODE_NAME", "fox"}}};

}  // namespace farsum::test
