// Why memory is promoted or is not, and that it turns back.
#include "runtime/window_promotions.hpp"

#include <sys/mman.h>

#include <cstring>

#include "lone_rank.hpp"
#include "window/operation_checks.hpp"

namespace farsum::test {
namespace {

constexpr std::size_t memory_bytes = std::size_t{1} << 20;

class WindowPromotionsTest : public testing::Test {
 protected:
  void SetUp() override {
    rank.settings.promotion = PromotionChoice::always;
    void* const mapped = mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    wish.flavour = Flavour::adopted;
    wish.memory = static_cast<std::byte*>(mapped);
    wish.bytes = memory_bytes;
    std::memset(mapped, 7, memory_bytes);
  }
  void TearDown() override { munmap(wish.memory, memory_bytes); }

  LoneRankWithWindows rank;
  WindowWish wish;
};

TEST_F(WindowPromotionsTest, say_why_memory_stays_before_they_look_at_it) {
  const WindowPromotions& promotions = rank.promotions;
  EXPECT_EQ(promotions.why_not(wish, 0, 2), "");
  EXPECT_EQ(promotions.why_not(wish, 0, 1), "user memory, which no other rank of this node reaches");
  EXPECT_EQ(promotions.why_not(wish, promise_no_promotion, 2), "user memory");
  wish.bytes = 1;
  EXPECT_EQ(promotions.why_not(wish, 0, 2), "user memory, too small to promote");
  wish.read_only = true;
  EXPECT_EQ(promotions.why_not(wish, 0, 2), "read-only user memory");
  rank.settings.promotion = PromotionChoice::refuse;
  EXPECT_EQ(promotions.why_not(wish, 0, 2), "user memory, FARSUM_PROMOTION=refuse");
}

TEST_F(WindowPromotionsTest, move_memory_and_turn_it_back_as_it_was) {
  std::string refusal;
  const std::uint64_t before = rank.node.segment().heap().allocated_bytes();
  os::Promotion promotion = rank.promotions.promote(wish, WindowPromotions::Moves::allowed, refusal);
  ASSERT_TRUE(promotion) << refusal;
  EXPECT_NE(rank.registry.promoted_bytes(), 0);
  EXPECT_GT(rank.node.segment().heap().allocated_bytes(), before);
  rank.promotions.turn_back(promotion);
  EXPECT_FALSE(promotion);
  EXPECT_EQ(rank.registry.promoted_bytes(), 0);
  EXPECT_EQ(rank.node.segment().heap().allocated_bytes(), before);
  EXPECT_EQ(wish.memory[0], std::byte{7});
  EXPECT_EQ(wish.memory[memory_bytes - 1], std::byte{7});
}

TEST_F(WindowPromotionsTest, leave_memory_whose_move_is_too_dear) {
  std::string refusal;
  EXPECT_FALSE(rank.promotions.promote(wish, WindowPromotions::Moves::too_dear, refusal));
  EXPECT_EQ(refusal, "user memory, not promoted: windows carry less here than moving their memory costs");
  EXPECT_EQ(rank.registry.promoted_bytes(), 0);
}

TEST_F(WindowPromotionsTest, keep_what_another_window_exposes_until_that_goes) {
  std::string refusal;
  os::Promotion promotion = rank.promotions.promote(wish, WindowPromotions::Moves::allowed, refusal);
  ASSERT_TRUE(promotion) << refusal;
  auto exposure = std::make_shared<Exposure>();
  exposure->regions.push_back({0, memory_bytes, wish.memory, {}});
  rank.exposures.set(1, exposure);
  rank.promotions.turn_back(promotion);
  EXPECT_NE(rank.registry.promoted_bytes(), 0);
  rank.exposures.erase(1);
  os::Promotion none;
  rank.promotions.turn_back(none);
  EXPECT_EQ(rank.registry.promoted_bytes(), 0);
}

}  // namespace
}  // namespace farsum::test
