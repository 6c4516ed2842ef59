// One loop over single elements for every pair of type and operator that is_plain() names. The rules are those of
// op_kind.hpp.
#include "ops/plain_kernels.hpp"

#include <cstring>

#include "ops/half.hpp"

// As in the kernel sets: a product is rounded before it is added.
#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC optimize("fp-contract=off")
#endif

namespace farsum::ops {

namespace {

template <Operator op>
Float128 combine_real(Float128 t, Float128 x, Float128 alpha) {
  if constexpr (op == Operator::sum) return t + x;
  if constexpr (op == Operator::prod) return t * x;
  if constexpr (op == Operator::scaled_sum) return t + alpha * x;
  if constexpr (op == Operator::min) return x < t || t != t ? x : t;
  if constexpr (op == Operator::max) return x > t || t != t ? x : t;
}

// A float holds the product of two halves, and enough of their sum that rounding it once more gives the nearest half.
template <Operator op>
Float16 combine_real(Float16 t_half, Float16 x_half, Float16 alpha) {
  const float t = to_float(t_half), x = to_float(x_half);
  if constexpr (op == Operator::sum) return to_half(t + x);
  if constexpr (op == Operator::prod) return to_half(t * x);
  if constexpr (op == Operator::scaled_sum) return to_half(t + to_float(to_half(to_float(alpha) * x)));
  if constexpr (op == Operator::min) return x < t || t != t ? x_half : t_half;
  if constexpr (op == Operator::max) return x > t || t != t ? x_half : t_half;
}

template <Operator op>
Int128 combine_integer(Int128 t, Int128 x, Int128 alpha) {
  const auto wrapping = [](Int128 value) { return static_cast<UInt128>(value); };
  if constexpr (op == Operator::sum) return static_cast<Int128>(wrapping(t) + wrapping(x));
  if constexpr (op == Operator::prod) return static_cast<Int128>(wrapping(t) * wrapping(x));
  if constexpr (op == Operator::scaled_sum) return static_cast<Int128>(wrapping(t) + wrapping(alpha) * wrapping(x));
  if constexpr (op == Operator::min) return x < t ? x : t;
  if constexpr (op == Operator::max) return x > t ? x : t;
  if constexpr (op == Operator::band) return t & x;
  if constexpr (op == Operator::bor) return t | x;
  if constexpr (op == Operator::bxor) return t ^ x;
  if constexpr (op == Operator::land) return t != 0 && x != 0;
  if constexpr (op == Operator::lor) return t != 0 || x != 0;
  if constexpr (op == Operator::lxor) return (t != 0) != (x != 0);
}

template <class R>
ComplexOf<R> complex_product(ComplexOf<R> a, ComplexOf<R> b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

template <Operator op, class R>
ComplexOf<R> combine_complex(ComplexOf<R> t, ComplexOf<R> x, ComplexOf<R> alpha) {
  if constexpr (op == Operator::prod) return complex_product(t, x);
  if constexpr (op == Operator::scaled_sum) x = complex_product(alpha, x);
  return {t.real + x.real, t.imaginary + x.imaginary};
}

template <Operator op, class Pair>
Pair combine_pair(Pair t, Pair x) {
  const bool t_is_nan = t.value != t.value, x_is_nan = x.value != x.value;
  const bool is_beyond = op == Operator::minloc ? x.value < t.value : x.value > t.value;
  if (is_beyond || (t_is_nan && !x_is_nan)) return x;
  const bool are_same = t.value == x.value || (t_is_nan && x_is_nan);
  if (are_same && x.index < t.index) t.index = x.index;
  return t;
}

template <ElementType type, Operator op, class T>
T combine(T t, T x, [[maybe_unused]] T alpha) {
  if constexpr (kind_of(type) == ElementKind::pair)
    return combine_pair<op>(t, x);
  else if constexpr (kind_of(type) == ElementKind::complex)
    return combine_complex<op>(t, x, alpha);
  else if constexpr (kind_of(type) == ElementKind::integer)
    return combine_integer<op>(t, x, alpha);
  else
    return combine_real<op>(t, x, alpha);
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Both entry points, so that each pair has one body.
template <ElementType type, Operator op>
[[gnu::noinline]] void run(std::byte* target, const std::byte* operand, std::byte* result_or_null, std::size_t count,
                           const void* alpha_at) {
  using T = typename Element<type>::type;
  const T alpha = reads_alpha(op) ? load<T>(static_cast<const std::byte*>(alpha_at)) : T{};
  for (std::size_t at = 0; at < count * sizeof(T); at += sizeof(T)) {
    const T old = load<T>(target + at);
    const T next = combine<type, op>(old, load<T>(operand + at), alpha);
    if (result_or_null != nullptr) std::memcpy(result_or_null + at, &old, sizeof old);
    std::memcpy(target + at, &next, sizeof next);
  }
}

}  // namespace

template <ElementType type, Operator op>
void PlainKernel<type, op>::bulk(void* target, const void* operand, std::size_t count, const void* alpha) {
  run<type, op>(static_cast<std::byte*>(target), static_cast<const std::byte*>(operand), nullptr, count, alpha);
}

template <ElementType type, Operator op>
void PlainKernel<type, op>::fetch(void* target, const void* operand, void* result, std::size_t count,
                                  const void* alpha) {
  run<type, op>(static_cast<std::byte*>(target), static_cast<const std::byte*>(operand),
                static_cast<std::byte*>(result), count, alpha);
}

// A pair that is missing here does not link.
template struct PlainKernel<ElementType::pair_float_float, Operator::minloc>;
template struct PlainKernel<ElementType::pair_float_float, Operator::maxloc>;
template struct PlainKernel<ElementType::pair_double_double, Operator::minloc>;
template struct PlainKernel<ElementType::pair_double_double, Operator::maxloc>;
template struct PlainKernel<ElementType::float128, Operator::sum>;
template struct PlainKernel<ElementType::float128, Operator::scaled_sum>;
template struct PlainKernel<ElementType::float128, Operator::prod>;
template struct PlainKernel<ElementType::float128, Operator::min>;
template struct PlainKernel<ElementType::float128, Operator::max>;
template struct PlainKernel<ElementType::complex256, Operator::sum>;
template struct PlainKernel<ElementType::complex256, Operator::scaled_sum>;
template struct PlainKernel<ElementType::complex256, Operator::prod>;
template struct PlainKernel<ElementType::int128, Operator::sum>;
template struct PlainKernel<ElementType::int128, Operator::scaled_sum>;
template struct PlainKernel<ElementType::int128, Operator::prod>;
template struct PlainKernel<ElementType::int128, Operator::min>;
template struct PlainKernel<ElementType::int128, Operator::max>;
template struct PlainKernel<ElementType::int128, Operator::band>;
template struct PlainKernel<ElementType::int128, Operator::bor>;
template struct PlainKernel<ElementType::int128, Operator::bxor>;
template struct PlainKernel<ElementType::int128, Operator::land>;
template struct PlainKernel<ElementType::int128, Operator::lor>;
template struct PlainKernel<ElementType::int128, Operator::lxor>;
template struct PlainKernel<ElementType::float16, Operator::sum>;
template struct PlainKernel<ElementType::float16, Operator::scaled_sum>;
template struct PlainKernel<ElementType::float16, Operator::prod>;
template struct PlainKernel<ElementType::float16, Operator::min>;
template struct PlainKernel<ElementType::float16, Operator::max>;

}  // namespace farsum::ops
