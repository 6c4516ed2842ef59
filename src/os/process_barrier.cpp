#include "os/process_barrier.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "os/futex.hpp"

namespace farsum::os {
namespace {

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

bool join_process_barriers() {
  constexpr long needed = MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
  const long offered = membarrier(MEMBARRIER_CMD_QUERY);
  return offered > 0 && (offered & needed) == needed && membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0 &&
         membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
}

void process_barrier() {
  if (membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0) [[likely]]
    return;
  // The program has put itself under a filter since. What it replaces is the time that a store waits in a processor,
  // which is below a microsecond, and ends where its thread is taken off the processor.
  constexpr std::uint64_t far_longer_ns = 1'000'000;
  const std::uint64_t end_ns = monotonic_ns() + far_longer_ns;
  // A signal cuts a sleep short.
  for (std::uint64_t now_ns = monotonic_ns(); now_ns < end_ns; now_ns = monotonic_ns()) sleep_ns(end_ns - now_ns);
}

}  // namespace farsum::os
