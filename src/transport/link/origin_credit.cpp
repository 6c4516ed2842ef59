#include "transport/link/origin_credit.hpp"

#include <algorithm>

namespace farsum::link {
namespace {

// No honest target allows more than this beyond what was spent.
constexpr std::uint64_t most_credit = std::uint64_t{1} << 40;

}  // namespace

void OriginCredit::spend(std::uint64_t cost, bool may_wait) {
  spent_ += cost;
  is_recalled_ = false;
  give_back_at_ns_ = never;
  if (!may_wait || !wanted_at_any_price_) forget_want();
}

void OriginCredit::want(std::uint64_t cost, bool may_wait) {
  if (covers(cost)) return;
  wanted_ = std::max(wanted_, spent_ + returned_ + cost);
  if (!may_wait) wanted_at_any_price_ = true;
}

void OriginCredit::forget_want() {
  wanted_ = 0;
  wanted_at_any_price_ = false;
}

bool OriginCredit::can_be_allowed(std::uint64_t credit) const { return credit <= spent_ + returned_ + most_credit; }

void OriginCredit::allow(std::uint64_t credit) { allowed_ = std::max(allowed_, credit); }

bool OriginCredit::must_ask() const {
  if (!is_short()) return false;
  const bool is_known = wanted_ <= asked_for_ && (asked_at_any_price_ || !wanted_at_any_price_);
  return asked_at_ != allowed_ + 1 || !is_known;
}

OriginCredit::Question OriginCredit::ask() {
  if (!is_short()) return {};
  asked_at_ = allowed_ + 1;
  asked_for_ = wanted_;
  asked_at_any_price_ = wanted_at_any_price_;
  return {wanted_at_any_price_ ? std::uint64_t{1} : 0, wanted_};
}

void OriginCredit::forget_question() {
  asked_at_ = 0;
  give_back_at_ns_ = never;
}

bool OriginCredit::on_recall(std::uint64_t may_keep, std::uint64_t now_ns) {
  may_keep_ = may_keep;
  is_recalled_ = true;
  if (!is_wanted() || is_short()) return true;
  give_back_at_ns_ = now_ns + hold_credit_ns_;
  return false;
}

void OriginCredit::give_back() {
  give_back_at_ns_ = never;
  const std::uint64_t back = unspent() - std::min(unspent(), may_keep_);
  returned_ += back;
  if (wanted_ != 0) wanted_ += back;
}

}  // namespace farsum::link
