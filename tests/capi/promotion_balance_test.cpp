// Programs that make windows again and again: their memory is promoted for as long as what the windows carry pays for
// it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <string>

#include "rank_processes.hpp"

namespace farsum::test {
namespace {

using testing::HasSubstr;

constexpr std::size_t memory_bytes = std::size_t{1} << 20;

class AdoptableMemory {
 public:
  AdoptableMemory() : data_(mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    std::memset(data_, 1, memory_bytes);
  }
  ~AdoptableMemory() { munmap(data_, memory_bytes); }
  AdoptableMemory(const AdoptableMemory&) = delete;
  AdoptableMemory& operator=(const AdoptableMemory&) = delete;
  std::uint64_t* words() const { return static_cast<std::uint64_t*>(data_); }

  farsum_window adopt() const {
    farsum_window window{};
    EXPECT_FINE(farsum_window_adopt(farsum_world(), data_, memory_bytes, nullptr, &window));
    return window;
  }

 private:
  void* data_;
};

farsum_region_info region_of(farsum_window window, int rank) {
  farsum_region_info info{};
  EXPECT_FINE(farsum_window_region(window, rank, 0, &info));
  return info;
}

void put_words(farsum_window window, int target, int count) {
  ASSERT_FINE(farsum_lock(window, target, FARSUM_LOCK_SHARED));
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i)
    ASSERT_FINE(farsum_put(window, target, 8 * i, &i, 8));
  ASSERT_FINE(farsum_unlock(window, target));
}

void make_and_free(const AdoptableMemory& memory, int times) {
  for (int i = 0; i < times; ++i) {
    farsum_window window = memory.adopt();
    ASSERT_FINE(farsum_window_free(&window));
  }
}

TEST(PromotionsThatDoNotPay, end_and_the_region_says_why) {
  run_ranks(2, [](int rank) {
    const AdoptableMemory memory;
    farsum_window first = memory.adopt();
    if (region_of(first, 1 - rank).promoted == 0) GTEST_SKIP() << "nothing is promoted here";
    ASSERT_FINE(farsum_window_free(&first));
    make_and_free(memory, 100);
    farsum_window window = memory.adopt();
    for (const int owner : {0, 1}) {
      EXPECT_EQ(region_of(window, owner).promoted, 0);
      EXPECT_THAT(region_of(window, owner).reason, HasSubstr("carry less"));
    }
    put_words(window, 1 - rank, 100);
    ASSERT_FINE(farsum_barrier(farsum_world()));
    EXPECT_EQ(memory.words()[99], 99u);
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(PromotionsThatDoNotPay, begin_again_where_traffic_shows_that_they_would) {
  run_ranks(2, [](int rank) {
    const AdoptableMemory memory;
    make_and_free(memory, 101);
    farsum_window busy = memory.adopt();
    EXPECT_EQ(region_of(busy, 1 - rank).promoted, 0);
    // Worth 60 ms and more.
    put_words(busy, 1 - rank, 60'000);
    ASSERT_FINE(farsum_window_free(&busy));
    farsum_window next = memory.adopt();
    const farsum_region_info info = region_of(next, 1 - rank);
    EXPECT_TRUE(info.promoted != 0 || std::string(info.reason).find("carry less") == std::string::npos) << info.reason;
    ASSERT_FINE(farsum_window_free(&next));
  });
}

TEST(PromotionsThatDoNotPay, are_each_ranks_own) {
  run_ranks(2, [](int rank) {
    const AdoptableMemory memory;
    farsum_window window{};
    for (int i = 0; i < 100; ++i) {
      window = memory.adopt();
      if (i == 0 && region_of(window, 0).promoted == 0) GTEST_SKIP() << "nothing is promoted here";
      // Only rank 0's memory is of use to anybody: 20 ms a window, well above what a look costs under a sanitizer.
      if (rank == 1) put_words(window, 0, 20'000);
      ASSERT_FINE(farsum_window_free(&window));
    }
    window = memory.adopt();
    EXPECT_NE(region_of(window, 0).promoted, 0) << region_of(window, 0).reason;
    EXPECT_EQ(region_of(window, 1).promoted, 0);
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(PromotionsThatDoNotPay, are_shared_where_another_window_has_the_memory_promoted) {
  run_ranks(2, [](int rank) {
    const AdoptableMemory memory;
    farsum_window lasting = memory.adopt();
    if (region_of(lasting, 1 - rank).promoted == 0) GTEST_SKIP() << "nothing is promoted here";
    const AdoptableMemory other;
    make_and_free(other, 100);
    farsum_window unpromoted = other.adopt();
    EXPECT_EQ(region_of(unpromoted, 1 - rank).promoted, 0);
    farsum_window shared = memory.adopt();
    EXPECT_NE(region_of(shared, 1 - rank).promoted, 0);
    put_words(shared, 1 - rank, 10);
    ASSERT_FINE(farsum_window_free(&lasting));
    put_words(shared, 1 - rank, 10);
    ASSERT_FINE(farsum_barrier(farsum_world()));
    EXPECT_EQ(memory.words()[9], 9u);
    ASSERT_FINE(farsum_window_free(&shared));
    ASSERT_FINE(farsum_window_free(&unpromoted));
    EXPECT_EQ(memory.words()[9], 9u);
  });
}

TEST(PromotionsThatDoNotPay, go_on_where_that_is_asked_for) {
  Job job;
  job.settings = {{"FARSUM_PROMOTION", "always"}};
  run_ranks(job, [](int rank) {
    const AdoptableMemory memory;
    farsum_window first = memory.adopt();
    if (region_of(first, 1 - rank).promoted == 0) GTEST_SKIP() << "nothing is promoted here";
    ASSERT_FINE(farsum_window_free(&first));
    make_and_free(memory, 100);
    farsum_window window = memory.adopt();
    EXPECT_NE(region_of(window, 1 - rank).promoted, 0);
    ASSERT_FINE(farsum_window_free(&window));
  });
}

}  // namespace
}  // namespace farsum::test
