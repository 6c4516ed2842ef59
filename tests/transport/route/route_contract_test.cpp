// Ranks spread over nodes keep the transport contract, whoever of them shares a node: nodes and network are simulated.
// Places are never the ranks, so that one taken for the other shows.
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "transport/contract_suite.hpp"
#include "transport/route/route_transport.hpp"
#include "transport/sim/sim_world.hpp"
#include "transport/transport_contract_test.cpp"  // the suite's body

namespace farsum {
namespace {

using Nodes = std::vector<std::vector<Rank>>;  // the ranks of each, by place

class RouteUnderTest final : public TransportUnderTest {
 public:
  RouteUnderTest(const Nodes& nodes, const SimOptions& node_options) : network_(1, contract_ranks, network_options()) {
    for (const std::vector<Rank>& ranks : nodes) {
      nodes_.push_back(std::make_unique<Node>(ranks, node_options));
      Node& node = *nodes_.back();
      for (std::uint32_t place = 0; place < ranks.size(); ++place) {
        End& end = ends_[ranks[place]];
        end.node = &node;
        end.transport = std::make_unique<RouteTransport>(node.world.transport(place), node.here);
        end.transport->add_network(network_.transport(ranks[place]));
        node.world.transport(place).set_transfer_handler(&end);
      }
    }
  }

  Transport& at(Rank rank) override { return *ends_[rank].transport; }
  void settle() override {
    network_.run();
    for (const auto& node : nodes_) node->world.run();
  }
  std::span<std::byte> memory(Rank rank, std::size_t bytes) override {
    return ends_[rank].node->world.memory().allocate(bytes);
  }
  std::uint64_t bad_address(Rank rank) override {
    Node& node = *ends_[rank].node;
    const auto address = reinterpret_cast<std::uintptr_t>(node.world.memory().allocate(4096).data());
    node.world.memory().forbid(node.here.place_of(rank), address, 4096);
    return address;
  }
  std::optional<Transfer> transfer_end(Rank rank, std::uint64_t cookie) override {
    const auto end = ends_[rank].transfers.find(cookie);
    return end == ends_[rank].transfers.end() ? std::nullopt : std::optional(end->second);
  }
  bool kill(Rank rank) override {
    Node& node = *ends_[rank].node;
    node.world.kill_after(node.here.place_of(rank), 0);
    network_.kill_after(rank, 0);
    return true;
  }

 private:
  struct Node {
    Node(const std::vector<Rank>& ranks, const SimOptions& options)
        : here(ranks), world(2, static_cast<Rank>(ranks.size()), options) {}
    NodeRanks here;
    SimWorld world;
  };
  struct End final : TransferHandler {
    void on_transfer(std::uint64_t cookie, Transfer how) override { transfers[cookie] = how; }
    Node* node = nullptr;
    std::unique_ptr<RouteTransport> transport;
    std::map<std::uint64_t, Transfer> transfers;
  };

  static SimOptions network_options() {
    SimOptions options;
    options.transfers = false;
    return options;
  }

  SimWorld network_;
  std::vector<std::unique_ptr<Node>> nodes_;
  End ends_[contract_ranks];
};

ContractFactory route(const char* name, const Nodes& nodes, const Abilities& can = {},
                      const SimOptions& node_options = {}) {
  return {name, [=] { return std::make_unique<RouteUnderTest>(nodes, node_options); }, can};
}

FARSUM_KEEPS_CONTRACT(route, route("one_node", {{3, 1, 0, 2}}, {.letters = false}),
                      route("the_remote_bystander", {{2, 0, 1}, {3}}, {.letters = false}),
                      route("the_remote_receiver", {{3, 1, 0}, {2}}, {.transfers = false}),
                      route("one_remote_sender", {{2, 0}, {3, 1}},
                            {.transfers = false, .own_transfers = false, .letters = false}, {.transfers = false}),
                      route("each_on_its_own", {{0}, {1}, {2}, {3}}, {.transfers = false}));

}  // namespace
}  // namespace farsum
