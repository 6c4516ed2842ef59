// How many messages a fence costs between nodes, counted by the engines; docs/reference/wire.md states it.
#include <gtest/gtest.h>

#include <vector>

#include "runtime/in_process_job.hpp"

namespace farsum {
namespace {

using test::InProcessRank;

// The first rank of each node tells those of all others.
void expect_messages(const std::vector<std::uint32_t>& node_of, const std::vector<std::uint64_t>& of_rank) {
  test::run_on_nodes(node_of, Settings(), [&](InProcessRank self) {
    Result<WindowObject*> made = self.context.windows().allocate(self.context.world(), 64, {});
    ASSERT_TRUE(made.is_ok()) << made.take_status().text();
    WindowObject* const object = made.value();
    Window& window = *object->window;
    ASSERT_GOOD(window.fence(false, true));
    const std::uint64_t before = self.context.statistics().messages_sent;
    ASSERT_GOOD(window.fence(true, true));
    ASSERT_GOOD(window.fence(true, true));
    EXPECT_EQ(self.context.statistics().messages_sent - before, 2 * of_rank[self.rank]) << "rank " << self.rank;
    ASSERT_GOOD(window.fence(true, false));
    ASSERT_GOOD(self.context.windows().free(object));
  });
}

TEST(MessagesPerFence, are_one_of_each_node_where_there_are_two) { expect_messages({0, 0, 1, 1}, {1, 0, 1, 0}); }

TEST(MessagesPerFence, are_one_to_each_other_node) { expect_messages({0, 1, 2, 3}, {3, 3, 3, 3}); }

}  // namespace
}  // namespace farsum
