// Rounds of a group, in each of which every member says something and hears all others: where it is said, when that
// place is written to again, and who wakes whom. Waiting itself is the caller's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.hpp"
#include "lockfree/said_of_call.hpp"
#include "os/event_count.hpp"

namespace farsum {

// Written by one member. Zeroed memory is valid. Processors fetch lines in pairs: what others look at shares none with
// what they write.
template <class Policy, class Events = BasicEventCount<Policy>>
struct alignas(2 * cache_line_bytes) BasicRoundPart {
  // A member's word to all, with data that are few: they go over in the line that says that they have come.
  struct alignas(cache_line_bytes) Line {
    static constexpr std::size_t data_bytes = 40;

    typename Policy::template Atomic<std::uint64_t> step;
    SaidOfCall said;
    std::byte data[data_bytes];
  };
  Line lines[2];  // of calls with odd and with even numbers
  // Members asleep until this one says more. Written by them, too.
  alignas(2 * cache_line_bytes) Events events;
};

// What a member that waits for another outside of rounds finds.
enum class Awaited : std::uint8_t {
  not_yet,
  done,
  astray,  // the other has gone to a round, and never does it
};

// One member's view. All make the same calls in the same order, each of which is a row of steps, and wait for all at
// each step. So whoever begins a call has left the one before the last behind with all others, and a line for odd and
// for even calls is enough, as is a place beside it for what is longer.
//
// Who may call: one thread of each member at a time. A crash: whoever is killed before its step is stored has not come;
// one that is killed before the notification leaves the others asleep until they look after the dead.
template <class Policy, class Events = BasicEventCount<Policy>>
class BasicRounds {
 public:
  using Part = BasicRoundPart<Policy, Events>;

  BasicRounds(Part* parts, std::uint32_t me) : parts_(parts), me_(me) {}

  // The next call. What this member says in its line is written behind it, and before the first step.
  void begin() { ++call_; }
  std::uint64_t calls() const { return call_; }
  std::uint64_t steps() const { return step_; }
  typename Part::Line& line(std::uint32_t member) const { return parts_[member].lines[call_ & 1]; }
  Events& events(std::uint32_t member) const { return parts_[member].events; }

  // This member comes to the next step. Release pairs with the acquire in has_come.
  void come() { line(me_).step.store(++step_, std::memory_order_release); }
  // The same, where others look at its line or sleep.
  void come_and_tell() {
    come();
    events(me_).notify_all();
  }
  // Acquire pairs with the release in come.
  bool has_come(std::uint32_t member) const { return line(member).step.load(std::memory_order_acquire) >= step_; }
  // Whether a member is in a call that this one has not begun. Acquire: so is what it did before.
  bool has_begun_more(std::uint32_t member) const {
    return parts_[member].lines[(call_ + 1) & 1].step.load(std::memory_order_acquire) > step_;
  }
  // Whether a member has done what it does before its next round: `done` asks what it alone writes.
  template <class Done>
  Awaited look_for(std::uint32_t member, const Done& done) const {
    // In this order: who has begun a round has done all that comes before, were it only now.
    const bool is_further = has_begun_more(member);
    if (done()) return Awaited::done;
    return is_further ? Awaited::astray : Awaited::not_yet;
  }
  // A step to which all come by other means.
  void skip_step() { ++step_; }

 private:
  Part* parts_;
  std::uint32_t me_;
  std::uint64_t call_ = 0;
  std::uint64_t step_ = 0;  // of all calls
};

}  // namespace farsum
