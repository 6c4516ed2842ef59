#include "transport/link/target_credit.hpp"

#include <algorithm>

namespace farsum::link {
namespace {

// Less than this is granted once a turn: an acknowledgement is not for nothing (docs/notes/network.md, Credit).
constexpr std::uint64_t least_much_bytes = 1 << 20;

}  // namespace

void TargetCredit::begin() {
  pool_.join(taker_);
  allowed_ = pool_.base();
}

void TargetCredit::end() {
  wanted_ = 0;
  pool_.leave(taker_, share_);
  released_ = allowed_;
  is_over_ = true;
}

bool TargetCredit::covers(std::uint64_t cost, std::uint64_t early, std::uint64_t returned) const {
  const std::uint64_t gone = spent_ + early + std::max(returned_, returned);
  return cost <= allowed_ && gone <= allowed_ - cost;
}

bool TargetCredit::can_have_returned(std::uint64_t returned, std::uint64_t early) const {
  return returned <= allowed_ - std::min(allowed_, spent_ + early);
}

void TargetCredit::release(std::uint64_t bytes) {
  if (is_over_) return;  // all of it went back at once
  released_ += bytes;
  pool_.give_back(share_, std::min(bytes, share_.grown + share_.turn));
}

void TargetCredit::take_back(std::uint64_t returned) {
  if (returned <= returned_) return;
  const std::uint64_t back = returned - returned_;
  returned_ = returned;
  recalled_ = false;
  window_ = pool_.base();
  release(back);
}

void TargetCredit::want(std::uint64_t upto, bool at_any_price) {
  // It counts what it is allowed already, too: it may not have been told.
  wanted_ = std::max(wanted_, upto);
  if (upto <= allowed_) return;
  if (at_any_price) wanted_at_any_price_ = true;
  window_ = std::min(std::max(2 * window_, wanted_ - released_), most_window_);
}

void TargetCredit::renew(bool is_next) {
  const std::uint64_t before = allowed_;
  const std::uint64_t out = allowed_ - released_;
  const std::uint64_t goal = pool_.has_waiters() && !is_next ? pool_.base() : window_;
  if (goal > out) {
    const std::uint64_t base_left = pool_.base() - (out - share_.grown - share_.turn);
    const std::uint64_t of_base = std::min(goal - out, base_left);
    allowed_ += of_base;
    const std::uint64_t more = pool_.can_grow(share_, goal - out - of_base);
    if (wanted_ <= allowed_ + more) allowed_ += pool_.grow(share_, more);
  }
  if (is_next && wanted_at_any_price_ && is_short() && pool_.take_turn(taker_, share_, wanted_ - allowed_)) {
    allowed_ = wanted_;
  }
  if (!is_short()) wanted_at_any_price_ = false;
  // A recall that found nothing to return is never answered; what is granted now can be recalled anew.
  if (allowed_ != before) recalled_ = false;
}

void TargetCredit::wait_if_short() {
  if (is_short()) pool_.wait(taker_, share_);
}

bool TargetCredit::recall(bool holds_replies) {
  const bool is_used = allowed_ - spent_ - returned_ <= pool_.base() && !holds_replies;
  if (is_used || recalled_) return false;
  recalled_ = true;
  return true;
}

bool TargetCredit::is_worth_telling(std::uint64_t told) const {
  const bool ends_wait = wanted_ > told && !is_short();
  return ends_wait || allowed_ - told >= window_ / 4;
}

bool TargetCredit::has_much_to_grant() const {
  const std::uint64_t out = allowed_ - released_;
  if (window_ <= out || pool_.has_waiters()) return false;
  return pool_.can_grow(share_, window_ - out) >= std::max(window_ / 2, least_much_bytes);
}

}  // namespace farsum::link
