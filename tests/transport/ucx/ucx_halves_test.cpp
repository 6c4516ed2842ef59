// Each half of a rank's transport alone: one that asks and one that serves, of two ranks, without what joins them.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "transport/ucx/two_transports.hpp"
#include "transport/ucx/ucx_origin.hpp"
#include "transport/ucx/ucx_target.hpp"

namespace farsum {
namespace {

class UcxHalves : public testing::Test {
 protected:
  static constexpr Rank asking = 0, serving = 1;

  void SetUp() override {
    auto found = UcxLibrary::load(ucx_library_for_tests());
    if (!found.is_ok()) GTEST_SKIP() << found.take_status().text();
    library = std::move(found.value());
    auto made = UcxContext::create(*library, over_tcp);
    if (!made.is_ok()) GTEST_SKIP() << made.take_status().text();
    context = std::move(made.value());
    for (const Rank rank : {asking, serving})
      gates.push_back(std::make_unique<FrameGate>(
          FrameGate::Terms{.rank = rank, .ranks = 2, .secret = secret(1), .frame_bytes = context->piece_bytes()}));
    auto a = UcxOrigin::create(*context, *gates[asking],
                               {.now_ns = [this] { return now_ns; },
                                .on_lost = [this](Rank, const std::string& why) { lost.push_back(why); },
                                .on_hand_over = [this] { ++handed_over; }});
    ASSERT_TRUE(a.is_ok()) << a.take_status().text();
    origin = std::move(a.value());
    auto b = UcxTarget::create(*context, *gates[serving], 1 << 20);
    ASSERT_TRUE(b.is_ok()) << b.take_status().text();
    target = std::move(b.value());
    origin->introduce(serving, target->address());
  }

  void round() {
    now_ns += 100'000;
    origin->tick();
    target->poll_requests(adder, 64);
    origin->poll_replies(serving, sums);
  }
  void connect() {
    origin->open(serving);
    while (origin->state(serving) != link::LinkState::open) round();
  }

  std::unique_ptr<UcxLibrary> library;
  std::unique_ptr<UcxContext> context;
  std::vector<std::unique_ptr<FrameGate>> gates;  // by rank
  std::unique_ptr<UcxOrigin> origin;
  std::unique_ptr<UcxTarget> target;
  std::uint64_t now_ns = 1;
  std::vector<std::string> lost;
  int handed_over = 0;
  Adder adder;
  Sums sums;
};

TEST_F(UcxHalves, ask_and_serve) {
  constexpr std::uint64_t count = 100;
  connect();
  for (std::uint64_t value = 1; value <= count;) {
    if (origin->try_post(serving, word_bytes(value), {}, {.reply_capacity = 8})) ++value;
    round();
  }
  while (sums.count != count) round();
  EXPECT_EQ(adder.calls, count);
  EXPECT_TRUE(sums.right);
  EXPECT_EQ(origin->traffic().frames_received.load(), target->traffic().frames_sent.load());
}

TEST_F(UcxHalves, keep_so_much_for_a_peer_as_they_say) {
  EXPECT_EQ(origin->peers(), 1u);
  EXPECT_EQ(origin->peer_bytes(), UcxOrigin::bytes_of_peer() + target->address().size());
  EXPECT_EQ(target->peer_bytes(), 0u);
  connect();
  EXPECT_EQ(target->peer_bytes(), UcxTarget::bytes_of_peer());
}

TEST_F(UcxHalves, have_heard_goodbye_when_who_asked_has_said_it_or_is_lost) {
  const auto nobody = [](Rank) { return false; };
  const auto everybody = [](Rank) { return true; };
  EXPECT_TRUE(target->has_heard_goodbye(nobody)) << "of nobody";
  connect();
  EXPECT_FALSE(target->has_heard_goodbye(nobody));
  EXPECT_TRUE(target->has_heard_goodbye(everybody));
  while (!origin->has_said_goodbye()) round();
  while (!target->has_heard_goodbye(nobody)) round();
  EXPECT_EQ(origin->state(serving), link::LinkState::closed);
  EXPECT_FALSE(origin->is_lost(serving));
}

TEST_F(UcxHalves, tell_who_is_lost_and_hand_over_when_no_lock_is_held) {
  connect();
  origin->hand_over();
  EXPECT_GE(handed_over, 1);
  const std::uint64_t value = 1;
  ASSERT_TRUE(origin->try_post(serving, word_bytes(value), {}, {.reply_capacity = 8}));
  now_ns += 31'000'000'000;
  origin->tick();
  EXPECT_TRUE(origin->is_lost(serving));
  EXPECT_EQ(lost, std::vector<std::string>{"nothing heard for 30 s (FARSUM_NET_TIMEOUT)"});
}

// The half that asks may be called while it tells that it has something for the agent.
TEST_F(UcxHalves, may_be_asked_while_they_hand_over) {
  auto made = UcxOrigin::create(*context, *gates[asking],
                                {.now_ns = [this] { return now_ns; },
                                 .on_lost = {},
                                 .on_hand_over =
                                     [this] {
                                       ++handed_over;
                                       origin->is_unattended(Network::Threads::away);
                                     }});
  ASSERT_TRUE(made.is_ok()) << made.take_status().text();
  origin = std::move(made.value());
  origin->hand_over();
  EXPECT_EQ(handed_over, 1);
}

}  // namespace
}  // namespace farsum
