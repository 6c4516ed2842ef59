// Kernels that apply an operator to many elements, compiled once per instruction set. They know nothing of locks: the
// caller holds whatever makes the update atomic to others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"

namespace farsum::ops {

enum class Isa : std::uint8_t { baseline, avx2, avx512 };

// Longer rows are worth a call each.
inline constexpr std::size_t long_row_bytes = 2048;

// One instruction set's kernels.
//
// `target`, `operand` and `result` hold `count` elements at any alignment; each two of them are the same buffer or do
// not overlap, and `result` is never the target. `operand` may be null for no_op. `alpha` is one element and read by
// scaled_sum alone; it may be null otherwise. A kernel reads and writes each target element once, with stores as wide
// as the element or wider (elements over 8 bytes excepted, which need up to two); replace is held to that by
// construction, as some callers read while it runs.
struct KernelSet {
  using Bulk = void (*)(void* target, const void* operand, std::size_t count, const void* alpha);
  // Stores the target's old value to result, then applies the operator.
  using Fetch = void (*)(void* target, const void* operand, void* result, std::size_t count, const void* alpha);
  // Replaces `rows` rows of `row_bytes` whole elements each, one after the other; strides are in bytes, from one row's
  // start to the next one's. For rows of fewer than long_row_bytes.
  using MoveRows = void (*)(void* target, std::ptrdiff_t target_stride, const void* operand,
                            std::ptrdiff_t operand_stride, std::size_t row_bytes, std::size_t rows);

  // Null where legal() says no.
  [[nodiscard]] constexpr Bulk bulk(ElementType type, Operator op) const {
    return bulk_table[index_of(type)][index_of(op)];
  }
  [[nodiscard]] constexpr Fetch fetch(ElementType type, Operator op) const {
    return fetch_table[index_of(type)][index_of(op)];
  }

  Isa isa;
  const char* name;
  std::array<std::array<Bulk, operator_count>, element_type_count> bulk_table;
  std::array<std::array<Fetch, operator_count>, element_type_count> fetch_table;
  MoveRows move_rows;
};

// The best set that this machine can run. Look a kernel up once, not per call.
[[nodiscard]] const KernelSet& kernels_for_this_machine();

// A named set, for tests and benchmarks. Calling into one that is not among available_isas() is an illegal instruction.
[[nodiscard]] const KernelSet& kernels(Isa isa);

// The sets that this machine can run, slowest first.
[[nodiscard]] std::span<const Isa> available_isas();

}  // namespace farsum::ops
