#include "runtime/reduction_schedules.hpp"

#include "collectives/reduction_lists.hpp"
#include "trees/schedule.hpp"

namespace farsum {

ReductionSchedule reduction_schedule(std::uint32_t nodes, std::uint32_t wanted) {
  const std::uint32_t degree = ReductionLists::degree_between(nodes, wanted);
  const auto list = [&](std::uint32_t node) { return ReductionLists::list_of(nodes, node, degree); };
  return {.degree = degree, .hash = trees::hash_of(nodes, list)};
}

}  // namespace farsum
