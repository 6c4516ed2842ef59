// Which epochs of a window exclude each other, and in which words that is said: a state machine of what is open, pure.
// Each call has its conditions in the order in which they are looked at, and what it changes once none refuses it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace farsum {

// A set of these is the state.
enum EpochBit : std::uint8_t {
  epoch_fence = 1u << 0,       // the epoch of a fence includes every target
  epoch_started = 1u << 1,     // an access epoch of start
  epoch_exposed = 1u << 2,     // an exposure epoch of post
  epoch_all_locked = 1u << 3,  // by lock_all
  epoch_freed = 1u << 4,       // the window is about to go
};
using EpochState = std::uint8_t;

enum class EpochCall : std::uint8_t {
  fence,  // it may begin an epoch or end one: set_fence follows
  start,
  complete,
  post,
  wait,
  lock,
  lock_all,
  unlock_all,
  count,
};

// What is asked of the words of the targets, or of the program's promises, and only where the state leaves it open.
struct EpochFacts {
  virtual ~EpochFacts() = default;
  virtual bool never_locked() const = 0;    // the program has promised it
  virtual bool holds_locks() const = 0;     // of single targets, outside an epoch of fence
  virtual bool is_target_open() const = 0;  // the one that is to be locked
  virtual bool was_fence_used() const = 0;  // operations were issued in its epoch
};

namespace epoch_says {

inline constexpr const char* being_freed = "the window is being freed (farsum_window_prepare_free); no epoch can begin";
inline constexpr const char* lock_held = "a lock is held; unlock it first";
inline constexpr const char* held_already = "this rank holds that lock already; call farsum_unlock first";
inline constexpr const char* others_held = "this rank holds locks already; unlock them first";
inline constexpr const char* start_open = "an epoch of farsum_start is open; complete it first";
inline constexpr const char* post_open = "an epoch of farsum_post is open; call farsum_wait_exposure first";
inline constexpr const char* never_locked = "the window promises never to be locked (FARSUM_NO_LOCKS)";
inline constexpr const char* fence_used =
    "operations were issued in the epoch of a fence; end it with another farsum_fence first";

}  // namespace epoch_says

// One condition: it refuses where `if_any` of the state is set and `unless` is not, and the question, if there is one,
// is answered with yes.
struct EpochCondition {
  EpochState if_any;  // 0: whatever the state
  EpochState unless;  // nothing of this
  bool (EpochFacts::*question)() const;
  const char* why;
};

struct EpochRule {
  std::array<EpochCondition, 6> conditions;  // up to the first without a sentence
  EpochState clears;
  EpochState sets;
};

// By EpochCall.
extern const std::array<EpochRule, static_cast<std::size_t>(EpochCall::count)> epoch_table;

// Why the call cannot be, null where it can.
const char* why_not(EpochCall call, EpochState state, const EpochFacts& facts);
inline EpochState after(EpochCall call, EpochState state) {
  const EpochRule& rule = epoch_table[static_cast<std::size_t>(call)];
  return static_cast<EpochState>((state & ~unsigned{rule.clears}) | rule.sets);
}

}  // namespace farsum
