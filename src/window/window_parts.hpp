// What a window is made of; runtime fills it in.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "base/units.hpp"
#include "memory/atomicity.hpp"
#include "ops/kernels.hpp"
#include "progress/waiter.hpp"
#include "protocol/origin/engine.hpp"
#include "protocol/window_shared.hpp"
#include "transport/transport.hpp"
#include "variants/read_copies/read_ahead.hpp"
#include "window/executor.hpp"
#include "window/hot_window.hpp"
#include "window/path_counters.hpp"
#include "window/region_tables.hpp"
#include "window/team.hpp"

namespace farsum {

// Pointers outlive the window.
struct WindowParts {
  WindowId id = 0;
  std::string name;
  std::vector<Rank> ranks;  // of the job, by rank of the group
  std::uint32_t my_rank = 0;
  std::uint32_t promises = 0;
  bool dynamic = false;
  std::uint64_t aggregate_limit = 1024;
  WindowSharedShape shape;
  std::vector<RankWindow> shared;  // by rank of the group; of ranks of this node
  // What is known of the memory of other nodes' ranks, by rank of the group; empty where there are none. In a dynamic
  // window it is all addresses: the owner says which are attached. In a window for network cards it has the parts of
  // all ranks.
  std::vector<RegionTable> remote_regions;
  std::vector<std::uint64_t> sizes;  // of the parts; 0 in a dynamic window
  Settings settings;
  LockAgent lock_agent;  // of this process's threads
  const ops::KernelSet* kernels = nullptr;
  Team* team = nullptr;
  Waiter* waiter = nullptr;
  OriginEngine* engine = nullptr;
  Transport* transport = nullptr;
  PathCounters* counters = nullptr;
  Hearing* hearing = nullptr;
  ReadCopies* read_copies = nullptr;
  std::uint64_t read_age_ns = 0;  // 0: every read asks its target
  std::uint64_t (*now_ns)() = nullptr;
  // Where the views lie: as many as there are ranks, in their initial state. Null: the window keeps them itself.
  TargetView* views = nullptr;
  // Turns what a rank has published of its memory into what this process can do with it.
  std::function<Region(Rank owner, const SharedRegion&)> make_region;
  // Says why a region of that rank of the group is as it is. Null: nobody asks.
  std::function<std::string(std::uint32_t target, const Region&)> explain_region;
  // Maps what this process has not used yet of memory that the node shares; false where it cannot, or nobody has that
  // memory. Null: all is mapped.
  std::function<bool(const void* begin, std::uint64_t bytes)> reach;
  std::function<void(Rank)> wake_rank;  // wakes the waiting threads of a rank of this node
  // Carries out all operations of a window that is declared for network cards alone; empty: it is not.
  MakeExecutor make_cards;
  // Caller-computes at ranks of other nodes; empty where no region of theirs goes that way.
  MakeExecutor make_leases;
};

}  // namespace farsum
