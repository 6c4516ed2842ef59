#include "arena.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>

#include <fmt/format.h>

#include "context.hpp"

namespace bench {
namespace {

struct Place {
  pid_t process;
  int descriptor;
};

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

// Rank 0 makes it; rank 1 opens rank 0's descriptor through /proc. It has no name that could stay behind.
int open_memory(int rank) {
  Place place{};
  if (rank == 0) {
    place = {getpid(), memfd_create("farsum-bench", MFD_CLOEXEC)};
    if (place.descriptor < 0 || ftruncate(place.descriptor, sizeof(ArenaWords)) != 0) fail("cannot make shared memory");
  }
  require(farsum_broadcast(farsum_world(), &place, sizeof place, 0));
  if (rank == 0) return place.descriptor;
  const int descriptor =
      open(fmt::format("/proc/{}/fd/{}", place.process, place.descriptor).c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) fail("cannot open the shared memory of rank 0");
  return descriptor;
}

}  // namespace

Arena::Arena(int rank) : rank_(rank) {
  const int descriptor = open_memory(rank);
  void* memory = mmap(nullptr, sizeof(ArenaWords), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) fail("cannot map shared memory");
  // Zeroed memory is a valid arena; the words are lock-free and need no construction.
  words_ = static_cast<ArenaWords*>(memory);
  require(farsum_barrier(farsum_world()));
  close(descriptor);
}

void Arena::gate() {
  const std::uint32_t epoch = words_->gate_epoch.load(std::memory_order_acquire);
  // acq_rel: what each rank wrote before the gate is seen by both after it, through arrived and then epoch.
  if (words_->gate_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == rank_count) {
    words_->gate_arrived.store(0, std::memory_order_relaxed);
    words_->gate_epoch.store(epoch + 1, std::memory_order_release);
    futex_wake(words_->gate_epoch);
    return;
  }
  while (words_->gate_epoch.load(std::memory_order_acquire) == epoch) futex_wait(words_->gate_epoch, epoch);
}

void Arena::start_together() {
  const std::uint32_t epoch = words_->line_epoch.load(std::memory_order_acquire);
  if (words_->line_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == rank_count) {
    words_->line_arrived.store(0, std::memory_order_relaxed);
    words_->line_epoch.store(epoch + 1, std::memory_order_release);
    return;
  }
  while (words_->line_epoch.load(std::memory_order_acquire) == epoch) pause();
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
}

bool futex_wake(std::atomic<std::uint32_t>& word) {
  return syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0) == 1;
}

}  // namespace bench
