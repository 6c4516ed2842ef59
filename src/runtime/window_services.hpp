// What windows are made of that outlives them: what the builder of a window gets.
#pragma once

#include "liveness/remote_nodes.hpp"
#include "progress/thread_waiter.hpp"
#include "protocol/exposure.hpp"
#include "protocol/origin/engine.hpp"
#include "runtime/card_side.hpp"
#include "runtime/memory_descriptions.hpp"
#include "runtime/node_extents.hpp"
#include "runtime/own_locks.hpp"
#include "runtime/own_node.hpp"
#include "runtime/region_reach.hpp"
#include "runtime/team_maker.hpp"
#include "runtime/window_promotions.hpp"
#include "transport/route/route_transport.hpp"
#include "window/path_counters.hpp"
#include "window/window.hpp"

namespace farsum {

struct WindowServices {
  const Settings& settings;
  const ops::KernelSet& kernels;
  OwnNode& node;
  const RemoteNodes& remote_nodes;
  ThreadWaiter& waiter;
  const TeamMaker& maker;
  OriginEngine& engine;
  RouteTransport& route;
  ExposureTable& exposures;
  CardSide& card;
  WindowPromotions& promotions;
  const RegionReach& reach;
  const MemoryDescriptions& descriptions;
  NodeExtents& extents;
  OwnLocks& locks;
  PathCounters& counters;
  Hearing& hearing;
  ReadCopies& read_copies;
};

}  // namespace farsum
