// One UCP worker: messages of at most one fragment to and from other workers, and a descriptor to sleep on. It knows
// neither ranks nor replies; what is lost with a broken endpoint is for its owner to send again.
//
// Threads: one at a time, the owner sees to that. UCX's own thread accepts connections and calls nothing here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "transport/ucx/ucx_bare_worker.hpp"
#include "transport/ucx/ucx_context.hpp"

struct ucp_address;
struct ucp_ep;

namespace farsum {

class UcxWorker {
 public:
  // Names an endpoint of this worker; never used twice.
  using Endpoint = std::uint64_t;
  static constexpr unsigned channels = 3;  // messages are sent on 1 to channels
  static constexpr std::size_t most_pieces = 4;

  // Told from inside progress(). on_message may send, but neither connect nor close; the others may do all.
  class Events {
   public:
    virtual ~Events() = default;
    // `message` is UCX's own buffer and gone when the call returns.
    virtual void on_message(unsigned channel, std::span<const std::byte> message) = 0;
    // A send that was `started` lets go of its pieces. `left`: UCX has passed them on, which does not say that they
    // arrived.
    virtual void on_sent(Endpoint endpoint, std::uint64_t cookie, bool left) = 0;
    // Told once for each endpoint whose connection ended by itself or refused a send. It must be closed all the same.
    virtual void on_broken(Endpoint endpoint) = 0;
    // Told after close(): every send over it has been told of, and UCX has let it go.
    virtual void on_closed(Endpoint endpoint) = 0;
  };

  enum class Sent {
    done,     // the pieces may be reused
    started,  // not before on_sent
    failed,   // the endpoint is broken or closing; on_broken tells, on_sent does not
  };

  // The context must outlive the worker.
  static Result<std::unique_ptr<UcxWorker>> create(UcxContext& context, Events& events);
  // Ends all endpoints by force; nothing is told any more. A worker that UCX could not end safely stays, with its
  // context, until the process ends.
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  // What another worker connects to.
  std::span<const std::byte> address() const { return worker_.address; }
  // Readable when there may be something to do; only after arm() has said so is it safe to sleep on it.
  int event_descriptor() const { return worker_.event_descriptor; }

  Result<Endpoint> connect(std::span<const std::byte> address);
  // Ends an endpoint by force. What it had not passed on is told as not left; then comes on_closed.
  void close(Endpoint endpoint);
  // The transport that carries its messages, and the longest of them that stays in one fragment.
  UcxResource lane(Endpoint endpoint) const;
  std::size_t piece_bytes(Endpoint endpoint) const;

  // Sends the pieces, joined, as one message.
  Sent send(Endpoint endpoint, unsigned channel, std::span<const std::span<const std::byte>> pieces,
            std::uint64_t cookie);

  // Lets UCX work and tells what came of it; returns how much it found to do, 0 when nothing.
  std::size_t progress();
  // Asks for the descriptor to become readable with the next event; false: there is one already, progress first.
  Result<bool> arm();

  std::size_t open_endpoints() const { return endpoints_.size(); }
  // Lets only these hosts connect from now on; see let_in_only. Connections that are there stay.
  Status let_in_only(const std::vector<std::uint32_t>& hosts);
  // Sets close-on-exec on connections that UCX's thread has accepted meanwhile.
  void mark_accepted_sockets() const;
  const std::vector<std::uint16_t>& ports() const { return worker_.ports; }

 private:
  struct Link;
  struct Send;
  struct Ended {
    Endpoint endpoint;
    std::uint64_t cookie;
    bool left;
  };
  struct Callbacks;

  UcxWorker(UcxContext& context, Events& events);
  Status open();
  Link* find(Endpoint endpoint) const;
  Send* take_send();
  void note_broken(Link& link);
  void tell();
  void retire(Endpoint endpoint);

  UcxContext& context_;
  const UcxCalls& calls_;
  Events& events_;
  UcxBareWorker worker_;
  bool ending_ = false;

  Endpoint next_endpoint_ = 1;
  std::map<Endpoint, std::unique_ptr<Link>> endpoints_;
  std::list<Send> sends_;  // never shrinks: as many as were ever on their way at once
  std::vector<Send*> free_sends_;

  // What UCX's callbacks noted; told when UCX has returned.
  std::vector<Ended> ended_, telling_ended_;
  std::vector<Endpoint> broken_, telling_broken_;
  std::vector<Endpoint> closed_, telling_closed_;
};

}  // namespace farsum
