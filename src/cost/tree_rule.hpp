// By what the nodes of a job take the tree of their reductions: what rank 0 tells all ranks, and what follows from it
// for so many nodes. Whoever has the same bytes takes the same tree. Pure.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cost/reduction_choice.hpp"
#include "cost/reduction_model.hpp"

namespace farsum::cost {

// In a fixed number of bytes without gaps. As it is made it has the number of nodes alone decide.
struct TreeRule {
  static constexpr std::uint32_t current_version = 2;
  static constexpr std::uint32_t most_splits = 16;

  std::uint32_t version = current_version;
  std::uint32_t forced_degree = 0;  // from 2 on: of all trees, whatever the table says
  std::uint32_t has_table = 0;      // 1: it chooses
  std::uint32_t splits = 0;         // how often a reduce halves vector and nodes first, as far as it can
  ReductionTable table;
};
static_assert(std::has_unique_object_representations_v<TreeRule>);

// As it was told; one that has the number of nodes alone decide, where this build does not know what was told.
TreeRule rule_as_told(const TreeRule& told);

// The degree of the tree in which so many nodes reduce such a vector. 0: there is none, for all tell each other at
// once, or their number alone decides.
std::uint32_t degree_for(const TreeRule& rule, const ReducedVector& vector, std::uint32_t nodes);
// Whatever they reduce: that for one 64-bit floating-point number, summed.
std::uint32_t usual_degree(const TreeRule& rule, std::uint32_t nodes);

}  // namespace farsum::cost
