// Who gets a target's word, which words stay as they are, and what threads see of each other through them.
#include "window/epoch_words.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace farsum {
namespace {

constexpr std::uint32_t targets = 3;

class EpochWordsOf3 : public testing::Test {
 protected:
  std::array<std::int32_t, targets> now() const { return {words.of(0), words.of(1), words.of(2)}; }

  std::array<TargetView, targets> views;
  EpochWords words{views.data(), targets};
};
using Words = std::array<std::int32_t, targets>;

TEST_F(EpochWordsOf3, open_where_no_epoch_is_and_leave_the_others_alone) {
  EXPECT_TRUE(words.open(1, active_epoch));
  EXPECT_FALSE(words.open(1, active_epoch));
  EXPECT_EQ(now(), (Words{no_epoch, active_epoch, no_epoch}));
  words.close(1);
  EXPECT_TRUE(words.open(1, active_epoch));
}

TEST_F(EpochWordsOf3, are_claimed_only_from_what_the_caller_has_seen) {
  words.set(1, locked_shared);
  EXPECT_FALSE(words.claim(1, no_epoch));
  EXPECT_FALSE(words.claim_by_swap(1, locked_exclusive));
  EXPECT_EQ(now(), (Words{no_epoch, locked_shared, no_epoch}));
  EXPECT_TRUE(words.claim(1, locked_shared));
  EXPECT_FALSE(words.claim(1, locked_shared));
  EXPECT_TRUE(words.claim_by_swap(2, no_epoch));
  EXPECT_EQ(now(), (Words{no_epoch, epoch_changing, epoch_changing}));
}

TEST_F(EpochWordsOf3, include_no_target_whose_epoch_is_changing) {
  words.set(0, epoch_changing);
  words.set(1, active_epoch);
  words.set(2, locked_with_all);
  EXPECT_FALSE(words.includes(0));
  EXPECT_TRUE(words.includes(1));
  EXPECT_TRUE(words.includes(2));
  EXPECT_FALSE(words.is_with_all(1));
  EXPECT_TRUE(words.is_with_all(2));
}

TEST_F(EpochWordsOf3, count_as_locks_what_is_held_or_on_its_way) {
  words.set(1, active_epoch);
  EXPECT_EQ(words.locks_held(), 0u);
  for (const std::int32_t open : {std::int32_t{epoch_changing}, std::int32_t{locked_shared},
                                  std::int32_t{locked_exclusive}, std::int32_t{unchecked_lock}}) {
    words.set(2, open);
    EXPECT_EQ(words.locks_held(), 1u) << open;
  }
  words.set(0, locked_shared);
  EXPECT_EQ(words.locks_held(), 2u);
}

TEST_F(EpochWordsOf3, open_with_all_or_none) {
  words.set(1, locked_exclusive);
  EXPECT_FALSE(words.open_with_all());
  EXPECT_EQ(now(), (Words{no_epoch, locked_exclusive, no_epoch}));
  words.close(1);
  EXPECT_TRUE(words.open_with_all());
  EXPECT_EQ(now(), (Words{locked_with_all, locked_with_all, locked_with_all}));
  EXPECT_FALSE(words.open_with_all());
  EXPECT_EQ(now(), (Words{locked_with_all, locked_with_all, locked_with_all}));
}

TEST_F(EpochWordsOf3, close_with_all_up_to_an_end_and_no_other_epoch) {
  ASSERT_TRUE(words.open_with_all());
  words.set(0, locked_shared);
  words.close_with_all(2);
  EXPECT_EQ(now(), (Words{locked_shared, no_epoch, locked_with_all}));
}

TEST_F(EpochWordsOf3, say_in_the_first_view_whether_locks_are_allowed) {
  words.allow_locks(true);
  EXPECT_TRUE(views[0].locks_allowed.load());
  EXPECT_FALSE(views[1].locks_allowed.load());
  words.allow_locks(false);
  EXPECT_FALSE(views[0].locks_allowed.load());
}

template <class F>
void by_threads(int count, F&& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& thread : threads) thread.join();
}

// Whoever opens a word sees what was written before it was closed.
TEST_F(EpochWordsOf3, go_to_one_thread_at_a_time) {
  constexpr int threads = 4, rounds = 2000;
  int written = 0;
  by_threads(threads, [&](int) {
    for (int done = 0; done < rounds;) {
      if (!words.open(1, active_epoch)) {
        std::this_thread::yield();
        continue;
      }
      ++written;
      words.close(1);
      ++done;
    }
  });
  EXPECT_EQ(written, threads * rounds);
}

TEST_F(EpochWordsOf3, go_to_all_locks_or_to_one_and_never_to_both) {
  constexpr int rounds = 2000;
  std::array<int, targets> written{};
  by_threads(3, [&](int thread) {
    const auto target = static_cast<std::uint32_t>(thread);
    for (int done = 0; done < rounds;) {
      const bool takes_all = thread == 2;
      if (!(takes_all ? words.open_with_all() : words.open(target, active_epoch))) {
        std::this_thread::yield();
        continue;
      }
      ++written[takes_all ? done % 2 : target];
      if (takes_all) {
        words.close_with_all(targets);
      } else {
        words.close(target);
      }
      ++done;
    }
  });
  EXPECT_EQ(written[0] + written[1], 3 * rounds);
  EXPECT_EQ(now(), Words{});
}

}  // namespace
}  // namespace farsum
