// The target's half of a link: hands each request to the engine, and each letter to whoever files it, once and in
// order, keeps each reply until the origin has taken it, and grants credit so that what it holds stays within what the
// process can spare.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "transport/link/connection.hpp"
#include "transport/link/control_frames.hpp"
#include "transport/link/credit_pool.hpp"
#include "transport/link/early_frames.hpp"
#include "transport/link/fifo.hpp"
#include "transport/link/link.hpp"
#include "transport/link/outbox.hpp"
#include "transport/transport.hpp"

namespace farsum::link {

struct ReceiverOptions : LinkOptions {
  std::uint64_t most_window = 2 << 20;  // credit that one origin holds at most
  LetterHandler* letters = nullptr;     // null: letters are malformed
};

// Served::Kind from a handler: `again` holds back the origin's whole stream until serve_parked() brings the same
// message and room; `later` holds back nothing: complete() answers it. The message of a request that may wait stays
// where it is from its first on_request to its completion; any other's is valid until on_request returns.
class LinkReceiver : private CreditTaker {
 public:
  LinkReceiver(const ReceiverOptions& options, Wire& wire, CreditPool& pool);
  ~LinkReceiver() override;

  // A frame to this rank that link::decode let through, from the peer and going to the target. Requests that come in
  // order are served inside the call, and letters handed over.
  Fault on_frame(const Frame& frame, RequestHandler& handler);
  // Serves what was answered `again` and what stood behind it; returns how many were finished.
  std::size_t serve_parked(RequestHandler& handler, std::size_t budget);
  // Answers a request that was answered `later`; may be called by a handler. Tickets that are not waiting are ignored.
  void complete(std::uint64_t ticket, Code code, std::span<const std::byte> reply);
  // Sends the replies and acknowledgements gathered since the last turn. Call it at the end of each turn and after
  // complete(), and when all receivers had theirs CreditPool::hand_out.
  void end_turn();
  // Whether the origin of a long stream had better not wait for the end of the turn: it may have spent what it was
  // granted by then. end_turn() grants more; the turn goes on.
  bool has_much_to_grant() const;

  void on_sent(FrameId id, bool ok);
  void on_broken(std::uint32_t epoch);  // the connection back has failed; the origin will come again
  void on_disconnected(std::uint32_t epoch);
  // The peer has died or was given up: what it asked for is dropped, and it is refused for ever.
  void forget_peer();
  // Closes the connection back, at the end of the process. is_quiet() tells when the wire holds nothing of it.
  void close();

  bool has_again() const { return !parked_.empty(); }
  bool is_quiet() const { return outbox_.is_quiet() && controls_.is_quiet() && !connection_.is_there(); }
  bool is_closed() const { return closed_ || shut_; }
  // Whether the origin has connected and may ask for more.
  bool is_in_use() const { return epoch_ != 0 && !closed_ && !dead_ && !shut_; }
  // Parked requests with their replies' room, early frames but those of letters, retained replies.
  std::uint64_t held_bytes() const;
  // Letters that came before their turn, at most most_early_letter_bytes.
  std::uint64_t early_letter_bytes() const { return early_letters_.bytes(); }
  std::uint64_t granted_bytes() const;  // credit out: unspent, or held by the above
  const LinkCounters& counters() const { return counters_; }

 private:
  struct Parked {
    std::uint64_t ticket = 0;
    RequestRecord record{};
    std::unique_ptr<std::byte[]> bytes;  // the message
    std::unique_ptr<std::byte[]> reply;  // room for it; none before it is needed
    bool completed = false;              // by complete(), inside a handler
    Code code = Code::ok;
    std::uint32_t reply_bytes = 0;

    std::uint64_t size() const { return std::uint64_t{record.bytes} + (reply != nullptr ? record.reply_capacity : 0); }
    bool may_wait() const { return (record.flags & may_wait_flag) != 0; }
    std::span<const std::byte> message() const { return {bytes.get(), record.bytes}; }
    std::span<std::byte> room() const { return {reply.get(), record.reply_capacity}; }
    void make_room() { reply = std::make_unique<std::byte[]>(record.reply_capacity); }
  };

  bool tells_the_possible(const FrameHeader& header) const;
  Fault judge(const FrameHeader& header) const;
  Fault obey(const Frame& frame, RequestHandler& handler);
  void on_hello(const Frame& frame);
  void connect();
  void greet();
  void on_bye();
  void on_want(const FrameHeader& header);
  Fault on_requests(const Frame& frame, RequestHandler& handler);
  Fault on_letter(const Frame& frame);
  void hand_over(const Frame& frame);
  std::optional<std::uint64_t> charge_of_new(const Frame& frame) const;
  bool has_credit_for(std::uint64_t cost, std::uint64_t returned) const;
  void accept(const Frame& frame, RequestHandler& handler);
  void accept_record(std::uint64_t ticket, const RequestRecord& record, std::span<const std::byte> message,
                     RequestHandler& handler);
  // An answer, and the room that it was written to.
  struct InPlace {
    Served served;
    std::span<std::byte> room;
  };
  InPlace serve_in_place(std::uint64_t ticket, const RequestRecord& record, std::span<const std::byte> message,
                         RequestHandler& handler);
  bool serve(Parked& parked, RequestHandler& handler);
  static void keep_room(Parked& parked, const InPlace& answer);
  Served ask(std::uint64_t ticket, const RequestRecord& record, std::span<const std::byte> message,
             std::span<std::byte> room, RequestHandler& handler);
  Parked park(std::uint64_t ticket, const RequestRecord& record, std::span<const std::byte> message);
  void defer(Parked parked);
  void finish_completed();
  void reply(std::uint64_t ticket, const RequestRecord& record, Code code, std::span<const std::byte> data);
  bool joins_last_entry(std::uint64_t ticket);
  void release(std::uint64_t bytes);
  void renew(bool is_next);
  void send_turn();
  void drop_all();
  Told told() const { return {next_ticket_, allowed_, next_letter_}; }
  void note_told();
  void pump();
  // CreditTaker: the pool has something for this link.
  bool take_credit() override;
  bool return_idle_credit() override;

  ReceiverOptions options_;
  CreditPool& pool_;
  LinkCounters counters_;
  Connection connection_;  // back
  ControlFrames controls_;
  Outbox outbox_;            // frames of replies; numbers are reply numbers
  std::uint32_t epoch_ = 0;  // of the latest hello
  bool dead_ = false, closed_ = false, shut_ = false;
  std::vector<std::byte> address_;  // of the hello that waits for the old connection's end
  std::uint64_t hello_stamp_ = 0;

  std::uint64_t next_ticket_ = 0;  // requests received: all smaller ones are
  std::uint64_t told_received_ = 0;
  EarlyFrames early_;
  std::uint64_t next_letter_ = 0;  // letters received: all smaller ones are
  bool is_asked_for_letters_ = false;
  EarlyFrames early_letters_;  // less than a window of them
  Fifo<Parked> parked_;        // in order; the first was answered `again`
  std::unordered_map<std::uint64_t, Parked> later_;
  std::vector<std::uint64_t> completed_;  // of later_, while a handler runs
  bool serving_ = false;

  std::uint64_t received_charge_ = 0, returned_ = 0, released_ = 0;  // released_: returned_ ones included
  std::uint64_t allowed_ = 0, told_allowed_ = 0, wanted_ = 0, window_ = 0;
  bool wanted_at_any_price_ = false, recalled_ = false;
  CreditShare share_;
};

}  // namespace farsum::link
