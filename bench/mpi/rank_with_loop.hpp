// A rank of an MPI program with a busy loop beside it.
#pragma once

namespace bench {

// The word behind the program's name that asks for run_rank_with_loop.
inline constexpr const char* with_loop_word = "with-loop";

// For `bench-mpi with-loop LOOPS PROGRAM ARGUMENTS...`, by which a launcher starts a rank: becomes the program. Where
// the rank is one of the first LOOPS of its job, a loop beside it lies in its session, as what it had started itself
// would. Linux shares processors between sessions first, so that there a yield costs what it does not beside others.
[[nodiscard]] int run_rank_with_loop(int count, char** words);

}  // namespace bench
