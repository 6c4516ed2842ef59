// The origin's half of a link: gives requests tickets, keeps them until the target has them, hands out each reply once;
// and keeps letters until the target has them. It never blocks: what finds no credit is refused and may be posted again
// later.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.hpp"
#include "base/status.hpp"
#include "transport/link/connection.hpp"
#include "transport/link/control_frames.hpp"
#include "transport/link/early_frames.hpp"
#include "transport/link/fifo.hpp"
#include "transport/link/letter_box.hpp"
#include "transport/link/link.hpp"
#include "transport/link/outbox.hpp"

namespace farsum::link {

enum class LinkState : std::uint8_t {
  idle,        // no connection and no need of one
  connecting,  // hello sent
  open,
  broken,   // the connection is being closed, or the next attempt waits
  closing,  // bye sent
  closed,
  failed,  // for good: everything is answered with Code::peer_failed
};

// Why a link has failed.
enum class LinkEnd : std::uint8_t {
  none,
  silence,   // no sign of the peer for the timeout
  refused,   // by a peer that was told this side is dead
  given_up,  // on this side's word
};

struct SenderOptions : LinkOptions {
  std::span<const std::byte> address;         // how the target reaches this process; at most 1024 B, kept by the caller
  std::uint64_t may_wait_bytes = 131072;      // charges of requests that may wait which are unanswered at once
  std::uint64_t timeout_ns = 30'000'000'000;  // without a sign of the peer while something is due; 0: never
  std::uint64_t ping_after_ns = 5'000'000'000;
  std::uint64_t reconnect_after_ns = 10'000'000'000;  // silence that ends a connection
  std::uint64_t backoff_least_ns = 10'000'000;
  std::uint64_t backoff_most_ns = 1'000'000'000;
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
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  using TakeReply = FunctionRef<void(std::uint64_t ticket, Code code, std::span<const std::byte> data)>;

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
  std::size_t take_replies(TakeReply take);
  bool has_replies() const { return !inbox_.empty(); }

  // Ends the link: closes the connection, answers what is unanswered with `code`. No reply_into is written any more;
  // memory lent to the wire is free when is_quiet().
  void give_up(Code code);
  bool is_quiet() const { return outbox_.is_quiet() && controls_.is_quiet() && letters_.is_quiet(); }
  // Says goodbye; false while something is unanswered, or a letter not known to be received, which it asks for. Where
  // the peer does not answer, give_up() ends it.
  bool close(std::uint64_t now_ns);

  LinkState state() const { return state_; }
  LinkEnd end() const { return end_; }
  bool has_unreceived() const { return outbox_.holds_frames(); }
  bool has_unreceived_letters() const { return !letters_.is_empty(); }
  bool has_letters_to_send() const {
    return !letters_.is_empty() && (state_ != LinkState::open || !letters_.is_quiet());
  }
  // Of a window's letters one may have asked what was received, and been answered.
  bool has_many_letters() const { return letters_.is_half_full(); }
  // Nothing is due but to hear that letters were received, which nobody waits for: it is early enough at
  // next_deadline_ns().
  bool waits_for_receipts_only() const {
    return state_ == LinkState::open && unanswered_ == 0 && !outbox_.holds_frames() && wanted_ == 0 &&
           !letters_.is_empty() && is_quiet() && !is_letter_refused_;
  }
  // A letter was refused and none was posted since: who wanted it to be sent may come again.
  bool has_room_for_refused_letter() const { return is_letter_refused_ && !letters_.is_full(); }
  bool holds_back() const { return outbox_.holds_back(); }  // something for later posts to join
  // And nothing else is unanswered or not received: no need of a link.
  bool holds_all_back() const { return holds_all_requests_back() && letters_.is_empty(); }
  bool has_unanswered() const { return unanswered_ != 0; }
  bool wants_credit() const { return wanted_ != 0; }  // a post was refused and not posted again: this side is needed
  const LinkCounters& counters() const { return counters_; }

 private:
  struct Request {
    std::uint64_t charge = 0;
    std::uint64_t frame = 0;  // that holds it
    std::uint32_t reply_capacity = 0;
    bool answered = false, taken = false;
    bool may_wait = false, borrowed = false;
    std::span<std::byte> reply_into;
  };
  // One entry of the target's, or what give_up() answers.
  struct Reply {
    std::uint64_t ticket = 0;
    std::uint32_t count = 1;
    Code code = Code::ok;
    std::unique_ptr<std::byte[]> kept;
    std::span<const std::byte> data;
  };

  bool has_credit(const Post& post, std::uint64_t cost) const;
  void ask_for_credit(std::uint64_t cost, bool may_wait, std::uint64_t now_ns);
  void tell_want();
  void append(const Post& post, std::uint64_t cost);
  void send_appended(const Post& post, bool joins_unheld, std::uint64_t now_ns) noexcept;
  void send_letters(std::uint64_t now_ns) noexcept;
  std::uint64_t answer_at_once();
  void fail(LinkEnd end, Code code);
  void start_connecting(std::uint64_t now_ns);
  void break_link(std::uint64_t now_ns);
  void be_cut_off(std::uint64_t now_ns);
  bool holds_all_requests_back() const;
  bool owes_requests() const;
  bool needs_link() const;
  bool is_owed_receipts_only() const;
  bool has_asked_nothing() const { return state_ == LinkState::open && is_owed_receipts_only() && !awaits_pong_; }
  void ask_for_received(std::uint64_t now_ns);
  void ping(std::uint64_t now_ns);
  void note_need(std::uint64_t now_ns);
  std::uint64_t quiet_since_ns() const;
  std::uint64_t link_deadline_ns() const;
  bool tells_the_possible(const FrameHeader& header) const;
  Fault judge(const FrameHeader& header) const;
  Fault obey(const Frame& frame, std::uint64_t now_ns);
  void on_hello_ack();
  Fault on_replies(const Frame& frame);
  bool are_due(const Frame& frame) const;
  void take_entries(const Frame& frame);
  void keep_reply(const ReplyEntry& entry, std::span<const std::byte> data);
  void note_answered(Request& request);
  bool hand_out(Reply& reply, TakeReply take);
  void on_recall(std::uint64_t may_keep, std::uint64_t now_ns);
  void give_credit_back();
  void forget_want();
  void tell_seen();
  void tell_seen_if_much();
  Told told() const;
  void pump();

  SenderOptions options_;
  LinkCounters counters_;
  Connection connection_;
  ControlFrames controls_;
  Outbox outbox_;
  LetterBox letters_;
  LinkState state_ = LinkState::idle;
  LinkEnd end_ = LinkEnd::none;
  Code failure_ = Code::peer_failed;

  Fifo<Request> requests_;  // by ticket; those whose replies were taken leave at the front
  std::uint64_t unanswered_ = 0;
  std::uint64_t reply_room_ = 0;  // reply charges of the unanswered, which bound the early replies
  std::uint64_t may_wait_charge_ = 0;

  std::uint64_t charged_ = 0, returned_ = 0, allowed_ = 0;   // charged_ + returned_ <= allowed_
  std::uint64_t wanted_ = 0, asked_for_ = 0, asked_at_ = 0;  // asked_at_: allowed_ when it was last asked for, plus 1
  bool wanted_at_any_price_ = false, asked_at_any_price_ = false, is_recalled_ = false;
  std::uint64_t may_keep_ = 0, give_back_at_ns_ = never;

  Fifo<Reply> inbox_;
  EarlyFrames early_;
  std::uint64_t next_reply_ = 0;    // number of the next entry: all smaller ones are here
  std::uint64_t untold_bytes_ = 0;  // of replies that came since a frame last told of them

  std::uint64_t receipts_expected_until_ns_ = 0;  // 0: nobody expects any
  bool does_silence_count_ = false;
  bool is_cut_off_ = false;  // and nothing was heard since
  std::uint64_t last_heard_ns_ = 0, needed_since_ns_ = never, connected_ns_ = 0, last_ping_ns_ = 0, retry_ns_ = 0;
  std::uint64_t backoff_ns_ = 0;
  std::uint64_t nonce_ = 0;
  bool awaits_pong_ = false;  // of this connection
  bool is_letter_refused_ = false;
};

}  // namespace farsum::link
