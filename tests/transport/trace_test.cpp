#include "transport/trace/trace_transport.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "transport/sim/sim_world.hpp"

namespace farsum {
namespace {

class Recorder final : public TraceRecorder {
 public:
  void on_trace(const TraceEvent& event) override { events.push_back(event); }
  std::vector<TraceEvent> events;
};

class OnceAgain final : public RequestHandler {
 public:
  Served on_request(Rank, std::span<const std::byte>, std::span<std::byte>, ReplyToken) override {
    return calls_++ == 0 ? Served{.kind = Served::Kind::again} : Served{.code = Code::range, .reply_bytes = 5};
  }

 private:
  int calls_ = 0;
};

class Ignore final : public ReplyHandler, public TransferHandler {
 public:
  void on_reply(Rank, std::uint64_t, Code, std::span<const std::byte>) override {}
  void on_transfer(std::uint64_t, Transfer) override {}
};

class TraceTest : public testing::Test {
 protected:
  SimWorld world_{1, 2, {.pair_messages = 2}};
  Recorder recorder_;
  TraceTransport origin_{world_.transport(0), 2, &recorder_};
  TraceTransport target_{world_.transport(1), 2};
  const std::vector<std::byte> head_{std::byte{7}, std::byte{0}, std::byte{0}};
  const std::vector<std::byte> body_ = std::vector<std::byte>(10);
};

TEST_F(TraceTest, counts_messages_by_peer_and_by_their_first_byte) {
  ASSERT_TRUE(origin_.try_post(1, head_, body_, {.reply_capacity = 8}));
  ASSERT_TRUE(origin_.try_post(1, body_, {}, {}));
  ASSERT_FALSE(origin_.try_post(1, head_, {}, {}));
  EXPECT_EQ(origin_.counts_of_peer(1).posted, 2u);
  EXPECT_EQ(origin_.counts_of_peer(1).posted_bytes, 23u);
  EXPECT_EQ(origin_.counts_of_peer(1).refused, 1u);
  EXPECT_EQ(origin_.counts_of_peer(0).posted, 0u);
  EXPECT_EQ(origin_.counts_of_kind(7).posted, 1u);
  EXPECT_EQ(origin_.counts_of_kind(7).refused, 1u);
  EXPECT_EQ(origin_.counts_of_kind(0).posted_bytes, 10u);
  EXPECT_EQ(origin_.total().posted, 2u);
}

TEST_F(TraceTest, counts_what_is_served_put_off_and_answered) {
  OnceAgain handler;
  Ignore replies;
  ASSERT_TRUE(origin_.try_post(1, head_, body_, {.reply_capacity = 8}));
  for (int i = 0; i < 3; ++i) {
    world_.run();
    target_.poll_requests(handler, 10);
  }
  world_.run();
  origin_.poll_replies(1, replies);
  EXPECT_EQ(target_.counts_of_peer(0).agains, 1u);
  EXPECT_EQ(target_.counts_of_peer(0).served, 1u);
  EXPECT_EQ(target_.counts_of_kind(7).served_bytes, 13u);
  EXPECT_EQ(origin_.counts_of_peer(1).replies, 1u);
  EXPECT_EQ(origin_.counts_of_peer(1).reply_bytes, 5u);
  EXPECT_EQ(origin_.counts_of_peer(1).failed_replies, 1u);
}

TEST_F(TraceTest, counts_transfers) {
  Ignore handler;
  world_.transport(0).set_transfer_handler(&handler);
  const std::span<std::byte> memory = world_.memory().allocate(64);
  std::vector<std::byte> buffer(64);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  ASSERT_EQ(origin_.read(1, address, buffer, 1), Transfer::started);
  ASSERT_EQ(origin_.write(1, address, std::span(buffer).first(16), 2), Transfer::started);
  world_.run();
  EXPECT_EQ(origin_.counts_of_peer(1).reads, 1u);
  EXPECT_EQ(origin_.counts_of_peer(1).read_bytes, 64u);
  EXPECT_EQ(origin_.counts_of_peer(1).writes, 1u);
  EXPECT_EQ(origin_.counts_of_peer(1).write_bytes, 16u);
}

TEST_F(TraceTest, records_events_in_their_order) {
  OnceAgain handler;
  Ignore replies;
  ASSERT_TRUE(origin_.try_post(1, head_, body_, {.reply_capacity = 8}));
  world_.run();
  target_.poll_requests(handler, 10);
  target_.poll_requests(handler, 10);
  world_.run();
  origin_.poll_replies(1, replies);
  ASSERT_EQ(recorder_.events.size(), 2u);
  EXPECT_EQ(recorder_.events[0].text(), "posted peer 1 kind 7 ticket 0 bytes 13 code 0");
  EXPECT_EQ(recorder_.events[1].text(), "reply peer 1 kind 0 ticket 0 bytes 5 code 5");
}

}  // namespace
}  // namespace farsum
