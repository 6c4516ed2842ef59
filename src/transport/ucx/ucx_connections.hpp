// The connections of one worker as the wires of one half of a rank's links: opens, closes and sends as links ask, and
// tells them afterwards, never from within what they asked for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/units.hpp"
#include "transport/link/link.hpp"
#include "transport/ucx/ucx_worker.hpp"

namespace farsum {

class UcxConnections final : private UcxWorker::Events {
 public:
  // The half whose links these are. All but on_frame are told from dispatch() and progress(), outside of UCX's
  // callbacks.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Told from within progress(). The bytes are gone when it returns.
    virtual void on_frame(std::span<const std::byte> bytes) = 0;
    virtual void on_sent(Rank peer, link::FrameId id, bool ok) = 0;
    virtual void on_broken(Rank peer, std::uint32_t epoch) = 0;
    virtual void on_disconnected(Rank peer, std::uint32_t epoch) = 0;
  };

  // Written by the thread that drives the worker; any thread may read.
  struct Counters {
    std::atomic<std::uint64_t> frames_sent{0}, bytes_sent{0};
    std::atomic<std::uint64_t> frames_received{0}, bytes_received{0};  // whoever they are of
    std::atomic<std::uint64_t> endpoints{0};                           // open now
    std::atomic<std::uint64_t> connections{0};                         // ever opened
  };

  // Frames leave on `channel` of UcxWorker. The context must outlive this, and so must the owner.
  static Result<std::unique_ptr<UcxConnections>> create(UcxContext& context, Owner& owner, unsigned channel);
  ~UcxConnections() override;

  // The wire to a peer, made when first asked for; it stays. `address` is where a LinkSender's connections go; empty
  // for a LinkReceiver's, whose wire brings it with each connect().
  link::Wire& wire(Rank peer, std::span<const std::byte> address = {});
  // Why UCX would not connect to the peer when it was last asked to; empty: it did, or was not asked.
  std::string refusal(Rank peer) const;

  // Lets UCX work, then dispatches; returns how much there was to do. Where there is no memory for what is to be told,
  // the process ends, here and in dispatch().
  std::size_t progress() noexcept;
  // Carries out what links have asked for, and tells them what became of it, until nothing is left. To be called after
  // each call of a link.
  void dispatch() noexcept;

  // Kept for each peer, its address apart.
  static std::uint64_t bytes_of_peer();

  const Counters& counters() const { return counters_; }
  const UcxWorker& worker() const { return *worker_; }
  UcxWorker& worker() { return *worker_; }

 private:
  class Connection;
  struct Sent {
    Connection* connection;
    link::FrameId id;
    bool ok;
  };

  UcxConnections(Owner& owner, unsigned channel);
  Connection* connection_of(UcxWorker::Endpoint endpoint) const;
  bool dispatch_once();
  void open(Connection& connection);
  void close(Connection& connection);
  void end(Connection& connection);

  void on_message(unsigned channel, std::span<const std::byte> message) override;
  void on_sent(UcxWorker::Endpoint endpoint, std::uint64_t cookie, bool left) override;
  void on_broken(UcxWorker::Endpoint endpoint) override;
  void on_closed(UcxWorker::Endpoint endpoint) override;

  Owner& owner_;
  unsigned channel_;
  Counters counters_;
  std::map<Rank, std::unique_ptr<Connection>> connections_;
  std::map<UcxWorker::Endpoint, Connection*> by_endpoint_;

  // What is to be done and told. Each is emptied by dispatch(), from a second vector that keeps its memory.
  std::vector<Connection*> due_, dispatching_due_;
  std::vector<Sent> sent_, dispatching_sent_;
  std::vector<Connection*> broken_, dispatching_broken_;
  std::vector<Connection*> ended_, dispatching_ended_;

  std::unique_ptr<UcxWorker> worker_;  // last: UCX may still call while it goes
};

}  // namespace farsum
