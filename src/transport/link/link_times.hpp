// The clock of a link at its origin: since when the peer's silence matters, and when to ask, to connect anew and to
// give up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "transport/link/link.hpp"
#include "transport/link/link_state.hpp"

namespace farsum::link {

struct LinkPeriods {
  std::uint64_t timeout_ns = 30'000'000'000;  // without a sign of the peer while something is due; 0: never
  std::uint64_t ping_after_ns = 5'000'000'000;
  std::uint64_t reconnect_after_ns = 10'000'000'000;  // silence that ends a connection
  std::uint64_t backoff_least_ns = 10'000'000;
  std::uint64_t backoff_most_ns = 1'000'000'000;
};

class LinkTimes {
 public:
  explicit LinkTimes(const LinkPeriods& periods) : periods_(periods), backoff_ns_(periods.backoff_least_ns) {}

  // What happens.
  void on_heard(std::uint64_t now_ns);
  void on_cut_off() { is_cut_off_ = true; }  // the wire says so, as it does of a process that is gone
  void on_connecting(std::uint64_t now_ns);
  void on_open() { backoff_ns_ = periods_.backoff_least_ns; }
  void on_broken(std::uint64_t now_ns);  // the next attempt waits, longer each time
  void on_asked(std::uint64_t now_ns);   // with a ping
  void on_answered() { awaits_pong_ = false; }

  // Whether the link is needed, maybe for no more than to hear that letters were received. The silence counts from when
  // it first matters.
  void note_need(bool is_needed, bool is_receipts_only, std::uint64_t now_ns);
  void forget_need() { needed_since_ns_ = never; }
  void count_anew(std::uint64_t now_ns) { needed_since_ns_ = now_ns; }
  void retry_at(std::uint64_t when_ns) { retry_ns_ = when_ns; }
  // Somebody waits to hear that letters were received, for a while; true: nobody did.
  bool expect_receipts(std::uint64_t now_ns);
  bool lapse(std::uint64_t now_ns);  // whether nobody does, or has said so again in time

  bool is_needed() const { return needed_since_ns_ != never; }
  bool awaits_pong() const { return awaits_pong_; }  // of this connection
  bool may_retry(std::uint64_t now_ns) const { return now_ns >= retry_ns_; }
  // The timeout is over.
  bool is_silent(std::uint64_t now_ns) const {
    return periods_.timeout_ns != 0 && now_ns >= quiet_since_ns() + periods_.timeout_ns;
  }
  bool does_silence_count() const { return does_silence_count_; }
  bool is_stuck(std::uint64_t now_ns) const { return now_ns >= reconnect_at_ns(); }  // a connection that says nothing
  bool is_ping_due(std::uint64_t now_ns) const { return now_ns >= ping_at_ns(); }
  // When to look again at a link that is needed; `is_there`: its old connection is not closed yet.
  std::uint64_t deadline_ns(LinkState state, bool is_there) const;

 private:
  std::uint64_t quiet_since_ns() const { return std::max(last_heard_ns_, needed_since_ns_); }
  std::uint64_t reconnect_at_ns() const {
    return std::max(quiet_since_ns(), connected_ns_) + periods_.reconnect_after_ns;
  }
  std::uint64_t ping_at_ns() const { return std::max(quiet_since_ns(), last_ping_ns_) + periods_.ping_after_ns; }

  LinkPeriods periods_;
  std::uint64_t receipts_expected_until_ns_ = 0;  // 0: nobody expects any
  bool does_silence_count_ = false;
  bool is_cut_off_ = false;  // and nothing was heard since
  bool awaits_pong_ = false;
  std::uint64_t last_heard_ns_ = 0, needed_since_ns_ = never, connected_ns_ = 0, last_ping_ns_ = 0, retry_ns_ = 0;
  std::uint64_t backoff_ns_;
};

}  // namespace farsum::link
