// Processes that want a processor and do nothing with it: another job, or a compiler, beside the one that is measured.
#pragma once

#include <sys/types.h>

#include <vector>

namespace bench {

// In a session of their own each, as another user's would be; they end with this object, and with this process.
class BusyLoops {
 public:
  explicit BusyLoops(int count);
  ~BusyLoops();
  BusyLoops(const BusyLoops&) = delete;
  BusyLoops& operator=(const BusyLoops&) = delete;

 private:
  std::vector<pid_t> loops_;
};

// The word behind the program's name that asks for run_rank_with_loop.
inline constexpr const char* with_loop_word = "with-loop";

// For `bench-mpi with-loop LOOPS PROGRAM ARGUMENTS...`, by which a launcher starts a rank: becomes the program. Where
// the rank is one of the first LOOPS of its job, a loop beside it lies in its session, as what it had started itself
// would. Linux shares processors between sessions first, so that there a yield costs what it does not beside others.
[[nodiscard]] int run_rank_with_loop(int count, char** words);

}  // namespace bench
