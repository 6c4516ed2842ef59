// What the agent sleeps on besides its bell: the network's descriptors and the network card's, once there are such.
#pragma once

#include <atomic>
#include <cstdint>

#include "progress/attendance.hpp"
#include "progress/rank_bell.hpp"
#include "transport/network.hpp"
#include "transport/rdma.hpp"

namespace farsum {

class WakeSources : public NetworkWake {
 public:
  explicit WakeSources(Attendance& attendance) : attendance_(attendance) {}
  // Each once, by any thread; both outlive the agent.
  void add(Network& network) {
    attendance_.add(network);
    network_.store(&network, std::memory_order_release);
  }
  void add(Rdma& card) { card_.store(&card, std::memory_order_release); }

  // Negative where there is no network yet.
  int request_descriptor() override { return network() != nullptr ? attendance_.request_descriptor() : -1; }
  bool arm_requests() override { return attendance_.arm_requests(); }
  int reply_descriptor() override {
    Network* const network = this->network();
    return network == nullptr ? -1 : network->reply_descriptor();
  }
  bool arm_replies() override {
    Network* const network = this->network();
    return network == nullptr || is_armed(network->arm_replies());
  }
  std::uint64_t next_deadline_ns() override {
    Network* const network = this->network();
    return network == nullptr ? never : network->next_deadline_ns();
  }
  int card_descriptor() override {
    Rdma* const card = this->card();
    return card == nullptr ? -1 : card->descriptor();
  }
  bool arm_card() override {
    Rdma* const card = this->card();
    return card == nullptr || is_armed(card->arm());
  }
  void look_after_card() {
    if (Rdma* const card = this->card(); card != nullptr) card->look_after();
  }

 private:
  // One that cannot be armed is slept on all the same: its descriptor tells of errors.
  static bool is_armed(const Result<bool>& armed) { return !armed.is_ok() || armed.value(); }
  // Acquire pairs with the release in add().
  Network* network() const { return network_.load(std::memory_order_acquire); }
  Rdma* card() const { return card_.load(std::memory_order_acquire); }

  Attendance& attendance_;
  std::atomic<Network*> network_{nullptr};
  std::atomic<Rdma*> card_{nullptr};
};

}  // namespace farsum
