#include "runtime/thread_waiter.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "os/futex.hpp"

namespace farsum {
namespace {

constexpr int first_looks = 24;
constexpr int looks_at_once = 8;
// So many take a network 4 us where nothing has come.
constexpr std::uint64_t longest_looks_ns = 12'000;
// A stream that falters goes on soon; a thread that slept would leave it to the agent, for which it must be woken at
// each piece.
constexpr std::uint64_t looks_in_a_stream = 5;
// For so long a thread looks before it lets others of its processor run, and again before the next time. Its own agent
// may be among them, for whom somebody waits: Linux does not interrupt a thread for one that has just had its share.
constexpr std::uint64_t between_yields_ns = 12'000;
constexpr std::uint64_t look_interval_ns = 100'000'000;
// The idle hook of another runtime is called often at first, then less.
constexpr std::uint64_t first_idle_gap_ns = 20'000;

// Set by has_come(); a wait is within one thread.
thread_local bool has_come_meanwhile = false;

}  // namespace

void ThreadWaiter::has_come() { has_come_meanwhile = true; }

Status ThreadWaiter::check_peers(const char* doing) {
  if (before_look_) before_look_();
  const std::uint32_t dead = watch_.look();
  if (dead == 0) return {};
  return {Code::peer_failed, fmt::format("{}: {}", doing, watch_.fate_of(dead - 1))};
}

// Looks for about as long as a wake-up costs, then sleeps with `sleep(gap)`, which returns at once where done() has
// come true. Between two calls of the idle hook done() is looked at.
Status ThreadWaiter::spin_and_sleep(FunctionRef<bool()> done, FunctionRef<void(std::uint64_t)> sleep, const char* doing,
                                    std::uint64_t longest_spin_ns) {
  std::uint64_t spin_ns = options_.is_crowded ? 0 : longest_spin_ns;
  has_come_meanwhile = false;
  // Most of what is waited for comes within a microsecond: the clock is not read for it.
  for (int i = 0; spin_ns != 0 && i < first_looks; ++i) {
    if (done()) return {};
    SystemAtomics::pause();
  }
  std::uint64_t begin = monotonic_ns();
  std::uint64_t now = begin;
  std::uint64_t yield_at = begin + between_yields_ns;
  while (now - begin < spin_ns) {
    for (int i = 0; i < looks_at_once; ++i) {
      if (done()) return {};
      SystemAtomics::pause();
    }
    const std::uint64_t before = std::exchange(now, monotonic_ns());
    if (std::exchange(has_come_meanwhile, false)) {
      spin_ns = looks_in_a_stream * longest_spin_ns;
      begin = now;
    }
    // What it did there, or others on its processor, is no looking either.
    if (now - before > longest_looks_ns) begin = now;
    if (now < yield_at) continue;
    sched_yield();
    const std::uint64_t back = monotonic_ns();
    begin += back - now;  // what others have used is no looking
    now = back;
    yield_at = now + between_yields_ns;
  }
  // A death that is known already is not slept upon.
  if (watch_.known_dead() != 0) {
    if (Status status = check_peers(doing); !status.is_ok()) return done() ? Status() : std::move(status);
  }
  std::uint64_t gap = options_.idle ? std::min(first_idle_gap_ns, gap_ns()) : gap_ns();
  std::uint64_t last_look = now;
  for (;;) {
    if (options_.idle && quiet_.load(std::memory_order_relaxed) == 0) options_.idle();
    sleep(gap);
    if (done()) return {};
    gap = std::min(gap * 2, gap_ns());
    now = monotonic_ns();
    if (now - last_look < look_interval_ns && watch_.known_dead() == 0) continue;
    last_look = now;
    if (Status status = check_peers(doing); !status.is_ok()) {
      // It may have come true just before the death.
      return done() ? Status() : std::move(status);
    }
  }
}

Status ThreadWaiter::wait(EventCount& where, FunctionRef<bool()> done, const char* doing) {
  if (done()) return {};
  const bool for_replies = &where == &own_ && before_sleep_;
  bool is_looking = for_replies;
  if (is_looking) lookers_.fetch_add(1, std::memory_order_relaxed);
  const auto end_looking = [&] {
    if (std::exchange(is_looking, false)) lookers_.fetch_sub(1, std::memory_order_relaxed);
  };
  // Once for the whole wait: the agent wakes its sleepers at each look, and one that had it look again before each
  // sleep would keep it and itself awake.
  bool is_handed_over = false;
  const auto sleep = [&](std::uint64_t gap) {
    end_looking();
    const std::uint32_t key = where.prepare();
    // What comes from here on is taken in by the agent, who then wakes whoever it sees waiting: seq_cst, as the look.
    if (for_replies && !std::exchange(is_handed_over, true)) {
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      before_sleep_();
    }
    if (done()) {
      where.cancel();
    } else {
      slept_.fetch_add(1, std::memory_order_relaxed);
      where.wait(key, gap);
    }
  };
  // Relaxed: nothing is ordered by how long a thread looks.
  Status status = spin_and_sleep(done, sleep, doing,
                                 for_replies ? reply_spin_ns_.load(std::memory_order_relaxed) : options_.spin_ns);
  end_looking();
  if (is_handed_over) sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return status;
}

void ThreadWaiter::give_way() {
  if (options_.is_crowded) sched_yield();
}

Status ThreadWaiter::looked_in_vain(const char* doing) {
  const std::uint64_t now = monotonic_ns();
  // Relaxed: two threads that look at the peers at once do no harm.
  if (now - last_vain_look_ns_.load(std::memory_order_relaxed) < look_interval_ns && watch_.known_dead() == 0)
    return {};
  last_vain_look_ns_.store(now, std::memory_order_relaxed);
  return check_peers(doing);
}

Status ThreadWaiter::wait_word(std::atomic<std::uint32_t>& word, std::uint32_t while_value, const char* doing) {
  // Relaxed: whoever asked for the wait reads it again with the order it needs.
  const auto changed = [&] { return word.load(std::memory_order_relaxed) != while_value; };
  const auto sleep = [&](std::uint64_t gap) {
    slept_.fetch_add(1, std::memory_order_relaxed);
    futex_wait(word, while_value, gap);
  };
  return spin_and_sleep(changed, sleep, doing, options_.spin_ns);
}

}  // namespace farsum
