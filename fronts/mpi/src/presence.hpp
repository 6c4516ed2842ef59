// When a thread that polls inside the MPI library attends: once it has polled for a while, and as long as it is there
// nearly all the time. All times are ticks of the time stamp counter, 1 to 5 in a nanosecond, and come from outside.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace farsum::mpi {

class Presence {
 public:
  enum class Advice : std::uint8_t { wait, begin, attend, stop };

  // Most waits are shorter than this.
  static constexpr std::uint64_t patience = 100'000;
  // A thread that was away from polling for longer did something else, or had no processor.
  static constexpr std::uint64_t longest_gap = 150'000;
  // It may be away for so small a part of the time, and for so long at once: about what an agent takes to miss it.
  static constexpr std::uint64_t share_away = 16;
  static constexpr std::uint64_t most_credit = 3'000'000;
  // One that was away for longer leaves requests to the agent for a pause, each time for a longer one.
  static constexpr std::uint64_t least_pause = 3'000'000;
  static constexpr std::uint64_t most_pause = 100 * least_pause;

  // The thread polls; `is_new`: for the first time in this call of the library's.
  Advice poll(std::uint64_t now, bool attends, bool is_new) {
    const std::uint64_t gap = now - std::exchange(last_, now);
    if (attends) {
      if (gap <= longest_gap) {
        earn(gap);
        return Advice::attend;
      }
      if (gap <= credit_) {
        credit_ -= gap;
        return Advice::attend;
      }
      leave(now);
      return Advice::stop;
    }
    if (is_new || gap > longest_gap) not_before_ = std::max(not_before_, now + patience);
    return now >= not_before_ ? Advice::begin : Advice::wait;
  }

  void begun(std::uint64_t now) { began_ = now; }
  // Others attend, or serve, at the moment.
  void put_off(std::uint64_t now) { not_before_ = now + patience; }
  // Nobody may attend here.
  void refused(std::uint64_t now) { pause_from(now); }
  // What was asked for was served: however long that took, it was there.
  void served(std::uint64_t now) { earn(now - std::exchange(last_, now)); }
  // It attends no more, for it was away: missed by the agent, or found by itself.
  void leave(std::uint64_t now) {
    // Who was there for long is away seldom.
    if (now - began_ >= share_away * pause_) pause_ = least_pause;
    credit_ = 0;
    pause_from(now);
  }
  // The call ends, and it was there throughout.
  void ended() { pause_ = least_pause; }

 private:
  void earn(std::uint64_t ticks) { credit_ = std::min(credit_ + ticks / share_away, most_credit); }
  void pause_from(std::uint64_t now) {
    not_before_ = now + pause_;
    pause_ = std::min(2 * pause_, most_pause);
  }

  std::uint64_t last_ = 0;        // when it polled last
  std::uint64_t not_before_ = 0;  // it attends no earlier than this
  std::uint64_t began_ = 0;       // to attend
  std::uint64_t credit_ = 0;      // for how long it may be away at once
  std::uint64_t pause_ = least_pause;
};

}  // namespace farsum::mpi
