// What the parts of a rank are given, for the only rank of a job and without a context: tests make of it what they are
// about.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
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
#include "runtime/group.hpp"
#include "runtime/network_side.hpp"
#include "runtime/own_node.hpp"
#include "runtime/team_exchange.hpp"
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

}  // namespace farsum::test
