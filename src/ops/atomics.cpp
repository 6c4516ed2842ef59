// Native instructions where the processor has them, compare-and-exchange loops elsewhere. See atomics.hpp for the
// memory orders.
#include "ops/atomics.hpp"

#include <cstdio>
#include <cstdlib>

#include "ops/kernels.hpp"

namespace farsum::ops {

using detail::atomic_update;
using detail::WordOf;

namespace {

template <class T>
T load_from(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void give_result(void* result_or_null, T value) {
  if (result_or_null != nullptr) std::memcpy(result_or_null, &value, sizeof value);
}

[[noreturn]] [[gnu::cold]] void stop_on_illegal(const char* operation, ElementType type, const char* op_name) {
  std::fprintf(stderr, "farsum: internal error: %s of %s elements reached the CPU-atomic path with operator %s\n",
               operation, is_element_type(index_of(type)) ? name_of(type) : "unknown", op_name);
  std::abort();
}

// All but moving: replace and no_op do not look at the type.
template <class T>
T numeric_update(Operator op, T old, T x, T alpha) {
  using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::conditional<true, std::uint64_t, void>,
                                               std::conditional<true, T, void>>::type;
  const auto wide = [](T value) { return static_cast<Wrapping>(value); };
  switch (op) {
    case Operator::sum:
      return static_cast<T>(wide(old) + wide(x));
    case Operator::scaled_sum: {
      Wrapping scaled = wide(alpha) * wide(x);
      // Not to be fused with the addition: the kernels do not, and the same sum must give the same bits on every path.
      if constexpr (std::is_floating_point_v<T>) asm("" : "+x"(scaled));
      return static_cast<T>(wide(old) + scaled);
    }
    case Operator::prod:
      return static_cast<T>(wide(old) * wide(x));
    case Operator::min:
      return (x < old || old != old) ? x : old;
    case Operator::max:
      return (x > old || old != old) ? x : old;
    case Operator::land:
      return static_cast<T>(old != T{} && x != T{});
    case Operator::lor:
      return static_cast<T>(old != T{} || x != T{});
    case Operator::lxor:
      return static_cast<T>((old != T{}) != (x != T{}));
    case Operator::minloc:
    case Operator::maxloc:
    case Operator::band:
    case Operator::bor:
    case Operator::bxor:
    case Operator::replace:
    case Operator::no_op:
      break;
  }
  stop_on_illegal("update", ElementType{}, name_of(op));
}

template <class T>
void apply_by_exchange(void* target, const void* operand, void* result_or_null, Operator op, const void* alpha_at) {
  const T x = load_from<T>(operand);
  const T alpha = reads_alpha(op) ? load_from<T>(alpha_at) : T{};
  give_result(result_or_null, atomic_update<T>(target, [&](T old) { return numeric_update(op, old, x, alpha); }));
}

void apply_half(void* target, const void* operand, void* result_or_null, Operator op, const void* alpha) {
  const KernelSet::Bulk kernel = kernels(Isa::baseline).bulk(ElementType::float16, op);
  const auto update = [&](Float16 value) {
    kernel(&value, operand, 1, alpha);
    return value;
  };
  give_result(result_or_null, atomic_update<Float16>(target, update));
}

// Where the old value is not asked for, the compiler picks lock and, or, xor instead of a compare-and-exchange loop.
template <class Word>
void apply_word(void* target_at, const void* operand, void* result, Operator op) {
  Word* const target = static_cast<Word*>(target_at);
  const Word x = reads_operand(op) ? load_from<Word>(operand) : Word{};
  switch (op) {
    case Operator::sum:
      give_result(result, atomic_fetch_sum<Word>(target, x));
      return;
    case Operator::band:
      if (result == nullptr)
        (void)__atomic_fetch_and(target, x, __ATOMIC_ACQ_REL);
      else
        give_result(result, __atomic_fetch_and(target, x, __ATOMIC_ACQ_REL));
      return;
    case Operator::bor:
      if (result == nullptr)
        (void)__atomic_fetch_or(target, x, __ATOMIC_ACQ_REL);
      else
        give_result(result, __atomic_fetch_or(target, x, __ATOMIC_ACQ_REL));
      return;
    case Operator::bxor:
      if (result == nullptr)
        (void)__atomic_fetch_xor(target, x, __ATOMIC_ACQ_REL);
      else
        give_result(result, __atomic_fetch_xor(target, x, __ATOMIC_ACQ_REL));
      return;
    case Operator::replace:
      // Without a result it is a write, and needs no locked instruction to be one of a single order of updates of this
      // element.
      if (result == nullptr)
        __atomic_store_n(target, x, __ATOMIC_RELEASE);
      else
        give_result(result, __atomic_exchange_n(target, x, __ATOMIC_ACQ_REL));
      return;
    case Operator::no_op:
      if (result != nullptr) give_result(result, __atomic_load_n(target, __ATOMIC_ACQUIRE));
      return;
    case Operator::scaled_sum:
    case Operator::prod:
    case Operator::min:
    case Operator::max:
    case Operator::minloc:
    case Operator::maxloc:
    case Operator::land:
    case Operator::lor:
    case Operator::lxor:
      break;
  }
  stop_on_illegal("word update", ElementType{}, name_of(op));
}

bool is_word_operator(ElementKind kind, Operator op) {
  switch (op) {
    case Operator::sum:
      return kind == ElementKind::integer;
    case Operator::band:
    case Operator::bor:
    case Operator::bxor:
    case Operator::replace:
    case Operator::no_op:
      return true;
    case Operator::scaled_sum:
    case Operator::prod:
    case Operator::min:
    case Operator::max:
    case Operator::minloc:
    case Operator::maxloc:
    case Operator::land:
    case Operator::lor:
    case Operator::lxor:
      return false;
  }
  return false;
}

template <class Word>
void compare_and_swap_word(void* target, const void* expected, const void* desired, void* result_or_null) {
  Word old = load_from<Word>(expected);
  // Acquire on failure as well: the caller learns the value that another origin published.
  __atomic_compare_exchange_n(static_cast<Word*>(target), &old, load_from<Word>(desired), false, __ATOMIC_ACQ_REL,
                              __ATOMIC_ACQUIRE);
  give_result(result_or_null, old);
}

// Up to 32 bytes as whole words, so that no part of an element is written twice.
template <std::size_t bytes>
struct Raw {
  using Word = typename WordOf<(bytes < 8 ? bytes : 8)>::type;
  Word words[bytes / sizeof(Word)];
  bool operator==(const Raw&) const = default;
};

template <std::size_t bytes>
void plain_compare_and_swap_of(void* target, const void* expected_at, const void* desired_at, void* result_or_null) {
  const auto old = load_from<Raw<bytes>>(target);
  const auto expected = load_from<Raw<bytes>>(expected_at);
  const auto desired = load_from<Raw<bytes>>(desired_at);
  give_result(result_or_null, old);
  if (old == expected) std::memcpy(target, &desired, bytes);
}

}  // namespace

namespace detail {

void atomic_apply_any(void* target, const void* operand, void* result, ElementType type, Operator op,
                      const void* alpha) {
  if (!is_lockable(type) || !legal(type, op)) stop_on_illegal("update", type, name_of(op));
  if (is_word_operator(kind_of(type), op)) {
    switch (size_of(type)) {
      case 1:
        return apply_word<std::uint8_t>(target, operand, result, op);
      case 2:
        return apply_word<std::uint16_t>(target, operand, result, op);
      case 4:
        return apply_word<std::uint32_t>(target, operand, result, op);
      case 8:
        return apply_word<std::uint64_t>(target, operand, result, op);
      default:
        stop_on_illegal("word update", type, name_of(op));
    }
  }
  switch (type) {
    case ElementType::float64:
      return apply_by_exchange<double>(target, operand, result, op, alpha);
    case ElementType::float32:
      return apply_by_exchange<float>(target, operand, result, op, alpha);
    case ElementType::float16:
      return apply_half(target, operand, result, op, alpha);
    case ElementType::int8:
      return apply_by_exchange<std::int8_t>(target, operand, result, op, alpha);
    case ElementType::boolean:
    case ElementType::uint8:
      return apply_by_exchange<std::uint8_t>(target, operand, result, op, alpha);
    case ElementType::int16:
      return apply_by_exchange<std::int16_t>(target, operand, result, op, alpha);
    case ElementType::uint16:
      return apply_by_exchange<std::uint16_t>(target, operand, result, op, alpha);
    case ElementType::int32:
      return apply_by_exchange<std::int32_t>(target, operand, result, op, alpha);
    case ElementType::uint32:
      return apply_by_exchange<std::uint32_t>(target, operand, result, op, alpha);
    case ElementType::int64:
      return apply_by_exchange<std::int64_t>(target, operand, result, op, alpha);
    case ElementType::uint64:
      return apply_by_exchange<std::uint64_t>(target, operand, result, op, alpha);
    case ElementType::byte:
    case ElementType::long_double:
    case ElementType::complex64:
    case ElementType::complex128:
    case ElementType::complex_long_double:
    case ElementType::pair_float_int:
    case ElementType::pair_double_int:
    case ElementType::pair_long_int:
    case ElementType::pair_int_int:
    case ElementType::pair_short_int:
    case ElementType::pair_long_double_int:
    case ElementType::pair_float_float:
    case ElementType::pair_double_double:
    case ElementType::float128:
    case ElementType::complex256:
    case ElementType::int128:
      break;
  }
  stop_on_illegal("update", type, name_of(op));
}

}  // namespace detail

void atomic_compare_and_swap(void* target, const void* expected, const void* desired, void* result_or_null,
                             ElementType type) {
  if (!is_lockable(type)) stop_on_illegal("compare-and-swap", type, "none");
  switch (size_of(type)) {
    case 1:
      return compare_and_swap_word<std::uint8_t>(target, expected, desired, result_or_null);
    case 2:
      return compare_and_swap_word<std::uint16_t>(target, expected, desired, result_or_null);
    case 4:
      return compare_and_swap_word<std::uint32_t>(target, expected, desired, result_or_null);
    case 8:
      return compare_and_swap_word<std::uint64_t>(target, expected, desired, result_or_null);
    default:
      stop_on_illegal("compare-and-swap", type, "none");
  }
}

void plain_compare_and_swap(void* target, const void* expected, const void* desired, void* result_or_null,
                            ElementType type) {
  switch (size_of(type)) {
    case 1:
      return plain_compare_and_swap_of<1>(target, expected, desired, result_or_null);
    case 2:
      return plain_compare_and_swap_of<2>(target, expected, desired, result_or_null);
    case 4:
      return plain_compare_and_swap_of<4>(target, expected, desired, result_or_null);
    case 8:
      return plain_compare_and_swap_of<8>(target, expected, desired, result_or_null);
    case 16:
      return plain_compare_and_swap_of<16>(target, expected, desired, result_or_null);
    case 32:
      return plain_compare_and_swap_of<32>(target, expected, desired, result_or_null);
    default:
      stop_on_illegal("compare-and-swap", type, "none");
  }
}

}  // namespace farsum::ops
