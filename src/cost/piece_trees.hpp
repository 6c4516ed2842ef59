// Which trees so many nodes take for pieces of long vectors, behind a first piece by which all know that all reduce the
// same: by a table each operator and type has its own. Worked out once, so that a call looks its own up. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cost/reduction_choice.hpp"
#include "cost/tree_rule.hpp"
#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"

namespace farsum::cost {

class PieceTrees {
 public:
  // Of pieces of `bytes`.
  PieceTrees(const TreeRule& rule, std::uint32_t nodes, std::size_t bytes);

  // All that are taken, each once, as usual_degree() has them; one at least.
  std::span<const std::uint32_t> degrees() const { return degrees_; }
  // Which of these. An operator or type that the table has not got goes as one that takes no time.
  std::size_t number_of(ops::Operator op, ops::ElementType type) const;

 private:
  struct Row {
    ops::Operator op = ops::Operator::no_op;
    ops::ElementType type = ops::ElementType::uint8;
    std::size_t number = 0;
  };
  std::size_t add(std::uint32_t degree);

  std::vector<std::uint32_t> degrees_;
  std::array<Row, ReductionTable::most_rows> rows_ = {};
  std::size_t row_count_ = 0;
  std::size_t of_others_ = 0;
};

}  // namespace farsum::cost
