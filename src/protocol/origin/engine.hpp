// The origin's half of the protocol: turns operations into requests, cuts what is too long, keeps what finds no room
// and goes on with it later, and matches replies. It does no I/O of its own and reads no clock; whoever waits calls
// progress().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "ops/layout.hpp"
#include "protocol/messages.hpp"
#include "protocol/operation.hpp"
#include "protocol/origin/hearing.hpp"
#include "protocol/origin/message_cutter.hpp"
#include "protocol/origin/origin_job.hpp"
#include "protocol/outstanding.hpp"
#include "protocol/request_state.hpp"
#include "transport/transport.hpp"

namespace farsum {

// Any thread may call; each peer has a lock of its own. Requests to one peer travel in the order of submit().
class OriginEngine {
 public:
  struct Options {
    std::size_t peers = 0;  // ranks of the job
    // Where the owner can reach this process's memory: operands up to this ride in the message.
    std::uint64_t inline_bytes = 8192;
    bool pull = true;  // longer ones are pulled by the owner; false: they are cut into as few messages as they fit in
    std::size_t backlog = 1024;  // operations kept per peer when there is no room; then submit answers false
    // Something is kept back, to leave with what comes next: somebody is to call send_coalesced() again and again,
    // about every half a millisecond, while is_coalescing(). By any thread, which holds a peer's lock. Empty: nothing
    // is kept so.
    std::function<void()> on_coalescing;
    // Something has come to its end that others may sleep for; not told by progress_unattended(), whose caller wakes
    // them. By any thread. Empty: nobody sleeps for it.
    std::function<void()> on_progress;
    // Told of each answer by which the program learns what others did, before the program has it. Null: nobody is.
    Hearing* hearing = nullptr;
  };

  OriginEngine(Options options, Transport& transport);
  ~OriginEngine();
  OriginEngine(const OriginEngine&) = delete;
  OriginEngine& operator=(const OriginEngine&) = delete;

  // Starts an operation; without a request, and small, it may leave together with later ones (see
  // origin/batching.cpp): before progress() returns at the latest, and with send_coalesced() where nobody calls,
  // unless it leaves with the end of its epoch. `outstanding` counts it until it is complete at the target, `request`
  // (may be null) is told. Answers false, and has done nothing, when there is no room now: call progress() and try
  // again. What may wait for other ranks is never kept back for room. Where it throws for want of memory it has done
  // nothing either; where a part has left already, the operation ends with Code::no_memory.
  bool submit(Rank peer, WindowId window, const Operation& operation, Outstanding& outstanding, RequestState* request);
  // The same for an update that may leave together with others. False: nothing was done, submit() it.
  bool submit_update(Rank peer, WindowId window, const Update& update, Outstanding& outstanding);
  // Starts a batch of single elements: `offsets` and packed `elements`, copied before it returns.
  bool submit_scatter(Rank peer, WindowId window, ops::ElementType type, ops::Operator op, const void* alpha,
                      std::span<const std::uint64_t> offsets, std::span<const std::byte> elements,
                      Outstanding& outstanding);
  // Starts a message that is no operation (locks, posts, teams): the header as it is but for its sequence number, and
  // `body` of at most longest_body(), copied before this returns. What is answered goes to `reply`, borrowed until
  // `request` is done.
  bool submit_control(Rank peer, const wire::MessageHeader& header, std::span<const std::byte> body,
                      Outstanding& outstanding, RequestState* request, std::span<std::byte> reply = {});

  std::uint64_t longest_body(Rank peer) const { return cutter_.longest_body(peer); }

  // Takes in replies and sends what was kept back. Returns how many replies came.
  std::size_t progress(Rank peer);
  // The same for every peer with something under way that no other thread is at, for the agent while the threads
  // compute or sleep.
  std::size_t progress_unattended();
  // Whether send_coalesced() is to be called again. Any thread may ask.
  bool is_coalescing() const { return visits_due_.load(std::memory_order_relaxed) != 0; }
  // Sends what was kept back when it was last called, and no thread has sent since.
  void send_coalesced();
  // Whether submit() to that peer finds room.
  bool has_room(Rank peer) const;
  // Ends everything towards a dead peer with Code::peer_failed, now and later.
  void fail_peer(Rank peer);
  // The same towards every peer: after a death the job is over.
  void fail_all();

  std::uint64_t messages_sent() const { return messages_sent_.load(std::memory_order_relaxed); }

 private:
  using Job = OriginJob;
  using Message = OriginMessage;
  struct InFlight;
  struct Peer;
  class NewJob;
  class NewPiece;
  class Visit;
  static constexpr std::size_t word_bits = 64;

  bool enqueue(Peer& peer, Rank rank, NewJob& made, Outstanding& outstanding, RequestState* request);
  bool post_or_keep(Peer& peer, Rank rank, Job& job);
  bool post_pieces(Peer& peer, Rank rank, Job& job);
  bool post_one(Peer& peer, Rank rank, Job& job);
  static bool is_small(const Peer& peer, const Message& message);
  static bool is_unhurried(const Job& job);
  bool is_coalesced(Peer& peer, Rank rank, const Job& job, const Message& message);
  void set_target(Job& job, const Operation& operation, Rank rank) const;
  void note_under_way(Rank rank);
  std::size_t visit_unattended(Rank rank);
  bool drain_backlog(Peer& peer, Rank rank);  // whether anything left
  std::size_t go_on(Peer& peer, Rank rank);
  void tell_of_progress() const;
  // Acquire pairs with the release in make_peer: it is whole.
  Peer* find_peer(Rank rank) const { return peers_[rank].load(std::memory_order_acquire); }
  Peer& peer_made(Rank rank) {
    Peer* const peer = find_peer(rank);
    return *(peer != nullptr ? peer : make_peer(rank));
  }
  Peer* make_peer(Rank rank);
  bool may_coalesce(Peer& peer, Rank rank);
  bool begin_coalescing(Peer& peer, Rank rank);
  bool join(Peer& peer, Rank rank, WindowId window, const Update& update, Outstanding& outstanding);
  static void open_bundle(Peer& peer, WindowId window, const Update& update, Outstanding& outstanding);
  void close_bundle(Peer& peer, Rank rank);
  bool visit_coalesced(Rank rank, bool is_last);
  static void finish_piece(Peer& peer, const InFlight& piece, Code code, std::span<const std::byte> reply);
  static void finish_job(Peer& peer, Job& job);
  static void stop_borrowing(Job& job);

  Options options_;
  Transport& transport_;
  MessageCutter cutter_;
  std::vector<std::atomic<Peer*>> peers_;  // owned; made when first asked for something
  std::mutex making_;
  bool all_have_failed_ = false;                        // under it
  std::vector<std::atomic<std::uint64_t>> under_way_;   // a bit for each peer
  std::vector<std::atomic<std::uint64_t>> coalescing_;  // the same, of those to which something is kept back
  std::atomic<unsigned> visits_due_{0};                 // calls of send_coalesced() that are still to come
  std::atomic<std::uint64_t> messages_sent_{0};
};

}  // namespace farsum
