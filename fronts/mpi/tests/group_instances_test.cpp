// Groups of one list of ranks, made by whoever the test says.
#include "group_instances.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace farsum::mpi {
namespace {

class GroupInstancesOfAList : public testing::Test {
 protected:
  // The instance at `index`, made by a list that notes which it makes, and refuses one.
  GroupInstance* made(std::size_t index) {
    return instances_.made(index, [&](std::size_t which, farsum_group*) {
      made_.push_back(which);
      return which != refused_;
    });
  }

  GroupInstances instances_;
  std::vector<std::size_t> made_;
  std::size_t refused_ = ~std::size_t{0};
};

TEST_F(GroupInstancesOfAList, are_added_where_none_is_unused) {
  GroupInstances::Unused first = instances_.take_unused();
  ASSERT_NE(first.instance, nullptr);
  EXPECT_TRUE(first.held.owns_lock());
  EXPECT_EQ(first.count, 1U);
  const GroupInstances::Unused second = instances_.take_unused();
  EXPECT_NE(second.instance, first.instance);
  EXPECT_EQ(second.count, 2U);
}

TEST_F(GroupInstancesOfAList, are_used_again_once_they_are_given_back) {
  GroupInstance* const instance = instances_.take_unused().instance;
  const GroupInstances::Unused again = instances_.take_unused();
  EXPECT_EQ(again.instance, instance);
  EXPECT_EQ(again.count, 1U);
}

TEST_F(GroupInstancesOfAList, are_passed_over_while_a_communicator_has_them) {
  GroupInstance* const instance = instances_.take_unused().instance;
  instance->is_taken.store(true, std::memory_order_relaxed);
  EXPECT_EQ(instances_.take_unused().count, 2U);
  instance->is_taken.store(false, std::memory_order_relaxed);
  EXPECT_EQ(instances_.take_unused().instance, instance);
}

TEST_F(GroupInstancesOfAList, grow_to_the_number_that_is_asked_for_and_never_shrink) {
  EXPECT_EQ(instances_.grow(3), 3U);
  EXPECT_EQ(instances_.grow(1), 3U);
}

TEST_F(GroupInstancesOfAList, are_made_in_order_and_once_each) {
  ASSERT_EQ(instances_.grow(3), 3U);
  GroupInstance* const second = made(1);
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(second->made);
  EXPECT_EQ(made(1), second);
  EXPECT_NE(made(0), second);
  EXPECT_NE(made(2), nullptr);
  EXPECT_EQ(made_, (std::vector<std::size_t>{0, 1, 2}));
}

TEST_F(GroupInstancesOfAList, are_asked_for_again_where_one_was_refused) {
  ASSERT_EQ(instances_.grow(2), 2U);
  refused_ = 1;
  EXPECT_EQ(made(1), nullptr);
  refused_ = 2;
  EXPECT_NE(made(1), nullptr);
  EXPECT_EQ(made_, (std::vector<std::size_t>{0, 1, 1}));
}

}  // namespace
}  // namespace farsum::mpi
