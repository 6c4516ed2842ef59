#include "attending.hpp"

#include <sched.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "calls.hpp"
#include "farsum.h"

namespace farsum::mpi {
namespace {

// In ticks of the time stamp counter, 1 to 5 in a nanosecond. Most waits are shorter than the first.
constexpr std::uint64_t patience_ticks = 100'000;
// A thread that was away for longer has its processor not for itself, or works in between: the agent is quicker then,
// and the thread does not attend until it has been there for a while, each time for longer.
constexpr std::uint64_t longest_gap_ticks = 150'000;
constexpr std::uint64_t least_pause_ticks = 3'000'000;
constexpr std::uint64_t most_pause_ticks = 100 * least_pause_ticks;

struct Polling {
  std::uint64_t last = 0;        // when the thread polled last
  std::uint64_t not_before = 0;  // it attends no earlier than this
  std::uint64_t pause = least_pause_ticks;
};
thread_local Polling polling;

// Who ends the engine waits for those inside. seq_cst: whoever comes in sees that nobody may, or is seen.
std::atomic<bool> may_attend{false};
std::atomic<int> threads_inside{0};

class Inside {
 public:
  Inside() { threads_inside.fetch_add(1, std::memory_order_seq_cst); }
  ~Inside() { threads_inside.fetch_sub(1, std::memory_order_seq_cst); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  explicit operator bool() const { return may_attend.load(std::memory_order_seq_cst); }
};

void pause_from(std::uint64_t now) {
  polling.not_before = now + polling.pause;
  polling.pause = std::min(2 * polling.pause, most_pause_ticks);
}

#define FARSUM_MPI_ATTENDED(name, parameters, arguments) \
  int attended_##name parameters {                       \
    const HearsOfOthers hears;                           \
    const LibraryWait wait;                              \
    return library().name arguments;                     \
  }
FARSUM_MPI_WITH_COUNTS(FARSUM_MPI_COLLECTIVE_CALLS, FARSUM_MPI_ATTENDED)
FARSUM_MPI_WITH_COUNTS(FARSUM_MPI_WAITING_COUNTED_CALLS, FARSUM_MPI_ATTENDED)
FARSUM_MPI_WAITING_CALLS(FARSUM_MPI_ATTENDED)

#define FARSUM_MPI_LOOKED(name, parameters, arguments)     \
  int looked_##name parameters {                           \
    const int code = library().name arguments;             \
    if (code == MPI_SUCCESS && *flag != 0) farsum_heard(); \
    return code;                                           \
  }
FARSUM_MPI_LOOKING_CALLS(FARSUM_MPI_LOOKED)

}  // namespace

constinit thread_local LibraryWait::Stretch LibraryWait::here;

void LibraryWait::look() {
  const std::uint64_t now = __rdtsc();
  const std::uint64_t gap = now - std::exchange(polling.last, now);
  if (here.attends) {
    if (gap <= longest_gap_ticks) {
      attend(now);
    } else {
      stop();
      pause_from(now);
    }
    return;
  }
  if (std::exchange(here.is_new, false) || gap > longest_gap_ticks)
    polling.not_before = std::max(polling.not_before, now + patience_ticks);
  if (now >= polling.not_before) begin(now);
}

void LibraryWait::begin(std::uint64_t now) {
  const Inside inside;
  const farsum_status status = inside ? farsum_attend_begin() : FARSUM_ERR_UNSUPPORTED;
  here.attends = status == FARSUM_OK;
  if (status == FARSUM_ERR_PENDING) {
    polling.not_before = now + patience_ticks;
  } else if (status != FARSUM_OK) {
    pause_from(now);
  }
}

void LibraryWait::attend(std::uint64_t now) {
  // UCX calls itself by names that the preload stands in for.
  here.may_attend = false;
  const Inside inside;
  const bool attends = inside && farsum_attend() != 0;
  here.may_attend = true;
  if (attends) return;
  here.attends = false;
  pause_from(now);
}

void LibraryWait::stop() {
  const bool may = std::exchange(here, {}).may_attend;
  if (const Inside inside; inside) farsum_attend_end();
  here.may_attend = may;
}

void LibraryWait::allow() { may_attend.store(true, std::memory_order_seq_cst); }

void LibraryWait::forbid() {
  may_attend.store(false, std::memory_order_seq_cst);
  while (threads_inside.load(std::memory_order_seq_cst) != 0) sched_yield();
}

// It was there throughout.
void LibraryWait::finish() {
  stop();
  polling.pause = least_pause_ticks;
}

void put_waiting_calls(farsum_mpi_calls& active) {
#define FARSUM_MPI_PUT_ATTENDED(name, parameters, arguments) active.name = attended_##name;
  FARSUM_MPI_WITH_COUNTS(FARSUM_MPI_COLLECTIVE_CALLS, FARSUM_MPI_PUT_ATTENDED)
  FARSUM_MPI_WITH_COUNTS(FARSUM_MPI_WAITING_COUNTED_CALLS, FARSUM_MPI_PUT_ATTENDED)
  FARSUM_MPI_WAITING_CALLS(FARSUM_MPI_PUT_ATTENDED)
#define FARSUM_MPI_PUT_LOOKED(name, parameters, arguments) active.name = looked_##name;
  FARSUM_MPI_LOOKING_CALLS(FARSUM_MPI_PUT_LOOKED)
}

}  // namespace farsum::mpi
