#include "window/mapped_path.hpp"

#include <cstring>

#include "protocol/packed_sides.hpp"

namespace farsum {
namespace {

// Copies rows one after the other.
void copy_rows(const ops::KernelSet& kernels, std::byte* to, std::int64_t to_stride, const std::byte* from,
               std::int64_t from_stride, std::uint64_t row_bytes, std::uint64_t rows) {
  if (row_bytes < ops::long_row_bytes) {
    kernels.move_rows(to, to_stride, from, from_stride, row_bytes, rows);
    return;
  }
  for (std::uint64_t row = 0; row < rows; ++row) {
    const auto step = static_cast<std::int64_t>(row);
    // Within one's own part both sides may be one.
    std::memmove(to + step * to_stride, from + step * from_stride, row_bytes);
  }
}

// Asks for the lines of two sides of a pair of pieces that comes some time later, so that misses overlap. Always
// inline: g++ 12 takes a function that only prefetches for one without effect, and leaves out calls of it.
[[gnu::always_inline]] inline void ask_for(const std::byte* to, const std::byte* from) {
  __builtin_prefetch(to, 1);
  __builtin_prefetch(from);
}

bool is_list(const ops::LayoutView& layout) { return layout.kind() == ops::LayoutKind::indexed; }

// Between two layouts of `bytes` each. A list against one run, the usual shape of an irregular one, is a loop over it.
void move(const ops::KernelSet& kernels, const ops::LayoutView& to_layout, std::byte* to,
          const ops::LayoutView& from_layout, const std::byte* from, std::uint64_t bytes) {
  if (is_list(to_layout) && is_contiguous(from_layout)) return unpack(to_layout, bytes, from, to);
  if (is_list(from_layout) && is_contiguous(to_layout)) return pack(from_layout, bytes, from, to);
  ops::for_each_rows(
      to_layout, from_layout, bytes, 1,
      [&](const ops::PiecePair& pair)
          __attribute__((always_inline)) { ask_for(to + pair.target_offset, from + pair.origin_offset); },
      [&](const ops::RowPairs& rows) {
        copy_rows(kernels, to + rows.target_offset, rows.target_stride, from + rows.origin_offset, rows.origin_stride,
                  rows.row_bytes, rows.rows);
        return true;
      });
}

}  // namespace

Status MappedPath::run(const Operation& operation, std::uint32_t target, const Region& region) const {
  const std::uint64_t base = operation.offset - region.offset;
  std::byte* there = region.mapped + base;
  switch (operation.kind) {
    case OperationKind::put:
      move(kernels_, operation.target_layout, there, operation.operand_layout, operation.operand, operation.bytes);
      return {};
    case OperationKind::get:
      move(kernels_, operation.result_layout, operation.result, operation.target_layout, there, operation.bytes);
      return {};
    case OperationKind::compare_and_swap: {
      const Applied applied = apply_compare_and_swap(region.domain, agent_, region.mapped, base, operation.compare,
                                                     operation.operand, operation.result, operation.type);
      return texts_.applied(applied, region.domain, base, call_name(operation.kind), target);
    }
    case OperationKind::accumulate:
    case OperationKind::get_accumulate:
      return reduce(operation, target, region);
  }
  return {};
}

Status MappedPath::reduce(const Operation& operation, std::uint32_t target, const Region& region) const {
  const std::uint64_t base = operation.offset - region.offset;
  const bool fetches = operation.kind == OperationKind::get_accumulate;
  const Reduction reduction = make_reduction(kernels_, operation.type, operation.op, operation.alpha, operation.bytes);
  RowReducer reducer(region.domain, agent_, region.mapped, reduction);
  Applied applied = Applied::done;
  const ops::LayoutView& here = fetches ? operation.result_layout : operation.operand_layout;
  if (operation.target_layout.kind() == ops::LayoutKind::indexed && is_contiguous(here)) {
    const PackedOperand operand(operation);
    applied = reducer.apply(
        PieceList{base, operation.target_layout.pieces(), operand.data(), fetches ? operation.result : nullptr});
  } else if (!fetches) {
    ops::for_each_rows(
        operation.target_layout, operation.operand_layout, operation.bytes, reduction.element_bytes(),
        [&](const ops::PiecePair& pair) __attribute__((always_inline)) {
          reducer.ask_for(base + static_cast<std::uint64_t>(pair.target_offset),
                          offset_by(operation.operand, pair.origin_offset));
        },
        [&](const ops::RowPairs& rows) {
          applied = reducer.apply({base + static_cast<std::uint64_t>(rows.target_offset), rows.target_stride,
                                   offset_by(operation.operand, rows.origin_offset), rows.origin_stride, nullptr, 0,
                                   rows.row_bytes, rows.rows});
          return applied == Applied::done;
        });
  } else {
    // Three sides would have to fall into rows together, so the operand is packed; that of no_op is none.
    const PackedOperand operand(operation);
    std::int64_t packed = 0;
    ops::for_each_rows(
        operation.target_layout, operation.result_layout, operation.bytes, reduction.element_bytes(),
        [&](const ops::PiecePair& pair) __attribute__((always_inline)) {
          reducer.ask_for(base + static_cast<std::uint64_t>(pair.target_offset), operation.result + pair.origin_offset);
        },
        [&](const ops::RowPairs& rows) {
          applied =
              reducer.apply({base + static_cast<std::uint64_t>(rows.target_offset), rows.target_stride,
                             offset_by(operand.data(), packed), static_cast<std::int64_t>(rows.row_bytes),
                             operation.result + rows.origin_offset, rows.origin_stride, rows.row_bytes, rows.rows});
          packed += static_cast<std::int64_t>(rows.row_bytes * rows.rows);
          return applied == Applied::done;
        });
  }
  return texts_.applied(applied, region.domain, reducer.refused_at(), call_name(operation.kind), target);
}

}  // namespace farsum
