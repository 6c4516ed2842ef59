#include "cost/tree_rule.hpp"

#include <algorithm>

namespace farsum::cost {

TreeRule rule_as_told(const TreeRule& told) {
  const bool is_known = told.version == TreeRule::current_version && told.forced_degree != 1 && told.has_table <= 1 &&
                        told.splits <= TreeRule::most_splits && told.table.row_count <= ReductionTable::most_rows;
  if (!is_known) return {};
  const auto makes_sense = [](const ReductionTable::Row& row) {
    return ops::is_operator(static_cast<std::uint64_t>(row.op)) &&
           ops::is_element_type(static_cast<std::uint64_t>(row.type));
  };
  return std::ranges::all_of(told.table.rows(), makes_sense) ? told : TreeRule{};
}

// In which all send to one, or all tell each other: the model does not tell these apart, and in the second nobody
// waits for an answer to come down.
std::uint32_t degree_for(const TreeRule& rule, const ReducedVector& vector, std::uint32_t nodes) {
  if (rule.forced_degree != 0) return rule.forced_degree;
  if (rule.has_table == 0 || nodes <= 2) return 0;
  const auto degree = static_cast<std::uint32_t>(choose_degree(rule.table, vector, nodes));
  return degree == nodes && nodes <= most_flat_nodes ? 0 : degree;
}

std::uint32_t usual_degree(const TreeRule& rule, std::uint32_t nodes) { return degree_for(rule, {}, nodes); }

}  // namespace farsum::cost
