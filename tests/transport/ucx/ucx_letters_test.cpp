// Letters between hosts over UCX: over connections that break, and without waking an agent for what was received.
#include <cstdint>
#include <cstring>
#include <span>

#include <gtest/gtest.h>

#include "transport/ucx/broken_connections.hpp"
#include "transport/ucx/two_transports.hpp"

namespace farsum {
namespace {

// Takes numbers that count up from 0.
class Counting final : public LetterHandler {
 public:
  void on_letter(Rank, std::span<const std::byte> letter) noexcept override {
    std::uint64_t value = 0;
    std::memcpy(&value, letter.data(), sizeof value);
    in_order = in_order && letter.size() == sizeof value && value == count;
    ++count;
  }
  std::uint64_t count = 0;
  bool in_order = true;
};

class UcxLetters : public UcxTransportTest {
 protected:
  static constexpr std::uint64_t s = 1'000'000'000;

  explicit UcxLetters(std::uint32_t size = 2) : UcxTransportTest(size) {}
  void SetUp() override {
    UcxTransportTest::SetUp();
    if (IsSkipped()) return;
    at(target).deliver_letters_to(letters);
    at(target).introduce(origin, at(origin).address());
    connect(adder, sums);
    settle(adder, sums);
  }
  bool try_letter(std::uint64_t number) { return at(origin).try_letter(target, bytes_of(number), {}); }
  // The target alone, as where all threads of the origin compute and its agent sleeps.
  void target_polls() {
    pass(1'000);
    at(target).poll_requests(adder, 64);
  }
  void send(std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t number = first; number != end; ++number) {
      for (; !try_letter(number); ++refused) target_polls();
      target_polls();
    }
    while (letters.count != end) target_polls();
  }

  Adder adder;
  Sums sums;
  Counting letters;
  std::uint64_t refused = 0;
};

TEST_F(UcxLetters, come_once_and_in_order_over_connections_that_break) {
  constexpr std::uint64_t count = 5'000;
  std::size_t broken = 0;
  for (std::uint64_t sent = 0; letters.count < count;) {
    if (sent < count && try_letter(sent) && ++sent % 500 == 250) broken += break_all_connections();
    round(adder, sums);
  }
  EXPECT_GT(broken, 9u);
  EXPECT_EQ(letters.count, count);
  EXPECT_TRUE(letters.in_order);
}

TEST_F(UcxLetters, rouse_the_agent_for_their_deadline_once_and_for_no_receipt) {
  EXPECT_EQ(at(origin).next_deadline_ns(), Network::never);
  send(0, 1'000);
  EXPECT_LE(handed_over_[origin], 2 + refused) << "for the deadline, and for one that did not leave at once";
  // As the agent does when it is roused.
  at(origin).tick();
  EXPECT_FALSE(at(origin).is_unattended(Network::Threads::away)) << "nobody sleeps on receipts";
  EXPECT_NE(at(origin).next_deadline_ns(), Network::never);
  handed_over_[origin] = 0;
  refused = 0;
  send(1'000, 2'000);
  EXPECT_LE(handed_over_[origin], refused);
  EXPECT_TRUE(letters.in_order);
}

TEST_F(UcxLetters, need_no_more_looking_after_once_a_ping_has_told_that_they_came) {
  send(0, 3);
  at(origin).tick();
  const std::uint64_t deadline = at(origin).next_deadline_ns();
  ASSERT_NE(deadline, Network::never);
  pass(deadline);
  for (int looks = 0; at(origin).next_deadline_ns() != Network::never && looks < 10; ++looks) {
    at(origin).tick();
    target_polls();
    pass(5 * s);
    at(origin).tick();
  }
  EXPECT_EQ(at(origin).next_deadline_ns(), Network::never);
  EXPECT_EQ(at(origin).state(target), link::LinkState::open);
}

// The agent comes by the clock only, and sleeps on replies where it is told to.
TEST_F(UcxLetters, come_after_a_broken_connection_though_no_thread_of_the_origin_looks) {
  send(0, 3);
  at(origin).tick();
  break_all_connections();
  ASSERT_TRUE(try_letter(3));
  while (letters.count != 4) {
    if (!at(origin).is_unattended(Network::Threads::away)) {
      const std::uint64_t now = now_ns_.load(std::memory_order_relaxed), next = at(origin).next_deadline_ns();
      ASSERT_NE(next, Network::never);
      if (next > now) pass(next - now);
    }
    at(origin).tick();
    target_polls();
  }
  EXPECT_EQ(letters.count, 4u);
  EXPECT_TRUE(letters.in_order);
}

TEST_F(UcxLetters, are_taken_and_dropped_where_the_peer_was_abandoned) {
  at(origin).abandon(target);
  for (std::uint64_t number = 0; number != 100; ++number) EXPECT_TRUE(try_letter(number));
  target_polls();
  EXPECT_EQ(letters.count, 0u);
}

TEST_F(UcxLetters, stop_the_process_to_a_rank_that_was_not_introduced_and_above_their_limit) {
  const std::vector<std::byte> longer(at(origin).capabilities(target).max_letter_bytes + 1);
  EXPECT_DEATH((void)at(origin).try_letter(target, longer, {}), "longer");
  EXPECT_DEATH((void)at(origin).try_letter(origin, {}, {}), "not introduced");
}

class UcxLettersBesideAnother : public UcxLetters {
 protected:
  UcxLettersBesideAnother() : UcxLetters(3) {}
};

TEST_F(UcxLettersBesideAnother, have_the_agent_sleep_on_room_for_one_that_was_refused_and_roused_when_it_came) {
  std::uint64_t taken = 0;
  for (; taken != link::letters_in_window; ++taken) ASSERT_TRUE(try_letter(taken));
  do at(origin).tick();
  while (at(origin).is_unattended(Network::Threads::away));
  handed_over_[origin] = 0;
  EXPECT_FALSE(try_letter(taken));
  EXPECT_EQ(handed_over_[origin], 1u);
  at(origin).tick();
  EXPECT_TRUE(at(origin).is_unattended(Network::Threads::away));
  handed_over_[origin] = 0;
  while (handed_over_[origin] == 0) {
    target_polls();
    // A thread that looks for something else takes in what says that there is room.
    at(origin).poll_replies(other_target, sums);
  }
  EXPECT_TRUE(try_letter(taken));
  while (letters.count != taken + 1) target_polls();
  EXPECT_TRUE(letters.in_order);
}

}  // namespace
}  // namespace farsum
