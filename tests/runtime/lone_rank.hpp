// What the parts of a rank are given, for the only rank of a job and without a context: tests make of it what they are
// about.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/settings.hpp"
#include "collectives/letter_desk.hpp"
#include "liveness/peer_watch.hpp"
#include "liveness/remote_nodes.hpp"
#include "progress/attendance.hpp"
#include "progress/rank_bell.hpp"
#include "progress/thread_waiter.hpp"
#include "protocol/exposure.hpp"
#include "protocol/origin/engine.hpp"
#include "protocol/owner/service.hpp"
#include "runtime/agent_side.hpp"
#include "runtime/attached_memory.hpp"
#include "runtime/card_side.hpp"
#include "runtime/groups.hpp"
#include "runtime/network_side.hpp"
#include "runtime/own_node.hpp"
#include "runtime/rank_counts.hpp"
#include "runtime/team_exchange.hpp"
#include "runtime/windows.hpp"
#include "transport/route/route_transport.hpp"
#include "transport/shm/shm_transport.hpp"

namespace farsum::test {

class NoChores final : public AgentChores {
 public:
  std::uint64_t run(bool) override { return 0; }
};

class LoneRank {
 public:
  explicit LoneRank(const Settings& with = {}) : settings(with) { service.attach(route); }

  static Membership membership_of_one() {
    Membership membership;
    membership.segment =
        std::move(NodeSegment::create(
                      {.ranks = 1, .segment_bytes = std::uint64_t{1} << 28, .team_bytes = GroupBlock::footprint(1)})
                      .value());
    membership.here = NodeRanks::of_all(1);
    return membership;
  }

  Settings settings;
  Membership membership = membership_of_one();
  OwnNode node{membership};
  RemoteNodes remote_nodes{membership.here};
  PeerWatch watch{node.segment(), membership.here, remote_nodes, 0};
  ThreadWaiter waiter{ThreadWaiter::Options{}, watch, node.block().waiters};
  ShmTransport transport{node.segment(), ShmTransport::Options{}};
  RouteTransport route{transport, membership.here};
  ExposureTable exposures;
  Hearing hearing;
  OriginEngine engine{engine_options(), route};
  TeamExchange exchange{engine, waiter};
  LetterDesk desk{route, [] {}, [](const OddLetter&) {}};
  TargetService service{service_options(), exposures};
  NetworkSide network{network_parts()};
  RankBell bell{node.block().doorbell, transport.wake_name(0)};
  Attendance attendance{attendance_parts()};
  NoChores chores;
  AgentSide agent{settings, {route, service, bell, chores, attendance}};

 private:
  OriginEngine::Options engine_options() {
    OriginEngine::Options options;
    options.peers = 1;
    options.hearing = &hearing;
    return options;
  }
  TargetService::Options service_options() {
    TargetService::Options options;
    options.kernels = &ops::kernels_for_this_machine();
    options.liveness = &watch;
    return options;
  }
  NetworkSide::Parts network_parts() {
    NetworkSide::Parts parts;
    parts.ranks = 1;
    parts.settings = &settings;
    parts.route = &route;
    parts.remote_nodes = &remote_nodes;
    parts.look_after = [] {};
    return parts;
  }
  Attendance::Parts attendance_parts() {
    Attendance::Parts parts;
    parts.handler = &service;
    parts.grant = [] {};
    parts.needs_agent = [] { return false; };
    parts.rouse = [] {};
    return parts;
  }
};

// Such a rank with groups.
class LoneRankWithGroups : public LoneRank {
 public:
  explicit LoneRankWithGroups(const Settings& with = {}) : LoneRank(with) { groups.begin_node(); }

  const ops::KernelSet& kernels = ops::kernels_for_this_machine();
  os::PromotionRegistry registry;
  Carries carries;
  AttachedMemory peer_memory{transport, registry, 0};
  TeamMaker teams{{waiter, desk, exchange, peer_memory, kernels, settings.reduce_order}};
  NodeExtents extents{node, exposures};
  CarriedGroups carried{
      {node, transport, network, carries, exchange, waiter, teams, kernels, agent, extents, settings.reduce_order}};
  Groups groups{{{node, remote_nodes, waiter, exchange}, teams, carried}};
};

// And with windows.
class LoneRankWithWindows : public LoneRankWithGroups {
 public:
  explicit LoneRankWithWindows(const Settings& with = {}) : LoneRankWithGroups(with) {}
  ~LoneRankWithWindows() { agent.stop(); }

 private:
  class NoRinger final : public Ringer {
    void ring(std::uint32_t) const override {}
  };
  NoRinger ringer_;
  LockFreePermits permits_;

 public:
  RankCounts counts;
  ReadCopies copies;
  TeardownCircle circle{
      [this](Rank) -> AwaitedRank& { return node.block().awaited; },
      {node.segment().begin(), [this](std::uint64_t offset) { return node.segment().read_word(offset); }},
      1,
      0};
  CardSide card{{0, &settings, [](Rank, const std::string&) {}, [](Rdma&) { return Status(); }}};
  OwnLocks locks{{node, watch, waiter, permits_, ringer_, counts.stripe_contention()}};
  WindowPromotions promotions{{node, exposures, agent, settings, registry}};
  PathModels models{settings};
  RegionReach reach{{node, settings, models, transport, remote_nodes}};
  MemoryDescriptions descriptions{node, registry.maps()};
  Windows windows{{{settings, kernels, node, remote_nodes, waiter, teams, engine, route, exposures, card, promotions,
                    reach, descriptions, extents, locks, counts.paths(), hearing, copies},
                   watch,
                   agent,
                   models,
                   circle}};
};

}  // namespace farsum::test
