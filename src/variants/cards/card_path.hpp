// What network cards do, in windows that are declared for them alone: nothing else touches that memory for another rank
// or for the own one (see memory/atomicity.hpp). A card adds, combines bits, swaps and compares words of 4 and 8 bytes;
// other operators are computed here and written by compare-and-swap.
//
// Completion: what was started makes `outstanding` of its target count one more until a flush of the card, so that
// whatever waits for a target's operations finds it. An epoch's end, a notification and a post go to the target behind
// that flush: a message, and a store to memory that ranks of a node share, may overtake a card.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "transport/rdma.hpp"
#include "window/executor.hpp"

namespace farsum {

// How cards reach the parts of a window.
struct CardReach {
  Rdma* rdma = nullptr;
  std::vector<Rdma::Reached> parts;  // by rank of the group
};

class CardPath final : public Executor {
 public:
  CardPath(CardReach reach, const ExecutorServices& services)
      : reach_(std::move(reach)),
        services_(services),
        targets_(std::make_unique<CardTarget[]>(services.ranks.size())) {}

  Status check(const Operation& operation, std::uint32_t target, const Region& region) const override;
  Status run(const ExecutorCall& call) override;
  void settle(std::uint32_t target, const char* call) override;
  void settle_all(const char* call) override;
  Status await_buffers(std::uint32_t target, const char* call) override {
    return await(target, targets_[target].posted, call);
  }

 private:
  struct CardTarget {
    CardCompletion posted;           // of what nobody waits for by itself
    std::atomic<bool> dirty{false};  // something was started since the last flush; then `outstanding` counts one more
    std::atomic<std::uint32_t> settling{0};    // threads that may have taken `dirty` and wait for the card
    std::atomic<std::uint8_t> last_update{0};  // see order
  };
  class Call;

  Status run_on_card(const ExecutorCall& of, const char* call);
  Status order(std::uint32_t target, const Operation& operation);
  Status notify_behind(const Operation& operation, std::uint32_t target);
  Status told(Status status, std::uint32_t target, const char* call) const;
  void note_started(std::uint32_t target);
  Status await(std::uint32_t target, CardCompletion& completion, const char* call);
  bool begin_settling(std::uint32_t target);
  void end_settling(std::uint32_t target, const char* call);
  void stop_settling(std::uint32_t target);
  void await_settled(std::uint32_t target, const char* call);

  CardReach reach_;
  ExecutorServices services_;
  std::unique_ptr<CardTarget[]> targets_;  // by target
};

// For a window whose parts cards reach so.
inline MakeExecutor make_card_path(CardReach reach) {
  return [reach = std::move(reach)](const ExecutorServices& services) {
    return std::make_unique<CardPath>(reach, services);
  };
}

}  // namespace farsum
