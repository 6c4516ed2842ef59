// What ranks have said becomes one, from the left to the right, wherever it is cut and whatever the thread has set.
#include "collectives/fold.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cfenv>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "odd_elements.hpp"
#include "os/default_arithmetic.hpp"

namespace farsum {
namespace {

constexpr std::size_t most_elements = 70;
constexpr std::uint32_t fold_parts = 3;

class OddParts {
 public:
  OddParts(const Foldable& pair, std::size_t elements, std::uint64_t seed)
      : bytes_(elements * ops::size_of(pair.type)) {
    std::mt19937_64 random(seed);
    for (std::vector<std::byte>& part : parts_) {
      part.resize(bytes_);
      fill_oddly(pair.type, part, random);
    }
  }
  std::vector<std::byte> folded(const Fold& fold, std::size_t first_bytes) const {
    std::vector<std::byte> result(bytes_);
    fold_range(fold, result, 0, first_bytes);
    fold_range(fold, result, first_bytes, bytes_ - first_bytes);
    return result;
  }

 private:
  void fold_range(const Fold& fold, std::vector<std::byte>& result, std::size_t from, std::size_t bytes) const {
    fold.all(result.data() + from, bytes, fold_parts, [&](std::uint32_t part) { return parts_[part].data() + from; });
  }

  std::size_t bytes_;
  std::array<std::vector<std::byte>, fold_parts> parts_;
};

// Of one length, cut in many places.
testing::AssertionResult is_the_same_for(const Foldable& pair, std::size_t elements) {
  const OddParts parts(pair, elements, elements);
  const Fold plainest(ops::kernels(ops::Isa::baseline), pair.type, pair.op);
  const std::vector<std::byte> whole = promised(pair, parts.folded(plainest, 0));
  for (const ops::Isa isa : ops::available_isas()) {
    const Fold fold(ops::kernels(isa), pair.type, pair.op);
    for (std::size_t cut = 0; cut <= elements; cut += elements < 18 ? 1 : 5) {
      if (promised(pair, parts.folded(fold, cut * fold.element_bytes())) == whole) continue;
      return testing::AssertionFailure() << ops::name_of(pair.type) << ' ' << ops::name_of(pair.op) << " by "
                                         << ops::kernels(isa).name << ", " << elements << " elements cut at " << cut
                                         << "; the parts' seed is the number of elements";
    }
  }
  return testing::AssertionSuccess();
}

TEST(Fold, gives_the_same_bits_wherever_a_vector_is_cut_and_by_every_set_of_kernels) {
  for (const Foldable& pair : pairs_that_can_be_folded()) {
    testing::AssertionResult same = testing::AssertionSuccess();
    for (std::size_t elements = 1; elements <= most_elements && same; ++elements)
      same = is_the_same_for(pair, elements);
    EXPECT_TRUE(same);
  }
}

TEST(Fold, keeps_the_order_of_the_parts) {
  // 1 + 2^-53 is 1, and 2^-53 + 2^-53 + 1 is more.
  const Fold fold(ops::kernels_for_this_machine(), ElementType::float64, Operator::sum);
  const std::array<double, 3> parts = {1, 0x1p-53, 0x1p-53};
  double from_the_left = 0, from_the_right = 0;
  const auto at = [&](std::uint32_t part) { return reinterpret_cast<const std::byte*>(&parts[part]); };
  fold.all(reinterpret_cast<std::byte*>(&from_the_left), 8, 3, at);
  fold.all(reinterpret_cast<std::byte*>(&from_the_right), 8, 3, [&](std::uint32_t part) { return at(2 - part); });
  EXPECT_EQ(from_the_left, 1);
  EXPECT_EQ(from_the_right, 1 + 0x1p-52);
}

TEST(Fold, goes_on_with_what_was_folded_before) {
  const Fold fold(ops::kernels_for_this_machine(), ElementType::int32, Operator::sum);
  std::array<std::int32_t, 2> sum = {1, 2};
  const std::array<std::int32_t, 2> more = {10, 20};
  fold.one_more(reinterpret_cast<std::byte*>(sum.data()), reinterpret_cast<const std::byte*>(more.data()), 8);
  EXPECT_EQ(sum, (std::array<std::int32_t, 2>{11, 22}));
}

TEST(Fold, takes_nothing_from_nobody) {
  const Fold fold(ops::kernels_for_this_machine(), ElementType::int32, Operator::sum);
  fold.all(nullptr, 0, 3, [](std::uint32_t) -> const std::byte* { return nullptr; });
}

// What a thread computes with, as far as a program sets it.
struct ThreadArithmetic {
  int rounding = FE_TONEAREST;
  bool flushes_subnormals = false;
};

// Of two parts, by a thread that computes so; its own settings and flags are found as they were left.
template <class Real>
Real sum_of(ElementType type, Real left, Real right, const ThreadArithmetic& settings) {
  const Fold fold(ops::kernels_for_this_machine(), type, Operator::sum);
  std::fenv_t before{};
  std::fegetenv(&before);
  std::fesetround(settings.rounding);
#ifdef __SSE2__
  if (settings.flushes_subnormals) _mm_setcsr(_mm_getcsr() | 0x8040);
  const unsigned set = _mm_getcsr();
#endif
  std::feclearexcept(FE_ALL_EXCEPT);
  fold.one_more(reinterpret_cast<std::byte*>(&left), reinterpret_cast<const std::byte*>(&right), sizeof(Real));
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0);
  EXPECT_EQ(std::fegetround(), settings.rounding);
#ifdef __SSE2__
  EXPECT_EQ(_mm_getcsr() & ~0x3fu, set & ~0x3fu);
#endif
  std::fesetenv(&before);
  return left;
}

TEST(Fold, rounds_to_nearest_in_a_thread_that_rounds_up) {
  const ThreadArithmetic up = {.rounding = FE_UPWARD};
  EXPECT_EQ(sum_of<float>(ElementType::float32, 1, 0x1p-40F, up), 1);
  EXPECT_EQ(sum_of<double>(ElementType::float64, 1, 0x1p-80, up), 1);
  EXPECT_EQ(sum_of<long double>(ElementType::long_double, 1, 0x1p-100L, up), 1);
}

TEST(Fold, keeps_subnormals_in_a_thread_that_flushes_them) {
  const double least = std::numeric_limits<double>::denorm_min();
  const double sum = sum_of<double>(ElementType::float64, least, least, {.flushes_subnormals = true});
  std::uint64_t bits = 0;
  std::memcpy(&bits, &sum, sizeof bits);
  EXPECT_EQ(bits, 2u);
}

bool rounds(const Foldable& pair) {
  const ops::ElementKind kind = ops::kind_of(pair.type);
  return (kind == ops::ElementKind::floating || kind == ops::ElementKind::complex) &&
         (pair.op == Operator::sum || pair.op == Operator::prod);
}

TEST(Fold, depends_on_the_brackets_only_where_it_rounds) {
  for (const Foldable& pair : pairs_that_can_be_folded()) {
    if (rounds(pair)) continue;
    const Fold fold(ops::kernels_for_this_machine(), pair.type, pair.op);
    const std::size_t bytes = most_elements * fold.element_bytes();
    std::mt19937_64 random(1);
    std::array<std::vector<std::byte>, 3> parts;
    for (std::vector<std::byte>& part : parts) {
      part.resize(bytes);
      fill_oddly(pair.type, part, random);
    }
    std::vector<std::byte> from_the_left = parts[0], from_the_right = parts[0], last_two = parts[1];
    fold.one_more(from_the_left.data(), parts[1].data(), bytes);
    fold.one_more(from_the_left.data(), parts[2].data(), bytes);
    fold.one_more(last_two.data(), parts[2].data(), bytes);
    fold.one_more(from_the_right.data(), last_two.data(), bytes);
    EXPECT_EQ(promised(pair, from_the_left), promised(pair, from_the_right))
        << ops::name_of(pair.type) << ' ' << ops::name_of(pair.op);
  }
}

TEST(Fold, is_of_operators_that_make_one_element_of_two) {
  EXPECT_TRUE(can_fold(ElementType::pair_double_int, Operator::maxloc));
  EXPECT_TRUE(can_fold(ElementType::byte, Operator::bxor));
  EXPECT_FALSE(can_fold(ElementType::float64, Operator::scaled_sum));
  EXPECT_FALSE(can_fold(ElementType::int32, Operator::replace));
  EXPECT_FALSE(can_fold(ElementType::int32, Operator::no_op));
  EXPECT_FALSE(can_fold(ElementType::float64, Operator::bxor));
}

}  // namespace
}  // namespace farsum
