#include "runtime/promotion_balance.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <vector>

namespace farsum {
namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t second = 1000 * ms;

// One window after another, each asked for, moved (or not) and carrying the same.
struct Program {
  const char* name;
  std::uint64_t bytes;
  std::uint64_t touched_bytes;
  std::uint64_t operations;
  std::uint64_t bytes_of_operations;  // of all in one window
  std::uint64_t lives_ns;
  int windows;
  int least_promoted;
  int most_promoted;
  std::uint64_t looked_ns = 100'000;
};

void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

class Balance : public testing::TestWithParam<Program> {};

INSTANTIATE_TEST_SUITE_P(
    programs, Balance,
    testing::Values(Program{"few_windows", page, page, 0, 0, 40'000, 60, 60, 60},
                    Program{"many_windows_without_traffic", page, page, 0, 0, 40'000, 100'000, 60, 70},
                    Program{"many_windows_of_a_mebibyte", mib, mib, 0, 0, 100'000, 10'000, 25, 40},
                    Program{"many_long_windows", 64 * mib, 64 * mib, 0, 0, 200'000, 2000, 1, 2},
                    Program{"many_long_windows_never_touched", 64 * mib, 0, 0, 0, 200'000, 2000, 8, 12},
                    Program{"windows_of_a_process_with_much_memory", mib, mib, 0, 0, 200'000, 2000, 1, 2, 40 * ms},
                    Program{"windows_that_could_not_be_moved", 0, 0, 0, 0, 200'000, 10'000, 60, 90},
                    Program{"many_windows_with_little_traffic", page, page, 10, 80, 100'000, 20'000, 60, 80},
                    Program{"traffic_that_pays", page, page, 500, 4000, 600'000, 10'000, 10'000, 10'000},
                    Program{"long_operations_that_pay", mib, mib, 8, 8 * mib, 2 * ms, 1000, 1000, 1000},
                    Program{"windows_that_live_for_long", mib, mib, 0, 0, 1 * second, 500, 500, 500}),
    [](const auto& about) { return about.param.name; });

TEST_P(Balance, promotes_what_pays) {
  const Program& program = GetParam();
  PromotionBalance balance;
  std::uint64_t now = 1;
  int promoted = 0;
  for (int window = 0; window < program.windows; ++window) {
    promoted += balance.is_spent(now) ? 0 : 1;
    balance.moved({program.bytes, program.touched_bytes, program.looked_ns});
    now += program.lives_ns;
    balance.spared(PromotionBalance::worth_ns(program.operations, program.bytes_of_operations));
  }
  EXPECT_GE(promoted, program.least_promoted);
  EXPECT_LE(promoted, program.most_promoted);
}

class SpentBalance : public testing::Test {
 protected:
  SpentBalance() {
    for (int i = 0; i < 1000; ++i) balance_.moved({mib, mib, 0});
  }
  PromotionBalance balance_;
};

TEST_F(SpentBalance, comes_back_with_traffic_that_would_have_paid) {
  ASSERT_TRUE(balance_.is_spent(1));
  balance_.moved({mib, mib, 0});
  balance_.spared(20 * ms);
  EXPECT_FALSE(balance_.is_spent(2));
}

TEST_F(SpentBalance, comes_back_a_second_after_the_last_of_many_windows) {
  ASSERT_TRUE(balance_.is_spent(1));
  EXPECT_TRUE(balance_.is_spent(second / 2));
  EXPECT_FALSE(balance_.is_spent(2 * second));
}

TEST_F(SpentBalance, is_given_time_back_however_often_it_is_asked) {
  std::uint64_t now = 1;
  for (; now < second + 10 * ms; now += 150) (void)balance_.is_spent(now);
  EXPECT_FALSE(balance_.is_spent(now));
}

TEST(PromotionBalance, takes_any_numbers) {
  PromotionBalance balance;
  balance.moved({~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}});
  EXPECT_TRUE(balance.is_spent(~std::uint64_t{0}));
  balance.spared(~std::uint64_t{0});
  EXPECT_FALSE(balance.is_spent(0));
  balance.spared(~std::uint64_t{0});
  for (int i = 0; i < 300; ++i) balance.moved({0, 0, 0});
  EXPECT_TRUE(balance.is_spent(0)) << "no more is saved up than some 250 windows cost";
}

}  // namespace
}  // namespace farsum
