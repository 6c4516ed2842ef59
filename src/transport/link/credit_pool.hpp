// What a process spares for the requests of others, shared out among the origins: the bound on its memory whatever they
// send. Belongs to the thread that drives the receivers.
//
// Each origin has a base for good. Beyond it a window grows out of what is free, at most to half of that, so that a new
// origin always finds something. One reserve goes to one origin at a time for a request that will not wait for other
// ranks: its credit comes back in any case, so each origin is served in turn even where idle ones hold all the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace farsum::link {

// One receiver's part of the pool, beyond its base.
struct CreditShare {
  std::uint64_t grown = 0;
  std::uint64_t turn = 0;  // of the reserve
  bool waits = false;
};

class CreditTaker {
 public:
  virtual ~CreditTaker() = default;
  virtual bool take_credit() = 0;         // true: has what it wanted
  virtual bool return_idle_credit() = 0;  // asks its origin for what that does not use; false: nothing to ask for
};

class CreditPool {
 public:
  static constexpr std::uint64_t least_base = 1024, most_base = 8192, turn_bytes = 1 << 18;

  // All windows together stay within the larger of budget_bytes and 2 KiB a peer + 512 KiB.
  CreditPool(std::uint64_t budget_bytes, std::uint64_t peers);

  std::uint64_t base() const { return base_; }
  std::uint64_t total() const { return total_; }
  std::uint64_t used() const { return joined_.size() * base_ + grown_ + turn_; }
  bool has_waiters() const { return !waiters_.empty(); }

  void join(CreditTaker& taker) { joined_.push_back(&taker); }
  void leave(CreditTaker& taker, CreditShare& share);
  // How much of `wanted` is free for this one; and taking so much.
  std::uint64_t can_grow(const CreditShare& share, std::uint64_t wanted) const;
  std::uint64_t grow(CreditShare& share, std::uint64_t bytes);
  // Takes credit out of the reserve, if nobody else has of it.
  bool take_turn(CreditTaker& taker, CreditShare& share, std::uint64_t wanted);
  void give_back(CreditShare& share, std::uint64_t bytes);
  // take_credit() comes out of hand_out() until it answers true. While somebody waits, those who hold credit are asked
  // for what they do not use.
  void wait(CreditTaker& taker, CreditShare& share);
  void hand_out();

 private:
  void serve_waiters();
  std::uint64_t free_bytes() const { return shared_ - grown_; }

  std::uint64_t base_, total_, shared_;  // shared_: total less bases and reserve
  std::uint64_t grown_ = 0, turn_ = 0;
  CreditTaker* turn_holder_ = nullptr;
  bool changed_ = false;  // since the waiters were last served
  struct Waiter {
    CreditTaker* taker;
    CreditShare* share;
  };
  std::deque<Waiter> waiters_;
  std::vector<CreditTaker*> joined_;
  std::size_t next_to_ask_ = 0, to_look_at_ = 0;  // of joined_
};

}  // namespace farsum::link
