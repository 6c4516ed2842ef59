// Memory on transparent huge pages is as large there after promotion as before, in the file and back.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "huge_pages.hpp"
#include "mib.hpp"
#include "os/own_map.hpp"
#include "promotion/promotion.hpp"

namespace farsum::os {
namespace {

using test::huge_bytes;
using test::PlacedMap;

using test::mib;

class HugePagePromotion : public testing::Test {
 protected:
  // Three steps with edges that are no whole huge page.
  static constexpr std::size_t bytes = 130 * mib + 8192;
  static constexpr std::size_t past = 1 * mib + 4096;
  static constexpr std::size_t whole_huge_bytes = 128 * mib;

  void SetUp() override {
    ASSERT_TRUE(file_.is_made());
    if (const std::string reason = test::why_no_huge_pages(); !reason.empty()) GTEST_SKIP() << reason;
    const Examination found = examine(memory_.data(), bytes);
    if (!found.ok()) GTEST_SKIP() << "nothing can be promoted here: " << found.refusal;
  }

  void fill_huge() {
    ASSERT_EQ(madvise(memory_.data(), bytes, MADV_HUGEPAGE), 0);
    fill(memory_.data(), bytes, 9);
    if (huge_bytes(memory_.data(), bytes) != whole_huge_bytes) GTEST_SKIP() << "too few huge pages are free";
  }

  Promotion promote(std::uint64_t file_offset) {
    const Examination found = registry_.examine(memory_.data(), bytes);
    PromotionOutcome outcome = registry_.promote(found, file_.fd(), file_offset);
    if (!outcome.ok()) skip_reason_ = outcome.refusal;
    return std::move(outcome.promotion);
  }

  void turn_back(Promotion& promotion) {
    const ReleaseOutcome outcome = registry_.release(promotion);
    EXPECT_EQ(outcome.demotion, Demotion::restored) << outcome.reason;
    EXPECT_TRUE(is_filled(memory_.data(), bytes, 9));
  }

  SharedFile file_{std::size_t{1} << 40};
  PromotionRegistry registry_;
  PlacedMap memory_{bytes, past};
  std::string skip_reason_;
};

TEST_F(HugePagePromotion, keeps_all_huge_pages_there_and_back) {
  fill_huge();
  if (IsSkipped() || HasFatalFailure()) return;
  Promotion promotion = promote(4 * huge_page_bytes + past);
  ASSERT_TRUE(promotion) << skip_reason_;
  EXPECT_TRUE(is_filled(memory_.data(), bytes, 9));
  EXPECT_EQ(huge_bytes(memory_.data(), bytes), whole_huge_bytes);
  turn_back(promotion);
  EXPECT_EQ(huge_bytes(memory_.data(), bytes), whole_huge_bytes);
}

TEST_F(HugePagePromotion, keeps_all_huge_pages_while_threads_are_held) {
  fill_huge();
  if (IsSkipped() || HasFatalFailure()) return;
  std::promise<void> leave;
  std::thread other([&] { leave.get_future().wait(); });
  Promotion promotion = promote(4 * huge_page_bytes + past);
  const std::size_t while_promoted = huge_bytes(memory_.data(), bytes);
  if (promotion) turn_back(promotion);
  leave.set_value();
  other.join();
  if (!skip_reason_.empty()) GTEST_SKIP() << "no thread can be held here: " << skip_reason_;
  EXPECT_EQ(while_promoted, whole_huge_bytes);
  EXPECT_EQ(huge_bytes(memory_.data(), bytes), whole_huge_bytes);
}

TEST_F(HugePagePromotion, gives_peers_huge_pages_too) {
  fill_huge();
  if (IsSkipped() || HasFatalFailure()) return;
  Promotion promotion = promote(4 * huge_page_bytes + past);
  ASSERT_TRUE(promotion) << skip_reason_;
  const PlacedMap peer(bytes, past);
  ASSERT_NE(mmap(peer.data(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.fd(),
                 static_cast<off_t>(promotion.file_offset())),
            MAP_FAILED);
  EXPECT_TRUE(is_filled(peer.data(), bytes, 9));
  EXPECT_EQ(huge_bytes(peer.data(), bytes), whole_huge_bytes);
  turn_back(promotion);
}

TEST_F(HugePagePromotion, moves_memory_to_a_place_that_is_not_congruent_without_huge_pages) {
  fill_huge();
  if (IsSkipped() || HasFatalFailure()) return;
  Promotion promotion = promote(4 * huge_page_bytes);
  ASSERT_TRUE(promotion) << skip_reason_;
  EXPECT_TRUE(is_filled(memory_.data(), bytes, 9));
  EXPECT_EQ(huge_bytes(memory_.data(), bytes), 0U);
  turn_back(promotion);
  EXPECT_EQ(huge_bytes(memory_.data(), bytes), whole_huge_bytes);
}

TEST_F(HugePagePromotion, gives_none_to_memory_that_shuns_them) {
  ASSERT_EQ(madvise(memory_.data(), bytes, MADV_NOHUGEPAGE), 0);
  fill(memory_.data(), bytes, 9);
  Promotion promotion = promote(4 * huge_page_bytes + past);
  ASSERT_TRUE(promotion) << skip_reason_;
  EXPECT_EQ(huge_bytes(memory_.data(), bytes), 0U);
  turn_back(promotion);
  EXPECT_EQ(huge_bytes(memory_.data(), bytes), 0U);
}

}  // namespace
}  // namespace farsum::os
