// What one target allows an origin to spend, and what the origin asks for and gives back.
#pragma once

#include <cstdint>

#include "transport/link/link.hpp"

namespace farsum::link {

class OriginCredit {
 public:
  // What the origin says of the credit that it needs: FrameKind::seen's first and stamp.
  struct Question {
    std::uint64_t first = 0, stamp = 0;
  };

  // A request that was refused keeps credit from others for so long before it must have come again.
  explicit OriginCredit(std::uint64_t hold_credit_ns) : hold_credit_ns_(hold_credit_ns) {}

  bool covers(std::uint64_t cost) const { return spent_ + returned_ + cost <= allowed_; }
  void spend(std::uint64_t cost, bool may_wait);
  void want(std::uint64_t cost, bool may_wait);  // by a request that was refused
  void forget_want();
  // No honest target has allowed more than that.
  bool can_be_allowed(std::uint64_t credit) const;
  void allow(std::uint64_t credit);  // in all

  bool is_wanted() const { return wanted_ != 0; }
  bool is_short() const { return wanted_ > allowed_; }
  // What was granted for a request that will not wait for others is not to be spent by one that may.
  bool is_wanted_at_any_price() const { return wanted_at_any_price_; }
  // Whether to ask: once for each amount that is allowed, as more of it may already be on its way, and again where more
  // is wanted than was asked for, or at any price: what was asked for may never be granted while others want theirs.
  bool must_ask() const;
  Question ask();          // what to say, which is then known to the target
  void forget_question();  // it may be lost with its connection

  // The target asks for what no request can use now, but for so much. True: that goes back at once; else a request that
  // was refused and has enough by now gets a while to come again.
  bool on_recall(std::uint64_t may_keep, std::uint64_t now_ns);
  // A request that still waits then needs as much more: it gets all that it needs at once.
  void give_back();
  std::uint64_t give_back_at_ns() const { return give_back_at_ns_; }

  std::uint64_t returned() const { return returned_; }
  // Whether so much would be of use to the target now.
  bool is_much(std::uint64_t bytes) const { return bytes > unspent() / 2 || is_short() || is_recalled_; }

 private:
  std::uint64_t unspent() const { return allowed_ - spent_ - returned_; }

  std::uint64_t hold_credit_ns_;
  std::uint64_t spent_ = 0, returned_ = 0, allowed_ = 0;     // spent_ + returned_ <= allowed_
  std::uint64_t wanted_ = 0, asked_for_ = 0, asked_at_ = 0;  // asked_at_: allowed_ when it was last asked for, plus 1
  bool wanted_at_any_price_ = false, asked_at_any_price_ = false, is_recalled_ = false;
  std::uint64_t may_keep_ = 0, give_back_at_ns_ = never;
};

}  // namespace farsum::link
