// The contract between the protocol and whatever carries its messages: the shared memory of a node (shm), UCX between
// nodes (ucx), or the simulator (sim). Two more carry nothing themselves: route makes one transport out of two, and
// trace counts what passes through one. Of this folder the protocol sees this header only, and windows rdma.hpp
// besides.
//
// What every transport promises:
//  - Requests from one sender to one receiver are served in the order they were posted, each exactly once. Nothing is
//    promised between different pairs.
//  - A request is accepted only when the room for its reply is reserved; replies are never refused for lack of room.
//  - A handler that answers `again` sees the same request again later; other senders are served meanwhile.
//  - Letters from one sender to one receiver are handed over in the order they were taken, each exactly once; they need
//    no room of the receiver's.
//  - A transport that learns of a peer's death answers its requests with Code::peer_failed.
//    OriginEngine::fail_peer does so for whoever learns of it elsewhere; either way nothing waits for the dead.
//
// Threads: try_post and poll_replies for one peer are called by one thread at a time (OriginEngine holds a lock per
// peer); try_letter by any. poll_requests and complete belong to the thread that drives the target half, one at a time:
// the agent, or a thread that attends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/status.hpp"
#include "base/units.hpp"
#include "transport/letter_rules.hpp"

namespace farsum {

// Names a request whose reply comes later than its handler's return.
struct ReplyToken {
  Rank peer = 0;
  std::uint64_t ticket = 0;
};

struct Served {
  enum class Kind : std::uint8_t {
    done,   // the reply is in the room given; reply_bytes of it count
    again,  // not finished: serve the same request again
    later,  // complete(token) will be called; only where Capabilities::late_replies
  };
  Kind kind = Kind::done;
  Code code = Code::ok;
  std::uint32_t reply_bytes = 0;
  bool is_untouched = false;  // with again: nothing was written to the room
};

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // `message` and `reply_room` are valid until the call returns. After `again` the same message comes with the same
  // room, and what was written to the room is still there.
  virtual Served on_request(Rank from, std::span<const std::byte> message, std::span<std::byte> reply_room,
                            ReplyToken token) = 0;
};

class ReplyHandler {
 public:
  virtual ~ReplyHandler() = default;
  // The reply has at most as many bytes as the request's reply_capacity.
  virtual void on_reply(Rank from, std::uint64_t ticket, Code code, std::span<const std::byte> reply) = 0;
};

// Takes letters: messages that are not answered and cannot be put off (docs/internals/letters.md).
class LetterHandler {
 public:
  virtual ~LetterHandler() = default;
  // Files the letter, whose bytes are valid until the call returns, and has whoever waits for it looked after. It may
  // call no transport and wait for nothing.
  virtual void on_letter(Rank from, std::span<const std::byte> letter) noexcept = 0;
};

// How a copy between this process's memory and a peer's went.
enum class Transfer : std::uint8_t {
  done,
  started,      // TransferHandler::on_transfer will tell; only the simulator answers so
  refused,      // the peer's memory may not be touched this way
  bad_address,  // the peer has no such memory (any more), or it is read-only
  peer_dead,
};

// Told when a transfer that was `started` has ended.
class TransferHandler {
 public:
  virtual ~TransferHandler() = default;
  virtual void on_transfer(std::uint64_t cookie, Transfer how) = 0;
};

// A contiguous part of a transfer.
struct TransferPiece {
  std::uint64_t remote_address;
  std::byte* local;
  std::uint64_t bytes;
};

struct Capabilities {
  bool transfers = false;             // read and write of peer memory work (attach, pull)
  bool late_replies = false;          // Served::Kind::later works
  bool separate_replies = false;      // else the reply shares the room of its request
  bool keeps = false;                 // PostOptions::may_keep is heeded, and fewer messages are worth it
  std::size_t max_message_bytes = 0;  // head + body of one request; where the reply shares its room, + reply
  std::size_t max_reply_bytes = 0;
  std::size_t max_letter_bytes = 0;  // header + body; 0: no letters
};

struct PostOptions {
  std::size_t reply_capacity = 0;
  // The reply may wait for what other ranks do: such requests never use up the room that others need. A handler that
  // answers one `later` may keep its message until it completes it.
  bool may_wait = false;
  // It may be kept back, to travel together with later ones: until a post to the peer that may not, poll_replies or
  // hand_over, one of which comes before anybody waits for it.
  bool may_keep = false;
  // The body stays as it is until on_reply or abandon(): it need not be copied.
  bool lends_body = false;
  // Where a transport may write the reply's data before on_reply, which is then told of them there; it need not. At
  // most reply_capacity bytes; they are the transport's until on_reply or abandon().
  std::span<std::byte> reply_into = {};
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual Capabilities capabilities(Rank peer) const = 0;

  // Posts a request made of two parts; returns its ticket (0, 1, 2, ... per peer), or nothing when there is no room
  // now. Both parts may be reused on return, but for a body that is lent. Throws std::bad_alloc, with nothing posted,
  // where there is no memory for it.
  virtual std::optional<std::uint64_t> try_post(Rank peer, std::span<const std::byte> head,
                                                std::span<const std::byte> body, const PostOptions& options) = 0;
  // Hands over the replies of `peer` that have come, in ticket order unless late replies overtake; returns how many.
  virtual std::size_t poll_replies(Rank peer, ReplyHandler& handler) = 0;
  // The same by the agent, on behalf of threads that compute or sleep: what is kept back stays so.
  virtual std::size_t poll_replies_unattended(Rank peer, ReplyHandler& handler) { return poll_replies(peer, handler); }

  // The job is over: nobody waits for what was posted to the peer, and no memory that came with it is touched when this
  // returns. What is posted later is answered Code::peer_failed.
  virtual void abandon(Rank) {}

  // The caller goes on though what it has posted, or could not post, needs this half; somebody must look after it. By
  // any thread, which may hold OriginEngine's locks.
  virtual void hand_over() {}

  // Takes a letter made of two parts, of at most Capabilities::max_letter_bytes, to a rank of which that is not 0, both
  // of which may be reused on return; whatever else is asked for stops the process. False: too many were taken of which
  // it is not known that they were received; that lasts until the peer has polled, whatever its ranks wait for, and
  // then replies are said to have come. A letter to a peer that has died is taken and dropped. Throws std::bad_alloc,
  // with nothing taken.
  virtual bool try_letter(Rank /*to*/, std::span<const std::byte> /*header*/, std::span<const std::byte> /*body*/) {
    stop_on_letter("goes by a transport that carries none");
  }
  // Who is handed the letters that come, from within poll_requests. Called once, before a peer can send the first; the
  // handler outlives this.
  virtual void deliver_letters_to(LetterHandler& /*handler*/) {}

  // Serves at most `budget` requests, but for those that came together with the last; returns how many were finished.
  virtual std::size_t poll_requests(RequestHandler& handler, std::size_t budget) = 0;
  // Whether a request was answered `again` and waits for the next poll: then the agent must not sleep for long.
  virtual bool has_unfinished_request() const { return false; }
  // Sends the reply of a request that was answered `later`.
  virtual void complete(ReplyToken token, Code code, std::span<const std::byte> reply) = 0;

  // Copies between local memory and [remote_address, +size) in the peer's address space. `cookie` comes back in
  // on_transfer when the answer is `started`; the local memory must stay valid until then.
  virtual Transfer read(Rank peer, std::uint64_t remote_address, std::span<std::byte> into, std::uint64_t cookie) = 0;
  virtual Transfer write(Rank peer, std::uint64_t remote_address, std::span<const std::byte> from,
                         std::uint64_t cookie) = 0;
  // The same for several pieces, in order, by a transport whose transfers end at once; stops at the first that fails.
  virtual Transfer read_pieces(Rank peer, std::span<const TransferPiece> pieces) {
    Transfer how = Transfer::done;
    for (const TransferPiece& piece : pieces) {
      if (how == Transfer::done) how = read(peer, piece.remote_address, {piece.local, piece.bytes}, 0);
    }
    return how;
  }
  virtual Transfer write_pieces(Rank peer, std::span<const TransferPiece> pieces) {
    Transfer how = Transfer::done;
    for (const TransferPiece& piece : pieces) {
      if (how == Transfer::done) how = write(peer, piece.remote_address, {piece.local, piece.bytes}, 0);
    }
    return how;
  }
};

}  // namespace farsum
