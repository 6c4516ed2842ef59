// What the hot path reads of a target before any window has used it, and how it waits for a stripe.
#include "window/hot_window.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <new>
#include <thread>

namespace farsum::test {
namespace {

// src/capi keeps room for the views of all windows, 32 MiB: as zeros they cost address space, as anything else they are
// in the library's file, and the compiler writes them out.
TEST(TargetView, is_zero_in_all_bytes_until_it_is_used) {
  alignas(TargetView) std::array<std::byte, sizeof(TargetView)> room{};
  const std::array<std::byte, sizeof(TargetView)> zeros{};
  new (room.data()) TargetView;
  EXPECT_EQ(std::memcmp(room.data(), zeros.data(), sizeof(TargetView)), 0);
}

// One target whose words lie in one stripe, and one rank that updates them.
class WaitForStripe : public testing::TestWithParam<std::chrono::microseconds> {
 protected:
  static constexpr std::uint32_t me = 1, other = 2;

  WaitForStripe() {
    permit.make_ready();
    permits.of_ranks = {&permit};
    agent.id = me;
    agent.contention = &contention;
    agent.permits = &permits;
    parts.size = 1;
    parts.lock_id = me;
    parts.kernels = &ops::kernels_for_this_machine();
    parts.agent = &agent;
    parts.permit = &permit;
    view.memory = reinterpret_cast<std::byte*>(words.data());
    view.direct_bytes = sizeof words;
    view.domain.locks = &stripe;
    view.open.store(passive_epoch);
  }

  // Another rank holds the stripe until somebody waits for it, and for the test's time after that; then it does `end`.
  // Returns whether the update that waited was made without the long way.
  bool update_beside(const std::function<void()>& end, const std::function<bool(const HotWindow&)>& update) {
    EXPECT_TRUE(stripe.try_acquire(other));
    bool is_made = false;
    std::thread waiting([&] { is_made = update({&view, parts}); });
    while (contention.load() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(GetParam());
    end();
    waiting.join();
    return is_made;
  }

  std::array<std::uint64_t, 4> words{};
  StripeLock stripe;
  LockFreePermit permit;
  LockFreePermits permits;
  std::atomic<std::uint64_t> contention{0};
  LockAgent agent;
  HotParts parts;
  TargetView view;
};

// While it looks, and once it sleeps.
INSTANTIATE_TEST_SUITE_P(For, WaitForStripe,
                         testing::Values(std::chrono::microseconds(0), std::chrono::microseconds(5000)),
                         [](const auto& tested) { return std::to_string(tested.param.count()) + "us"; });

bool sum(const HotWindow& hot) {
  const std::uint64_t one = 1;
  std::uint64_t before = 1;
  return hot.sum_word_under_lock(0, 0, &one, &before, ops::ElementType::uint64) && before == 0;
}
bool reduce(const HotWindow& hot) {
  const std::uint64_t one = 1;
  return hot.reduce(0, 0, &one, nullptr, 1, ops::ElementType::uint64, ops::Operator::sum);
}
bool compare_and_swap(const HotWindow& hot) {
  const std::uint64_t zero = 0, one = 1;
  std::uint64_t before = 1;
  return hot.compare_and_swap(0, 0, &zero, &one, &before, ops::ElementType::uint64) && before == 0;
}

TEST_P(WaitForStripe, leaves_it_lock_free_where_it_has_become_so_meanwhile) {
  for (const auto& update : {sum, reduce, compare_and_swap}) {
    words = {};
    contention = 0;
    EXPECT_TRUE(update_beside([&] { stripe.release_lock_free(); }, update));
    EXPECT_EQ(words[0], 1U);
    EXPECT_TRUE(stripe.is_lock_free());
    EXPECT_FALSE(permit.is_in(stripe));
    stripe.release();  // for the next
  }
}

TEST_P(WaitForStripe, is_over_when_its_holder_releases_it) {
  for (const auto& update : {sum, reduce, compare_and_swap}) {
    words = {};
    contention = 0;
    EXPECT_TRUE(update_beside([&] { stripe.release(); }, update));
    EXPECT_EQ(words[0], 1U);
    EXPECT_EQ(stripe.holder(), 0U);
  }
}

}  // namespace
}  // namespace farsum::test
