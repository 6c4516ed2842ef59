// Ranks that free windows: when they see that they wait for each other in a circle, and when they must not.
#include <array>
#include <memory>

#include "runtime/in_process_job.hpp"

namespace farsum::test {
namespace {

// Four ranks whose waits the test makes up, and a word for each wait.
class Circle : public testing::Test {
 protected:
  struct Shared {
    std::array<AwaitedRank, 4> awaited{};
    std::array<std::atomic<std::uint64_t>, 4> words{};
  };

  TeardownCircle of(Rank me) {
    return {[this](Rank rank) -> AwaitedRank& { return shared_.awaited[rank]; },
            {reinterpret_cast<const std::byte*>(&shared_),
             [this](std::uint64_t offset) {
               return reinterpret_cast<const std::atomic<std::uint64_t>*>(reinterpret_cast<const std::byte*>(&shared_) +
                                                                          offset)
                   ->load(std::memory_order_acquire);
             }},
            4,
            me,
            std::chrono::milliseconds(0)};
  }
  // What `word` must become for the wait to end.
  static constexpr std::uint64_t round = 1;
  static constexpr std::uint64_t word_of_round = round << 8;

  void tell(Rank me, Rank waits_for, std::uint32_t serial = 1) {
    const auto offset = static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&shared_.words[me]) -
                                                   reinterpret_cast<const std::byte*>(&shared_));
    shared_.awaited[me].publish(serial, {waits_for, offset, round});
  }

  Shared shared_;
};

TEST_F(Circle, of_three_is_seen_at_the_second_look) {
  TeardownCircle mine = of(0);
  tell(1, 2);
  tell(2, 0);
  mine.wait_for(1, shared_.words[0], round);
  EXPECT_FALSE(mine.is_closed());
  mine.wait_for(1, shared_.words[0], round);
  EXPECT_TRUE(mine.is_closed());
}

TEST_F(Circle, is_none_where_a_rank_waits_for_nobody) {
  TeardownCircle mine = of(0);
  tell(1, 2);
  mine.wait_for(1, shared_.words[0], round);
  for (int look = 0; look < 5; ++look) EXPECT_FALSE(mine.is_closed());
}

TEST_F(Circle, is_none_for_a_rank_that_waits_for_one_in_a_circle_of_others) {
  TeardownCircle mine = of(3);
  tell(0, 1);
  tell(1, 0);
  mine.wait_for(0, shared_.words[3], round);
  for (int look = 0; look < 5; ++look) EXPECT_FALSE(mine.is_closed());
}

TEST_F(Circle, is_none_where_what_a_sleeper_waits_for_has_come) {
  TeardownCircle mine = of(0);
  tell(1, 0);
  shared_.words[1] = word_of_round;
  mine.wait_for(1, shared_.words[0], round);
  for (int look = 0; look < 5; ++look) EXPECT_FALSE(mine.is_closed());
}

TEST_F(Circle, begins_anew_where_a_rank_has_begun_another_wait) {
  TeardownCircle mine = of(0);
  tell(1, 0, 1);
  mine.wait_for(1, shared_.words[0], round);
  EXPECT_FALSE(mine.is_closed());
  tell(1, 0, 2);
  EXPECT_FALSE(mine.is_closed());
  EXPECT_TRUE(mine.is_closed());
}

TEST_F(Circle, is_never_left_by_a_rank_of_several_threads_nor_because_of_it) {
  TeardownCircle mine = of(0);
  TeardownCircle other = of(1);
  mine.wait_for(1, shared_.words[0], round);
  other.wait_for(0, shared_.words[1], round);
  EXPECT_FALSE(mine.is_closed());
  EXPECT_FALSE(other.is_closed());
  mine.take_out();
  mine.wait_for(1, shared_.words[0], round);
  other.wait_for(0, shared_.words[1], round);
  for (int look = 0; look < 5; ++look) {
    EXPECT_FALSE(mine.is_closed());
    EXPECT_FALSE(other.is_closed());
  }
}

std::vector<Settings> ranks(std::size_t count) { return std::vector<Settings>(count); }

// In make test-all: every order of many windows.
TEST(Teardown, in_different_orders_leaves_each_ranks_memory_until_the_last_has_come) {
  std::vector<Settings> settings = ranks(3);
  // A rank looks after this time whether it waits for a window that others have left for later.
  for (Settings& of_rank : settings) of_rank.wait_gap_ns = 20'000'000;
  run_in_process(settings, [](InProcessRank me) {
    Context& context = me.context;
    const std::uint64_t before = context.segment().heap().allocated_bytes();
    std::vector<WindowObject*> windows;
    for (int index = 0; index < 3; ++index) {
      Result<WindowObject*> made = context.windows().allocate(context.world(), 8192, {});
      ASSERT_TRUE(made.is_ok());
      windows.push_back(made.value());
    }
    for (std::uint32_t index = 0; index < 3; ++index) {
      WindowObject* window = windows[(index + me.rank) % 3];
      // Whoever has left this window before must not have taken its memory along.
      EXPECT_EQ(*window->memory, std::byte{0});
      *window->memory = std::byte{7};
      ASSERT_GOOD(context.windows().free(window));
    }
    ASSERT_GOOD(context.world().team().barrier("test"));
    // A next window sees that all have departed.
    Result<WindowObject*> last = context.windows().allocate(context.world(), 64, {});
    ASSERT_TRUE(last.is_ok());
    EXPECT_EQ(*last.value()->memory, std::byte{0});
    ASSERT_GOOD(context.windows().free(last.value()));
    ASSERT_GOOD(context.world().team().barrier("test"));
    EXPECT_EQ(context.segment().heap().allocated_bytes(), before);
    ASSERT_GOOD(context.world().team().barrier("test"));
  });
}

TEST(Teardown, of_several_windows_by_several_threads_at_once_mixes_nothing_up) {
  constexpr std::size_t window_count = 4;
  run_in_process(ranks(2), [](InProcessRank me) {
    Context& context = me.context;
    for (int round = 0; round < 20; ++round) {
      std::array<WindowObject*, window_count> windows{};
      for (WindowObject*& window : windows) {
        Result<WindowObject*> made = context.windows().allocate(context.world(), 64, {});
        ASSERT_TRUE(made.is_ok());
        window = made.value();
      }
      std::vector<std::thread> threads;
      for (std::size_t index = 0; index < window_count; ++index) {
        // Each rank begins at another window.
        threads.emplace_back([&, index] {
          WindowObject* object = windows[(index + me.rank) % window_count];
          auto* words = reinterpret_cast<std::uint64_t*>(object->memory);
          EXPECT_GOOD(object->window->fence(false, true));
          for (std::uint64_t turn = 1; turn <= 10; ++turn) {
            EXPECT_GOOD(
                object->window->operate(words_operation(OperationKind::put, 0, 1, ops::Operator::replace, &turn),
                                        1 - me.rank, Completion::implicit, nullptr));
            EXPECT_GOOD(object->window->fence(true, true));
            EXPECT_EQ(words[0], turn);
            EXPECT_GOOD(object->window->fence(true, true));
          }
          EXPECT_GOOD(context.windows().free(object));
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
  });
}

}  // namespace
}  // namespace farsum::test
