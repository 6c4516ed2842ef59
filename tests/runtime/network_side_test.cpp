// A rank's side of the network where nobody can serve it.
#include <gtest/gtest.h>

#include <string>

#include "in_process_job.hpp"
#include "liveness/remote_nodes.hpp"
#include "runtime/network_side.hpp"
#include "transport/route/route_transport.hpp"
#include "transport/shm/shm_transport.hpp"

namespace farsum {
namespace {

class NetworkSideTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "UCX does not run under ThreadSanitizer";
#endif
    settings_ = test::on_path(PathChoice::automatic);
    const std::string refusal = probe_network(settings_.ucx_library, settings_.net_tls, settings_.net_devices).refusal;
    if (!refusal.empty()) GTEST_SKIP() << refusal;
    Result<std::unique_ptr<NodeSegment>> made = NodeSegment::create(
        {.ranks = 1, .segment_bytes = std::uint64_t{1} << 26, .team_bytes = GroupBlock::footprint(1)});
    ASSERT_TRUE(made.is_ok()) << made.take_status().text();
    segment_ = std::move(made.value());
    here_ = NodeRanks({0});
    node_ = std::make_unique<ShmTransport>(*segment_, ShmTransport::Options{});
    route_ = std::make_unique<RouteTransport>(*node_, here_);
    remote_nodes_ = std::make_unique<RemoteNodes>(here_);
  }

  NetworkSide::Parts parts() {
    NetworkSide::Parts parts;
    parts.ranks = 2;
    parts.settings = &settings_;
    parts.node = identify_node("node0");
    parts.route = route_.get();
    parts.remote_nodes = remote_nodes_.get();
    parts.look_after = [] {};
    return parts;
  }

  Settings settings_;
  std::shared_ptr<NodeSegment> segment_;
  NodeRanks here_;
  std::unique_ptr<ShmTransport> node_;
  std::unique_ptr<RouteTransport> route_;
  std::unique_ptr<RemoteNodes> remote_nodes_;
};

std::string text_of(const NetworkCard& card) { return reinterpret_cast<const char*>(card.address.data()); }

// Another rank that believed the second card would ask, and never hear.
TEST_F(NetworkSideTest, says_each_time_that_nobody_serves_it) {
  NetworkSide::Parts with = parts();
  int tries = 0;
  with.started = [&](Network&) {
    ++tries;
    return Status(Code::system, "no thread can be started");
  };
  NetworkSide side(std::move(with));
  for (int i = 0; i < 2; ++i) {
    const NetworkCard card = side.card();
    EXPECT_EQ(card.code, Code::system);
    EXPECT_EQ(text_of(card), "no thread can be started");
  }
  EXPECT_EQ(tries, 1);
}

TEST_F(NetworkSideTest, has_a_card_with_its_address_where_it_is_served) {
  NetworkSide::Parts with = parts();
  with.started = [](Network&) { return Status(); };
  NetworkSide side(std::move(with));
  const NetworkCard card = side.card();
  EXPECT_EQ(card.code, Code::ok) << text_of(card);
  EXPECT_NE(card.address_bytes, 0u);
}

// Whoever hands it over again may be another thread, and the first call long answered.
TEST_F(NetworkSideTest, has_the_agent_look_after_it_once_for_each_hand_over) {
  NetworkSide::Parts with = parts();
  int looks = 0;
  with.started = [](Network&) { return Status(); };
  with.look_after = [&] { ++looks; };
  NetworkSide side(std::move(with));
  side.hand_over();
  EXPECT_EQ(looks, 0) << "there is no network yet";
  const NetworkCard card = side.card();
  ASSERT_EQ(card.code, Code::ok) << text_of(card);
  for (int handed_over = 1; handed_over <= 3; ++handed_over) {
    side.hand_over();
    EXPECT_EQ(looks, handed_over);
  }
}

}  // namespace
}  // namespace farsum
