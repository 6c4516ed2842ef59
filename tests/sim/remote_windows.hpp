// Windows whose targets are in no shared memory, each rank with its Window over the simulated transport. One thread
// plays all ranks: whoever waits lets the world go on.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "protocol_job.hpp"
#include "transport/sim/sim_rdma.hpp"
#include "variants/cards/card_path.hpp"
#include "variants/leases/leased_path.hpp"
#include "window/window.hpp"

namespace farsum {

// Lets the world go on until the condition holds.
class SteppingWaiter final : public Waiter {
 public:
  explicit SteppingWaiter(SimWorld& world) : world_(world) {}
  Status wait(EventCount&, FunctionRef<bool()> done, const char* doing) override {
    while (!done()) {
      if (!world_.step()) return {Code::system, std::string(doing) + ": nothing happens any more"};
    }
    return {};
  }
  Status wait_for_grant(LockGrant& grant, const char* doing) override {
    return wait(
        events_, [&] { return grant.has_come(); }, doing);
  }
  Status looked_in_vain(const char*) override { return {}; }
  EventCount& own_events() override { return events_; }

 private:
  SimWorld& world_;
  EventCount events_;
};

class WakingRinger final : public Ringer {
 public:
  explicit WakingRinger(SimWorld& world) : world_(world) {}
  void ring(std::uint32_t owner) const override {
    ++rings;
    world_.wake_agent(owner);
  }
  mutable int rings = 0;

 private:
  SimWorld& world_;
};

// Every message takes as long as every other, and nobody takes time for anything else.
inline constexpr SimTime latency_ns = 1'000;
inline constexpr SimTime round_trip_ns = 2 * latency_ns;

inline ProtocolJobOptions even_options(Rank ranks) {
  ProtocolJobOptions options;
  options.owners = ranks;
  options.sim.message_latency = {latency_ns, latency_ns};
  options.sim.long_delay_one_in = 0;
  options.sim.wake_up = options.sim.service = options.sim.origin_wake = options.sim.again_pause = {0, 0};
  options.sim.pair_messages = 64;
  return options;
}

// Whose card is slow and torn beside its messages: what does not wait for it shows.
inline ProtocolJobOptions card_options(Rank ranks) {
  ProtocolJobOptions options = even_options(ranks);
  options.for_cards = true;
  options.sim.message_latency = {10, 10};
  options.sim.card_latency = {500, 5'000};
  options.sim.card_gap = {100, 1'000};
  return options;
}

struct SimWindowOptions {
  std::uint32_t promises = 0;
  bool dynamic = false;
  PathChoice path = PathChoice::automatic;
  std::uint64_t aggregate_limit = 1024;
  Rank ranks_of_a_node = 1;
  std::uint64_t seed = 1;
  bool network_only = false;  // cards carry everything out
  std::uint32_t queues_as = lock_word::waiting;
};

// Ranks of a job, neighbours on nodes of equal size, and one window over all of them.
class RemoteWindows {
 public:
  RemoteWindows(Rank ranks, const SimWindowOptions& wish, const ProtocolJobOptions& options)
      : job(wish.seed, ranks, options), waiter(job.world()), ringer(job.world()), ranks_(ranks), wish_(wish) {
    for (Rank rank = 0; rank < ranks; ++rank) cards_.push_back(std::make_unique<SimRdma>(job.world(), rank));
    for (Rank rank = 0; rank < ranks; ++rank) windows_.push_back(std::make_unique<Window>(parts_of(rank, options)));
    for (const auto& window : windows_) window->refresh_views();
  }
  explicit RemoteWindows(Rank ranks, const SimWindowOptions& wish = {})
      : RemoteWindows(ranks, wish, wish.network_only ? card_options(ranks) : even_options(ranks)) {}

  Window& operator[](Rank rank) { return *windows_[rank]; }
  SimTime now_ns() { return job.world().now_ns(); }
  std::uint64_t messages_of(Rank rank) { return job.rank(rank).engine.messages_sent(); }
  std::uint64_t operations_by(Path path) const { return counters_.operations[static_cast<std::size_t>(path)]; }
  std::uint64_t bytes_by(Path path) const { return counters_.bytes[static_cast<std::size_t>(path)]; }
  SimRdma& card(Rank rank) { return *cards_[rank]; }
  // Whatever the agents still have to do.
  void settle() { job.world().run(); }

  ProtocolJob job;
  SteppingWaiter waiter;
  WakingRinger ringer;

 private:
  Window::Parts parts_of(Rank rank, const ProtocolJobOptions& options) {
    Window::Parts parts;
    parts.id = ProtocolRank::window;
    parts.my_rank = rank;
    parts.promises = wish_.promises;
    parts.dynamic = wish_.dynamic;
    parts.settings.path = wish_.path;
    parts.aggregate_limit = wish_.aggregate_limit;
    parts.shape = job.shape();
    parts.kernels = &ops::kernels_for_this_machine();
    parts.waiter = &waiter;
    parts.engine = &job.rank(rank).engine;
    parts.transport = &job.rank(rank).trace;
    parts.counters = &counters_;
    parts.lock_agent.id = rank + 1;
    parts.lock_agent.ringer = &ringer;
    parts.lock_agent.queues_as = wish_.queues_as;
    parts.lock_agent.asked = asked_locks_.emplace_back(std::make_unique<AskedLocks>()).get();
    parts.make_region = [this](Rank owner, const SharedRegion& shared) {
      Region region;
      region.bytes = shared.bytes;
      region.mapped = job.memory(owner).data();
      region.domain = job.domain(owner);
      region.bulk = region.atomic = Path::direct;
      return region;
    };
    parts.wake_rank = [](Rank) {};
    parts.make_leases = make_leased_path(job.rank(rank).engine, job.rank(rank).trace);
    parts.remote_regions.resize(ranks_);
    for (Rank target = 0; target < ranks_; ++target) {
      parts.ranks.push_back(target);
      parts.sizes.push_back(wish_.dynamic ? 0 : options.window_bytes);
      const bool is_here = target / wish_.ranks_of_a_node == rank / wish_.ranks_of_a_node;
      parts.shared.push_back(is_here ? job.rank_window(target) : RankWindow());
      if (!is_here) parts.remote_regions[target] = remote_region(options.window_bytes);
    }
    if (wish_.network_only) give_to_cards(parts, options.window_bytes);
    return parts;
  }
  void give_to_cards(Window::Parts& parts, std::uint64_t bytes) {
    SimRdma& card = *cards_[parts.my_rank];
    CardReach cards{&card, {}};
    for (Rank target = 0; target < ranks_; ++target) {
      const CardMemory exposed = cards_[target]->expose(job.memory(target).data(), bytes).value();
      Region region;
      region.bytes = bytes;
      region.owner_address = reinterpret_cast<std::uintptr_t>(exposed.memory);
      region.bulk = region.atomic = Path::offload;
      cards.parts.push_back(card.reach(target, exposed.key));
      parts.remote_regions[target] = std::make_shared<std::vector<Region>>(std::vector{region});
    }
    parts.make_cards = make_card_path(std::move(cards));
  }
  RegionTable remote_region(std::uint64_t bytes) const {
    Region region;
    region.bytes = wish_.dynamic ? ~std::uint64_t{0} : bytes;
    Reach reach;
    reach.leases = true;
    const PathChoiceResult paths = choose_paths(wish_.path, reach);
    region.bulk = paths.bulk;
    region.atomic = paths.atomic;
    return std::make_shared<std::vector<Region>>(std::vector{region});
  }

  PathCounters counters_;
  Rank ranks_;
  SimWindowOptions wish_;
  std::vector<std::unique_ptr<SimRdma>> cards_;
  std::vector<std::unique_ptr<AskedLocks>> asked_locks_;  // by rank
  std::vector<std::unique_ptr<Window>> windows_;
};

inline Operation put_of(const std::vector<std::byte>& bytes, std::uint64_t offset = 0) {
  Operation operation;
  operation.offset = offset;
  operation.bytes = bytes.size();
  operation.operand = bytes.data();
  operation.operand_layout = operation.target_layout = ops::LayoutView::contiguous(bytes.size());
  return operation;
}

inline std::vector<std::byte> ones(std::size_t count) { return std::vector<std::byte>(count, std::byte{1}); }

inline testing::AssertionResult fine(const Status& status) {
  if (status.is_ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.text();
}

}  // namespace farsum
