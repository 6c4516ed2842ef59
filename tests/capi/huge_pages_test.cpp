// User memory that lies on transparent huge pages is a window on huge pages, for its owner and for the others.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>

#include "promotion/huge_pages.hpp"
#include "rank_processes.hpp"

namespace farsum::test {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(HugePages, stay_under_a_window_for_all_ranks_and_come_back_with_its_end) {
  if (const std::string reason = why_no_huge_pages(); !reason.empty()) GTEST_SKIP() << reason;
  const SharedWithRanks<std::atomic<bool>> too_few_are_free;
  run_ranks(2, [&](int rank) {
    // As a large block of malloc: its first page boundary lies one page past one of huge pages.
    constexpr std::size_t bytes = 20 * mib;
    constexpr std::size_t whole_huge_bytes = 18 * mib;
    const PlacedMap memory(bytes, 4096);
    ASSERT_EQ(madvise(memory.data(), bytes, MADV_HUGEPAGE), 0);
    std::memset(memory.data(), 1 + rank, bytes);
    if (huge_bytes(memory.data(), bytes) != whole_huge_bytes) *too_few_are_free = true;
    ASSERT_FINE(farsum_barrier(farsum_world()));
    if (*too_few_are_free) GTEST_SKIP() << "too few huge pages are free";

    farsum_window window{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), memory.data(), bytes, nullptr, &window));
    farsum_region_info info{};
    ASSERT_FINE(farsum_window_region(window, rank, 0, &info));
    if (info.promoted == 0) GTEST_SKIP() << "nothing is promoted here";
    EXPECT_EQ(huge_bytes(memory.data(), bytes), whole_huge_bytes);

    const std::size_t before = huge_bytes(nullptr, SIZE_MAX);
    const std::byte mine{static_cast<unsigned char>(7 + rank)};
    ASSERT_FINE(farsum_lock_all(window));
    for (std::size_t at = 0; at < bytes; at += mib) ASSERT_FINE(farsum_put(window, 1 - rank, at, &mine, 1));
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    EXPECT_EQ(memory.data()[5 * mib], std::byte{static_cast<unsigned char>(8 - rank)});
    EXPECT_EQ(huge_bytes(nullptr, SIZE_MAX), before + whole_huge_bytes);

    ASSERT_FINE(farsum_window_free(&window));
    EXPECT_EQ(huge_bytes(memory.data(), bytes), whole_huge_bytes);
    EXPECT_EQ(memory.data()[5 * mib + 1], std::byte{static_cast<unsigned char>(1 + rank)});
  });
}

}  // namespace
}  // namespace farsum::test
