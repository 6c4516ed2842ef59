// Applies an operation to memory that this thread can address, inside its atomicity domain: in the caller on mapped
// memory, also for the hot path (hot_window.hpp) under a stripe's lock, and in the agent for messages. Whoever computes
// on a copy has the kernels and the stripes from here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/atomicity.hpp"
#include "memory/lock_agent.hpp"
#include "memory/stripes.hpp"
#include "ops/element_type.hpp"
#include "ops/kernels.hpp"
#include "ops/layout.hpp"
#include "ops/op_kind.hpp"

namespace farsum {

enum class OperationKind : std::uint8_t { put = 0, get = 1, accumulate = 2, get_accumulate = 3, compare_and_swap = 4 };

constexpr bool is_atomic(OperationKind kind) { return kind >= OperationKind::accumulate; }
// Whether it changes its target. The operator of a put and of a compare-and-swap means nothing.
constexpr bool writes(OperationKind kind, ops::Operator op) {
  if (kind == OperationKind::put || kind == OperationKind::compare_and_swap) return true;
  return kind != OperationKind::get && op != ops::Operator::no_op;
}
// Whether its result tells what other ranks did. Those of reads do not, unless somebody waits for one that is atomic.
constexpr bool tells_of_others(OperationKind kind, ops::Operator op) {
  return kind == OperationKind::compare_and_swap ||
         (kind == OperationKind::get_accumulate && op != ops::Operator::no_op);
}
constexpr bool returns_data(OperationKind kind) {
  return kind != OperationKind::put && kind != OperationKind::accumulate;
}

// An operator on a type, with its kernels looked up.
struct Reduction {
  ops::ElementType type = ops::ElementType::byte;
  ops::Operator op = ops::Operator::replace;
  const void* alpha = nullptr;  // one element; for scaled_sum
  ops::KernelSet::Bulk bulk = nullptr;
  ops::KernelSet::Fetch fetch = nullptr;
  ops::KernelSet::MoveRows move_rows = nullptr;

  std::uint64_t element_bytes() const { return ops::size_of(type); }
};

// The operation is of `bytes` in all, of which the kernels may be given a part at a time.
Reduction make_reduction(const ops::KernelSet& kernels, ops::ElementType type, ops::Operator op, const void* alpha,
                         std::uint64_t bytes);

// Applies `reduction` to [offset, offset + bytes) of a region that starts at `memory`. `operand` is packed (may be null
// for no_op); `result`, where not null, receives the old values, packed. `progress` counts bytes done: on `busy` the
// same call continues there.
Applied apply_reduction(const AtomicDomain& domain, const LockAgent& agent, std::byte* memory, std::uint64_t offset,
                        const std::byte* operand, std::byte* result, std::uint64_t bytes, const Reduction& reduction,
                        std::uint64_t& progress);

// Rows of one length at equal distances: of a region, and of the packed or spread sides of the origin.
struct Rows {
  std::uint64_t offset = 0;  // of the first, in the region
  std::int64_t stride = 0;
  const std::byte* operand = nullptr;  // may be null for no_op
  std::int64_t operand_stride = 0;
  std::byte* result = nullptr;  // where not null, receives the old values
  std::int64_t result_stride = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t rows = 0;

  std::uint64_t offset_of(std::uint64_t row) const { return offset + row * static_cast<std::uint64_t>(stride); }
  const std::byte* operand_of(std::uint64_t row) const {
    return operand == nullptr ? nullptr : operand + static_cast<std::int64_t>(row) * operand_stride;
  }
  std::byte* result_of(std::uint64_t row) const {
    return result == nullptr ? nullptr : result + static_cast<std::int64_t>(row) * result_stride;
  }
};

// Pieces of whole elements anywhere in a region; the sides of the origin are packed. A piece's offset counts from
// `base`.
struct PieceList {
  std::uint64_t base = 0;
  std::span<const ops::Piece> pieces;
  const std::byte* operand = nullptr;  // may be null for no_op
  std::byte* result = nullptr;         // where not null, receives the old values

  std::size_t size() const { return pieces.size(); }
  std::uint64_t offset_of(std::size_t i) const { return base + static_cast<std::uint64_t>(pieces[i].offset); }
  std::uint64_t bytes_of(std::size_t i) const { return pieces[i].bytes; }
};

// The same where each piece is one element.
struct ElementList {
  std::uint64_t base = 0;
  std::span<const std::int64_t> offsets;
  std::uint64_t element_bytes = 0;
  const std::byte* operand = nullptr;
  std::byte* result = nullptr;  // as above

  std::size_t size() const { return offsets.size(); }
  std::uint64_t offset_of(std::size_t i) const { return base + static_cast<std::uint64_t>(offsets[i]); }
  std::uint64_t bytes_of(std::size_t) const { return element_bytes; }
};

// Applies one operation row by row or piece by piece, in their order, for a caller who may wait. A stripe is kept from
// one to the next while they lie in it, though for no longer than a whole stripe's update takes.
class RowReducer {
 public:
  RowReducer(const AtomicDomain& domain, const LockAgent& agent, std::byte* memory, const Reduction& reduction)
      : domain_(domain), agent_(agent), memory_(memory), reduction_(reduction) {}
  ~RowReducer() { let_go(); }
  RowReducer(const RowReducer&) = delete;
  RowReducer& operator=(const RowReducer&) = delete;

  Applied apply(const Rows& rows);
  Applied apply(const PieceList& list) { return apply_list(list); }
  Applied apply(const ElementList& list) { return apply_list(list); }
  // Asks for the lines of a row that comes some time later, of its lock and of its origin. Always inline: g++ 12 takes
  // a function that only prefetches for one without effect, and leaves out calls of it.
  [[gnu::always_inline]] void ask_for(std::uint64_t offset, const std::byte* origin) const {
    __builtin_prefetch(memory_ + offset, 1);
    __builtin_prefetch(&domain_.lock_of(offset), 1);
    __builtin_prefetch(origin);
  }
  // Tells where that lies whose stripe could not be had.
  std::uint64_t refused_at() const { return refused_at_; }
  // Tells which piece of a list that is; all before it are done.
  std::size_t refused_piece() const { return refused_piece_; }

 private:
  template <class List>
  Applied apply_list(const List& list);
  template <class List>
  void ask_for(const List& list, std::size_t piece) const;
  Applied apply_across_stripes(std::uint64_t offset, const std::byte* operand, std::byte* result, std::uint64_t bytes);
  std::uint64_t rows_of_one_stripe(const Rows& rows, std::uint64_t offset, std::uint64_t left) const;
  template <class RevokeAhead>
  Applied hold(std::uint64_t offset, std::uint64_t work, RevokeAhead&& revoke_ahead);
  void revoke_ahead(const Rows& rows, std::uint64_t row) const;
  template <class List>
  void revoke_ahead(const List& list, std::size_t piece) const;
  void let_go();
  void compute(const Rows& rows, std::uint64_t first, std::uint64_t count) const;

  const AtomicDomain& domain_;
  const LockAgent& agent_;
  std::byte* memory_;
  const Reduction& reduction_;
  StripeLock* held_ = nullptr;
  std::uint64_t held_stripe_ = 0;
  std::uint64_t work_left_ = 0;  // before the held stripe is let go
  std::uint64_t refused_at_ = 0;
  std::size_t refused_piece_ = 0;
};

Applied apply_compare_and_swap(const AtomicDomain& domain, const LockAgent& agent, std::byte* memory,
                               std::uint64_t offset, const std::byte* expected, const std::byte* desired,
                               std::byte* result, ops::ElementType type);

}  // namespace farsum
