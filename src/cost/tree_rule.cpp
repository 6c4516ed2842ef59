#include "cost/tree_rule.hpp"

#include <algorithm>

#include "cost/reduction_model.hpp"

namespace farsum::cost {
namespace {

// In which all send to one, or all tell each other: the model does not tell these apart, and in the second nobody
// waits for an answer to come down.
std::uint32_t degree_by_table(const ReductionTable& costs, const ReducedVector& vector, std::uint32_t nodes) {
  if (nodes <= 2) return 0;
  const auto degree = static_cast<std::uint32_t>(choose_degree(costs, vector, nodes));
  return degree == nodes && nodes <= most_flat_nodes ? 0 : degree;
}

}  // namespace

TreeRule rule_as_told(const TreeRule& told) {
  const bool is_known = told.version == TreeRule::current_version && told.forced_degree != 1 && told.has_table <= 1 &&
                        told.table.row_count <= ReductionTable::most_rows;
  if (!is_known) return {};
  const auto makes_sense = [](const ReductionTable::Row& row) {
    return ops::is_operator(static_cast<std::uint64_t>(row.op)) &&
           ops::is_element_type(static_cast<std::uint64_t>(row.type));
  };
  return std::ranges::all_of(told.table.rows(), makes_sense) ? told : TreeRule{};
}

std::uint32_t usual_degree(const TreeRule& rule, std::uint32_t nodes) {
  if (rule.forced_degree != 0) return rule.forced_degree;
  return rule.has_table != 0 ? degree_by_table(rule.table, {}, nodes) : 0;
}

}  // namespace farsum::cost
