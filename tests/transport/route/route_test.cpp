// What a route does besides the contract: who is called what, and a network that comes late.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/route/route_transport.hpp"

namespace farsum {
namespace {

// Writes down what it is asked for. Each half has something to tell, about the peer that is set.
class Noted final : public Transport {
 public:
  explicit Noted(std::size_t message_bytes) : message_bytes_(message_bytes) {}

  Capabilities capabilities(Rank peer) const override {
    return {.transfers = peer == 0, .late_replies = true, .max_message_bytes = message_bytes_, .max_reply_bytes = 8};
  }
  std::optional<std::uint64_t> try_post(Rank peer, std::span<const std::byte>, std::span<const std::byte>,
                                        const PostOptions& options) override {
    note(options.may_wait ? "post_waiting" : "post", peer);
    return 7 + options.reply_capacity;
  }
  std::size_t poll_replies(Rank peer, ReplyHandler& handler) override {
    note("poll", peer);
    handler.on_reply(peer, 3, Code::ok, {});
    return 1;
  }
  void hand_over() override { note("hand_over", 0); }
  std::size_t poll_requests(RequestHandler& handler, std::size_t budget) override {
    std::size_t finished = 0;
    for (; finished < budget && waiting.load(std::memory_order_relaxed) != 0; ++finished) {
      waiting.fetch_sub(1, std::memory_order_relaxed);
      handler.on_request(sender, {}, {}, {sender, 5});
    }
    return finished;
  }
  bool has_unfinished_request() const override { return is_unfinished; }
  void complete(ReplyToken token, Code, std::span<const std::byte>) override { note("complete", token.peer); }
  Transfer read(Rank peer, std::uint64_t, std::span<std::byte>, std::uint64_t) override {
    return note("read", peer), Transfer::done;
  }
  Transfer write(Rank peer, std::uint64_t, std::span<const std::byte>, std::uint64_t) override {
    return note("write", peer), Transfer::done;
  }

  std::vector<std::string> take() { return std::exchange(calls_, {}); }

  Rank sender = 0;
  std::atomic<std::uint64_t> waiting{0};  // requests to be served
  bool is_unfinished = false;

 private:
  void note(const char* what, Rank peer) { calls_.push_back(what + (" " + std::to_string(peer))); }

  std::size_t message_bytes_;
  std::vector<std::string> calls_;
};

class Asked final : public RequestHandler, public ReplyHandler {
 public:
  Served on_request(Rank from, std::span<const std::byte>, std::span<std::byte>, ReplyToken token) override {
    EXPECT_EQ(from, token.peer);
    EXPECT_EQ(token.ticket, 5u);
    froms.push_back(from);
    return {};
  }
  void on_reply(Rank from, std::uint64_t, Code, std::span<const std::byte>) override { froms.push_back(from); }
  std::vector<Rank> froms;
};

using Calls = std::vector<std::string>;

class RouteTest : public testing::Test {
 protected:
  static constexpr Rank near = 40, nearest = 41, far = 1;
  const NodeRanks here_{{near, nearest}};
  Noted node_{100}, network_{200};
  RouteTransport route_{node_, here_};
  Asked asked_;
};

TEST_F(RouteTest, asks_ranks_of_the_node_by_their_places_and_all_others_by_their_ranks) {
  route_.add_network(network_);
  for (const Rank peer : {nearest, far}) {
    route_.try_post(peer, {}, {}, {});
    route_.try_post(peer, {}, {}, {.may_wait = true});
    route_.poll_replies(peer, asked_);
    route_.complete({peer, 0}, Code::ok, {});
    route_.read(peer, 0, {}, 0);
    route_.write(peer, 0, {}, 0);
  }
  EXPECT_EQ(node_.take(), (Calls{"post 1", "post_waiting 1", "poll 1", "complete 1", "read 1", "write 1"}));
  EXPECT_EQ(network_.take(), (Calls{"post 1", "post_waiting 1", "poll 1", "complete 1", "read 1", "write 1"}));
  EXPECT_EQ(asked_.froms, (std::vector<Rank>{nearest, far}));
}

TEST_F(RouteTest, tells_who_asks_by_ranks_of_the_job) {
  route_.add_network(network_);
  node_.sender = 0;
  node_.waiting = 1;
  network_.sender = 17;
  network_.waiting = 1;
  while (asked_.froms.size() < 2) route_.poll_requests(asked_, 1);
  std::sort(asked_.froms.begin(), asked_.froms.end());
  EXPECT_EQ(asked_.froms, (std::vector<Rank>{17, near}));
}

TEST_F(RouteTest, copies_its_own_memory_within_the_node) {
  route_.add_network(network_);
  const TransferPiece piece{};
  EXPECT_EQ(route_.read(near, 0, {}, 0), Transfer::done);
  EXPECT_EQ(route_.read_pieces(near, std::span(&piece, 1)), Transfer::done);
  EXPECT_EQ(route_.write_pieces(near, std::span(&piece, 1)), Transfer::done);
  EXPECT_EQ(node_.take(), (Calls{"read 0", "read 0", "write 0"}));
  EXPECT_EQ(network_.take(), Calls{});
}

TEST_F(RouteTest, says_of_each_peer_what_its_transport_can) {
  route_.add_network(network_);
  EXPECT_EQ(route_.capabilities(near).max_message_bytes, 100u);
  EXPECT_TRUE(route_.capabilities(near).transfers);
  EXPECT_FALSE(route_.capabilities(nearest).transfers);
  EXPECT_EQ(route_.capabilities(far).max_message_bytes, 200u);
}

TEST_F(RouteTest, finds_no_room_for_remote_ranks_until_there_is_a_network) {
  EXPECT_FALSE(route_.try_post(far, {}, {}, {}));
  EXPECT_FALSE(route_.try_post(far, {}, {}, {.may_wait = true}));
  EXPECT_EQ(route_.poll_replies(far, asked_), 0u);
  EXPECT_EQ(route_.capabilities(far).max_message_bytes, 0u);
  EXPECT_EQ(route_.read(far, 0, {}, 0), Transfer::refused);
  route_.complete({far, 0}, Code::ok, {});
  route_.hand_over();
  EXPECT_TRUE(route_.try_post(near, {}, {}, {}));
  route_.add_network(network_);
  EXPECT_TRUE(route_.try_post(far, {}, {}, {}));
}

TEST_F(RouteTest, has_an_unfinished_request_where_either_has_one) {
  EXPECT_FALSE(route_.has_unfinished_request());
  network_.is_unfinished = true;
  EXPECT_FALSE(route_.has_unfinished_request());
  route_.add_network(network_);
  EXPECT_TRUE(route_.has_unfinished_request());
  network_.is_unfinished = false;
  node_.is_unfinished = true;
  EXPECT_TRUE(route_.has_unfinished_request());
}

TEST_F(RouteTest, lets_neither_starve_the_other) {
  route_.add_network(network_);
  node_.sender = 0;
  network_.sender = far;
  node_.waiting = network_.waiting = 100;
  for (int turn = 0; turn < 4; ++turn) EXPECT_EQ(route_.poll_requests(asked_, 10), 10u);
  EXPECT_EQ(std::count(asked_.froms.begin(), asked_.froms.end(), near), 20);
  EXPECT_EQ(std::count(asked_.froms.begin(), asked_.froms.end(), far), 20);
}

TEST_F(RouteTest, serves_both_in_each_turn_however_much_the_first_has) {
  route_.add_network(network_);
  network_.sender = far;
  node_.waiting = network_.waiting = 100;
  for (int turn = 1; turn <= 4; ++turn) {
    route_.poll_requests(asked_, 10);
    EXPECT_EQ(std::count(asked_.froms.begin(), asked_.froms.end(), near), 5 * turn);
    EXPECT_EQ(std::count(asked_.froms.begin(), asked_.froms.end(), far), 5 * turn);
  }
  node_.waiting = 0;
  asked_.froms.clear();
  for (int turn = 0; turn < 2; ++turn) EXPECT_EQ(route_.poll_requests(asked_, 10), 10u) << "what the other leaves";
}

TEST_F(RouteTest, takes_a_network_while_the_agent_polls) {
  network_.sender = far;
  std::thread agent([&] {
    while (asked_.froms.empty()) {
      route_.poll_requests(asked_, 4);
      route_.has_unfinished_request();
    }
  });
  network_.waiting = 1;
  route_.add_network(network_);
  agent.join();
  EXPECT_EQ(asked_.froms, std::vector<Rank>{far});
}

}  // namespace
}  // namespace farsum
