// What a simulated cluster is like that reduces: its nodes and their processors, what carries a node's part of the
// tree, what that costs, and which daemons interfere.
#pragma once

#include <cstdint>

#include "cluster/noise.hpp"
#include "trees/timing.hpp"

namespace farsum::cluster {

// What walks a node's list.
enum class CarrierKind : std::uint8_t {
  host,       // the rank that enters for its node, on its processor
  card,       // a processor that no daemon ever has
  thread,     // an agent on a processor of the node's that is idle, else on that of the last rank
  dedicated,  // an agent on a processor more, which no rank and no daemon of the others uses
};

// Drawn evenly for each use.
struct Range {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

// What ends a call: all are released at one instant, so long after the last rank's part is done, or after the root's.
enum class Closing : std::uint8_t { barrier, broadcast };

struct Machine {
  std::uint32_t ranks_a_node = 1;       // 1 or 2, each with a processor of its own
  std::uint32_t processors_a_node = 2;  // without that of a dedicated agent
  CarrierKind carrier = CarrierKind::card;

  std::int64_t local_ns = 0;      // of each rank in the step in shared memory; none where a node has one rank
  std::int64_t entry_ns = 0;      // of the rank that enters for its node, on its processor
  Range to_carrier_ns;            // from that rank to the carrier
  Range wake_up_ns;               // of a carrier that had nothing to do when a letter came
  Range to_rank_ns;               // from the carrier to the rank that waits
  std::int64_t latency_ns = 0;    // of a letter, from the end of the work before it until it can be received
  trees::CostOfElements take_ns;  // of a letter that is received and combined, on the carrier's processor
  trees::CostOfElements copy_ns;  // of one that is received only

  Closing closing = Closing::barrier;
  std::int64_t closing_ns = 0;

  Noise noise;            // on all processors
  Noise dedicated_noise;  // on those of dedicated agents alone: interrupts, which nobody can turn away
};

}  // namespace farsum::cluster
