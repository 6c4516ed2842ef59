#include "cluster/paper_cluster.hpp"

#include <algorithm>
#include <cmath>

#include "cost/reduction_model.hpp"
#include "ops/op_kind.hpp"

namespace farsum::cluster {
namespace {

// Assumed: to hand a vector to another rank of the node or to an agent that looks, a cache line's way from processor to
// processor and back; to receive a letter that lies in the host's memory; to combine an element on the host.
constexpr std::int64_t hand_over_ns = 200;
constexpr std::int64_t host_receive_ns = 50;
constexpr std::int64_t host_combine_ns = 1;

// The figures of this project's own agents, measured between processes of one node: from a request to the first turn of
// an agent that sleeps, and from an answer to the rank that waits for it (docs/internals/simulator.md).
constexpr Range agent_wake_up_ns{5'300, 14'000};
constexpr Range rank_wake_up_ns{50, 2'000};

// A dedicated processor still has interrupts: short, and assumed to take as much of it as daemons of the others.
constexpr std::int64_t interrupt_ns = 10'000;

std::int64_t nanoseconds(double microseconds) { return std::llround(microseconds * 1000); }

void set_card_costs(Machine& machine, const Reduction& reduction) {
  const cost::ReductionModel& model = cost::paper_model();
  const auto terms = cost::terms_of(model, {ops::Operator::sum, reduction.type, reduction.elements});
  machine.entry_ns = terms ? nanoseconds(terms->overhead_us) : 0;
  const auto vector = [type = reduction.type](std::uint64_t elements) {
    return cost::ReducedVector{ops::Operator::sum, type, elements};
  };
  machine.latency_ns = nanoseconds(model.latency_us);
  machine.copy_ns = [&model, vector](std::uint64_t elements) {
    return nanoseconds(cost::receive_us(model, vector(elements)));
  };
  machine.take_ns = [&model, vector](std::uint64_t elements) {
    const auto piece = cost::terms_of(model, vector(elements));
    return piece ? nanoseconds(piece->message_us) : 0;
  };
}

void set_host_costs(Machine& machine, const PaperConstants& constants) {
  machine.latency_ns = nanoseconds(cost::paper_model().latency_us) + 2 * constants.crossing_ns;
  machine.copy_ns = [](std::uint64_t) { return host_receive_ns; };
  machine.take_ns = [](std::uint64_t elements) {
    return host_receive_ns + host_combine_ns * static_cast<std::int64_t>(elements);
  };
}

}  // namespace

Machine paper_machine(CarrierKind carrier, const Reduction& reduction, const PaperConstants& constants) {
  Machine machine;
  machine.carrier = carrier;
  machine.ranks_a_node = reduction.ranks_a_node;
  machine.local_ns = hand_over_ns;
  machine.closing_ns = constants.barrier_ns;
  machine.noise = constants.noise;
  if (carrier == CarrierKind::card) {
    set_card_costs(machine, reduction);
    return machine;
  }
  set_host_costs(machine, constants);
  if (carrier == CarrierKind::host) {
    // The root's letter crosses its bus, and the hardware brings it to all at once. What each host's bus then takes is
    // not counted.
    machine.closing = Closing::broadcast;
    machine.closing_ns = constants.crossing_ns + nanoseconds(cost::paper_model().latency_us);
  } else if (carrier == CarrierKind::thread) {
    machine.to_carrier_ns = machine.wake_up_ns = agent_wake_up_ns;
    machine.to_rank_ns = rank_wake_up_ns;
  } else {
    machine.to_carrier_ns = machine.to_rank_ns = {hand_over_ns, hand_over_ns};
    machine.dedicated_noise = constants.noise;
    machine.dedicated_noise.length_ns = interrupt_ns;
  }
  return machine;
}

Lists paper_lists(CarrierKind carrier, const Reduction& reduction) {
  constexpr std::uint32_t children_of_host = 4;
  if (carrier == CarrierKind::host) {
    return Lists::of_complete_tree(reduction.nodes, children_of_host, reduction.elements);
  }
  return Lists({.kind = trees::Kind::reduce,
                .nodes = reduction.nodes,
                .elements = reduction.elements,
                .degree = reduction.degree,
                .splits = reduction.splits});
}

}  // namespace farsum::cluster
