// Every kernel of every instruction set against a plain reference that shares no code with the kernels.
#include "ops/kernels.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ops/plain_kernels.hpp"

namespace farsum::ops {
namespace {

// The compiler's own, against which ours is measured.
__extension__ typedef _Float16 Half;

constexpr std::size_t guard_bytes = 64;
constexpr unsigned char guard_value = 0xa5;

// ---- The reference: one element at a time, in the widest arithmetic that keeps the meaning. ----

template <class T>
T read(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void write(unsigned char* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <class T>
T reference_integer(Operator op, T t, T x, T alpha) {
  using Wide = UInt128;  // Sign-extended on the way in; what is above the element is cut off.
  const Wide wt = static_cast<Wide>(t), wx = static_cast<Wide>(x), wa = static_cast<Wide>(alpha);
  switch (op) {
    case Operator::sum:
      return static_cast<T>(wt + wx);
    case Operator::scaled_sum:
      return static_cast<T>(wt + wa * wx);
    case Operator::prod:
      return static_cast<T>(wt * wx);
    case Operator::min:
      return std::min(t, x);
    case Operator::max:
      return std::max(t, x);
    case Operator::band:
      return static_cast<T>(wt & wx);
    case Operator::bor:
      return static_cast<T>(wt | wx);
    case Operator::bxor:
      return static_cast<T>(wt ^ wx);
    case Operator::land:
      return t != 0 && x != 0 ? 1 : 0;
    case Operator::lor:
      return t != 0 || x != 0 ? 1 : 0;
    case Operator::lxor:
      return (t != 0) != (x != 0) ? 1 : 0;
    default:
      return t;
  }
}

template <class T>
T number_over_nan(T a, T b, bool takes_b) {
  if (a != a) return b;
  if (b != b) return a;
  return takes_b ? b : a;
}

// A volatile product cannot be fused with the addition that follows.
template <class T>
T rounded_product(T a, T b) {
  const volatile T product = a * b;
  return product;
}

template <class T>
T reference_real(Operator op, T t, T x, T alpha) {
  switch (op) {
    case Operator::sum:
      return t + x;
    case Operator::scaled_sum:
      return t + rounded_product(alpha, x);
    case Operator::prod:
      return t * x;
    case Operator::min:
      return number_over_nan(t, x, x < t);
    case Operator::max:
      return number_over_nan(t, x, x > t);
    default:
      return t;
  }
}

// A double holds any product of two halves exactly, and any sum, so each result is rounded once.
Half reference_half(Operator op, Half t, Half x, Half alpha) {
  const auto exact = [](Half value) { return static_cast<double>(value); };
  switch (op) {
    case Operator::sum:
      return static_cast<Half>(exact(t) + exact(x));
    case Operator::scaled_sum:
      return static_cast<Half>(exact(t) + exact(static_cast<Half>(exact(alpha) * exact(x))));
    case Operator::prod:
      return static_cast<Half>(exact(t) * exact(x));
    default:
      return static_cast<Half>(reference_real(op, exact(t), exact(x), exact(alpha)));
  }
}

template <class T>
std::complex<T> reference_product(std::complex<T> a, std::complex<T> b) {
  return {rounded_product(a.real(), b.real()) - rounded_product(a.imag(), b.imag()),
          rounded_product(a.real(), b.imag()) + rounded_product(a.imag(), b.real())};
}

template <class T>
std::complex<T> reference_complex(Operator op, std::complex<T> t, std::complex<T> x, std::complex<T> alpha) {
  switch (op) {
    case Operator::sum:
      return t + x;
    case Operator::scaled_sum:
      return t + reference_product(alpha, x);
    case Operator::prod:
      return reference_product(t, x);
    default:
      return t;
  }
}

template <class V, class I>
ValueIndex<V, I> reference_pair(Operator op, ValueIndex<V, I> t, ValueIndex<V, I> x) {
  const bool both_nan = t.value != t.value && x.value != x.value;
  if (t.value == x.value || both_nan) return {t.value, std::min(t.index, x.index)};
  if (t.value != t.value) return x;
  if (x.value != x.value) return t;
  const bool takes_operand = op == Operator::minloc ? x.value < t.value : x.value > t.value;
  return takes_operand ? x : t;
}

template <class T>
void reference_element(Operator op, unsigned char* target, const unsigned char* operand, const unsigned char* alpha) {
  if (op == Operator::replace) {
    std::memcpy(target, operand, sizeof(T));
  } else if (op != Operator::no_op) {
    const T t = read<T>(target), x = read<T>(operand), a = read<T>(alpha);
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, Int128>)
      write<T>(target, reference_integer(op, t, x, a));
    else if constexpr (std::is_same_v<T, Half>)
      write<T>(target, reference_half(op, t, x, a));
    else if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, Float128>)
      write<T>(target, reference_real(op, t, x, a));
    else if constexpr (requires { t.index; })
      write<T>(target, reference_pair(op, t, x));
    else
      write<T>(target, reference_complex(op, t, x, a));
  }
}

using ReferenceElement = void (*)(Operator, unsigned char*, const unsigned char*, const unsigned char*);

ReferenceElement reference_for(ElementType type) {
  switch (type) {
    case ElementType::byte:
    case ElementType::boolean:
    case ElementType::uint8:
      return reference_element<std::uint8_t>;
    case ElementType::int8:
      return reference_element<std::int8_t>;
    case ElementType::int16:
      return reference_element<std::int16_t>;
    case ElementType::uint16:
      return reference_element<std::uint16_t>;
    case ElementType::int32:
      return reference_element<std::int32_t>;
    case ElementType::uint32:
      return reference_element<std::uint32_t>;
    case ElementType::int64:
      return reference_element<std::int64_t>;
    case ElementType::uint64:
      return reference_element<std::uint64_t>;
    case ElementType::float32:
      return reference_element<float>;
    case ElementType::float64:
      return reference_element<double>;
    case ElementType::long_double:
      return reference_element<long double>;
    case ElementType::complex64:
      return reference_element<std::complex<float>>;
    case ElementType::complex128:
      return reference_element<std::complex<double>>;
    case ElementType::complex_long_double:
      return reference_element<std::complex<long double>>;
    case ElementType::pair_float_int:
      return reference_element<ValueIndex<float>>;
    case ElementType::pair_double_int:
      return reference_element<ValueIndex<double>>;
    case ElementType::pair_long_int:
      return reference_element<ValueIndex<long>>;
    case ElementType::pair_int_int:
      return reference_element<ValueIndex<int>>;
    case ElementType::pair_short_int:
      return reference_element<ValueIndex<short>>;
    case ElementType::pair_long_double_int:
      return reference_element<ValueIndex<long double>>;
    case ElementType::pair_float_float:
      return reference_element<ValueIndex<float, float>>;
    case ElementType::pair_double_double:
      return reference_element<ValueIndex<double, double>>;
    case ElementType::float128:
      return reference_element<Float128>;
    case ElementType::complex256:
      return reference_element<std::complex<Float128>>;
    case ElementType::int128:
      return reference_element<Int128>;
    case ElementType::float16:
      return reference_element<Half>;
  }
  return nullptr;
}

// ---- Values: small enough that equal ones meet, with NaNs and zeros of both signs among the reals. ----

template <class T>
T random_real(std::mt19937_64& random) {
  switch (random() % 12) {
    case 0:
      return static_cast<T>(std::numeric_limits<float>::quiet_NaN());
    case 1:
      return T(0);
    case 2:
      return -T(0);
    case 3:
      return T(3);
    default: {
      const auto number = static_cast<std::int64_t>(random() % 2000001) - 1000000;
      if constexpr (sizeof(T) > sizeof(double)) return static_cast<T>(number) / T(777);
      return static_cast<T>(static_cast<double>(number) / 777.0);
    }
  }
}

template <class V, class I = int>
ValueIndex<V, I> random_pair(std::mt19937_64& random) {
  const auto index = static_cast<I>(static_cast<int>(random() % 5) - 2);
  if constexpr (std::is_integral_v<V>)
    return {static_cast<V>(static_cast<int>(random() % 5) - 2), index};
  else
    return {random() % 2 ? static_cast<V>(random() % 3) : random_real<V>(random), index};
}

template <class T>
void put(unsigned char* to, T value) {
  std::memset(to, 0, sizeof(T));
  std::memcpy(to, &value, sizeof value);
}

void random_element(ElementType type, unsigned char* to, std::mt19937_64& random) {
  switch (type) {
    case ElementType::float32:
      return put(to, random_real<float>(random));
    case ElementType::float64:
      return put(to, random_real<double>(random));
    case ElementType::long_double:
      return put(to, random_real<long double>(random));
    case ElementType::complex64:
      return put(to, std::complex(random_real<float>(random), random_real<float>(random)));
    case ElementType::complex128:
      return put(to, std::complex(random_real<double>(random), random_real<double>(random)));
    case ElementType::complex_long_double:
      return put(to, std::complex(random_real<long double>(random), random_real<long double>(random)));
    case ElementType::pair_float_int:
      return put(to, random_pair<float>(random));
    case ElementType::pair_double_int:
      return put(to, random_pair<double>(random));
    case ElementType::pair_long_int:
      return put(to, random_pair<long>(random));
    case ElementType::pair_int_int:
      return put(to, random_pair<int>(random));
    case ElementType::pair_short_int:
      return put(to, random_pair<short>(random));
    case ElementType::pair_long_double_int:
      return put(to, random_pair<long double>(random));
    case ElementType::pair_float_float:
      return put(to, random_pair<float, float>(random));
    case ElementType::pair_double_double:
      return put(to, random_pair<double, double>(random));
    case ElementType::float128:
      return put(to, random_real<Float128>(random));
    case ElementType::complex256:
      return put(to, std::complex(random_real<Float128>(random), random_real<Float128>(random)));
    case ElementType::float16:
      return put(to, random_real<Half>(random));
    case ElementType::int128: {
      // Zero, small of either sign, and all bits.
      const auto low = static_cast<std::int64_t>(random() % 5) - 2;
      const auto wide = static_cast<UInt128>(random()) << 64 | random();
      return put(to, random() % 3 == 0 ? static_cast<Int128>(low) : static_cast<Int128>(wide));
    }
    default: {
      const std::uint64_t bits = random() % 3 == 0 ? 0 : random();
      std::memcpy(to, &bits, size_of(type));
    }
  }
}

// ---- Comparing: bits, but that all NaNs are alike, and the zeros for min and max, and padding is not looked at. ----

template <class T>
bool same_real(const unsigned char* a, const unsigned char* b, bool zeros_are_alike) {
  const T x = read<T>(a), y = read<T>(b);
  if (x != x || y != y) return x != x && y != y;
  if (zeros_are_alike || sizeof(T) <= sizeof(double) || std::is_same_v<T, Float128>)
    return x == y && (zeros_are_alike || std::memcmp(a, b, sizeof(T)) == 0);
  return x == y && std::signbit(static_cast<long double>(x)) == std::signbit(static_cast<long double>(y));
}

template <class V, class I = int>
bool same_pair(const unsigned char* a, const unsigned char* b) {
  using Pair = ValueIndex<V, I>;
  const std::size_t at = offsetof(Pair, index);
  if (read<I>(a + at) != read<I>(b + at)) return false;
  if constexpr (std::is_integral_v<V>)
    return read<V>(a) == read<V>(b);
  else
    return same_real<V>(a, b, true);
}

bool same_element(ElementType type, const unsigned char* a, const unsigned char* b, Operator op) {
  const bool zeros_are_alike = op == Operator::min || op == Operator::max;
  switch (type) {
    case ElementType::float32:
      return same_real<float>(a, b, zeros_are_alike);
    case ElementType::float64:
      return same_real<double>(a, b, zeros_are_alike);
    case ElementType::long_double:
      return same_real<long double>(a, b, zeros_are_alike);
    case ElementType::complex64:
      return same_real<float>(a, b, false) && same_real<float>(a + 4, b + 4, false);
    case ElementType::complex128:
      return same_real<double>(a, b, false) && same_real<double>(a + 8, b + 8, false);
    case ElementType::complex_long_double:
      return same_real<long double>(a, b, false) && same_real<long double>(a + 16, b + 16, false);
    case ElementType::pair_float_int:
      return same_pair<float>(a, b);
    case ElementType::pair_double_int:
      return same_pair<double>(a, b);
    case ElementType::pair_long_int:
      return same_pair<long>(a, b);
    case ElementType::pair_int_int:
      return same_pair<int>(a, b);
    case ElementType::pair_short_int:
      return same_pair<short>(a, b);
    case ElementType::pair_long_double_int:
      return same_pair<long double>(a, b);
    case ElementType::pair_float_float:
      return same_pair<float, float>(a, b);
    case ElementType::pair_double_double:
      return same_pair<double, double>(a, b);
    case ElementType::float128:
      return same_real<Float128>(a, b, zeros_are_alike);
    case ElementType::complex256:
      return same_real<Float128>(a, b, false) && same_real<Float128>(a + 16, b + 16, false);
    case ElementType::float16:
      return same_real<Half>(a, b, zeros_are_alike);
    default:
      return std::memcmp(a, b, size_of(type)) == 0;
  }
}

// A buffer at a chosen distance from a 64-byte boundary, between guard bytes that no kernel may touch.
class GuardedBuffer {
 public:
  GuardedBuffer(ElementType type, std::size_t count, std::size_t misalignment)
      : type_(type),
        count_(count),
        bytes_(count * size_of(type)),
        store_(bytes_ + 3 * guard_bytes + misalignment, guard_value) {
    const auto address = reinterpret_cast<std::uintptr_t>(store_.data());
    data_ = store_.data() + guard_bytes + (0 - address) % 64 + misalignment;
  }

  void randomise(std::mt19937_64& random) {
    for (std::size_t i = 0; i < count_; ++i) random_element(type_, data_ + i * size_of(type_), random);
  }

  void copy_from(const GuardedBuffer& other) {
    if (bytes_ != 0) std::memcpy(data_, other.data_, bytes_);
  }

  [[nodiscard]] unsigned char* data() { return data_; }
  [[nodiscard]] unsigned char* element(std::size_t i) { return data_ + i * size_of(type_); }

  [[nodiscard]] bool guards_hold() const {
    const auto is_guard = [](unsigned char value) { return value == guard_value; };
    return std::all_of(store_.data(), static_cast<const unsigned char*>(data_), is_guard) &&
           std::all_of(static_cast<const unsigned char*>(data_) + bytes_, store_.data() + store_.size(), is_guard);
  }

 private:
  ElementType type_;
  std::size_t count_;
  std::size_t bytes_;
  std::vector<unsigned char> store_;
  unsigned char* data_;
};

constexpr std::size_t tried_counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 255, 1000};

struct Case {
  ElementType type;
  Operator op;
};

std::vector<Case> legal_cases() {
  std::vector<Case> cases;
  for (std::size_t type = 0; type < element_type_count; ++type) {
    for (std::size_t op = 0; op < operator_count; ++op) {
      const Case legal_case{static_cast<ElementType>(type), static_cast<Operator>(op)};
      if (legal(legal_case.type, legal_case.op)) cases.push_back(legal_case);
    }
  }
  return cases;
}

std::vector<ElementType> all_types() {
  std::vector<ElementType> types;
  for (std::size_t type = 0; type < element_type_count; ++type) types.push_back(static_cast<ElementType>(type));
  return types;
}

std::string name_of_case(const testing::TestParamInfo<std::tuple<Isa, ElementType>>& info) {
  const auto& [isa, type] = info.param;
  return std::string(kernels(isa).name) + "_type" + std::to_string(index_of(type));
}

class Kernels : public testing::TestWithParam<std::tuple<Isa, ElementType>> {
 protected:
  [[nodiscard]] ElementType type() const { return std::get<1>(GetParam()); }
  [[nodiscard]] Operator op() const { return op_; }
  [[nodiscard]] const KernelSet& set() const { return kernels(std::get<0>(GetParam())); }

  // Runs the body with op() set to each operator that is legal with the type, until one fails.
  template <class Body>
  void for_each_legal_operator(Body body) {
    for (std::size_t op = 0; op < operator_count && !HasFatalFailure(); ++op) {
      op_ = static_cast<Operator>(op);
      SCOPED_TRACE(std::string(name_of(type())) + " " + name_of(op_));
      if (legal(type(), op_)) body();
    }
  }

  // What the reference makes of it must come out, elsewhere nothing must change. Stops at the first wrong element.
  void check(std::size_t count, std::size_t target_shift, std::size_t operand_shift, bool fetches,
             bool operand_is_target) {
    std::mt19937_64 random(count * 1009 + target_shift * 31 + operand_shift);
    GuardedBuffer target(type(), count, target_shift), operand(type(), count, operand_shift);
    GuardedBuffer before(type(), count, 0), result(type(), count, (operand_shift + 3) % 16), alpha(type(), 1, 5);
    target.randomise(random), operand.randomise(random), alpha.randomise(random);
    before.copy_from(target);
    if (operand_is_target) operand.copy_from(target);
    void* const operand_at = operand_is_target ? target.data() : operand.data();
    if (fetches)
      set().fetch(type(), op())(target.data(), operand_at, result.data(), count, alpha.data());
    else
      set().bulk(type(), op())(target.data(), operand_at, count, alpha.data());

    ASSERT_TRUE(target.guards_hold() && operand.guards_hold() && result.guards_hold())
        << "wrote outside, count " << count;
    const ReferenceElement reference = reference_for(type());
    for (std::size_t i = 0; i < count; ++i) {
      if (fetches) {
        ASSERT_TRUE(same_element(type(), result.element(i), before.element(i), Operator::no_op)) << "result " << i;
      }
      reference(op(), before.element(i), operand.element(i), alpha.data());
      ASSERT_TRUE(same_element(type(), target.element(i), before.element(i), op()))
          << "element " << i << " of " << count << ", target shifted by " << target_shift << ", operand by "
          << operand_shift;
    }
  }

 private:
  Operator op_ = Operator::no_op;
};

TEST_P(Kernels, agree_with_the_reference_at_every_count) {
  for_each_legal_operator([this] {
    for (const std::size_t count : tried_counts) {
      for (const bool fetches : {false, true}) {
        check(count, 0, 0, fetches, false);
        check(count, alignment_of(type()) % 64, 1, fetches, false);
        check(count, 0, 0, fetches, true);
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST_P(Kernels, agree_with_the_reference_at_every_alignment) {
  for_each_legal_operator([this] {
    for (std::size_t shift = 0; shift < 16; ++shift) {
      for (const std::size_t count : {std::size_t{3}, std::size_t{67}, std::size_t{301}}) {
        for (const bool fetches : {false, true}) {
          check(count, shift * alignment_of(type()) % 64, shift, fetches, false);
          check(count, shift, 16 - shift, fetches, false);
          if (HasFatalFailure()) return;
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ops, Kernels,
                         testing::Combine(testing::ValuesIn(available_isas().begin(), available_isas().end()),
                                          testing::ValuesIn(all_types())),
                         name_of_case);

TEST(KernelSet, has_a_kernel_for_a_pair_exactly_when_it_is_legal) {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    const KernelSet& set = kernels(isa);
    EXPECT_EQ(set.isa, isa);
    for (std::size_t t = 0; t < element_type_count; ++t) {
      for (std::size_t o = 0; o < operator_count; ++o) {
        const auto type = static_cast<ElementType>(t);
        const auto op = static_cast<Operator>(o);
        EXPECT_EQ(set.bulk(type, op) != nullptr, legal(type, op)) << name_of(type) << " " << name_of(op);
        EXPECT_EQ(set.fetch(type, op) != nullptr, legal(type, op)) << name_of(type) << " " << name_of(op);
      }
    }
  }
}

TEST(KernelSet, shares_the_plain_kernels_among_all_sets) {
  for (const Case& tested : legal_cases()) {
    if (!is_plain(tested.type, tested.op)) continue;
    const auto bulk = kernels(Isa::baseline).bulk(tested.type, tested.op);
    for (const Isa isa : available_isas()) EXPECT_EQ(kernels(isa).bulk(tested.type, tested.op), bulk);
  }
}

// What MPI says of the reductions that Fortran and C programs use most, by hand.
TEST(MinlocAndMaxloc, keep_the_lowest_index_of_equal_values_whichever_came_first) {
  const auto reduce = [](auto t, auto x, ElementType type, Operator op) {
    kernels_for_this_machine().bulk(type, op)(&t, &x, 1, nullptr);
    return std::pair(t.value, t.index);
  };
  for (const Operator op : {Operator::minloc, Operator::maxloc}) {
    EXPECT_EQ(reduce(ValueIndex<int>{5, 9}, ValueIndex<int>{5, 4}, ElementType::pair_int_int, op), std::pair(5, 4));
    EXPECT_EQ(reduce(ValueIndex<int>{5, 4}, ValueIndex<int>{5, 9}, ElementType::pair_int_int, op), std::pair(5, 4));
    using Fortran = ValueIndex<double, double>;
    const auto type = ElementType::pair_double_double;
    EXPECT_EQ(reduce(Fortran{5, 9}, Fortran{5, 4}, type, op), std::pair(5.0, 4.0));
    EXPECT_EQ(reduce(Fortran{5, 4}, Fortran{5, 9}, type, op), std::pair(5.0, 4.0));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(reduce(Fortran{nan, 1}, Fortran{5, 4}, type, op), std::pair(5.0, 4.0));
    EXPECT_EQ(reduce(Fortran{5, 4}, Fortran{nan, 1}, type, op), std::pair(5.0, 4.0));
    EXPECT_EQ(reduce(Fortran{nan, 9}, Fortran{nan, 4}, type, op).second, 4.0);
  }
}

TEST(LogicalOperators, give_zero_or_one_whatever_stands_for_true) {
  for (const Isa isa : available_isas()) {
    for (const Case& tested : legal_cases()) {
      if (tested.op != Operator::land && tested.op != Operator::lor && tested.op != Operator::lxor) continue;
      const std::size_t bytes = size_of(tested.type), count = 100;
      // True is -1 and 2 and, in the highest byte alone, 128.
      std::vector<unsigned char> target(count * bytes), operand(count * bytes);
      for (std::size_t i = 0; i < count; ++i) {
        if (i % 4 == 1) std::memset(&target[i * bytes], 0xff, bytes);
        if (i % 4 == 2) operand[i * bytes] = 2;
        if (i % 4 == 3) target[i * bytes] = 2, operand[i * bytes + bytes - 1] = 0x80;
      }
      kernels(isa).bulk(tested.type, tested.op)(target.data(), operand.data(), count, nullptr);
      for (std::size_t i = 0; i < count; ++i) {
        const bool one = i % 4 == 1 || i % 4 == 2, both = i % 4 == 3;
        std::vector<unsigned char> expected(bytes);
        expected[0] = tested.op == Operator::land ? both : tested.op == Operator::lor ? one || both : one;
        ASSERT_EQ(std::memcmp(&target[i * bytes], expected.data(), bytes), 0)
            << name_of(tested.type) << " " << name_of(tested.op) << " " << i;
      }
    }
  }
}

TEST(KernelSet, of_this_machine_is_the_last_of_those_available) {
  EXPECT_EQ(kernels_for_this_machine().isa, available_isas().back());
  EXPECT_EQ(available_isas().front(), Isa::baseline);
}

TEST(KernelSet, ignores_a_null_operand_for_no_op) {
  for (const Isa isa : available_isas()) {
    std::vector<std::int32_t> target(100, 7), result(100);
    kernels(isa).bulk(ElementType::int32, Operator::no_op)(target.data(), nullptr, 100, nullptr);
    kernels(isa).fetch(ElementType::int32, Operator::no_op)(target.data(), nullptr, result.data(), 100, nullptr);
    EXPECT_EQ(result, target);
  }
}

TEST(KernelSet, fetches_into_the_buffer_that_held_the_operand) {
  for (const Isa isa : available_isas()) {
    std::vector<double> target(100, 7.0), operand(100, 2.0);
    kernels(isa).fetch(ElementType::float64, Operator::sum)(target.data(), operand.data(), operand.data(), 100,
                                                            nullptr);
    EXPECT_EQ(operand, std::vector<double>(100, 7.0));
    EXPECT_EQ(target, std::vector<double>(100, 9.0));
  }
}

// An inaccessible page on either side: no kernel may touch a byte outside, not even to read.
TEST(KernelSet, touches_nothing_beyond_the_last_element) {
  const std::size_t page = 4096;
  void* const map = mmap(nullptr, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  auto* const usable = static_cast<unsigned char*>(map) + page;
  ASSERT_EQ(mprotect(usable, page, PROT_READ | PROT_WRITE), 0);
  for (const Isa isa : available_isas()) {
    for (const Case& tested : legal_cases()) {
      for (const std::size_t count : tried_counts) {
        const std::size_t bytes = count * size_of(tested.type);
        if (bytes > page) continue;
        std::vector<unsigned char> result(bytes + 32);
        kernels(isa).fetch(tested.type, tested.op)(usable + page - bytes, usable + page - bytes, result.data(), count,
                                                   result.data());
        kernels(isa).bulk(tested.type, tested.op)(usable, usable, count, usable);
      }
    }
  }
  munmap(map, 3 * page);
}

// A counter per element that a reader may only see rise. Writing bytes twice, as memcpy's overlapping tails do, shows
// up as a value that was already there; a byte-wise copy as a torn one.
TEST(Replace, never_shows_a_reader_an_older_or_a_torn_value) {
  constexpr std::size_t elements = 37;  // An odd number, so that every tail is used.
  for (const Isa isa : available_isas()) {
    const auto replace = kernels(isa).bulk(ElementType::uint64, Operator::replace);
    alignas(64) std::uint64_t target[elements] = {};
    std::uint64_t operand[elements];
    std::atomic<bool> stops{false};
    std::uint64_t faults = 0;
    std::thread reader([&] {
      std::uint64_t seen[elements] = {};
      // Relaxed: only says when to leave; join orders everything else.
      while (!stops.load(std::memory_order_relaxed)) {
        for (std::size_t i = 0; i < elements; ++i) {
          const std::uint64_t now = __atomic_load_n(&target[i], __ATOMIC_RELAXED);
          if (now < seen[i] || (now >> 32) != (now & 0xffffffff)) ++faults;
          seen[i] = now;
        }
      }
    });
    for (std::uint64_t round = 1; round <= 20000; ++round) {
      for (auto& value : operand) value = round << 32 | round;
      replace(target, operand, elements, nullptr);
    }
    stops.store(true, std::memory_order_relaxed);
    reader.join();
    EXPECT_EQ(faults, 0u) << kernels(isa).name;
  }
}

TEST(MoveRows, move_each_row_and_nothing_between_them) {
  std::mt19937 random(23);
  for (const Isa isa : available_isas()) {
    for (const std::size_t row_bytes : {1, 4, 7, 8, 12, 16, 24, 32, 48, 64, 65, 96, 128, 200, 256, 512, 1023, 2047}) {
      for (const std::ptrdiff_t gap : {0, 3, 40}) {
        constexpr std::size_t rows = 7;
        const auto row = static_cast<std::ptrdiff_t>(row_bytes);
        const std::ptrdiff_t to_stride = row + gap, from_stride = -(row + 2 * gap);  // the operand's rows descend
        std::vector<unsigned char> target(rows * (row_bytes + 40) + 128, guard_value), expected = target;
        std::vector<unsigned char> operand(rows * (row_bytes + 80) + 128);
        for (auto& byte : operand) byte = static_cast<unsigned char>(random());
        unsigned char* const to = target.data() + 64 + gap;
        const unsigned char* const from = operand.data() + 64 - static_cast<std::ptrdiff_t>(rows - 1) * from_stride;
        for (std::size_t i = 0; i < rows; ++i) {
          const auto step = static_cast<std::ptrdiff_t>(i);
          std::memcpy(expected.data() + 64 + gap + step * to_stride, from + step * from_stride, row_bytes);
        }
        kernels(isa).move_rows(to, to_stride, from, from_stride, row_bytes, rows);
        ASSERT_EQ(target, expected) << kernels(isa).name << ", rows of " << row_bytes << " bytes, gap " << gap;
      }
    }
  }
}

}  // namespace
}  // namespace farsum::ops
