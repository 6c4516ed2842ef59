// When each node is done with its list, event by event, by the parameters of paper 5 (section 5.1). Pure: integers,
// so that equal times are equal.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trees/schedule.hpp"

namespace farsum::trees {

using CostOfElements = std::function<std::int64_t(std::uint64_t elements)>;

// A node does one thing at a time: it receives a letter, which costs r, and combines it, which costs c as well. A
// letter leaves once what it carries is combined, and can be received L later.
struct Costs {
  std::int64_t latency_ns = 0;   // L
  std::int64_t overhead_ns = 0;  // C: before each node's first step
  std::int64_t send_gap_ns = 0;  // at least, from one letter's leaving a node to the next
  CostOfElements receive_ns;     // r, also of a letter that is copied
  CostOfElements combine_ns;     // c
};

struct Times {
  std::vector<std::int64_t> finish_ns;  // by node: its last combine, copy or leaving letter
  std::int64_t root_ns = 0;             // of the shape's root; of an allreduce and a barrier of node 0
  std::int64_t last_ns = 0;             // of all
};

Times event_times(const Shape& shape, const Costs& costs, ChildOrder order = ChildOrder::arrival);

}  // namespace farsum::trees
