// The cards' way through PMIx, with a server that the test plays; and which way a process takes to its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

// Rank 1 of a job; what the others have published is the test's.
class PlayedServer : public Pmix {
 public:
  explicit PlayedServer(std::uint32_t size) : size_(size) {}
  std::map<std::uint32_t, std::vector<std::byte>> published;
  Code fence_ends = Code::ok;
  std::optional<std::size_t> published_before_fence;

  std::uint32_t rank() const override { return 1; }
  std::uint32_t size() const override { return size_; }
  Status publish(const std::string&, const void* data, std::size_t bytes) override {
    const auto* first = static_cast<const std::byte*>(data);
    published[1].assign(first, first + bytes);
    return {};
  }
  Status fence(Patience) override {
    published_before_fence = published.count(1);
    return fence_ends == Code::ok ? Status() : Status(fence_ends, "the server is gone");
  }
  std::vector<std::byte> look_up(std::uint32_t rank, const std::string&, Patience) override { return published[rank]; }

 private:
  std::uint32_t size_;
};

TEST(PmixExchange, brings_the_cards_in_rank_order_and_publishes_its_own_before_it_waits) {
  PlayedServer server(3);
  server.published = {{0, bytes_of(10)}, {2, bytes_of(12)}};
  const std::uint64_t mine = 11;
  std::uint64_t all[3] = {};
  ASSERT_TRUE(exchange_through(server, &mine, all, sizeof mine, 30'000ms).is_ok());
  EXPECT_THAT(all, testing::ElementsAre(10, 11, 12));
  EXPECT_EQ(server.published_before_fence, 1u);
}

TEST(PmixExchange, names_the_ranks_that_did_not_come) {
  PlayedServer server(5);
  server.published = {{2, bytes_of(12)}};
  server.fence_ends = Code::pending;
  const std::uint64_t mine = 11;
  std::uint64_t all[5] = {};
  const Status status = exchange_through(server, &mine, all, sizeof mine, 1500ms);
  EXPECT_EQ(status.code(), Code::peer_failed);
  EXPECT_EQ(status.text(),
            "farsum_init: ranks 0, 3-4 of 5 did not come to farsum_init within 1.5 s (FARSUM_WIREUP_TIMEOUT)");
}

TEST(PmixExchange, passes_on_why_the_server_failed) {
  PlayedServer server(2);
  server.fence_ends = Code::system;
  const std::uint64_t mine = 11;
  std::uint64_t all[2] = {};
  EXPECT_EQ(exchange_through(server, &mine, all, sizeof mine, 1000ms).text(), "the server is gone");
}

TEST(PmixExchange, refuses_a_card_of_another_build) {
  PlayedServer server(2);
  server.published = {{0, std::vector<std::byte>(3)}};
  const std::uint64_t mine = 11;
  std::uint64_t all[2] = {};
  const Status status = exchange_through(server, &mine, all, sizeof mine, 1000ms);
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
