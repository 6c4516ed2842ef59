// How a process becomes a rank: from the launcher's environment, alone, or through a caller's allgather.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "transport/shm/node_segment.hpp"

namespace farsum {

// Gathers `bytes` of every rank, in rank order; false when the caller's function failed.
using Allgather = std::function<bool(const void* mine, void* all, std::size_t bytes)>;

// A place in a job.
struct Place {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::shared_ptr<NodeSegment> segment;
};

// Takes FARSUM_RANK, FARSUM_SIZE and FARSUM_NODE_FD, or makes a job of one rank where there is no launcher.
Result<Place> place_from_environment(const Environment& environment, const Settings& settings);

// All ranks on one node; the lowest hands the others the node's memory over a socket that proves user and secret.
Result<Place> place_from_allgather(std::uint32_t rank, std::uint32_t size, const Allgather& allgather,
                                   const Settings& settings);

}  // namespace farsum
