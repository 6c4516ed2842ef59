// The cards' way through PMIx, with a server that the test plays; and which way a process takes to its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "runtime/pmix.hpp"
#include "runtime/wireup.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;
using std::chrono_literals::operator""ms;

std::vector<std::byte> bytes_of(std::uint64_t word) {
  const auto* first = reinterpret_cast<const std::byte*>(&word);
  return {first, first + sizeof word};
}

// What a server is told and says; it lives longer than the exchange.
struct Played {
  using Cards = std::map<std::uint32_t, std::vector<std::byte>>;  // by rank
  explicit Played(std::uint32_t ranks) : size(ranks) {}
  std::uint32_t size;
  std::vector<Cards> rounds{1};  // what the others publish in each
  Code fence_ends = Code::ok;
  std::optional<std::size_t> published_before_fence;
  std::vector<std::string> keys;  // in which rank 1 has published
};

// Rank 1 of a job; what the others have published is the test's.
class PlayedServer : public Pmix {
 public:
  explicit PlayedServer(Played& played) : played_(played) {}

  std::uint32_t rank() const override { return 1; }
  std::uint32_t size() const override { return played_.size; }
  Status publish(const std::string& key, const void* data, std::size_t bytes) override {
    played_.keys.push_back(key);
    const auto* first = static_cast<const std::byte*>(data);
    cards(key)[1].assign(first, first + bytes);
    return {};
  }
  Status fence(Patience) override {
    played_.published_before_fence = cards(played_.keys.back()).count(1);
    return played_.fence_ends == Code::ok ? Status() : Status(played_.fence_ends, "the server is gone");
  }
  std::vector<std::byte> look_up(std::uint32_t rank, const std::string& key, Patience) override {
    return cards(key)[rank];
  }

 private:
  Played::Cards& cards(const std::string& key) {
    const auto found = std::find(played_.keys.begin(), played_.keys.end(), key);
    return played_.rounds.at(static_cast<std::size_t>(found - played_.keys.begin()));
  }

  Played& played_;
};

Status gather_as_one(Played& played, std::uint64_t mine, std::uint64_t* all, Pmix::Patience patience) {
  return PmixExchange(std::make_unique<PlayedServer>(played), patience).gather(&mine, all, sizeof mine);
}

TEST(PmixExchange, brings_the_cards_in_rank_order_and_publishes_its_own_before_it_waits) {
  Played server(3);
  server.rounds = {{{0, bytes_of(10)}, {2, bytes_of(12)}}};
  std::uint64_t all[3] = {};
  ASSERT_TRUE(gather_as_one(server, 11, all, 30'000ms).is_ok());
  EXPECT_THAT(all, testing::ElementsAre(10, 11, 12));
  EXPECT_EQ(server.published_before_fence, 1u);
}

TEST(PmixExchange, brings_other_cards_in_every_round) {
  Played server(2);
  server.rounds = {{{0, bytes_of(10)}}, {{0, bytes_of(20)}}};
  PmixExchange exchange(std::make_unique<PlayedServer>(server), 30'000ms);
  std::uint64_t all[2] = {};
  std::uint64_t mine = 11;
  ASSERT_TRUE(exchange.gather(&mine, all, sizeof mine).is_ok());
  EXPECT_THAT(all, testing::ElementsAre(10, 11));
  mine = 21;
  ASSERT_TRUE(exchange.gather(&mine, all, sizeof mine).is_ok());
  EXPECT_THAT(all, testing::ElementsAre(20, 21));
  EXPECT_NE(server.keys[0], server.keys[1]);
}

// Where a fence does not end, and of the others these have published.
Status gather_in_vain(std::uint32_t ranks, const Played::Cards& published, Pmix::Patience patience) {
  Played server(ranks);
  server.rounds = {published};
  server.fence_ends = Code::pending;
  std::vector<std::uint64_t> all(ranks);
  return gather_as_one(server, 11, all.data(), patience);
}

TEST(PmixExchange, names_the_ranks_that_did_not_come) {
  const Status status = gather_in_vain(5, {{2, bytes_of(12)}}, 1500ms);
  EXPECT_EQ(status.code(), Code::peer_failed);
  EXPECT_EQ(status.text(),
            "farsum_init: ranks 0, 3-4 of 5 did not come to farsum_init within 1.5 s (FARSUM_WIREUP_TIMEOUT)");
}

TEST(PmixExchange, looks_for_a_few_missing_ranks_only_since_each_is_waited_for) {
  EXPECT_EQ(gather_in_vain(100, {}, 1000ms).text(),
            "farsum_init: ranks 0, 2-4 and perhaps others of 100 did not come to farsum_init within 1 s "
            "(FARSUM_WIREUP_TIMEOUT)");
}

TEST(PmixExchange, says_what_may_be_where_a_fence_does_not_end_though_nobody_is_missing) {
  const Status status = gather_in_vain(2, {{0, bytes_of(10)}}, 1000ms);
  EXPECT_EQ(status.code(), Code::peer_failed);
  EXPECT_THAT(status.text(), testing::StartsWith("farsum_init: some rank of 2 did not come to farsum_init within 1 s"));
  EXPECT_THAT(status.text(), testing::HasSubstr("lost a fence"));
}

TEST(PmixExchange, passes_on_why_the_server_failed) {
  Played server(2);
  server.fence_ends = Code::system;
  std::uint64_t all[2] = {};
  EXPECT_EQ(gather_as_one(server, 11, all, 1000ms).text(), "the server is gone");
}

TEST(PmixExchange, refuses_a_card_of_another_build) {
  Played server(2);
  server.rounds = {{{0, std::vector<std::byte>(3)}}};
  std::uint64_t all[2] = {};
  const Status status = gather_as_one(server, 11, all, 1000ms);
  EXPECT_EQ(status.code(), Code::system);
  EXPECT_THAT(status.text(), HasSubstr("3 bytes of rank 0"));
}

WireUp chosen(const std::map<std::string, std::string>& variables, const Settings& settings = {}) {
  return choose_wire_up(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      settings);
}

TEST(WireUpChoice, is_farsums_launcher_before_pmix_before_a_rank_alone) {
  EXPECT_EQ(chosen({}), WireUp::alone);
  EXPECT_EQ(chosen({{"PMIX_NAMESPACE", "job"}}), WireUp::pmix);
  EXPECT_EQ(chosen({{"PMIX_NAMESPACE", "job"}, {"FARSUM_RANK", "0"}}), WireUp::launcher);
}

TEST(WireUpChoice, passes_over_pmix_where_the_user_refuses_it) {
  Settings settings;
  settings.pmix = Permission::refuse;
  EXPECT_EQ(chosen({{"PMIX_NAMESPACE", "job"}}, settings), WireUp::alone);
}

}  // namespace
}  // namespace farsum
