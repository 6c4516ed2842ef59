// Kernels of the element types that no vector register helps: quadruple precision, 128-bit integers, half precision and
// Fortran's pairs. Compiled once, in plain_kernels.cpp, and the same in every kernel set. What only moves elements is
// not here: the sets move any type.
#pragma once

#include <cstddef>

#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"

namespace farsum::ops {

constexpr bool is_plain(ElementType type, Operator op) {
  return index_of(type) >= index_of(ElementType::pair_float_float) && op != Operator::replace && op != Operator::no_op;
}

// The two entry points of KernelSet, with their contracts. Only plain_kernels.cpp sees the bodies.
template <ElementType type, Operator op>
struct PlainKernel {
  static void bulk(void* target, const void* operand, std::size_t count, const void* alpha);
  static void fetch(void* target, const void* operand, void* result, std::size_t count, const void* alpha);
};

}  // namespace farsum::ops
