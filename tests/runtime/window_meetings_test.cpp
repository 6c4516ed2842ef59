// How often the ranks of a node meet to make and to free a window of each kind. That is what these calls cost where
// many meet, so that none may come back unseen.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "in_process_job.hpp"

namespace farsum::test {
namespace {

constexpr std::size_t promotable_bytes = std::size_t{1} << 20;

struct Kind {
  const char* name;
  std::uint32_t meetings_made;
  std::uint64_t meetings_freed;
  std::function<Result<WindowObject*>(Context&, std::vector<std::uint64_t>& own)> make;
};

std::vector<Kind> kinds() {
  return {
      {"allocated", 2, 1,
       [](Context& context, std::vector<std::uint64_t>&) {
         return context.windows().allocate(context.world(), 65536, {});
       }},
      {"allocated_of_unequal_parts", 2, 1,
       [](Context& context, std::vector<std::uint64_t>&) {
         return context.windows().allocate(context.world(), context.rank() * 100, {});
       }},
      {"contiguous", 2, 1,
       [](Context& context, std::vector<std::uint64_t>&) {
         WindowOptions options;
         options.promises = promise_contiguous_parts;
         return context.windows().allocate(context.world(), 24, options);
       }},
      {"dynamic", 2, 1,
       [](Context& context, std::vector<std::uint64_t>&) {
         return context.windows().create_dynamic(context.world(), {});
       }},
      {"adopted", 2, 1,
       [](Context& context, std::vector<std::uint64_t>& own) {
         return context.windows().adopt(context.world(), own.data(), 4096, {});
       }},
      // Its memory may move only once none drives another runtime.
      {"adopted_and_promotable", 3, 1,
       [](Context& context, std::vector<std::uint64_t>& own) {
         return context.windows().adopt(context.world(), own.data(), promotable_bytes, {});
       }},
  };
}

class WindowMeetings : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, WindowMeetings, testing::Values(2, 4, 16), testing::PrintToStringParamName());

TEST_P(WindowMeetings, are_as_few_as_each_kind_of_window_needs) {
  Settings settings = on_path(PathChoice::automatic);
  // Memory is offered for promotion, and stays: the test's ranks are threads that nobody holds.
  settings.promotion = PromotionChoice::always;
  settings.hold_threads = Permission::refuse;
  run_in_process(std::vector<Settings>(GetParam(), settings), [](InProcessRank me) {
    std::vector<std::uint64_t> own(promotable_bytes / 8, 0);
    NodeTeam& node = me.context.world().team().node();
    for (const Kind& kind : kinds()) {
      SCOPED_TRACE(kind.name);
      // None moves on before this rank comes.
      const std::uint32_t before = node.meetings();
      Result<WindowObject*> made = kind.make(me.context, own);
      ASSERT_TRUE(made.is_ok()) << made.take_status().text();
      EXPECT_EQ(node.meetings() - before, kind.meetings_made);
      WindowObject& object = *made.value();
      const std::uint32_t of_its_own = object.team->node().meetings();
      ASSERT_GOOD(me.context.windows().prepare_free(object));
      EXPECT_EQ(object.teardown->meetings(), kind.meetings_freed);
      EXPECT_EQ(object.team->node().meetings(), of_its_own);
      ASSERT_GOOD(me.context.windows().free(&object));
      EXPECT_EQ(node.meetings() - before, kind.meetings_made);
    }
  });
}

// The one that cannot knows before the ranks meet; the others learn it there, and nobody meets again.
TEST_P(WindowMeetings, end_with_the_first_where_a_rank_refuses) {
  const std::uint32_t ranks = GetParam();
  run_in_process(std::vector<Settings>(ranks, on_path(PathChoice::automatic)), [ranks](InProcessRank me) {
    NodeTeam& node = me.context.world().team().node();
    for (std::uint32_t refuser = 0; refuser < ranks; ++refuser) {
      WindowOptions options;
      if (me.rank == refuser) options.refusal = Status(Code::unreachable, "not here");
      const std::uint32_t before = node.meetings();
      Result<WindowObject*> made = me.context.windows().allocate(me.context.world(), 64, options);
      ASSERT_FALSE(made.is_ok());
      EXPECT_EQ(made.take_status().code(), Code::unreachable);
      EXPECT_EQ(node.meetings() - before, 1U);
    }
  });
}

TEST_P(WindowMeetings, end_with_the_first_where_ranks_ask_for_different_kinds) {
  const std::uint32_t ranks = GetParam();
  run_in_process(std::vector<Settings>(ranks, on_path(PathChoice::automatic)), [ranks](InProcessRank me) {
    NodeTeam& node = me.context.world().team().node();
    const std::uint32_t before = node.meetings();
    Group& world = me.context.world();
    Result<WindowObject*> made = me.rank + 1 == ranks ? me.context.windows().create_dynamic(world, {})
                                                      : me.context.windows().allocate(world, 64, {});
    ASSERT_FALSE(made.is_ok());
    EXPECT_EQ(made.take_status().code(), Code::argument);
    EXPECT_EQ(node.meetings() - before, 1U);
  });
}

TEST_P(WindowMeetings, end_with_the_first_where_the_node_has_no_room) {
  run_in_process(std::vector<Settings>(GetParam(), on_path(PathChoice::automatic)), [](InProcessRank me) {
    NodeTeam& node = me.context.world().team().node();
    const std::uint32_t before = node.meetings();
    Result<WindowObject*> made = me.context.windows().allocate(me.context.world(), std::uint64_t{1} << 50, {});
    ASSERT_FALSE(made.is_ok());
    EXPECT_EQ(made.take_status().code(), Code::no_memory);
    EXPECT_EQ(node.meetings() - before, 1U);
  });
}

}  // namespace
}  // namespace farsum::test
