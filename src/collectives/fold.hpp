// What ranks have said becomes one: their parts are folded from the left to the right, in the order in which they are
// given, element by element. So the answer depends neither on who folds, nor on where a vector is cut, nor on the
// arithmetic that a thread has set; but for which of two NaNs a sum or a product gives (docs/OPERATORS.md). Owner:
// collectives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/function_ref.hpp"
#include "ops/element_type.hpp"
#include "ops/kernels.hpp"
#include "ops/op_kind.hpp"

namespace farsum {

// Whether ranks' elements can be folded by it. A scaled sum has a factor beside each operand, and moving is no folding.
constexpr bool can_fold(ops::ElementType type, ops::Operator op) {
  return ops::legal(type, op) && op != ops::Operator::scaled_sum && op != ops::Operator::replace &&
         op != ops::Operator::no_op;
}

class Fold {
 public:
  // For a pair that can be folded.
  Fold(const ops::KernelSet& kernels, ops::ElementType type, ops::Operator op);

  std::size_t element_bytes() const { return element_bytes_; }
  // Parts of `bytes`, of whole elements, become one in `into`, which overlaps none of them but may be the first.
  void all(std::byte* into, std::size_t bytes, std::uint32_t parts,
           FunctionRef<const std::byte*(std::uint32_t part)> part) const;
  // One more, to the right of what is in `into`.
  void one_more(std::byte* into, const std::byte* part, std::size_t bytes) const;

 private:
  ops::KernelSet::Bulk kernel_;
  std::size_t element_bytes_;
  bool leaves_vector_registers_;  // whether it computes elsewhere, or raises flags there
};

}  // namespace farsum
