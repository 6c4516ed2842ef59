#include "runtime/reduction_schedules.hpp"

#include "collectives/reductions.hpp"
#include "trees/schedule.hpp"

namespace farsum {

ReductionSchedule reduction_schedule(std::uint32_t nodes, std::uint32_t wanted) {
  const std::uint32_t degree = GroupReductions::degree_between_nodes(nodes, wanted);
  const auto list = [&](std::uint32_t node) { return GroupReductions::list_between_nodes(nodes, node, degree); };
  return {.degree = degree, .hash = trees::hash_of(nodes, list)};
}

}  // namespace farsum
