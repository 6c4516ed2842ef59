// The owner's half of the protocol: it serves the requests that arrive. It is driven by the agent, or by whoever has
// its turn. It does no I/O of its own (operands are pulled and results pushed through the transport), reads no clock,
// and never waits: what it cannot do now it answers with `again`, and it continues where it stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>

#include "protocol/exposure.hpp"
#include "protocol/messages.hpp"
#include "protocol/owner/operation_applier.hpp"
#include "protocol/owner/parked_requests.hpp"
#include "protocol/owner/proxy_locks.hpp"
#include "protocol/owner/request_extension.hpp"
#include "protocol/team_mail.hpp"
#include "transport/transport.hpp"

namespace farsum {

// One thread drives an object at a time.
class TargetService : public RequestHandler, public TransferHandler {
 public:
  struct Options : OperationApplier::Needs {
    TeamMail* team_mail = nullptr;
    // One more than a rank that is known to be dead, or 0.
    std::function<std::uint32_t()> known_dead = nullptr;
    MakeRequestExtension make_leases = nullptr;
  };

  TargetService(Options options, ExposureTable& exposures);
  // The transport and this object know each other; set once before serving.
  void attach(Transport& transport) {
    transport_ = &transport;
    applier_.attach(transport);
  }

  Served on_request(Rank from, std::span<const std::byte> message, std::span<std::byte> reply_room,
                    ReplyToken token) override;
  void on_transfer(std::uint64_t cookie, Transfer how) override { applier_.on_transfer(cookie, how); }

  // Tells those whose locks have been granted meanwhile, and serves what they have sent behind them. Called by the
  // agent in each of its turns.
  void grant_waiting();
  bool has_waiting() const { return locks_.has_waiting(); }
  // Whether something behind a granted lock could not be finished: the agent must come again soon.
  bool has_unfinished() const { return parked_.has_unfinished(); }
  // Lets go of the locks that a dead rank held or waited for here. False where something is left: call again.
  bool forget(Rank dead);

  std::uint64_t refused() const { return refused_; }

 private:
  struct Sender {
    RequestWork work;                 // of the request at the head of its queue
    std::uint64_t next_sequence = 1;  // exactly once: what comes with a smaller one has been done
  };

  Served serve(Rank from, const wire::Message& message, std::span<const std::byte> bytes,
               std::span<std::byte> reply_room, ReplyToken token, RequestWork& work);
  Served serve_now(Rank from, const wire::Message& message, const Exposure& exposure, std::span<std::byte> reply_room,
                   ReplyToken token, RequestWork& work);
  Served serve_epoch(Rank from, const wire::MessageHeader& header, const Exposure& exposure, ReplyToken token);
  Served serve_team(Rank from, const wire::Message& message);
  Served serve_life(std::span<std::byte> reply_room);
  bool finish_parked(const ExposureTable::Reading& reading, const ProxyLocks::Key& key, ParkedRequest& parked);
  void tell_granted(const ExposureTable::Reading& reading);

  Options options_;
  ExposureTable& exposures_;
  Transport* transport_ = nullptr;
  OperationApplier applier_;
  std::unique_ptr<RequestExtension> leases_;  // null: they are refused
  ProxyLocks locks_;
  ParkedRequests parked_;
  std::unordered_map<Rank, Sender> senders_;
  std::uint64_t refused_ = 0;
};

}  // namespace farsum
