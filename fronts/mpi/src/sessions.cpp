#include "sessions.hpp"

#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>

namespace farsum::mpi {

Sessions::Facts Sessions::facts_of(const EngineLife::Claim& claim) {
  Facts here{};
  const bool is_there = claim.found() == EngineState::running;
  here[runs] = is_there ? 1 : 0;
  here[runs_not] = is_there ? 0 : 1;
  here[ends] = claim.found() == EngineState::ending || claim.found() == EngineState::stopped ? 1 : 0;
  here[is_busy] = claim.found() == EngineState::starting ? 1 : 0;
  return here;
}

// The first window of a program of sessions starts the engine over its ranks. A later one over other ranks, of which
// some are in a context and some are not, stays the library's on all of them; and so does one of which some ranks leave
// their context, for they wait there for the others. Where threads are at this on several communicators at once, one of
// them gets hold of all its ranks; those that got hold of some try again.
std::optional<Sessions::Answer> Sessions::answer_to(const Facts& any) {
  if (any[runs_not] == 0) return Answer::runs_for_all;
  if (any[runs] != 0 && (any[ends] != 0 || any[is_busy] == 0)) return Answer::not_for_all;
  if (any[ends] == 0 && any[is_busy] == 0) return Answer::start;
  return std::nullopt;
}

Sessions::Agreement Sessions::agree(MPI_Comm comm) {
  for (useconds_t pause_us = 100;; pause_us = std::min<useconds_t>(2 * pause_us, 10'000)) {
    {
      EngineLife::Claim claim = life_.claim();
      const Facts here = facts_of(claim);
      Facts any{};
      if (library().Allreduce(here.data(), any.data(), facts, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS)
        return {Answer::not_for_all, std::move(claim)};
      if (const std::optional<Answer> answer = answer_to(any)) return {*answer, std::move(claim)};
    }
    // Threads wait for different times, so that they do not stand in each other's way again and again.
    usleep(pause_us + static_cast<useconds_t>(__rdtsc() % pause_us));
  }
}

}  // namespace farsum::mpi
