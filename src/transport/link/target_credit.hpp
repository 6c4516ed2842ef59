// What a target grants one origin of what its process can spare, and what has come of it.
#pragma once

#include <cstdint>

#include "transport/link/credit_pool.hpp"

namespace farsum::link {

class TargetCredit {
 public:
  // `taker` stands for the link in the pool.
  TargetCredit(CreditPool& pool, CreditTaker& taker, std::uint64_t most_window)
      : pool_(pool), taker_(taker), most_window_(most_window), window_(pool.base()) {}
  TargetCredit(const TargetCredit&) = delete;
  TargetCredit& operator=(const TargetCredit&) = delete;
  ~TargetCredit() { pool_.leave(taker_, share_); }

  void begin();  // the origin has come for the first time, and gets its base
  void end();    // all of it goes back, and nothing is granted or comes back any more

  // Whether there is credit for requests of that cost, where `early` is the cost of what came before its turn, and so
  // much was returned unused.
  bool covers(std::uint64_t cost, std::uint64_t early, std::uint64_t returned) const;
  // Whether so much can have been returned unused.
  bool can_have_returned(std::uint64_t returned, std::uint64_t early) const;
  void spend(std::uint64_t cost) { spent_ += cost; }  // by a request that is received
  void release(std::uint64_t bytes);                  // of a request that was executed, or of a reply that arrived
  void take_back(std::uint64_t returned);             // what the origin has returned unused in all
  // It needs to be allowed so much in all, also what only one at a time gets.
  void want(std::uint64_t upto, bool at_any_price);
  // Tops the window up, to its base only while others wait, unless it is the link's turn. Who waits gets all that it
  // needs or nothing: with a part of it it could do no more than ask again.
  void renew(bool is_next);
  void wait_if_short();  // in the pool's queue
  // Whether the origin is to be asked for what it does not use; it is asked once for each grant.
  bool recall(bool holds_replies);
  void forget_recall() { recalled_ = false; }

  std::uint64_t allowed() const { return allowed_; }              // in all
  std::uint64_t granted() const { return allowed_ - released_; }  // unspent, or for what is held
  std::uint64_t base() const { return pool_.base(); }             // the origin may keep so much
  bool is_short() const { return wanted_ > allowed_; }
  // Whether that more is allowed than the origin was told is worth a frame of its own.
  bool is_worth_telling(std::uint64_t told) const;
  bool has_much_to_grant() const;

 private:
  CreditPool& pool_;
  CreditTaker& taker_;
  std::uint64_t most_window_;
  std::uint64_t spent_ = 0, returned_ = 0, released_ = 0;  // released_: returned_ ones included
  std::uint64_t allowed_ = 0, wanted_ = 0, window_ = 0;
  bool wanted_at_any_price_ = false, recalled_ = false, is_over_ = false;
  CreditShare share_;
};

}  // namespace farsum::link
