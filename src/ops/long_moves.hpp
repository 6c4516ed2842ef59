// REPLACE and NO_OP of more bytes than the first-level cache holds twice, by the processor's string move: it writes
// whole lines that it does not read first, which vector stores cannot.
#pragma once

#include <cstdint>

#include "ops/element_type.hpp"
#include "ops/kernels.hpp"
#include "ops/op_kind.hpp"

namespace farsum::ops {

// Operations of fewer bytes are faster with the kernels: both sides stay in the cache, and the string move starts
// slowly.
inline constexpr std::uint64_t long_move_bytes = std::uint64_t{24} << 10;

// As the entries of a KernelSet, and in their place in operations of long_move_bytes or more. Null where another
// operator computes, or where this processor has no quick string move.
[[nodiscard]] KernelSet::Bulk long_bulk(ElementType type, Operator op);
[[nodiscard]] KernelSet::Fetch long_fetch(ElementType type, Operator op);

}  // namespace farsum::ops
