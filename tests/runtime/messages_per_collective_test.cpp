// How many messages a collective that nobody waits for costs between nodes, counted by engines and desks.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "collectives/carry.hpp"
#include "cost/meeting_model.hpp"
#include "runtime/in_process_job.hpp"

namespace farsum {
namespace {

using test::InProcessRank;

constexpr const char* collecting = "collect";

void carry_sum(const InProcessRank& self, Group& group, Carry& carry) {
  const std::uint64_t mine = self.rank + 1;
  std::uint64_t sum = 0;
  auto request = std::make_shared<CarriedRequest>();
  request->call = {
      .kind = CarriedCall::Kind::allreduce, .type = ops::ElementType::uint64, .op = ops::Operator::sum, .count = 1};
  request->mine = reinterpret_cast<const std::byte*>(&mine);
  request->result = reinterpret_cast<std::byte*>(&sum);
  ASSERT_GOOD(carry.begin(request, group.blocking_calls(), collecting));
  bool is_over = false;
  ASSERT_GOOD(carry.wait(*request, is_over, collecting));
  EXPECT_TRUE(is_over);
  EXPECT_EQ(sum, std::uint64_t{group.size()} * (group.size() + 1) / 2);
}

// Nobody asks after the lives of ranks of other nodes, as who waits for long does.
Settings asking_nobody() {
  Settings settings;
  settings.net_timeout_s = 0;
  return settings;
}

// Letters alone, which nobody answers: so many of each rank a call.
void expect_letters_of(InProcessRank self, Group& group, const std::vector<std::uint64_t>& of_rank) {
  constexpr std::uint64_t calls = 9;
  Result<Carry*> carry = self.context.groups().carry_of(group);
  ASSERT_TRUE(carry.is_ok());
  carry_sum(self, group, *carry.value());
  const std::uint64_t letters = self.context.letter_desk().sent();
  const std::uint64_t requests = self.context.engine().messages_sent();
  for (std::uint64_t call = 0; call < calls; ++call) carry_sum(self, group, *carry.value());
  EXPECT_EQ(self.context.letter_desk().sent() - letters, calls * of_rank[self.rank]) << "rank " << self.rank;
  EXPECT_EQ(self.context.engine().messages_sent(), requests) << "rank " << self.rank;
  EXPECT_EQ(self.context.letter_desk().refused() + self.context.letter_desk().unknown(), 0u);
}

void expect_letters(const std::vector<std::uint32_t>& node_of, const std::vector<std::uint64_t>& of_rank) {
  test::run_on_nodes(node_of, asking_nobody(), [&](InProcessRank self) {
    expect_letters_of(self, self.context.world(), of_rank);
    std::vector<std::uint32_t> all(node_of.size());
    std::iota(all.begin(), all.end(), 0u);
    Result<Group*> group = self.context.groups().create(self.context.world(), all);
    ASSERT_TRUE(group.is_ok());
    expect_letters_of(self, *group.value(), of_rank);
    ASSERT_GOOD(self.context.groups().free(group.value()));
  });
}

TEST(MessagesPerCarriedCall, are_one_letter_of_each_node_where_there_are_two) {
  expect_letters({0, 0, 1, 1}, {1, 0, 1, 0});
}

TEST(MessagesPerCarriedCall, are_one_letter_to_each_other_node) { expect_letters({0, 1, 2, 3}, {3, 3, 3, 3}); }

// Four rounds in which all tell what they have called, and the tree of the sum: up to its parent, and down to each
// child.
TEST(MessagesPerCarriedCall, are_a_meeting_and_a_tree_where_nodes_are_many) {
  ASSERT_FALSE(cost::meet_at_once(13));
  std::vector<std::uint32_t> node_of(13);
  std::iota(node_of.begin(), node_of.end(), 0u);
  std::vector<std::uint64_t> of_rank;
  for (const std::uint32_t children : {4U, 0U, 1U, 0U, 2U, 0U, 1U, 0U, 3U, 0U, 1U, 0U, 0U}) {
    const bool has_parent = !of_rank.empty();
    of_rank.push_back(4 + children + (has_parent ? 1 : 0));
  }
  expect_letters(node_of, of_rank);
}

}  // namespace
}  // namespace farsum
