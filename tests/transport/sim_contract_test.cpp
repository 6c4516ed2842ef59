// The simulated transport, in several kinds of weather, and the trace decorator over it, keep the transport contract.
#include <map>

#include "transport/contract_suite.hpp"
#include "transport/sim/sim_world.hpp"
#include "transport/trace/trace_transport.hpp"

namespace farsum {
namespace {

class SimUnderTest : public TransportUnderTest {
 public:
  explicit SimUnderTest(const SimOptions& options) : world_(20261121, contract_ranks, options) {
    for (Rank rank = 0; rank < contract_ranks; ++rank) world_.transport(rank).set_transfer_handler(&ends_[rank]);
  }

  Transport& at(Rank rank) override { return world_.transport(rank); }
  void settle() override { world_.run(); }
  std::span<std::byte> memory(Rank, std::size_t bytes) override { return world_.memory().allocate(bytes); }
  std::uint64_t bad_address(Rank rank) override {
    const auto address = reinterpret_cast<std::uintptr_t>(world_.memory().allocate(4096).data());
    world_.memory().forbid(rank, address, 4096);
    return address;
  }
  std::optional<Transfer> transfer_end(Rank rank, std::uint64_t cookie) override {
    const auto end = ends_[rank].ends.find(cookie);
    return end == ends_[rank].ends.end() ? std::nullopt : std::optional(end->second);
  }
  bool kill(Rank rank) override {
    world_.kill_after(rank, 0);
    return true;
  }

 protected:
  struct Ends final : TransferHandler {
    void on_transfer(std::uint64_t cookie, Transfer how) override { ends[cookie] = how; }
    std::map<std::uint64_t, Transfer> ends;
  };
  SimWorld world_;
  Ends ends_[contract_ranks];
};

class TracedUnderTest final : public SimUnderTest {
 public:
  TracedUnderTest() : SimUnderTest({}) {
    for (Rank rank = 0; rank < contract_ranks; ++rank) {
      traces_[rank] = std::make_unique<TraceTransport>(world_.transport(rank), contract_ranks);
    }
  }
  Transport& at(Rank rank) override { return *traces_[rank]; }

 private:
  std::unique_ptr<TraceTransport> traces_[contract_ranks];
};

ContractFactory sim(const char* name, const SimOptions& options, const Abilities& can = {}) {
  return {name, [options] { return std::make_unique<SimUnderTest>(options); }, can};
}

FARSUM_KEEPS_CONTRACT(
    sim, sim("plain", {}),
    sim("tight", {.pair_messages = 8, .pair_bytes = 2'000, .max_message_bytes = 1'024, .max_reply_bytes = 1'024}),
    sim("wild_delays", {.message_latency = {1, 50'000}, .long_delay_one_in = 3}), sim("torn", {.torn_transfers = true}),
    sim("without_late_replies_or_transfers", {.late_replies = false, .transfers = false},
        {.late_replies = false, .transfers = false, .own_transfers = false}));

FARSUM_KEEPS_CONTRACT(trace, ContractFactory{"over_sim", [] { return std::make_unique<TracedUnderTest>(); }});

}  // namespace
}  // namespace farsum
