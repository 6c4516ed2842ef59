// This rank's side of the network between nodes: started when ranks of other nodes are to be reached, and looked after
// while threads sleep or compute. It tells who was lost, and asks the other nodes how their ranks are.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "base/thread_mutex.hpp"
#include "liveness/network_card.hpp"
#include "liveness/peer_watch.hpp"
#include "liveness/remote_nodes.hpp"
#include "progress/waiter.hpp"
#include "protocol/origin/engine.hpp"
#include "transport/network.hpp"
#include "transport/route/route_transport.hpp"

namespace farsum {

// Any thread may call, unless it says otherwise.
class NetworkSide {
 public:
  struct Parts {
    Rank rank = 0;
    std::uint32_t ranks = 1;  // of the job
    std::array<std::byte, 16> secret{};
    const Settings* settings = nullptr;
    NodeIdentity node;
    RouteTransport* route = nullptr;
    RemoteNodes* remote_nodes = nullptr;
    OriginEngine* engine = nullptr;
    PeerWatch* watch = nullptr;
    EventCount* waiters = nullptr;            // of this rank's threads
    std::function<Status(Network&)> started;  // has it served; once
    std::function<void()> look_after;         // see NetworkOptions::on_hand_over
  };

  explicit NetworkSide(Parts parts) : parts_(std::move(parts)) {}

  // Starts the network. Where there is none the card says why.
  NetworkCard card();
  // unsupported, and nothing has changed, where a card says that its rank has no network. Where it fails otherwise its
  // ranks stay unknown.
  Status introduce(std::span<const NetworkCard> cards);
  // Null before it was started.
  Network* network() const { return running_.load(std::memory_order_acquire); }

  // A thread is about to sleep for what comes over the network.
  void hand_over();
  // Takes in what has come for this side's threads, and wakes them. For the agent.
  void look_after();
  // See OriginEngine. For the agent.
  bool is_coalescing() const { return parts_.engine->is_coalescing(); }
  void send_coalesced() { parts_.engine->send_coalesced(); }
  // See Network. For the agent.
  bool is_unattended(Network::Threads threads) const;
  // When there is something to do by the monotonic clock, or Network::never.
  std::uint64_t next_deadline_ns() const;
  // The end, when the agent has stopped; `handler` serves who still asks.
  void close(RequestHandler& handler);
  // Called now and then by threads that wait. What was sent and is not known to have come is expected from then on.
  void ask_remote_nodes();

 private:
  // The question to one rank of another node: who of you is dead?
  struct Question {
    explicit Question(Rank asked) : rank(asked) {}
    Rank rank;
    Outstanding outstanding;
    RequestState state;
    std::array<std::byte, 4> answer{};
    bool is_open = false;
  };

  Status start();
  Status open() FARSUM_REQUIRES(starting_);
  NetworkCard refusal(const Status& why) const;
  void take_answer(Question& question) FARSUM_REQUIRES(asking_);

  Parts parts_;
  ThreadMutex starting_;
  std::unique_ptr<Network> network_;             // written with starting_, once; read by who has seen start() succeed
  Status refusal_ FARSUM_GUARDED_BY(starting_);  // why the network is there and nobody serves it
  std::atomic<Network*> running_{nullptr};
  ThreadMutex introducing_;
  ThreadMutex asking_;
  std::deque<Question> questions_ FARSUM_GUARDED_BY(asking_);
  std::uint64_t asked_at_ns_ FARSUM_GUARDED_BY(asking_) = 0;
};

}  // namespace farsum
