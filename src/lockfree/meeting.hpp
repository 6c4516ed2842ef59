// How many come to a meeting, again and again, and go on when all have come: who is the last, and who wakes whom.
// Waiting itself is the caller's, and so is whatever the last does for all.
#pragma once

#include <cstdint>

#include "os/event_count.hpp"

namespace farsum {

// Where members arrive: up to `flat` at one line; more in groups of about `fan`, each at a line of its own, and whoever
// is the last of a group arrives for it one level up. So the last of all has waited for nobody's step but arrivals, and
// a line is written by few.
struct MeetingShape {
  std::uint32_t members = 0;
  std::uint32_t flat = 8;
  std::uint32_t fan = 4;

  std::uint32_t groups_of(std::uint32_t count) const { return count <= flat ? 1 : (count + fan - 1) / fan; }
  // Lines beside the topmost.
  std::uint32_t lines() const {
    std::uint32_t sum = 0;
    for (std::uint32_t groups = groups_of(members); groups > 1; groups = groups_of(groups)) sum += groups;
    return sum;
  }
};

// Who may call: each member one thread at a time. Zeroed memory has not met. Rounds are counted for ever, and arrivals
// with them, so that nobody resets anything. A crash: who is killed before it arrives, or as the last before it opens
// the next round, is missing for ever, and the others learn of the death elsewhere; one killed later is missing in the
// next round.
template <class Policy>
class BasicMeeting {
 public:
  using Count = typename Policy::template Atomic<std::uint32_t>;
  struct alignas(64) Line {
    Count arrived;
  };

  BasicMeeting(const MeetingShape& shape, Count& topmost, Line* lines, Count& round, BasicEventCount<Policy>& events)
      : shape_(shape), topmost_(topmost), lines_(lines), round_(round), events_(events) {}

  // Relaxed: the round cannot move before the caller has arrived.
  std::uint32_t round() const { return round_.load(std::memory_order_relaxed); }
  // Acquire pairs with the release in open(): what all did before they arrived has come.
  bool is_over(std::uint32_t round) const { return round_.load(std::memory_order_acquire) != round; }

  // Whether the member is the last of all. It has then seen what all did before they arrived, and has to open().
  bool arrive(std::uint32_t member, std::uint32_t round) {
    // Few meet often: they spare the arithmetic of groups.
    if (shape_.members <= shape_.flat) return is_last(topmost_, shape_.members, round);
    std::uint32_t place = member;
    Line* level = lines_;
    for (std::uint32_t count = shape_.members;;) {
      const std::uint32_t groups = shape_.groups_of(count);
      const auto group = static_cast<std::uint32_t>(std::uint64_t{place} * groups / count);
      const std::uint32_t width = first_of(group + 1, groups, count) - first_of(group, groups, count);
      if (!is_last(groups == 1 ? topmost_ : level[group].arrived, width, round)) return false;
      if (groups == 1) return true;
      level += groups;
      place = group;
      count = groups;
    }
  }

  // By the last: all go on. Sleepers are woken all at once, or, with `at_once`, so many, who wake as many each.
  void open(std::uint32_t round, std::uint32_t at_once) {
    // Release pairs with the acquire in is_over().
    round_.store(round + 1, std::memory_order_release);
    if (at_once == 0)
      events_.notify_all();
    else
      events_.notify_in_turn(at_once);
  }

 private:
  // Of so many that arrive at one line. Acquire and release: the last has seen what the others did, and takes it along.
  static bool is_last(Count& arrived, std::uint32_t width, std::uint32_t round) {
    return arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == (round + 1) * width;
  }
  // The first place of a group: those with place * groups / count >= group.
  static std::uint32_t first_of(std::uint32_t group, std::uint32_t groups, std::uint32_t count) {
    return static_cast<std::uint32_t>((std::uint64_t{group} * count + groups - 1) / groups);
  }

  MeetingShape shape_;
  Count& topmost_;
  Line* lines_;
  Count& round_;
  BasicEventCount<Policy>& events_;
};

using Meeting = BasicMeeting<SystemAtomics>;

}  // namespace farsum
