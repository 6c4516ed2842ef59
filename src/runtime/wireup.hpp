// How a process becomes a rank: from Farsum's launcher, through PMIx, through a caller's allgather, or alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/node_ranks.hpp"
#include "base/settings.hpp"
#include "base/status.hpp"
#include "liveness/job_map.hpp"
#include "transport/shm/node_segment.hpp"

namespace farsum {

// Gathers `bytes` of every rank, in rank order.
using Allgather = std::function<Status(const void* mine, void* all, std::size_t bytes)>;

// What a process is in a job, once it has joined it.
struct Membership {
  std::uint32_t rank = 0;  // of the job
  std::uint32_t size = 1;
  std::shared_ptr<NodeSegment> segment;
  JobMap map{};                        // empty where only this node's ranks are known
  NodeRanks here{};                    // empty: all ranks
  std::array<std::byte, 16> secret{};  // of the job
  Allgather allgather{};               // over the job, while it begins; empty where that is not to be had
};

// What a process needs to join its job, and to join it again for a next context.
struct Credentials {
  Credentials() = default;
  ~Credentials();
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  int node_fd = -1;  // of the node's memory; owned
  JobMap map{};
  NodeRanks here{};
  std::vector<std::int32_t> processes;  // by place in the node
  std::array<std::byte, 16> secret{};
  Allgather allgather{};
};

enum class WireUp : std::uint8_t { launcher, pmix, alone };
// Farsum's own launcher comes before PMIx: farsum run may itself have been started by an mpirun.
WireUp choose_wire_up(const Environment& environment, const Settings& settings);

// Joins the job as choose_wire_up says. PMIx is asked once in a process, since not every version of it can be started
// twice: `kept` belongs to the caller, is empty at first, and holds the credentials for next contexts.
Result<Membership> join_job(const Environment& environment, const Settings& settings,
                            std::unique_ptr<Credentials>& kept);

// All ranks of the job meet. On each node the lowest hands the others the node's memory over a socket that proves user
// and secret.
Result<Membership> join_by_allgather(std::uint32_t rank, std::uint32_t size, const Allgather& allgather,
                                     const Settings& settings);

// What a caller knows of its job whose allgather reaches the ranks of its node only.
struct RestOfJob {
  std::uint32_t rank = 0;  // this one's, of the job
  std::uint32_t size = 1;
  std::array<std::byte, 16> secret{};
};
// The same of one node's ranks; those of others become known later, if at all. `rank` and `size` are the allgather's.
Result<Membership> join_by_node_allgather(std::uint32_t rank, std::uint32_t size, const Allgather& allgather,
                                          const RestOfJob& job, const Settings& settings);

}  // namespace farsum
