#include "transport/link/credit_pool.hpp"

#include <algorithm>

namespace farsum::link {
namespace {

// Idle origins asked to give credit back each time that somebody waits for some.
constexpr std::size_t asked_at_once = 8;
constexpr std::size_t looks_in_vain = 16;

}  // namespace

CreditPool::CreditPool(std::uint64_t budget_bytes, std::uint64_t peers) {
  peers = std::max<std::uint64_t>(peers, 1);
  total_ = std::max(budget_bytes, 2 * peers * least_base + 2 * turn_bytes);
  base_ = std::clamp(total_ / 4 / peers, least_base, most_base);
  shared_ = total_ - peers * base_ - turn_bytes;
}

void CreditPool::leave(CreditTaker& taker, CreditShare& share) {
  give_back(share, share.grown + share.turn);
  share.waits = false;
  std::erase_if(waiters_, [&](const Waiter& waiter) { return waiter.taker == &taker; });
  std::erase(joined_, &taker);
  to_look_at_ = 0;
  changed_ = true;
}

std::uint64_t CreditPool::can_grow(const CreditShare& share, std::uint64_t wanted) const {
  const std::uint64_t most = std::max(free_bytes() / 2, turn_bytes);
  return std::min({wanted, free_bytes(), most - std::min(most, share.grown)});
}

std::uint64_t CreditPool::grow(CreditShare& share, std::uint64_t bytes) {
  share.grown += bytes;
  grown_ += bytes;
  return bytes;
}

bool CreditPool::take_turn(CreditTaker& taker, CreditShare& share, std::uint64_t wanted) {
  const bool is_taken = turn_ != share.turn;
  if (is_taken || share.turn + wanted > turn_bytes) return false;
  share.turn = turn_ += wanted;
  turn_holder_ = &taker;
  return true;
}

void CreditPool::give_back(CreditShare& share, std::uint64_t bytes) {
  if (bytes == 0) return;
  const std::uint64_t of_turn = std::min(share.turn, bytes);
  share.turn -= of_turn;
  turn_ -= of_turn;
  share.grown -= bytes - of_turn;
  grown_ -= bytes - of_turn;
  changed_ = true;
}

void CreditPool::wait(CreditTaker& taker, CreditShare& share) {
  if (share.waits) return;
  share.waits = true;
  waiters_.push_back({&taker, &share});
  changed_ = true;
}

void CreditPool::hand_out() {
  if (waiters_.empty()) return;
  if (changed_) serve_waiters();
  if (waiters_.empty()) return;
  if (turn_ != 0) turn_holder_->return_idle_credit();
  std::size_t asked = 0;
  for (; to_look_at_ != 0 && asked != asked_at_once; --to_look_at_) {
    if (joined_[next_to_ask_++ % joined_.size()]->return_idle_credit()) ++asked;
  }
}

void CreditPool::serve_waiters() {
  changed_ = false;
  to_look_at_ = joined_.size();
  std::size_t in_vain = 0;
  for (std::size_t left = waiters_.size(); left != 0; --left) {
    // Whoever comes next may take the reserve; without it a few more may be content with what is free.
    if (turn_ != 0 && (free_bytes() == 0 || in_vain == looks_in_vain)) return;
    const Waiter waiter = waiters_.front();
    waiters_.pop_front();
    waiter.share->waits = false;
    if (waiter.taker->take_credit()) continue;
    ++in_vain;
    waiter.share->waits = true;
    waiters_.push_back(waiter);
  }
}

}  // namespace farsum::link
