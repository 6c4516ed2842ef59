#include "promotion/promoted_advice.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "mib.hpp"
#include "os/own_map.hpp"
#include "promotion/promotion.hpp"

namespace farsum::os {
namespace {

using test::mib;
constexpr int dontneed_locked = 24;

// Private memory whose middle is promoted: [1, 3) of 4 MiB.
class PromotedAdvice : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(file_.is_made());
    fill(memory(), 4 * mib, 5);
    const Examination found = registry_.examine(memory() + mib, 2 * mib);
    if (!found.ok()) GTEST_SKIP() << "nothing can be promoted here: " << found.refusal;
    PromotionOutcome outcome = registry_.promote(found, file_.fd(), mib);
    ASSERT_EQ(outcome.refusal, "");
    promotion_ = std::move(outcome.promotion);
  }
  void TearDown() override {
    munlock(memory(), 4 * mib);
    if (promotion_) {
      EXPECT_EQ(registry_.release(promotion_).demotion, Demotion::restored);
    }
  }

  std::byte* memory() const { return map_.middle(); }
  bool holds(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (memory()[i] != static_cast<std::byte>((i * 2654435761U + 5) >> 7)) return false;
    }
    return true;
  }
  bool is_zero(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (memory()[i] != std::byte{}) return false;
    }
    return true;
  }
  int advise_all(std::size_t begin, std::size_t end, int advice) const {
    errno = 0;
    return advise(memory() + begin, end - begin, advice, madvise);
  }

  const OwnMap map_ = OwnMap::alone(4 * mib);
  SharedFile file_{64 * mib};
  PromotionRegistry registry_;
  Promotion promotion_;
};

TEST_F(PromotedAdvice, discards_what_is_promoted_and_nothing_around_it) {
  const std::size_t page = test_page_bytes();
  const OwnMap peer(64 * mib, PROT_READ, MAP_SHARED, file_.fd());
  EXPECT_EQ(advise_all(2 * mib, 2 * mib + 3 * page, MADV_DONTNEED), 0);
  EXPECT_TRUE(holds(0, 2 * mib));
  EXPECT_TRUE(is_zero(2 * mib, 2 * mib + 3 * page));
  EXPECT_TRUE(holds(2 * mib + 3 * page, 4 * mib));
  EXPECT_EQ(peer.data()[2 * mib], std::byte{}) << "others read zeros as well";
  memory()[2 * mib] = std::byte{7};
  EXPECT_EQ(peer.data()[2 * mib], std::byte{7}) << "it is promoted still";
}

TEST_F(PromotedAdvice, takes_a_range_of_both_kinds_and_lengths_that_end_in_a_page) {
  EXPECT_EQ(advise_all(mib / 2, 3 * mib + mib / 2 - 5, MADV_DONTNEED), 0);
  EXPECT_TRUE(holds(0, mib / 2));
  EXPECT_TRUE(is_zero(mib / 2, 3 * mib + mib / 2));
  EXPECT_TRUE(holds(3 * mib + mib / 2, 4 * mib));
}

TEST_F(PromotedAdvice, may_free_what_is_promoted) {
  EXPECT_EQ(advise_all(mib, 2 * mib, MADV_FREE), 0);
  EXPECT_TRUE(is_zero(mib, 2 * mib));
  EXPECT_TRUE(holds(2 * mib, 4 * mib));
}

TEST_F(PromotedAdvice, goes_on_behind_a_hole_and_says_so) {
  ASSERT_EQ(munmap(memory() + mib / 2, mib / 4), 0);
  EXPECT_EQ(advise_all(0, 4 * mib, MADV_DONTNEED), -1);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_TRUE(is_zero(0, mib / 2));
  EXPECT_TRUE(is_zero(mib, 4 * mib));
}

TEST_F(PromotedAdvice, is_refused_as_the_kernel_refuses) {
  EXPECT_EQ(advise(memory() + mib + 1, mib, MADV_DONTNEED, madvise), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(advise(memory() + mib, SIZE_MAX - 10, MADV_DONTNEED, madvise), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(advise_all(mib, mib, MADV_DONTNEED), 0);
  EXPECT_TRUE(holds(0, 4 * mib));
}

TEST_F(PromotedAdvice, keeps_what_is_locked_unless_that_is_meant) {
  const std::size_t page = test_page_bytes();
  // A sanitizer's mlock does nothing.
  if (syscall(SYS_mlock, memory() + 2 * mib, page) != 0) GTEST_SKIP() << "no memory may be locked";
  EXPECT_EQ(advise_all(2 * mib, 2 * mib + page, MADV_DONTNEED), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_TRUE(holds(0, 4 * mib));
  if (madvise(map_.data(), page, dontneed_locked) != 0) GTEST_SKIP() << "this kernel has no MADV_DONTNEED_LOCKED";
  EXPECT_EQ(advise_all(2 * mib, 2 * mib + page, dontneed_locked), 0);
  EXPECT_TRUE(holds(0, 2 * mib));
  EXPECT_TRUE(is_zero(2 * mib, 2 * mib + page));
}

TEST_F(PromotedAdvice, of_other_kinds_is_passed_on) {
  EXPECT_EQ(advise_all(0, 4 * mib, MADV_WILLNEED), 0);
  EXPECT_EQ(advise_all(0, 4 * mib, 12345), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_TRUE(holds(0, 4 * mib));
}

}  // namespace
}  // namespace farsum::os
