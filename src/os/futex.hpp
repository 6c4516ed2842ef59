// Futexes on words shared between processes, and the policy through which all shared-memory code reaches atomics and
// sleep. Owner: os. It keeps no state and never retries: a wait that a signal interrupts reports itself as woken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "os/process_barrier.hpp"

namespace farsum {

enum class WaitResult : std::uint8_t {
  woken,      // by a wake or for no reason: look again
  timed_out,  //
  changed,    // the word did not hold the expected value
};

// Sleeps while `word` holds `expected`, at most timeout_ns nanoseconds; 0 means for ever. Any thread may call.
WaitResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns);

// Wakes at most `count` sleepers of `word`, in any process; returns how many it woke.
int futex_wake(std::atomic<std::uint32_t>& word, int count);

// Sleeps about duration_ns nanoseconds, or less when a signal arrives.
void sleep_ns(std::uint64_t duration_ns);

// A field that is protected by a lock whose holder may be killed between any two of its writes. Writes keep their
// program order, so that whoever recovers the lock finds a prefix of them; nothing else is promised.
template <class T>
class GuardedField {
 public:
  // Relaxed: the lock orders readers after writers.
  operator T() const { return value_.load(std::memory_order_relaxed); }

  // Release keeps this write behind the earlier ones; it pairs with the acquire of whoever takes or breaks the lock.
  GuardedField& operator=(T value) {
    value_.store(value, std::memory_order_release);
    return *this;
  }
  GuardedField& operator=(const GuardedField& other) { return *this = static_cast<T>(other); }

 private:
  std::atomic<T> value_;
};

// What the templates of os and lockfree need from the machine. The model checker supplies its own
// (tests/lockfree/explorer.hpp), so that it runs the very same code.
struct SystemAtomics {
  template <class T>
  using Atomic = std::atomic<T>;
  template <class T>
  using Guarded = GuardedField<T>;

  static constexpr int spin_limit = 24;

  static WaitResult wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns) {
    return futex_wait(word, expected, timeout_ns);
  }
  static int wake(std::atomic<std::uint32_t>& word, int count) { return futex_wake(word, count); }

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  // See lockfree/lock_free_permit.hpp.
  static void compiler_barrier() { std::atomic_signal_fence(std::memory_order_seq_cst); }
  static void process_barrier() { os::process_barrier(); }
  static void sleep(std::uint64_t duration_ns) { sleep_ns(duration_ns); }
  static std::uint64_t now_ns() { return monotonic_ns(); }

  // Tell a checker about accesses to plain shared bytes.
  static void reads(const void*, std::size_t) {}
  static void writes(const void*, std::size_t) {}
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && sizeof(std::atomic<std::uint64_t>) == 8);

}  // namespace farsum
