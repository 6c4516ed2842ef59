#include "os/thread_mark.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "own_map.hpp"

namespace farsum::os {
namespace {

TEST(ThreadMark, is_of_one_thread_only_and_tells_when_it_has_ended) {
  const std::uint64_t own = thread_mark();
  EXPECT_EQ(thread_mark(), own);
  EXPECT_FALSE(has_ended(own));
  std::uint64_t last = own;
  for (int i = 0; i < 8; ++i) {
    std::uint64_t other = 0;
    std::thread([&] {
      other = thread_mark();
      EXPECT_FALSE(has_ended(other));
    }).join();
    EXPECT_NE(other, own);
    EXPECT_NE(other, last);
    // Joined a moment before the kernel has forgotten it.
    while (!has_ended(other)) std::this_thread::yield();
    last = other;
  }
}

TEST(ThreadMark, is_made_anew_in_a_forked_child) {
  const std::uint64_t of_parent = thread_mark();
  EXPECT_EQ(run_in_child([of_parent] {
              const std::uint64_t own = thread_mark();
              return own != of_parent && own == own_thread_mark && !has_ended(own) && has_ended(of_parent) ? 0 : 1;
            }),
            0);
}

// It stays listed until the last thread of the process has ended.
TEST(ThreadMark, tells_when_the_first_thread_has_left_the_process_to_the_others) {
  EXPECT_EQ(run_in_child([]() -> int {
              const std::uint64_t first = thread_mark();
              if (has_ended(first)) return 1;
              std::thread([first] {
                while (!has_ended(first)) std::this_thread::yield();
                _exit(0);
              }).detach();
              // As pthread_exit, without unwinding through what called the test.
              for (;;) syscall(SYS_exit, 0);
            }),
            0);
}

}  // namespace
}  // namespace farsum::os
