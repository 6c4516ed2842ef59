// What the first ranks of nodes send each other when a team meets, as it is taken in.
#include "runtime/team_exchange.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "core_job.hpp"

namespace farsum {
namespace {

// Looks once: what is waited for has come, or has not.
class LookingOnce : public Waiter {
 public:
  Status wait(EventCount&, FunctionRef<bool()> done, const char* doing) override {
    return done() ? Status() : Status(Code::pending, doing);
  }
  Status wait_word(std::atomic<std::uint32_t>&, std::uint32_t, const char*) override { return {}; }
  Status looked_in_vain(const char*) override { return {}; }
  EventCount& own_events() override { return events_; }

 private:
  EventCount events_;
};

class TeamExchangeTest : public testing::Test {
 protected:
  static constexpr std::uint64_t team = 5;

  Code bring(std::uint64_t round, std::string_view text, bool is_last) {
    return exchange_.on_team_message(0, team, round, std::as_bytes(std::span(text)), is_last);
  }
  // "-": nothing yet.
  std::string taken(std::uint64_t round) {
    std::vector<std::byte> bytes;
    if (!exchange_.receive(0, team, round, bytes, "test").is_ok()) return "-";
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  CoreJob job_{1, 2, CoreJobOptions{}};
  LookingOnce waiter_;
  TeamExchange exchange_{job_.rank(1).engine, waiter_};
};

TEST_F(TeamExchangeTest, gives_what_came_in_parts_when_it_is_whole) {
  EXPECT_EQ(bring(1, "one ", false), Code::ok);
  EXPECT_EQ(taken(1), "-");
  EXPECT_EQ(bring(1, "two ", false), Code::ok);
  EXPECT_EQ(taken(1), "-");
  EXPECT_EQ(bring(1, "three", true), Code::ok);
  EXPECT_EQ(bring(2, "next", true), Code::ok);
  EXPECT_EQ(taken(2), "next");
  EXPECT_EQ(taken(1), "one two three");
  EXPECT_EQ(taken(1), "-") << "each is received once";
}

TEST_F(TeamExchangeTest, takes_the_empty) {
  EXPECT_EQ(bring(1, "", true), Code::ok);
  EXPECT_EQ(taken(1), "");
}

TEST_F(TeamExchangeTest, refuses_more_than_a_round_has) {
  const std::string whole(TeamPost::most_bytes, 'x');
  EXPECT_EQ(bring(1, whole, false), Code::ok);
  EXPECT_EQ(bring(1, "y", false), Code::argument);
  EXPECT_EQ(bring(1, "", true), Code::ok);
  EXPECT_EQ(bring(1, "", true), Code::argument) << "it is whole";
  EXPECT_EQ(bring(2, whole + "y", false), Code::argument);
  EXPECT_EQ(bring(3, "z", true), Code::ok) << "nothing is kept of what was refused";
  EXPECT_EQ(taken(1), whole);
}

TEST_F(TeamExchangeTest, refuses_more_rounds_than_a_sender_can_be_ahead) {
  EXPECT_EQ(bring(1, "a", false), Code::ok);
  EXPECT_EQ(bring(2, "b", true), Code::ok);
  EXPECT_EQ(bring(3, "c", true), Code::argument);
  EXPECT_EQ(bring(1, "a", true), Code::ok) << "goes on with one that has begun";
  EXPECT_EQ(taken(1), "aa");
  EXPECT_EQ(bring(3, "c", true), Code::ok);
}

}  // namespace
}  // namespace farsum
