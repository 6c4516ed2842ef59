// How this rank reaches what others have described of their windows' memory, and why so.
#pragma once

#include <cstdint>
#include <string>

#include "base/settings.hpp"
#include "liveness/remote_nodes.hpp"
#include "protocol/window_shared.hpp"
#include "runtime/own_node.hpp"
#include "runtime/path_models.hpp"
#include "transport/shm/shm_transport.hpp"
#include "window/paths.hpp"
#include "window/region_tables.hpp"

namespace farsum {

// Any thread may call.
class RegionReach {
 public:
  struct Parts {
    OwnNode& node;
    const Settings& settings;
    PathModels& models;
    const ShmTransport& transport;
    const RemoteNodes& remote_nodes;
  };
  explicit RegionReach(const Parts& parts) : parts_(parts) {}

  // Maps what this process has not used yet of memory that the node shares; false where it cannot, or nobody has that
  // memory.
  bool map(const void* begin, std::uint64_t bytes) const;
  // What a rank of this node has described.
  Region of_neighbour(Rank owner, const SharedRegion& shared) const;
  std::string explain_neighbour(Rank owner, const Region& region) const;
  // Sets the paths to memory of a rank of another node.
  void choose_remote(Rank owner, Region& region) const;
  std::string explain_remote(Rank owner, const Region& region) const;

 private:
  Reach reach_here(Rank owner, const Region& region) const;
  static Reach reach_remote(const Region& region);

  Parts parts_;
};

}  // namespace farsum
