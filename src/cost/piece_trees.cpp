#include "cost/piece_trees.hpp"

#include <algorithm>

namespace farsum::cost {

PieceTrees::PieceTrees(const TreeRule& rule, std::uint32_t nodes, std::size_t bytes) {
  const auto number_for = [&](ops::Operator op, ops::ElementType type) {
    return add(degree_for(rule, {op, type, bytes / ops::size_of(type)}, nodes));
  };
  of_others_ = number_for(ops::Operator::no_op, ops::ElementType::uint8);
  if (rule.forced_degree != 0 || rule.has_table == 0) return;
  for (const ReductionTable::Row& row : rule.table.rows())
    rows_[row_count_++] = {row.op, row.type, number_for(row.op, row.type)};
}

std::size_t PieceTrees::add(std::uint32_t degree) {
  const auto found = std::ranges::find(degrees_, degree);
  const auto number = static_cast<std::size_t>(found - degrees_.begin());
  if (found == degrees_.end()) degrees_.push_back(degree);
  return number;
}

std::size_t PieceTrees::number_of(ops::Operator op, ops::ElementType type) const {
  for (const Row& row : std::span(rows_).first(row_count_))
    if (row.op == op && row.type == type) return row.number;
  return of_others_;
}

}  // namespace farsum::cost
