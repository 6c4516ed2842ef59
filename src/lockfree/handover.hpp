// What a member of a group leaves for another, who reads it when it comes to it, while the member goes on: who may
// write to which place when, and who wakes whom. Waiting itself is the caller's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/units.hpp"
#include "lockfree/said_of_call.hpp"
#include "os/event_count.hpp"

namespace farsum {

// Written by one member. Zeroed memory is valid.
template <class Policy>
struct BasicHandoverPart {
  using Word = typename Policy::template Atomic<std::uint64_t>;
  // Data that are few go over in the line that says that they are there.
  struct alignas(cache_line_bytes) Line {
    static constexpr std::size_t data_bytes = 40;

    Word number;  // of what lies here; 0 while it is written
    Word what;
    Word count;
    std::byte data[data_bytes];
  };
  // Of calls with even and with odd numbers. Processors fetch lines in pairs: who reads these does not look at `done`.
  alignas(2 * cache_line_bytes) Line lines[2];
  // The last call in which the member has read all that it reads there.
  alignas(2 * cache_line_bytes) Word done;
};

// One member's view of calls that all members make in the same order, each of which has a number. In a call a member
// may leave something in its place, once, for one reader or for all others. It is written to again two calls later, or
// later still, when whoever it was left for has said that it has read it: which reader that is, is remembered with the
// place, as other calls lie in between that have other readers.
//
// Who may call: one thread of each member at a time. What a member has said of a call can be looked at by all; its data
// by those alone for whom they were left, and until they finish().
//
// Nobody waits in a circle: whoever waits in a call does so for something that another does when it comes to that call,
// or has done when it left an earlier one. This holds only where each member says in each call that it has read, were
// it nothing. A crash: whoever is killed before a number is stored has said nothing, and before `done`, has not read;
// the others learn of the death elsewhere. One that is killed between either store and the notification leaves them
// asleep until they look after the dead.
template <class Policy, class Events = BasicEventCount<Policy>>
class BasicHandover {
 public:
  using Part = BasicHandoverPart<Policy>;
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};
  static constexpr std::uint32_t all_others = nobody - 1;

  // `slots` has two of slot_bytes for each member. Others sleep in `events` for whatever this member does.
  BasicHandover(Part* parts, std::byte* slots, std::size_t slot_bytes, std::uint32_t members, std::uint32_t me,
                Events& events)
      : parts_(parts), slots_(slots), slot_bytes_(slot_bytes), members_(members), me_(me), events_(events) {}

  // The next call.
  void begin() { ++call_; }
  std::uint64_t calls() const { return call_; }

  // Who has not yet read what lies in this call's place; if anybody, leave() has to wait for it.
  std::optional<std::uint32_t> slow_reader() {
    Left& left = lefts_[call_ & 1];
    if (left.reader != all_others) {
      if (left.reader == nobody || has_read(left.reader)) return std::nullopt;
      return left.reader;
    }
    for (; left.have_read < members_; ++left.have_read)
      if (left.have_read != me_ && !has_read(left.have_read)) return left.have_read;
    return std::nullopt;
  }
  // Whether that member has read what lies there. Acquire pairs with the release in finish(): it reads no more.
  bool has_read(std::uint32_t member) const {
    return parts_[member].done.load(std::memory_order_acquire) >= lefts_[call_ & 1].call;
  }

  // This member reads nothing in this call. Before leave(), whose notification tells of it.
  void read_nothing() { parts_[me_].done.store(call_, std::memory_order_release); }

  // Where nobody is slow: says this of the call, with data for the reader alone. Sleepers are woken all at once, or,
  // with `at_once`, so many, who wake as many each.
  void leave(const SaidOfCall& said, std::span<const std::byte> data, std::uint32_t reader, std::uint32_t at_once = 0) {
    auto& line = line_of(me_);
    // Relaxed: what is said next releases it, so that whoever sees that sees this as well.
    line.number.store(0, std::memory_order_relaxed);
    line.what.store(said.what, std::memory_order_release);
    line.count.store(said.count, std::memory_order_release);
    write(data);
    lefts_[call_ & 1] = {.call = call_, .reader = reader};
    publish(first_step, at_once);
  }
  // Says more of the same call, to all others. By one that has left nothing for anybody.
  void say_more(std::span<const std::byte> data) {
    write(data);
    lefts_[call_ & 1].reader = all_others;
    publish(second_step, 0);
  }

  // Whether the member has begun this call, and whether it has said more of it.
  bool has_come(std::uint32_t member) const { return number_of(member) >= number(first_step); }
  bool has_said_more(std::uint32_t member) const { return number_of(member) >= number(second_step); }
  // What a member has said of this call; nothing where it has gone on, and may be writing.
  std::optional<SaidOfCall> said(std::uint32_t member) const {
    const auto& line = line_of(member);
    if (!is_of_this_call(line.number.load(std::memory_order_acquire))) return std::nullopt;
    // Acquire pairs with the releases in leave(): who sees a later word sees that the number is gone.
    const SaidOfCall said{line.what.load(std::memory_order_acquire), line.count.load(std::memory_order_acquire)};
    if (!is_of_this_call(line.number.load(std::memory_order_relaxed))) return std::nullopt;
    return said;
  }
  // Of one that has come, and left so many bytes for this member.
  const std::byte* data(std::uint32_t member, std::size_t bytes) const {
    const std::byte* const at = place(member, bytes);
    Policy::reads(at, bytes);
    return at;
  }

  // This member has read all that it reads in this call. The last that it does there, if not read_nothing().
  void finish() {
    // Release pairs with the acquire in has_read: what is read is read before.
    parts_[me_].done.store(call_, std::memory_order_release);
    events_.notify_all();
  }

 private:
  struct Left {
    std::uint64_t call = 0;
    std::uint32_t reader = nobody;
    std::uint32_t have_read = 0;  // where all others are: the members before this one
  };
  // Of a number the lowest bits are the step. Those of the first call are above that of zeroed memory.
  static constexpr unsigned call_at = 8;
  static constexpr std::uint64_t first_step = 0;
  static constexpr std::uint64_t second_step = 1;

  std::uint64_t number(std::uint64_t step) const { return call_ << call_at | step; }
  bool is_of_this_call(std::uint64_t number) const { return number >> call_at == call_; }
  // Acquire pairs with the release in publish().
  std::uint64_t number_of(std::uint32_t member) const { return line_of(member).number.load(std::memory_order_acquire); }
  typename Part::Line& line_of(std::uint32_t member) const { return parts_[member].lines[call_ & 1]; }
  std::byte* place(std::uint32_t member, std::size_t bytes) const {
    if (bytes <= Part::Line::data_bytes) return line_of(member).data;
    return slots_ + (2 * member + (call_ & 1)) * slot_bytes_;
  }
  void write(std::span<const std::byte> data) {
    if (data.empty()) return;
    std::byte* const at = place(me_, data.size());
    Policy::writes(at, data.size());
    std::memcpy(at, data.data(), data.size());
  }
  void publish(std::uint64_t step, std::uint32_t at_once) {
    line_of(me_).number.store(number(step), std::memory_order_release);
    if (at_once == 0)
      events_.notify_all();
    else
      events_.notify_in_turn(at_once);
  }

  Part* parts_;
  std::byte* slots_;
  std::size_t slot_bytes_;
  std::uint32_t members_;
  std::uint32_t me_;
  Events& events_;
  std::uint64_t call_ = 0;
  // What this member has left in its places, and for whom.
  std::array<Left, 2> lefts_;
};

using HandoverPart = BasicHandoverPart<SystemAtomics>;
using Handover = BasicHandover<SystemAtomics>;

}  // namespace farsum
