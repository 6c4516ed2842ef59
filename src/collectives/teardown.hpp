// How the ranks of a window part: they agree that nobody uses it any more, and the last to go releases it. Ranks that
// wait for each other in a circle, because each frees its windows in another order, see it and go on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "base/units.hpp"
#include "lockfree/awaited_rank.hpp"
#include "os/event_count.hpp"
#include "progress/waiter.hpp"

namespace farsum {

// It lies in the node segment; zeroed memory is a valid block.
struct TeardownBlock {
  // Written by ranks that will not touch the others' parts again, and by those that will not touch this block again.
  alignas(cache_line_bytes) std::atomic<std::uint32_t> ended_access;
  std::atomic<std::uint32_t> departed;
  // Members asleep in agree().
  EventCount events;
  // Then two words per rank, written by it: what it said in its last odd and its last even round.

  static std::size_t footprint(std::uint32_t ranks) {
    return sizeof(TeardownBlock) + round_up(ranks * 2 * sizeof(std::uint64_t), cache_line_bytes);
  }
};

// Finds out whether ranks that free windows wait for each other in a circle. Where it answers yes it is so: every rank
// of it has been in the same wait for as long as the patience, and what it waits for had not come at the end. That
// holds for ranks of which one thread makes and frees windows; others are taken out. One thread of a rank calls, but
// for take_out.
class TeardownCircle {
 public:
  using AwaitedBy = std::function<AwaitedRank&(Rank)>;
  // What offsets of words are counted in. A rank looks at words of windows that it is not in, and has not mapped.
  struct Words {
    const std::byte* segment = nullptr;
    std::function<std::optional<std::uint64_t>(std::uint64_t offset)> read;  // as an acquire load
  };
  TeardownCircle(AwaitedBy awaited_by, Words words, std::uint32_t ranks, Rank me,
                 std::chrono::milliseconds patience = std::chrono::milliseconds(100))
      : awaited_by_(std::move(awaited_by)), words_(std::move(words)), ranks_(ranks), me_(me), patience_(patience) {}

  // This rank waits for `rank` of the job until `word` shows `least`. Called again and again while it does.
  void wait_for(Rank rank, const std::atomic<std::uint64_t>& word, std::uint64_t least);
  // Whether the circle has stood for long enough.
  bool is_closed();
  void stop();
  // This rank has several threads, one of which may be about to do what others wait for: it is in no circle from now
  // on.
  void take_out() { out_.store(true, std::memory_order_release); }

 private:
  std::vector<std::uint64_t> look() const;

  AwaitedBy awaited_by_;
  Words words_;
  std::uint32_t ranks_;
  Rank me_;
  std::chrono::milliseconds patience_;
  std::uint32_t serial_ = 0;
  AwaitedRank::Wait current_;
  std::atomic<bool> waits_{false};  // atomic for the moment of take_out only: relaxed
  std::atomic<bool> out_{false};
  std::vector<std::uint64_t> seen_;
  std::chrono::steady_clock::time_point seen_at_;
};

// One member's view of a block. One thread of a rank calls at a time.
class Teardown {
 public:
  Teardown(TeardownBlock& block, const std::vector<Rank>& ranks, std::uint32_t my_rank, Waiter& waiter)
      : block_(block), ranks_(ranks), my_rank_(my_rank), waiter_(waiter) {}

  struct Answer {
    Code code = Code::ok;    // the first that is not ok
    std::uint32_t rank = 0;  // whose it is
    bool all_came = true;    // false: a circle was left, and the others have yet to come
    bool some_left = false;  // a rank has left a circle, and comes to no further round
  };
  // Says whether this rank is ready to part, and waits for what the others say. After an answer of ok this rank is
  // taken for ready for ever.
  Status agree(Code mine, TeardownCircle& circle, const char* doing, Answer& answer);

  // How often this rank has met the others here.
  std::uint64_t meetings() const { return round_; }

  // This rank will not touch the others' parts again.
  void end_access();
  // Whether all have said that.
  bool all_ended_access() const;
  // The caller's last use of the block; true for the last member, who may give it back.
  bool depart();

 private:
  std::atomic<std::uint64_t>& said(std::uint32_t rank, std::uint64_t round) const;

  TeardownBlock& block_;
  std::vector<Rank> ranks_;
  std::uint32_t my_rank_;
  Waiter& waiter_;
  std::uint64_t round_ = 0;
};

}  // namespace farsum
