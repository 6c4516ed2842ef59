#include "attending.hpp"

#include <x86intrin.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "calls.hpp"
#include "farsum_embed.h"
#include "presence.hpp"

namespace farsum::mpi {
namespace {

constinit thread_local Presence presence;

// Who ends the engine waits for those inside. seq_cst: whoever comes in sees that nobody may, or is seen.
std::atomic<bool> may_attend{false};
std::atomic<int> threads_inside{0};

class Inside {
 public:
  Inside() { threads_inside.fetch_add(1, std::memory_order_seq_cst); }
  ~Inside() {
    if (threads_inside.fetch_sub(1, std::memory_order_seq_cst) == 1 && !may_attend.load(std::memory_order_seq_cst))
      threads_inside.notify_all();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  explicit operator bool() const { return may_attend.load(std::memory_order_seq_cst); }
};

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
  switch (presence.poll(now, here.attends, std::exchange(here.is_new, false))) {
    case Presence::Advice::wait:
      return;
    case Presence::Advice::begin:
      return begin(now);
    case Presence::Advice::attend:
      return attend();
    case Presence::Advice::stop:
      return stop();
  }
}

void LibraryWait::begin(std::uint64_t now) {
  const Inside inside;
  const farsum_status status = inside ? farsum_attend_begin() : FARSUM_ERR_UNSUPPORTED;
  here.attends = status == FARSUM_OK;
  if (status == FARSUM_OK) {
    presence.begun(now);
  } else if (status == FARSUM_ERR_PENDING) {
    presence.put_off(now);
  } else {
    presence.refused(now);
  }
}

void LibraryWait::attend() {
  // UCX calls itself by names that the preload stands in for.
  here.may_attend = false;
  const Inside inside;
  here.attends = inside && farsum_attend() != 0;
  here.may_attend = true;
  const std::uint64_t now = __rdtsc();
  if (here.attends) {
    presence.served(now);
  } else {
    presence.leave(now);
  }
}

void LibraryWait::stop() {
  const bool may = std::exchange(here, {}).may_attend;
  if (const Inside inside; inside) farsum_attend_end();
  here.may_attend = may;
}

void LibraryWait::allow() { may_attend.store(true, std::memory_order_seq_cst); }

void LibraryWait::forbid() {
  may_attend.store(false, std::memory_order_seq_cst);
  for (int inside = threads_inside.load(std::memory_order_seq_cst); inside != 0;
       inside = threads_inside.load(std::memory_order_seq_cst)) {
    threads_inside.wait(inside, std::memory_order_seq_cst);
  }
}

// It was there throughout.
void LibraryWait::finish() {
  stop();
  presence.ended();
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
