// Collectives between nodes while letters are late, nodes stand still, links are cut and healed, and ranks die; and the
// faults that such runs have to notice (docs/internals/faults.md).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "seeds.hpp"
#include "test_length.hpp"
#include "tree_world.hpp"

namespace farsum {
namespace {

// In full in make test-all: 40 seeds.
// Takes seconds: ten seeds of up to nineteen nodes.
TEST(SimulatedTrees, give_right_answers_or_the_name_of_the_dead_whatever_the_seed) {
  std::uint64_t runs = 0, held_back = 0, without_room = 0, without_slot = 0, told_of_death = 0;
  for_each_seed(test::in_full_or(40, 10), [&](std::uint64_t seed) {
    TreeWorld world(seed);
    EXPECT_EQ(world.run(), "");
    ++runs;
    held_back += world.held_back();
    without_room += world.without_room();
    without_slot += world.without_slot();
    told_of_death += world.told_of_death();
  });
  if (runs == 1) return;
  EXPECT_GT(held_back, 0u);
  EXPECT_GT(without_room, 0u);
  EXPECT_GT(without_slot, 0u);
  EXPECT_GT(told_of_death, 0u);
}

TEST(SimulatedTrees, replay_a_seed_identically) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    TreeWorld one(seed), again(seed);
    EXPECT_EQ(one.run(), again.run());
    EXPECT_EQ(one.trace_hash(), again.trace_hash()) << "seed " << seed;
  }
}

struct FaultInTrees {
  const char* name;
  TreeFault fault;
};

class FaultsInTrees : public testing::TestWithParam<FaultInTrees> {};

// Takes seconds: twenty seeds of up to nineteen nodes.
TEST_P(FaultsInTrees, are_caught_with_each_seed) {
  for_each_seed(20, [](std::uint64_t seed) {
    TreeWorld world(seed, GetParam().fault);
    EXPECT_NE(world.run(), "");
    EXPECT_TRUE(world.was_put_in());
  });
}

INSTANTIATE_TEST_SUITE_P(That, FaultsInTrees,
                         testing::Values(FaultInTrees{"count_a_child_twice", TreeFault::child_counted_twice},
                                         FaultInTrees{"mix_a_round_with_the_next", TreeFault::rounds_mixed},
                                         FaultInTrees{"lose_credit", TreeFault::credit_lost},
                                         FaultInTrees{"read_a_slot_early", TreeFault::slot_read_early},
                                         FaultInTrees{"swap_the_order_of_two_children", TreeFault::order_swapped}),
                         [](const auto& fault) { return fault.param.name; });

// So the fault above is one that lasts.
// Takes seconds: twenty seeds of up to nineteen nodes.
TEST(SimulatedTrees, lose_nothing_where_credit_is_forgotten_once) {
  for_each_seed(20, [](std::uint64_t seed) {
    TreeWorld world(seed, TreeFault::credit_lost_once);
    EXPECT_EQ(world.run(), "");
    EXPECT_TRUE(world.was_put_in());
  });
}

}  // namespace
}  // namespace farsum
