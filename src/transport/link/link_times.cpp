#include "transport/link/link_times.hpp"

#include <utility>

namespace farsum::link {
namespace {

// A thread that waits for other ranks says so again before this is over, however long it sleeps.
constexpr std::uint64_t longest_between_looks_ns = 2'000'000'000;

}  // namespace

void LinkTimes::on_heard(std::uint64_t now_ns) {
  last_heard_ns_ = now_ns;
  is_cut_off_ = false;
}

void LinkTimes::on_connecting(std::uint64_t now_ns) {
  connected_ns_ = now_ns;
  awaits_pong_ = false;
}

void LinkTimes::on_broken(std::uint64_t now_ns) {
  retry_ns_ = now_ns + backoff_ns_;
  backoff_ns_ = std::min(2 * backoff_ns_, periods_.backoff_most_ns);
}

void LinkTimes::on_asked(std::uint64_t now_ns) {
  last_ping_ns_ = now_ns;
  awaits_pong_ = true;
}

void LinkTimes::note_need(bool is_needed, bool is_receipts_only, std::uint64_t now_ns) {
  const bool counts = is_needed && (!is_receipts_only || receipts_expected_until_ns_ != 0 || is_cut_off_);
  const bool has_counted = std::exchange(does_silence_count_, counts);
  if (!is_needed) {
    needed_since_ns_ = never;
  } else if (needed_since_ns_ == never || (counts && !has_counted)) {
    needed_since_ns_ = now_ns;
  }
}

bool LinkTimes::expect_receipts(std::uint64_t now_ns) {
  const bool is_new = now_ns >= receipts_expected_until_ns_;
  const std::uint64_t lapse_ns = std::max(periods_.timeout_ns / 2, longest_between_looks_ns);
  receipts_expected_until_ns_ = periods_.timeout_ns == 0 ? never : now_ns + lapse_ns;
  return is_new;
}

bool LinkTimes::lapse(std::uint64_t now_ns) {
  if (now_ns < receipts_expected_until_ns_) return false;
  receipts_expected_until_ns_ = 0;
  return true;
}

std::uint64_t LinkTimes::deadline_ns(LinkState state, bool is_there) const {
  const std::uint64_t next = periods_.timeout_ns == 0 ? never : quiet_since_ns() + periods_.timeout_ns;
  if (state == LinkState::broken) return is_there ? next : std::min(next, retry_ns_);
  const std::uint64_t acts_at =
      state == LinkState::open ? std::min(ping_at_ns(), reconnect_at_ns()) : reconnect_at_ns();
  return std::min(next, acts_at);
}

}  // namespace farsum::link
