#include "attending.hpp"

#include <x86intrin.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "calls.hpp"
#include "farsum.h"

namespace farsum::mpi {
namespace {

// In ticks of the time stamp counter, 2 to 4 in a nanosecond. Most waits are shorter than the first.
constexpr std::uint64_t patience = 100'000;
// A thread that was away for longer has its processor not for itself, or works in between: the agent is quicker then,
// and the thread does not attend until it has been there for a while, each time for longer.
constexpr std::uint64_t longest_gap = 150'000;
constexpr std::uint64_t least_pause = 3'000'000;
constexpr std::uint64_t most_pause = 100 * least_pause;
// The library polls faster where it has little to look at.
constexpr std::uint64_t between_looks = 1'500;

struct Polling {
  std::uint64_t last = 0;        // when the thread polled last
  std::uint64_t not_before = 0;  // it attends no earlier than this
  std::uint64_t looked = 0;      // while it attends
  std::uint64_t pause = least_pause;
};
thread_local Polling polling;

void pause_from(std::uint64_t now) {
  polling.not_before = now + polling.pause;
  polling.pause = std::min(2 * polling.pause, most_pause);
}

#define FARSUM_MPI_ATTENDED(name, parameters, arguments) \
  int attended_##name parameters {                       \
    const LibraryWait wait;                              \
    return library().name arguments;                     \
  }
FARSUM_MPI_COLLECTIVE_CALLS(FARSUM_MPI_ATTENDED)
FARSUM_MPI_WAITING_CALLS(FARSUM_MPI_ATTENDED)

}  // namespace

constinit thread_local LibraryWait::Stretch LibraryWait::here;

void LibraryWait::look() {
  const std::uint64_t now = __rdtsc();
  const std::uint64_t gap = now - std::exchange(polling.last, now);
  if (here.attends) {
    if (gap <= longest_gap) {
      attend(now);
    } else {
      stop();
      pause_from(now);
    }
    return;
  }
  if (std::exchange(here.is_new, false) || gap > longest_gap)
    polling.not_before = std::max(polling.not_before, now + patience);
  if (now >= polling.not_before) begin(now);
}

void LibraryWait::begin(std::uint64_t now) {
  const farsum_status status = farsum_attend_begin();
  here.attends = status == FARSUM_OK;
  if (status == FARSUM_ERR_PENDING) {
    polling.not_before = now + patience;
  } else if (status != FARSUM_OK) {
    pause_from(now);
  }
}

void LibraryWait::attend(std::uint64_t now) {
  if (now - polling.looked < between_looks) return;
  polling.looked = now;
  // UCX calls itself by names that the preload stands in for.
  here.may_attend = false;
  const bool attends = farsum_attend() != 0;
  here.may_attend = true;
  if (attends) return;
  here.attends = false;
  pause_from(now);
}

void LibraryWait::stop() {
  const bool may_attend = std::exchange(here, {}).may_attend;
  farsum_attend_end();
  here.may_attend = may_attend;
}

void LibraryWait::end() {
  stop();
  polling.pause = least_pause;
}

void put_waiting_calls(farsum_mpi_calls& active) {
#define FARSUM_MPI_PUT_ATTENDED(name, parameters, arguments) active.name = attended_##name;
  FARSUM_MPI_COLLECTIVE_CALLS(FARSUM_MPI_PUT_ATTENDED)
  FARSUM_MPI_WAITING_CALLS(FARSUM_MPI_PUT_ATTENDED)
}

}  // namespace farsum::mpi
