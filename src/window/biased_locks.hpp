// Locks of all that are held without a visit of any (lockfree/lock_bias.hpp), and what becomes of them when a rank
// wants one of them for itself. Only in windows whose ranks share a node.
#pragma once

#include <cstdint>

#include "lockfree/lock_bias.hpp"
#include "protocol/window_shared.hpp"
#include "window/epoch_words.hpp"
#include "window/local_locks.hpp"
#include "window/offer_pace.hpp"

namespace farsum {

// `hold`, `drop` and `are_held` with the mutex of the rules; note_locked_one_by_one without it, by who has just locked
// all.
class BiasedLocks {
 public:
  // All outlive it; `mine` is this rank's part.
  BiasedLocks(EpochWords& words, LocalLocks& locks, const RankWindow& mine, std::uint32_t my_rank)
      : words_(words), locks_(locks), mine_(mine), my_rank_(my_rank) {}

  bool are_held() const { return epoch_ != 0; }
  // False, and nothing has changed, where they cannot be held so now.
  bool hold();
  void drop();
  // Called by a thread that has locked all, one by one: offers the bias to all from time to time.
  void note_locked_one_by_one();

 private:
  LockBias bias() const { return mine_.bias(); }
  void leave_all();
  void offer();

  EpochWords& words_;
  LocalLocks& locks_;
  const RankWindow& mine_;
  std::uint32_t my_rank_;
  std::uint64_t epoch_ = 0;  // by which all are locked; 0: they are locked one by one, or not at all
  OfferPace pace_;
};

}  // namespace farsum
