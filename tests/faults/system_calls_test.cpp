// How many system calls a rank makes in each of the calls that programs make again and again, by ranks: none where
// nobody is in the way, and for a window a number that does not grow with the ranks.
#include <sched.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "job.hpp"
#include "syscall_counter.hpp"

namespace farsum::faults {
namespace {

constexpr int traced = 1;
constexpr int windows_before = 6;  // until what is kept for the next is there
constexpr int windows_counted = 8;
constexpr int calls_counted = 50;
// Two to make it, one to free it: a sleep and a wake each. And who gives the extent back asks which pages it has.
constexpr std::uint64_t meetings_of_a_window = 3;
constexpr std::uint64_t for_the_extent = 3;

bool make_and_free(const Rank& self) {
  farsum_window window{};
  void* memory = nullptr;
  return self.ok(farsum_window_allocate(farsum_world(), 65536, nullptr, &memory, &window)) &&
         self.ok(farsum_window_free(&window));
}

// What the traced rank does alone, many times, while the others wait for it.
const std::vector<std::pair<const char*, std::function<bool(const Rank&, farsum_window)>>> alone = {
    {"lock and unlock",
     [](const Rank& self, farsum_window window) {
       return self.ok(farsum_lock(window, 0, FARSUM_LOCK_EXCLUSIVE)) && self.ok(farsum_unlock(window, 0));
     }},
    {"lock, put and unlock",
     [](const Rank& self, farsum_window window) {
       const std::uint64_t value = 7;
       return self.ok(farsum_lock(window, 0, FARSUM_LOCK_EXCLUSIVE)) &&
              self.ok(farsum_put(window, 0, 8, &value, sizeof value)) && self.ok(farsum_unlock(window, 0));
     }},
    {"lock_all and unlock_all",
     [](const Rank& self, farsum_window window) {
       return self.ok(farsum_lock_all(window)) && self.ok(farsum_unlock_all(window));
     }},
};

bool do_all(const Rank& self, farsum_window window) {
  const bool is_traced = self.rank == traced;
  for (int i = 0; i < windows_before; ++i) {
    if (!make_and_free(self)) return false;
  }
  self.words().ready = 1;
  while (self.control->go == 0) sched_yield();
  for (int i = 0; i < windows_counted; ++i) {
    if (is_traced) mark();
    if (!make_and_free(self)) return false;
  }
  if (is_traced) mark();
  for (int i = 0; i < calls_counted; ++i) {
    if (!self.ok(farsum_fence(window, 0))) return false;
  }
  if (is_traced) mark();
  if (!self.ok(farsum_fence(window, FARSUM_FENCE_NO_SUCCEED)) || !self.ok(farsum_barrier(farsum_world()))) return false;
  for (const auto& [name, call] : alone) {
    if (!is_traced) break;
    // Once before, for what the first touches.
    if (!call(self, window)) return false;
    mark();
    for (int i = 0; i < calls_counted; ++i) {
      if (!call(self, window)) return false;
    }
    mark();
  }
  return true;
}

int as_counted(const Rank& self) {
  farsum_window window{};
  void* memory = nullptr;
  const bool good = self.ok(self.init()) &&
                    self.ok(farsum_window_allocate(farsum_world(), 4096, nullptr, &memory, &window)) &&
                    do_all(self, window) && self.ok(farsum_barrier(farsum_world())) &&
                    self.ok(farsum_window_free(&window)) && self.ok(farsum_finalize());
  return good ? 0 : 1;
}

class SystemCallsByRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(By, SystemCallsByRanks, testing::Values(2, 4, 16), testing::PrintToStringParamName());

TEST_P(SystemCallsByRanks, are_none_where_nobody_is_in_the_way_and_as_few_for_a_window_of_many) {
  JobOptions options;
  options.ranks = GetParam();
  Job job(options);
  job.start(as_counted);
  ASSERT_TRUE(job.wait_for([&] { return job.words(traced).ready != 0; })) << job.words(traced).text.data();
  {
    SyscallCounter counter(job.pid(traced));
    if (!counter.attached()) GTEST_SKIP() << "the kernel refuses to trace the ranks here";
    job.control().go = 1;
    SystemCalls calls;
    ASSERT_TRUE(counter.run_to_mark(calls));
    // Now and then who cuts an extent reads anew what memory the system has, and a long wait looks at the others'
    // lives.
    std::uint64_t fewest = ~std::uint64_t{0};
    std::string of_all;
    for (int i = 0; i < windows_counted; ++i) {
      ASSERT_TRUE(counter.run_to_mark(calls));
      fewest = std::min(fewest, count_of(calls));
      of_all += describe(calls) + "\n";
    }
    EXPECT_LE(fewest, 2 * meetings_of_a_window + for_the_extent) << of_all;
    ASSERT_TRUE(counter.run_to_mark(calls));
    EXPECT_EQ(count_without_waiting(calls), 0U) << "fences: " << describe(calls);
    for (const auto& [name, call] : alone) {
      ASSERT_TRUE(counter.run_to_mark(calls));
      ASSERT_TRUE(counter.run_to_mark(calls));
      EXPECT_EQ(count_of(calls), 0U) << name << ": " << describe(calls);
    }
  }
  for (int rank = 0; rank < job.size(); ++rank)
    EXPECT_EQ(job.wait_rank(rank, now_ns() + 60'000'000'000), 0) << job.words(rank).text.data();
}

}  // namespace
}  // namespace farsum::faults
