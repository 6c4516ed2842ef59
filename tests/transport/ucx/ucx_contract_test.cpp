// The transport between hosts keeps the transport contract, over TCP and over UCX's shared memory. All ranks live in
// one process here.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "transport/contract_suite.hpp"
#include "transport/transport_contract_test.cpp"  // the suite's body: this binary is built only where UCX's headers are
#include "transport/ucx/two_workers.hpp"
#include "transport/ucx/ucx_transport.hpp"

namespace farsum {
namespace {

class Refuses final : public RequestHandler {
 public:
  Served on_request(Rank, std::span<const std::byte>, std::span<std::byte>, ReplyToken) override {
    ADD_FAILURE() << "a request came before any was posted";
    return {};
  }
};

class Ignores final : public ReplyHandler {
 public:
  void on_reply(Rank, std::uint64_t, Code, std::span<const std::byte>) override {
    ADD_FAILURE() << "a reply came before any request was posted";
  }
};

class UcxUnderTest final : public TransportUnderTest {
 public:
  explicit UcxUnderTest(const UcxOptions& options) : tells_of_failures_(options.transports != "posix") {
    for (Rank rank = 0; rank < contract_ranks; ++rank) {
      UcxTransport::Options all;
      all.rank = rank;
      all.ranks = contract_ranks;
      all.ucx = options;
      all.library = ucx_library_for_tests();
      all.timeout_ns = timeout_ns;
      all.now_ns = [this] { return now_ns_; };
      auto made = UcxTransport::create(all);
      if (!made.is_ok()) {
        ADD_FAILURE() << made.take_status().text();
        std::abort();
      }
      transports_.push_back(std::move(made.value()));
    }
    open_all();
  }

  Transport& at(Rank rank) override { return *transports_[rank]; }
  // Looks after what travels without serving: a frame reaches its target in poll_requests.
  void settle() override {
    now_ns_ += 100'000;
    for (const auto& transport : transports_) {
      if (transport) transport->tick();
    }
    spread_deaths();
  }
  std::span<std::byte> memory(Rank, std::size_t bytes) override {
    memory_.push_back(std::make_unique<std::byte[]>(bytes));
    return {memory_.back().get(), bytes};
  }
  std::uint64_t bad_address(Rank) override { return 0; }
  std::optional<Transfer> transfer_end(Rank, std::uint64_t) override { return std::nullopt; }
  // Time passes until its silence has lasted too long.
  bool kill(Rank rank) override {
    if (!tells_of_failures_) return false;  // and UCX cannot close what leads to it
    transports_[rank].reset();
    now_ns_ += timeout_ns;
    return true;
  }

 private:
  bool all_are_open() const {
    for (Rank from = 0; from < contract_ranks; ++from) {
      for (Rank to = 0; to < contract_ranks; ++to) {
        if (from != to && transports_[from]->state(to) != link::LinkState::open) return false;
      }
    }
    return true;
  }

  void open_all() {
    for (Rank from = 0; from < contract_ranks; ++from) {
      for (Rank to = 0; to < contract_ranks; ++to) {
        if (from == to) continue;
        transports_[from]->introduce(to, transports_[to]->address());
        transports_[from]->open(to);
      }
    }
    Refuses refuses;
    for (int round = 0; round < most_opening_rounds && !all_are_open(); ++round) {
      settle();
      for (const auto& transport : transports_) transport->poll_requests(refuses, 64);
    }
    if (!all_are_open()) ADD_FAILURE() << "the links have not opened";
  }

  // Who has found out tells the others: no time passes for what they post later.
  void spread_deaths() {
    for (Rank dead = 0; dead < contract_ranks; ++dead) {
      if (transports_[dead]) continue;
      const bool is_known = std::any_of(transports_.begin(), transports_.end(), [dead](const auto& transport) {
        return transport && transport->state(dead) == link::LinkState::failed;
      });
      for (const auto& transport : transports_) {
        if (is_known && transport) transport->abandon(dead);
      }
    }
  }

  static constexpr std::uint64_t timeout_ns = 30'000'000'000;
  // More than pass before a link gives up: it has given up then, or is stuck.
  static constexpr int most_opening_rounds = 400'000;
  const bool tells_of_failures_;
  std::uint64_t now_ns_ = 1;  // moved on by hand
  std::vector<std::unique_ptr<UcxTransport>> transports_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

ContractFactory over(const char* name, const UcxOptions& options, bool deaths) {
  return {name,
          [options] { return std::make_unique<UcxUnderTest>(options); },
          {.transfers = false, .own_transfers = false, .deaths = deaths}};
}

FARSUM_KEEPS_CONTRACT(ucx, over("tcp", {.transports = "tcp", .devices = "all"}, true),
                      over("posix", {.transports = "posix", .devices = "all"}, false));

}  // namespace
}  // namespace farsum
