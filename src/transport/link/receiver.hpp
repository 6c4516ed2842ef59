// The target's half of a link: hands each request to the engine, and each letter to whoever files it, once and in
// order, keeps each reply until the origin has taken it, and grants credit so that what it holds stays within what the
// process can spare.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "transport/link/connection.hpp"
#include "transport/link/control_frames.hpp"
#include "transport/link/credit_pool.hpp"
#include "transport/link/letter_intake.hpp"
#include "transport/link/link.hpp"
#include "transport/link/outbox.hpp"
#include "transport/link/request_desk.hpp"
#include "transport/link/request_intake.hpp"
#include "transport/link/target_credit.hpp"
#include "transport/link/target_report.hpp"
#include "transport/transport.hpp"

namespace farsum::link {

struct ReceiverOptions : LinkOptions {
  std::uint64_t most_window = 2 << 20;  // credit that one origin holds at most
  LetterHandler* letters = nullptr;     // null: letters are malformed
};

// What a handler's answers mean, and how long it may look at a message: see RequestDesk.
class LinkReceiver : private CreditTaker {
 public:
  LinkReceiver(const ReceiverOptions& options, Wire& wire, CreditPool& pool);

  // A frame to this rank that link::decode let through, from the peer and going to the target. Requests that come in
  // order are served inside the call, and letters handed over.
  Fault on_frame(const Frame& frame, RequestHandler& handler);
  // Serves what was answered `again` and what stood behind it; returns how many were finished.
  std::size_t serve_parked(RequestHandler& handler, std::size_t budget) { return desk_.serve_parked(handler, budget); }
  // Answers a request that was answered `later`; may be called by a handler. Tickets that are not waiting are ignored.
  void complete(std::uint64_t ticket, Code code, std::span<const std::byte> reply) {
    desk_.complete(ticket, code, reply);
  }
  // Sends the replies and acknowledgements gathered since the last turn. Call it at the end of each turn and after
  // complete(), and when all receivers had theirs CreditPool::hand_out.
  void end_turn();
  // Whether the origin of a long stream had better not wait for the end of the turn: it may have spent what it was
  // granted by then. end_turn() grants more; the turn goes on.
  bool has_much_to_grant() const { return credit_.has_much_to_grant(); }

  void on_sent(FrameId id, bool ok);
  void on_broken(std::uint32_t epoch);  // the connection back has failed; the origin will come again
  void on_disconnected(std::uint32_t epoch);
  // The peer has died or was given up: what it asked for is dropped, and it is refused for ever.
  void forget_peer();
  // Closes the connection back, at the end of the process. is_quiet() tells when the wire holds nothing of it.
  void close();

  bool has_again() const { return desk_.has_again(); }
  bool is_quiet() const { return outbox_.is_quiet() && controls_.is_quiet() && !connection_.is_there(); }
  bool is_closed() const { return closed_ || shut_; }
  // Whether the origin has connected and may ask for more.
  bool is_in_use() const { return epoch_ != 0 && !closed_ && !dead_ && !shut_; }
  // Parked requests with their replies' room, early frames but those of letters, retained replies.
  std::uint64_t held_bytes() const { return requests_.early_bytes() + desk_.held_bytes() + outbox_.held_bytes(); }
  // Letters that came before their turn, at most most_early_letter_bytes.
  std::uint64_t early_letter_bytes() const { return letters_.early_bytes(); }
  std::uint64_t granted_bytes() const { return credit_.granted(); }  // credit out: unspent, or held by the above
  const LinkCounters& counters() const { return counters_; }

 private:
  Fault judge(const FrameHeader& header) const;
  Fault obey(const Frame& frame, RequestHandler& handler);
  void on_hello(const Frame& frame);
  void connect();
  void greet();
  void on_bye();
  void drop_all();
  // CreditTaker: the pool has something for this link.
  bool take_credit() override;
  bool return_idle_credit() override;

  ReceiverOptions options_;
  LinkCounters counters_;
  Connection connection_;  // back
  ControlFrames controls_;
  Outbox outbox_;  // frames of replies; numbers are reply numbers
  RequestIntake requests_;
  LetterIntake letters_;
  TargetCredit credit_;
  TargetReport report_;
  RequestDesk desk_;

  std::uint32_t epoch_ = 0;  // of the latest hello
  bool dead_ = false, closed_ = false, shut_ = false;
  std::vector<std::byte> address_;  // of the hello that waits for the old connection's end
  std::uint64_t hello_stamp_ = 0;
};

}  // namespace farsum::link
