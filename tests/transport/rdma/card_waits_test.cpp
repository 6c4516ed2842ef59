// How threads wait for operations that something else carries out, without a card.
#include "transport/rdma/card_waits.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <latch>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace farsum {
namespace {

constexpr auto looks_for_nothing = [] { return Status(); };

// Whose descriptor a test makes readable. What there is to do is for the test to say.
class WorkOfTest final : public CardWork {
 public:
  ~WorkOfTest() override { close(descriptor_); }

  ThreadMutex& asking_mutex() override { return mutex_; }
  unsigned progress() override {
    ++rounds;
    eventfd_t events = 0;
    eventfd_read(descriptor_, &events);
    return events != 0 ? on_event() : 0;
  }
  bool arm_asking() override {
    on_arm();
    return true;
  }
  int asking_descriptor() const override { return descriptor_; }
  void make_event() const { eventfd_write(descriptor_, 1); }

  int rounds = 0;
  std::function<unsigned()> on_event = [] { return 0U; };
  std::function<void()> on_arm = [] {};

 private:
  ThreadMutex mutex_;
  const int descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

class CardWaitsTest : public testing::Test {
 protected:
  static constexpr std::uint64_t no_spin = 0;
  // Under the work's mutex.
  void end(CardCompletion& completion) {
    completion.pending.fetch_sub(1, std::memory_order_release);
    waits_.note_ended();
  }

  WorkOfTest work_;
  CardWaits waits_{work_, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), no_spin};
};

TEST_F(CardWaitsTest, end_at_once_where_nothing_is_pending) {
  const CardCompletion completion;
  EXPECT_TRUE(waits_.wait(completion, looks_for_nothing).is_ok());
  EXPECT_EQ(work_.rounds, 0);
}

TEST_F(CardWaitsTest, carry_the_work_on_before_they_sleep) {
  CardCompletion completion{1};
  work_.on_event = [&] {
    end(completion);
    return 1U;
  };
  work_.on_arm = [] { ADD_FAILURE() << "nobody sleeps"; };
  work_.make_event();
  EXPECT_TRUE(waits_.wait(completion, looks_for_nothing).is_ok());
}

TEST_F(CardWaitsTest, sleep_until_there_is_something_to_do) {
  CardCompletion completion{1};
  std::latch armed(1);
  work_.on_arm = [&armed, is_told = false]() mutable {
    if (!std::exchange(is_told, true)) armed.count_down();
  };
  work_.on_event = [&] {
    end(completion);
    return 1U;
  };
  std::thread other([&] {
    armed.wait();
    work_.make_event();
  });
  EXPECT_TRUE(waits_.wait(completion, looks_for_nothing).is_ok());
  other.join();
}

TEST_F(CardWaitsTest, are_told_of_an_end_that_another_thread_brought_about) {
  CardCompletion completion{1};
  std::latch armed(1);
  work_.on_arm = [&armed, is_told = false]() mutable {
    if (!std::exchange(is_told, true)) armed.count_down();
  };
  std::thread other([&] {
    armed.wait();
    const std::lock_guard<ThreadMutex> lock(work_.asking_mutex());
    end(completion);
  });
  EXPECT_TRUE(waits_.wait(completion, looks_for_nothing).is_ok());
  other.join();
}

TEST_F(CardWaitsTest, of_many_threads_end_each_with_its_own_operation) {
  constexpr int threads = 4;
  std::array<CardCompletion, threads> completions;
  for (CardCompletion& completion : completions) completion.pending.store(1, std::memory_order_relaxed);
  std::size_t next = 0;
  work_.on_event = [&] {
    end(completions[next++]);
    return 1U;
  };
  std::vector<std::thread> waiting;
  for (CardCompletion& completion : completions) {
    waiting.emplace_back([&] { EXPECT_TRUE(waits_.wait(completion, looks_for_nothing).is_ok()); });
  }
  for (int i = 0; i < threads; ++i) {
    work_.make_event();
    while (completions[i].pending.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  }
  for (std::thread& thread : waiting) thread.join();
}

TEST_F(CardWaitsTest, end_with_what_was_looked_for) {
  const CardCompletion completion{1};
  const Status status = waits_.wait(completion, []() -> Status { return {Code::peer_failed, "rank 1 died"}; });
  EXPECT_EQ(status.text(), "rank 1 died");
}

}  // namespace
}  // namespace farsum
