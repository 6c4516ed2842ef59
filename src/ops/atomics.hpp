// Operators on one element by the CPU's own atomics, for windows whose keys promise single elements of lockable types
// and for stripes that are lock-free, and compare-and-swap both with and without them. An atomic here and a kernel
// under a lock are not atomic to each other: the window's atomicity domain picks one.
//
// Memory orders. Every read-modify-write is acq_rel: its release half publishes what the origin wrote before it, its
// acquire half shows the origin what earlier updates of the same element published, and each partner is another
// operation of this file on that element. Nothing here needs the single total order of seq_cst: order between different
// elements is what flush and the window's synchronisation calls give. On x86-64 the locked instructions are full
// barriers whatever is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"

namespace farsum::ops {

// Adds to an integer and returns what was there. T is unsigned, so that it wraps.
template <class T>
requires std::is_unsigned_v<T>
inline T atomic_fetch_sum(void* target, T operand) {
  return __atomic_fetch_add(static_cast<T*>(target), operand, __ATOMIC_ACQ_REL);
}

namespace detail {

template <std::size_t bytes>
struct WordOf;
template <>
struct WordOf<1> {
  using type = std::uint8_t;
};
template <>
struct WordOf<2> {
  using type = std::uint16_t;
};
template <>
struct WordOf<4> {
  using type = std::uint32_t;
};
template <>
struct WordOf<8> {
  using type = std::uint64_t;
};

// Replaces the element by update(old) in a compare-and-exchange loop and returns the old value.
template <class T, class Update>
T atomic_update(void* target, Update update) {
  using Word = typename WordOf<sizeof(T)>::type;
  Word* const word = static_cast<Word*>(target);
  // Relaxed: a stale value only costs one more turn, and the exchange below acquires.
  Word old = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    const Word next = __builtin_bit_cast(Word, update(__builtin_bit_cast(T, old)));
    // Relaxed on failure: the value is only fed to the next turn.
    if (__atomic_compare_exchange_n(word, &old, next, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return __builtin_bit_cast(T, old);
  }
}

// The other types and operators.
void atomic_apply_any(void* target, const void* operand, void* result, ElementType type, Operator op,
                      const void* alpha);

}  // namespace detail

// The same for a double, of which no instruction does it.
inline double atomic_fetch_sum(void* target, double operand) {
  return detail::atomic_update<double>(target, [operand](double old) { return old + operand; });
}

// Applies `op` to the element at `target`, which is aligned to its size. `type` is lockable and legal with `op`;
// anything else stops the process, for it would have been refused at the boundary. `result`, where not null, receives
// the old value. `operand` may be null for no_op, `alpha` for all but scaled_sum; neither they nor `result` need be
// aligned.
inline void atomic_apply(void* target, const void* operand, void* result_or_null, ElementType type, Operator op,
                         const void* alpha) {
  if (op == Operator::sum && (type == ElementType::int64 || type == ElementType::uint64)) [[likely]] {
    std::uint64_t addend;
    std::memcpy(&addend, operand, sizeof addend);
    const std::uint64_t old = atomic_fetch_sum(target, addend);
    if (result_or_null != nullptr) std::memcpy(result_or_null, &old, sizeof old);
    return;
  }
  detail::atomic_apply_any(target, operand, result_or_null, type, op, alpha);
}

// Writes `desired` to the element at `target` if it holds the bits of `expected`; `result`, where not null, receives
// the old value either way. Bits are compared, so a negative zero differs from a positive one. `type` is lockable and
// `target` aligned to its size.
void atomic_compare_and_swap(void* target, const void* expected, const void* desired, void* result_or_null,
                             ElementType type);

// The same for any element type at any alignment, when the caller holds the lock that makes it atomic. Padding counts
// as part of the element.
void plain_compare_and_swap(void* target, const void* expected, const void* desired, void* result_or_null,
                            ElementType type);

}  // namespace farsum::ops
