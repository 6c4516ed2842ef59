// How the agent of one rank sleeps and what ends its sleep: rings, what comes on its descriptors once it has a network,
// replies while somebody asks that they be watched, a look that is due, and the stop. It decides and does no I/O.
// docs/internals/bell.md has its states, its transitions and what is checked.
#pragma once

#include <cstdint>

#include "lockfree/doorbell.hpp"

namespace farsum {

// What ended a wait on descriptors.
enum class WaitEnd : std::uint8_t {
  something,      // or a failure, which is as good: the agent looks, and comes back
  watch_is_over,  // a reply has come, or it is time to look after replies
  time_is_up,     // the caller's
};

// Who may call: one thread, the agent's, calls sleep(), take_look() and pass(); any number of threads of its process
// the rest. Others ring the doorbell. It lives in the process, so nobody outlives a crash.
//
// Descriptors is what it sleeps on where there is a network:
//   bool arm()                       what it waits for makes them readable from here on; false: there is some now
//   bool arm_replies()               the same for replies
//   WaitEnd wait(watches, timeout)   sleeps until one of them is readable, those of replies only where it watches; it
//                                    empties the doorbell's own before it returns, not before it sleeps
//   void wake()                      makes the doorbell's own readable; any thread
template <class Policy, class Descriptors, class Doorbell = BasicDoorbell<Policy>>
class BasicBell {
 public:
  BasicBell(Doorbell& doorbell, Descriptors& descriptors) : doorbell_(doorbell), descriptors_(descriptors) {}

  // Sleeps until there may be something to do, at most timeout_ns nanoseconds (0 means for ever); false when the time
  // was up.
  bool sleep(std::uint64_t timeout_ns) {
    // Acquire pairs with add_network: the descriptors are there.
    const std::uint32_t seen = state_.load(std::memory_order_acquire);
    if ((seen & look_due) != 0) return true;
    // seq_cst, after the doorbell was armed: see Doorbell::sleep.
    const auto is_as_seen = [&] { return state_.load(std::memory_order_seq_cst) == seen; };
    if ((seen & on_descriptors) == 0) return doorbell_.sleep(timeout_ns, is_as_seen);
    return sleep_on_descriptors(is_as_seen, (seen & watching) != 0, timeout_ns);
  }

  // Whether a look was due: one was asked for, or a watch has ended, which is over then. What is asked for from here on
  // is another look.
  bool take_look() {
    // Relaxed: a miss is caught before the next sleep.
    if ((state_.load(std::memory_order_relaxed) & look_due) == 0) return false;
    // Acquire pairs with what asks: what was left before a look was asked for can be seen by it.
    state_.fetch_and(~(look_due | watching), std::memory_order_acquire);
    return true;
  }

  // Called in place of sleep() by an agent that never sleeps: a watch is over at once.
  void pass() {
    // Relaxed: a miss is caught at the next pass.
    if ((state_.load(std::memory_order_relaxed) & watching) != 0) end_watch();
  }

  // Makes this and every later sleep return at once.
  void stop() {
    doorbell_.wake([this] { descriptors_.wake(); });
  }
  bool stopped() const { return doorbell_.stopped(); }

  // There is a network, or more to sleep on than before: this and every later sleep is on the descriptors.
  void add_network() {
    if (!set(on_descriptors)) ask_for_look();
  }
  // Replies end the agent's sleep, too, until a look is due. Nothing without a network, as the next.
  void watch() {
    if (has_network()) set(watching);
  }
  // Has the agent take a look before it sleeps again.
  void ask_for_look() {
    if (has_network()) set(look_due);
  }

 private:
  // The state is a set of these. Only the agent takes out any, in take_look().
  static constexpr std::uint32_t on_descriptors = 1;
  static constexpr std::uint32_t watching = 2;
  static constexpr std::uint32_t look_due = 4;

  template <class IsAsSeen>
  bool sleep_on_descriptors(IsAsSeen&& is_as_seen, bool watches, std::uint64_t timeout_ns) {
    if (!descriptors_.arm()) return true;
    if (watches && !descriptors_.arm_replies()) {
      end_watch();
      return true;
    }
    WaitEnd end = WaitEnd::something;
    const bool woken = doorbell_.sleep_on_descriptor(is_as_seen, [&] {
      end = descriptors_.wait(watches, timeout_ns);
      return end != WaitEnd::time_is_up;
    });
    if (end == WaitEnd::watch_is_over) end_watch();
    return woken;
  }

  // Relaxed: the agent tells itself.
  void end_watch() { state_.fetch_or(look_due, std::memory_order_relaxed); }

  // Acquire: whoever knows of the network finds it here.
  bool has_network() const { return (state_.load(std::memory_order_acquire) & on_descriptors) != 0; }

  // Ends the agent's sleep if `bit` is new; else who set it has done so or is about to, or the agent is awake. Returns
  // whether it is.
  bool set(std::uint32_t bit) {
    // seq_cst: before the look at whether the doorbell is armed, see Doorbell::sleep. It releases what was left.
    if ((state_.fetch_or(bit, std::memory_order_seq_cst) & bit) != 0) return false;
    doorbell_.rouse([this] { descriptors_.wake(); });
    return true;
  }

  using Word = typename Policy::template Atomic<std::uint32_t>;

  Doorbell& doorbell_;
  Descriptors& descriptors_;
  Word state_{};
};

}  // namespace farsum
