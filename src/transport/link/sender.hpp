// The origin's half of a link: gives requests tickets, keeps them until the target has them, hands out each reply once;
// and keeps letters until the target has them. It never blocks: what finds no credit is refused and may be posted again
// later.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.hpp"
#include "transport/link/connection.hpp"
#include "transport/link/control_frames.hpp"
#include "transport/link/letter_box.hpp"
#include "transport/link/link.hpp"
#include "transport/link/link_state.hpp"
#include "transport/link/link_times.hpp"
#include "transport/link/open_requests.hpp"
#include "transport/link/origin_credit.hpp"
#include "transport/link/origin_dues.hpp"
#include "transport/link/origin_report.hpp"
#include "transport/link/outbox.hpp"
#include "transport/link/reply_inbox.hpp"

namespace farsum::link {

struct SenderOptions : LinkOptions, LinkPeriods {
  std::span<const std::byte> address;        // how the target reaches this process; at most 1024 B, kept by the caller
  std::uint64_t may_wait_bytes = 131072;     // charges of requests that may wait which are unanswered at once
  std::uint64_t hold_credit_ns = 1'000'000;  // that others wait for, by a post that was refused and not posted again
};

struct Post {
  std::span<const std::byte> head = {};
  std::span<const std::byte> body = {};
  std::size_t reply_capacity = 0;
  std::span<std::byte> reply_into = {};  // where the reply's data go; empty: they are kept for take_replies
  bool borrow_body = false;              // body is not copied; it stays as it is until the reply is handed out
  bool may_wait = false;  // its reply may wait for what other ranks do (locks, teams, and what rides behind them)
  // It is held, to leave in one frame with what is posted next: when that frame is full, with the next post that may
  // not be held, and at flush(). Behind a request that waits for the wire it is not.
  bool may_hold = false;
};

class LinkSender {
 public:
  static constexpr std::uint64_t never = link::never;
  using TakeReply = link::TakeReply;

  LinkSender(const SenderOptions& options, Wire& wire);

  // Tickets are 0, 1, 2, ...; nothing where there is no credit now: what was asked for is then asked of the target, and
  // a reply (has_replies) or on_frame brings it. The first post opens the link and finds no credit. On a link that has
  // failed every post is taken and answered Code::peer_failed. head + body and reply_capacity must fit a frame
  // (max_message_bytes, max_reply_bytes). What throws for want of memory has done nothing. head may be reused on
  // return, body too unless borrowed.
  std::optional<std::uint64_t> post(const Post& post, std::uint64_t now_ns);
  // Sends a letter of at most max_letter_bytes, which costs no credit; opens the link where it is idle. False: so many
  // letters are kept already, and each frame that is taken in or let go of may make room
  // (has_room_for_refused_letter). A link at its end takes and drops it. What throws for want of memory has done
  // nothing. Both parts may be reused on return.
  bool post_letter(std::span<const std::byte> head, std::span<const std::byte> body, std::uint64_t now_ns);
  void flush(std::uint64_t now_ns);  // sends what is held
  void open(std::uint64_t now_ns);   // connects before the first post

  // A frame to this rank that link::decode let through, from the peer and going to the origin.
  Fault on_frame(const Frame& frame, std::uint64_t now_ns);
  void on_sent(FrameId id, bool ok, std::uint64_t now_ns);  // ok == false: counts as on_broken too
  void on_broken(std::uint32_t epoch, std::uint64_t now_ns);
  void on_disconnected(std::uint32_t epoch, std::uint64_t now_ns);

  // Somebody waits for what the peer does. Where it owes nothing but to say that letters were received it is asked for
  // that, and its silence counts from then on, as long as this is called again within half of the timeout, or two
  // seconds where that is longer. Else it counts only behind a connection that the wire has called broken: the peer may
  // be stopped, and nobody minds.
  void expect_receipts(std::uint64_t now_ns);
  // Time passes only here: pings, reconnects, fails. Call it when next_deadline_ns() is reached; earlier does no harm.
  void tick(std::uint64_t now_ns);
  std::uint64_t next_deadline_ns() const;  // `never` where nothing is due, nothing asked for and nothing connecting

  // Hands out replies in the order in which they came, each once. Those whose borrowed body the wire still reads, and
  // all behind them, wait for on_sent. `take` must not call this object.
  std::size_t take_replies(TakeReply take) { return replies_.take_replies(take); }
  bool has_replies() const { return !replies_.is_empty(); }

  // Ends the link: closes the connection, answers what is unanswered with `code`. No reply_into is written any more;
  // memory lent to the wire is free when is_quiet().
  void give_up(Code code);
  bool is_quiet() const { return outbox_.is_quiet() && controls_.is_quiet() && letters_.is_quiet(); }
  // Says goodbye; false while something is unanswered, or a letter not known to be received, which it asks for. Where
  // the peer does not answer, give_up() ends it.
  bool close(std::uint64_t now_ns);

  LinkState state() const { return state_; }
  LinkEnd end() const { return end_; }
  bool has_unreceived_letters() const { return !letters_.is_empty(); }
  bool has_letters_to_send() const {
    return !letters_.is_empty() && (state_ != LinkState::open || !letters_.is_quiet());
  }
  // Of a window's letters one may have asked what was received, and been answered.
  bool has_many_letters() const { return letters_.is_half_full(); }
  // Nothing is due but to hear that letters were received, which nobody waits for: it is early enough at
  // next_deadline_ns().
  bool waits_for_receipts_only() const {
    return state_ == LinkState::open && !dues_.has_unanswered() && !dues_.has_unreceived() && !credit_.is_wanted() &&
           !letters_.is_empty() && is_quiet() && !letters_.is_refused();
  }
  // A letter was refused and none was posted since: who wanted it to be sent may come again.
  bool has_room_for_refused_letter() const { return letters_.is_refused() && !letters_.is_full(); }
  bool holds_back() const { return outbox_.holds_back(); }  // something for later posts to join
  // A post was refused and not posted again: this side is needed.
  bool wants_credit() const { return credit_.is_wanted(); }
  const OriginDues& dues() const { return dues_; }
  const LinkCounters& counters() const { return counters_; }

 private:
  bool has_credit(const Post& post, std::uint64_t cost) const;
  void ask_for_credit(std::uint64_t cost, bool may_wait, std::uint64_t now_ns);
  void go_on(std::uint64_t now_ns) noexcept;
  void fail(LinkEnd end, Code code);
  void start_connecting(std::uint64_t now_ns);
  void break_link(std::uint64_t now_ns);
  void ask_for_received(std::uint64_t now_ns);
  void ping(std::uint64_t now_ns);
  void note_need(std::uint64_t now_ns);
  Fault judge(const FrameHeader& header) const;
  Fault obey(const Frame& frame, std::uint64_t now_ns);
  void on_hello_ack();

  SenderOptions options_;
  LinkCounters counters_;
  Connection connection_;
  ControlFrames controls_;
  Outbox outbox_;
  LetterBox letters_;
  OpenRequests requests_;
  ReplyInbox replies_;
  OriginCredit credit_;
  OriginReport report_;
  OriginDues dues_;
  LinkTimes times_;

  LinkState state_ = LinkState::idle;
  LinkEnd end_ = LinkEnd::none;
  Code failure_ = Code::peer_failed;
  std::uint64_t nonce_ = 0;
};

}  // namespace farsum::link
