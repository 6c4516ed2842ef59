#include "runtime/promotion_balance.hpp"

#include <algorithm>

namespace farsum {
namespace {

// Finding out what is mapped, stopping threads and the system calls; looking for what was touched, and page tables;
// then two copies and the page faults of both.
constexpr std::int64_t move_ns = 400'000;
constexpr double move_ns_per_byte = 0.04;
constexpr double move_ns_per_touched_byte = 0.36;

// Five milliseconds of promotions a second.
constexpr std::uint64_t time_per_ns_given_back = 200;

}  // namespace

void PromotionBalance::add(std::int64_t ns) { balance_ns_ = std::clamp(balance_ns_ + ns, least_ns, most_ns); }

void PromotionBalance::moved(const MoveCost& cost) {
  const double exact_ns = move_ns_per_byte * static_cast<double>(cost.bytes) +
                          move_ns_per_touched_byte * static_cast<double>(cost.touched_bytes);
  // Longer moves cost no more than all that there is.
  const double ns = std::min(exact_ns, static_cast<double>(2 * most_ns));
  const auto looked_ns = static_cast<std::int64_t>(std::min<std::uint64_t>(cost.looked_ns, 2 * most_ns));
  add(-std::max(move_ns, looked_ns) - static_cast<std::int64_t>(ns));
}

void PromotionBalance::spared(std::uint64_t ns) {
  add(static_cast<std::int64_t>(std::min<std::uint64_t>(ns, 2 * most_ns)));
}

bool PromotionBalance::is_spent(std::uint64_t now_ns) {
  const std::uint64_t passed = asked_ns_ == 0 || now_ns < asked_ns_ ? 0 : now_ns - asked_ns_;
  const auto back = static_cast<std::int64_t>(std::min<std::uint64_t>(passed / time_per_ns_given_back, credit_ns));
  // What is too little to count stays for the next time.
  asked_ns_ = now_ns - passed % time_per_ns_given_back;
  if (balance_ns_ < credit_ns) balance_ns_ = std::min(balance_ns_ + back, credit_ns);
  return balance_ns_ < 0;
}

}  // namespace farsum
