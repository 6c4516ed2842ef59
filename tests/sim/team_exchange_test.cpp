// What the first ranks of nodes send each other when a team meets, as it leaves and is taken in.
#include "runtime/team_exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "remote_windows.hpp"

namespace farsum {
namespace {

class TeamExchangeTest : public testing::Test {
 protected:
  static constexpr std::uint64_t team = 5;

  Code bring(std::uint64_t round, std::string_view text, bool is_last) {
    return exchange_.on_team_message(0, team, round, std::as_bytes(std::span(text)), is_last);
  }
  // "-": nothing yet.
  std::string taken(std::uint64_t round) {
    std::string text = "-";
    (void)exchange_.take(0, team, round, [&](std::span<const std::byte> bytes) {
      text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    return text;
  }

 private:
  ProtocolJob job_{1, 2, ProtocolJobOptions{}};
  SteppingWaiter waiter_{job_.world()};
  TeamExchange exchange_{job_.rank(1).engine, waiter_};
};

TEST_F(TeamExchangeTest, gives_what_came_in_parts_when_it_is_whole) {
  EXPECT_EQ(bring(1, "one ", false), Code::ok);
  EXPECT_EQ(taken(1), "-");
  EXPECT_EQ(bring(1, "two ", false), Code::ok);
  EXPECT_EQ(taken(1), "-");
  EXPECT_EQ(bring(1, "three", true), Code::ok);
  EXPECT_EQ(bring(2, "next", true), Code::ok);
  EXPECT_EQ(taken(1), "one two three");
  EXPECT_EQ(taken(1), "-") << "each is received once";
  EXPECT_EQ(taken(2), "next");
}

// For what is left of earlier rounds nobody waits, and it leaves room for others.
TEST_F(TeamExchangeTest, drops_what_is_of_rounds_before_one_that_is_asked_for) {
  for (std::uint64_t round = 1; round <= 100; ++round) {
    EXPECT_EQ(bring(round, "left", true), Code::ok);
    EXPECT_EQ(taken(round + 1), "-");
    EXPECT_EQ(taken(round), "-");
  }
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
  constexpr std::uint64_t most = TeamPost::most_waiting_of_a_sender;
  EXPECT_EQ(bring(1, "a", false), Code::ok);
  for (std::uint64_t round = 2; round <= most; ++round) EXPECT_EQ(bring(round, "b", true), Code::ok);
  EXPECT_EQ(bring(most + 1, "c", true), Code::argument);
  EXPECT_EQ(bring(1, "a", true), Code::ok) << "goes on with one that has begun";
  EXPECT_EQ(taken(1), "aa");
  EXPECT_EQ(bring(most + 1, "c", true), Code::ok);
}

// Rank 1 sends over the simulated network to rank 0.
class RemoteTeamExchange : public testing::Test {
 protected:
  static constexpr std::uint64_t team = 5;

  class Mail : public TeamMail {
   public:
    Code on_team_message(Rank from, std::uint64_t of_team, std::uint64_t round, std::span<const std::byte> bytes,
                         bool is_last) override {
      ++parts;
      return to != nullptr ? to->on_team_message(from, of_team, round, bytes, is_last) : Code::argument;
    }
    TeamExchange* to = nullptr;  // null: nobody takes anything
    std::uint64_t parts = 0;
  };

  RemoteTeamExchange() { mail_.to = &receiver_; }

  ProtocolJobOptions options() {
    ProtocolJobOptions made;
    made.owners = 2;
    made.team_mail = &mail_;
    return made;
  }

  Status send(std::uint64_t round, std::span<const std::byte> bytes) {
    std::size_t sent = 0;
    const auto leaves = [&] { return sender_.try_send(0, team, round, bytes, sent); };
    return waiter_.wait(waiter_.own_events(), leaves, "test");
  }
  Status receive(std::uint64_t round, std::vector<std::byte>& heard) {
    const auto keep = [&](std::span<const std::byte> bytes) { heard.assign(bytes.begin(), bytes.end()); };
    const auto comes = [&] { return receiver_.take(1, team, round, keep); };
    return waiter_.wait(waiter_.own_events(), comes, "test");
  }

  Mail mail_;
  ProtocolJob job_{1, 2, options()};
  SteppingWaiter waiter_{job_.world()};
  TeamExchange receiver_{job_.rank(0).engine, waiter_}, sender_{job_.rank(1).engine, waiter_};
};

TEST_F(RemoteTeamExchange, cuts_what_has_no_room_in_a_message) {
  const std::uint64_t longest = job_.rank(1).engine.longest_body(0);
  ASSERT_LT(2 * longest, TeamPost::most_bytes);
  std::uint64_t round = 0;
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{1}, longest, longest + 1, 2 * longest, std::uint64_t{TeamPost::most_bytes}}) {
    std::vector<std::byte> told(bytes), heard;
    std::generate(told.begin(), told.end(), [i = 0u]() mutable { return static_cast<std::byte>(i++ % 251); });
    mail_.parts = 0;
    ++round;
    ASSERT_TRUE(send(round, told).is_ok());
    ASSERT_TRUE(receive(round, heard).is_ok()) << bytes;
    EXPECT_EQ(heard, told);
    EXPECT_EQ(mail_.parts, std::max<std::uint64_t>((bytes + longest - 1) / longest, 1)) << bytes;
  }
}

TEST_F(RemoteTeamExchange, ends_with_an_error_where_it_was_refused) {
  mail_.to = nullptr;
  ASSERT_TRUE(send(1, {}).is_ok());
  EXPECT_FALSE(sender_.has_failed());
  job_.run();
  EXPECT_FALSE(sender_.take(0, team, 1, [](std::span<const std::byte>) {}));
  EXPECT_TRUE(sender_.has_failed());
  const Status answer = sender_.failure("meeting");
  EXPECT_EQ(answer.code(), Code::argument);
  EXPECT_EQ(answer.text(), "meeting: a rank of another host has refused what this one told it, and waits for it");
}

}  // namespace
}  // namespace farsum
