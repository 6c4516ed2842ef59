// A table of trees in which sums of floating-point numbers cost much to combine, so that nodes take few messages rather
// than few phases for them, and for nothing else.
#pragma once

#include "cost/tree_rule.hpp"
#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"

namespace farsum {

inline cost::TreeRule dear_sums() {
  cost::TreeRule rule;
  rule.has_table = 1;
  rule.table.latency_ns = 100'000;
  rule.table.receive_ns = 100;
  rule.table.packet_bytes = 4096;
  rule.table.row_count = 1;
  rule.table.row[0] = {
      .op = ops::Operator::sum, .type = ops::ElementType::float64, .combine_ns = {9000, 18000, 36000, 72000}};
  return rule;
}

}  // namespace farsum
