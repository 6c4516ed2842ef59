// Windows of a rank, made over it alone: what is listed, told at the end, and given back.
#include "runtime/windows.hpp"

#include <vector>

#include "lone_rank.hpp"
#include "runtime/mutex_table.hpp"

namespace farsum::test {
namespace {

class WindowsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(rank.agent.prepare().is_ok()); }
  WindowObject* make(std::uint64_t bytes) {
    Result<WindowObject*> made = rank.windows.allocate(rank.groups.world(), bytes, {});
    EXPECT_TRUE(made.is_ok());
    return made.is_ok() ? made.value() : nullptr;
  }

  LoneRankWithWindows rank;
};

TEST_F(WindowsTest, give_back_what_a_window_took) {
  const std::uint64_t before = rank.node.segment().heap().allocated_bytes();
  WindowObject* const object = make(4096);
  ASSERT_NE(object, nullptr);
  EXPECT_NE(object->memory, nullptr);
  EXPECT_EQ(rank.groups.world().users().load(), 1);
  EXPECT_GT(rank.node.segment().heap().allocated_bytes(), before);
  EXPECT_TRUE(rank.windows.free(object).is_ok());
  EXPECT_EQ(rank.groups.world().users().load(), 0);
  EXPECT_EQ(rank.node.segment().heap().allocated_bytes(), before);
}

TEST_F(WindowsTest, are_freed_in_two_steps_once) {
  WindowObject* const object = make(64);
  ASSERT_NE(object, nullptr);
  EXPECT_TRUE(rank.windows.prepare_free(*object).is_ok());
  EXPECT_EQ(rank.windows.prepare_free(*object).code(), Code::sync);
  EXPECT_TRUE(rank.windows.free(object).is_ok());
}

TEST_F(WindowsTest, tell_what_is_open_and_end_it) {
  WindowObject* const object = make(64);
  ASSERT_NE(object, nullptr);
  EXPECT_TRUE(rank.windows.find_open().is_ok());
  ASSERT_TRUE(object->window->all_locks().lock().is_ok());
  EXPECT_EQ(rank.windows.find_open().code(), Code::pending);
  rank.windows.abandon_all();
  EXPECT_TRUE(rank.windows.find_open().is_ok());
  EXPECT_TRUE(rank.windows.free(object).is_ok());
}

TEST_F(WindowsTest, take_a_caller_s_refusal_and_keep_nothing) {
  const std::uint64_t before = rank.node.segment().heap().allocated_bytes();
  WindowOptions options;
  options.refusal = Status(Code::unreachable, "not here");
  EXPECT_EQ(rank.windows.allocate(rank.groups.world(), 64, options).take_status().code(), Code::unreachable);
  options = {};
  options.lacks_memory = true;
  EXPECT_THROW((void)rank.windows.allocate(rank.groups.world(), 64, options), std::bad_alloc);
  EXPECT_EQ(rank.node.segment().heap().allocated_bytes(), before);
  EXPECT_EQ(rank.groups.world().users().load(), 0);
}

TEST_F(WindowsTest, attach_to_dynamic_ones_alone_and_nothing_twice) {
  std::vector<std::byte> memory(8192);
  WindowObject* const allocated = make(64);
  ASSERT_NE(allocated, nullptr);
  EXPECT_EQ(rank.windows.attach(*allocated, memory.data(), 64).code(), Code::argument);
  Result<WindowObject*> dynamic = rank.windows.create_dynamic(rank.groups.world(), {});
  ASSERT_TRUE(dynamic.is_ok());
  EXPECT_TRUE(rank.windows.attach(*dynamic.value(), memory.data(), 4096).is_ok());
  EXPECT_EQ(rank.windows.attach(*dynamic.value(), memory.data() + 8, 8).code(), Code::argument);
  EXPECT_EQ(rank.windows.detach(*dynamic.value(), memory.data() + 8).code(), Code::range);
  EXPECT_TRUE(rank.windows.detach(*dynamic.value(), memory.data()).is_ok());
  EXPECT_TRUE(rank.windows.free(dynamic.value()).is_ok());
  EXPECT_TRUE(rank.windows.free(allocated).is_ok());
}

TEST_F(WindowsTest, count_what_those_did_that_are_gone) {
  const std::uint64_t one = 1;
  WindowObject* const object = make(64);
  ASSERT_NE(object, nullptr);
  ASSERT_TRUE(object->window->all_locks().lock().is_ok());
  ASSERT_TRUE(object->window->hot().put(0, 0, &one, sizeof one));
  ASSERT_TRUE(object->window->all_locks().unlock().is_ok());
  EXPECT_EQ(rank.windows.hot_traffic().operations, 1u);
  EXPECT_TRUE(rank.windows.free(object).is_ok());
  EXPECT_EQ(rank.windows.hot_traffic().operations, 1u);
  EXPECT_EQ(rank.windows.hot_traffic().bytes, sizeof one);
}

TEST_F(WindowsTest, carry_mutexes_that_are_not_freed_while_they_are_held) {
  MutexTable table(rank.windows);
  Result<Mutexes*> made = table.create(rank.groups.world(), 2);
  ASSERT_TRUE(made.is_ok());
  Mutexes& mutexes = *made.value();
  EXPECT_EQ(rank.agent.thread_id(), 0) << "mutexes need no agent";
  ASSERT_TRUE(mutexes.lock(0, 1).is_ok());
  EXPECT_EQ(mutexes.lock(0, 1).code(), Code::sync);
  EXPECT_EQ(mutexes.unlock(0, 0).code(), Code::sync);
  EXPECT_EQ(table.free(&mutexes).code(), Code::pending);
  EXPECT_EQ(rank.windows.find_open().text(),
            "farsum_finalize: this rank holds mutex 1 of rank 0; call farsum_mutex_unlock first");
  rank.windows.abandon_all();
  EXPECT_TRUE(rank.windows.find_open().is_ok());
  EXPECT_TRUE(table.free(&mutexes).is_ok());
}

}  // namespace
}  // namespace farsum::test
