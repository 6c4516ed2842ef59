// What ranks have said becomes one: their parts are folded element by element, from the left to the right, or in the
// brackets of collectives/rank_order.hpp. So the answer depends neither on who folds, nor on where a vector is cut, nor
// on the arithmetic that a thread has set; but for which of two NaNs a sum or a product gives
// (docs/reference/operators.md). Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/function_ref.hpp"
#include "base/settings.hpp"
#include "ops/element_type.hpp"
#include "ops/kernels.hpp"
#include "ops/op_kind.hpp"

namespace farsum {

// Whether ranks' elements can be folded by it.
constexpr bool can_fold(ops::ElementType type, ops::Operator op) {
  return ops::legal(type, op) && ops::is_associative(op);
}

class Fold {
 public:
  // For a pair that can be folded.
  Fold(const ops::KernelSet& kernels, ops::ElementType type, ops::Operator op, ReduceOrder order = ReduceOrder::nodes);

  std::size_t element_bytes() const { return element_bytes_; }
  // Parts of `bytes`, of whole elements, become one in `into`, which overlaps none of them but may be the first: from
  // the left to the right, or, where ranks decide the order, as if each were the part of the rank with its number.
  void all(std::byte* into, std::size_t bytes, std::uint32_t parts,
           FunctionRef<const std::byte*(std::uint32_t part)> part) const;
  // One more, to the right of what is in `into`.
  void one_more(std::byte* into, const std::byte* part, std::size_t bytes) const;

 private:
  void in_default_arithmetic(FunctionRef<void()> work) const;
  void from_the_left(std::byte* into, std::size_t bytes, std::uint32_t parts,
                     FunctionRef<const std::byte*(std::uint32_t part)> part) const;
  void by_rank(std::byte* into, std::size_t bytes, std::uint32_t parts,
               FunctionRef<const std::byte*(std::uint32_t part)> part) const;

  ops::KernelSet::Bulk kernel_;
  std::size_t element_bytes_;
  ReduceOrder order_;
  bool leaves_vector_registers_;  // whether it computes elsewhere, or raises flags there
};

}  // namespace farsum
