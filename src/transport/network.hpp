// The contract between the runtime and a network: a transport between the ranks of different nodes, which finds its
// peers by addresses, sleeps on descriptors, looks after time and can lose a peer. The protocol sees the Transport in
// it only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "transport/transport.hpp"

namespace farsum {

// Plain numbers: a copy taken at one moment. A frame carries one or more messages, or what keeps a link going.
struct NetworkCounters {
  struct Way {
    std::uint64_t frames_sent = 0, bytes_sent = 0;
    std::uint64_t frames_received = 0, bytes_received = 0;
  };
  Way asking;                     // what this rank asks of others, and their answers
  Way serving;                    // what others ask of it, and its answers
  std::uint64_t endpoints = 0;    // connections that are open
  std::uint64_t connections = 0;  // ever opened
  std::uint64_t strangers = 0;    // frames that were not of this job
  std::uint64_t refused = 0;      // frames of this job that made no sense
  std::uint64_t peers = 0;        // ranks that were introduced
  std::uint64_t peer_bytes = 0;   // kept for all of them, but buffers for messages and what the network library keeps
};

class Network : public Transport {
 public:
  // Where the other ranks reach this one.
  virtual std::span<const std::byte> address() const = 0;
  // Lets only these hosts (IPv4, as the network has them) connect to this rank: those of the job. Before introduce(); a
  // longer list replaces a shorter.
  virtual Status let_in_only(const std::vector<std::uint32_t>& hosts) = 0;
  // Says where a peer is reached. Nothing is sent before the first request to it.
  virtual void introduce(Rank peer, std::span<const std::byte> address) = 0;

  // A thread waits for what other ranks do: those that have not said that they received letters are asked for that, and
  // count as silent from then on, as long as this is called now and then. Without it nobody is given up for that alone:
  // the rank may be stopped. Any thread may call.
  virtual void expect_receipts() = 0;

  // Looks after time and takes in what has come for this half: pings, reconnects, gives up; whether there was anything
  // to do. For the agent, which asks is_unattended() before it sleeps again.
  virtual bool tick() = 0;
  // When tick() has something to do next by the monotonic clock; never where nothing is due. For the agent, which comes
  // then: it is roused where something falls due before that.
  virtual std::uint64_t next_deadline_ns() = 0;
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  // The agent sleeps on it: readable when poll_requests has something to do, once arm_requests() has answered true;
  // false: there is something to do now.
  virtual int request_descriptor() const = 0;
  virtual Result<bool> arm_requests() = 0;
  // The same for replies: then tick() has something to do.
  virtual int reply_descriptor() const = 0;
  virtual Result<bool> arm_replies() = 0;
  // Whether the agent must sleep on reply_descriptor() too: something was handed over that is not at its end, and no
  // thread looks after it at the moment. None does if none has since the last time, and the caller knows of none that
  // is about to. True where one sleeps until the agent wakes it. To be asked before each sleep; where threads do look,
  // or may have what they slept for, next_deadline_ns() says when to ask again.
  enum class Threads { away, look, sleep };
  virtual bool is_unattended(Threads threads) = 0;

  // Says goodbye to all peers and takes theirs, for two seconds at most, so that nobody sees a broken connection.
  // Called once, when the agent has stopped; `handler` serves who still asks.
  virtual void close(RequestHandler& handler) = 0;
  // Any thread may call.
  virtual NetworkCounters counters() const = 0;
};

struct NetworkOptions {
  Rank rank = 0;
  std::uint32_t ranks = 1;  // of the job
  std::array<std::byte, 16> secret{};
  // A peer is given up, and why; called once for each, before anything is answered peer_failed for it, from whatever
  // thread drives the network, which it must not call, and with its lock held.
  std::function<void(Rank, const std::string&)> on_lost;
  // This half has something to do that no thread may come to do: once for each Transport::hand_over, and where a post
  // leaves something behind, or a poll something that the agent sleeps for. The agent is to be woken, even where no
  // reply has come: it calls tick() and OriginEngine::progress_unattended(), and then sleeps as is_unattended() and
  // next_deadline_ns() say. Called by any thread, which may hold OriginEngine's locks; it must not call the network.
  std::function<void()> on_hand_over;
};

// Over UCX, as the settings say; unsupported where this build or machine has none.
Result<std::unique_ptr<Network>> open_network(const NetworkOptions& options, const Settings& settings);

}  // namespace farsum
