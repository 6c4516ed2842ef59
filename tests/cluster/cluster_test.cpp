#include "cluster/cluster.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/samples.hpp"
#include "trees/timing.hpp"

namespace farsum::cluster {
namespace {

using trees::Kind;
using trees::Shape;

// Table 2 of paper 5, float64 add, as far as these tests need it to be.
std::int64_t receive_ns(std::uint64_t elements) { return elements <= 8 ? 420 : 840; }
std::int64_t combine_ns(std::uint64_t elements) { return 1'500 * static_cast<std::int64_t>(elements); }

Machine card_machine() {
  Machine machine;
  machine.entry_ns = 9'200;
  machine.latency_ns = 2'100;
  machine.take_ns = [](std::uint64_t elements) { return receive_ns(elements) + combine_ns(elements); };
  machine.copy_ns = receive_ns;
  return machine;
}

trees::Costs costs_of_card() {
  return {.latency_ns = 2'100, .overhead_ns = 9'200, .receive_ns = receive_ns, .combine_ns = combine_ns};
}

Machine noisy(Machine machine, CarrierKind carrier, const Noise& noise) {
  machine.carrier = carrier;
  machine.noise = noise;
  return machine;
}

// Nodes 1 and on may have daemons with such a seed, node 0 has none.
Noise noise_that_spares_the_root() {
  Noise noise{.load = 0.3, .length_ns = 20'000, .share = 0.5};
  const Lists alone(Shape{.elements = 1});
  for (;; ++noise.seed) {
    Machine machine = noisy(card_machine(), CarrierKind::host, noise);
    machine.processors_a_node = 1;
    const Samples samples = measure(machine, alone, 100);
    if (samples.each_ns.back() == samples.each_ns.front()) return noise;
  }
}

TEST(AClusterWithoutNoise, takes_as_long_as_the_model_of_times_says) {
  for (const Shape& shape :
       {Shape{.nodes = 1, .elements = 1}, Shape{.nodes = 31, .elements = 1, .degree = 3},
        Shape{.nodes = 70, .elements = 9, .degree = 4, .splits = 3}, Shape{.nodes = 906, .elements = 1, .degree = 4},
        Shape{.kind = Kind::allreduce, .nodes = 45, .elements = 2, .degree = 2},
        Shape{.kind = Kind::barrier, .nodes = 100},
        Shape{.kind = Kind::broadcast, .nodes = 33, .elements = 4, .degree = 5}}) {
    const trees::Times times = trees::event_times(shape, costs_of_card());
    const Lists lists(shape);
    Machine machine = card_machine();
    EXPECT_EQ(Cluster(machine, lists).call().end_ns, times.last_ns) << shape.nodes << " nodes, all";
    machine.closing = Closing::broadcast;
    EXPECT_EQ(Cluster(machine, lists).call().end_ns, times.root_ns) << shape.nodes << " nodes, root";
  }
}

TEST(AClusterWithoutNoise, takes_the_times_worked_out_for_906_nodes) {
  const Lists lists(Shape{.nodes = 906, .elements = 1, .degree = 4});
  EXPECT_EQ(Cluster(card_machine(), lists).call().end_ns, 46'580);
  Machine machine = card_machine();
  machine.take_ns = [](std::uint64_t) { return 670; };
  EXPECT_EQ(Cluster(machine, lists).call().end_ns, 29'080);
}

TEST(AClusterWithoutNoise, adds_the_step_in_shared_memory_and_what_closes_a_call) {
  const Lists lists(Shape{.nodes = 31, .elements = 1, .degree = 4});
  Machine machine = card_machine();
  const std::int64_t one_rank_ns = Cluster(machine, lists).call().end_ns;
  machine.ranks_a_node = 2;
  machine.local_ns = 300;
  machine.closing_ns = 10'000;
  EXPECT_EQ(Cluster(machine, lists).call().end_ns, one_rank_ns + 10'300);
}

TEST(AClusterWithoutNoise, walks_one_call_and_repeats_it) {
  const Lists lists(Shape{.nodes = 31, .elements = 1, .degree = 4});
  const Samples samples = measure(card_machine(), lists, 1'000);
  EXPECT_EQ(samples.letters, 30U);
  EXPECT_EQ(samples.each_ns.front(), samples.each_ns.back());
}

TEST(TheTreeOfTheHostsLibrary, has_four_children_a_node_and_combines_them_in_order) {
  const Lists lists = Lists::of_complete_tree(906, 4, 1);
  EXPECT_EQ(lists.letters(), 905U);
  ASSERT_EQ(lists.of(1).size(), 5U);
  EXPECT_EQ(lists.of(1)[0].peer, 5U);
  EXPECT_EQ(lists.of(1)[3].peer, 8U);
  EXPECT_EQ(lists.of(1)[4].peer, 0U);
  Machine machine = card_machine();
  machine.carrier = CarrierKind::host;
  machine.take_ns = [](std::uint64_t) { return 50; };
  // Five levels; in the last, node 226, the first with less than four, is off the way that takes longest.
  EXPECT_EQ(Cluster(machine, lists).call().end_ns, 9'200 + 5 * 2'100 + 5 * 4 * 50);
}

TEST(ANoisyCluster, has_the_same_times_with_the_same_seed_and_others_with_another) {
  const Lists lists(Shape{.nodes = 64, .elements = 1, .degree = 4});
  for (const CarrierKind carrier :
       {CarrierKind::host, CarrierKind::card, CarrierKind::thread, CarrierKind::dedicated}) {
    Machine machine = noisy(card_machine(), carrier, {.load = 0.01, .length_ns = 100'000});
    machine.wake_up_ns = {5'000, 14'000};
    machine.dedicated_noise = {.load = 0.01, .length_ns = 10'000};
    const std::vector<std::int64_t> once = measure(machine, lists, 300).each_ns;
    EXPECT_EQ(once, measure(machine, lists, 300).each_ns);
    machine.noise.seed = 2;
    machine.dedicated_noise.seed = 2;
    EXPECT_NE(once, measure(machine, lists, 300).each_ns);
  }
}

TEST(ANoisyCluster, is_slower_than_a_quiet_one) {
  const Lists lists(Shape{.nodes = 64, .elements = 1, .degree = 4});
  for (const CarrierKind carrier : {CarrierKind::host, CarrierKind::card}) {
    Machine machine = noisy(card_machine(), carrier, {.load = 0.01});
    machine.ranks_a_node = 2;
    const double noisy_us = measure(machine, lists, 1'000).averaged_us;
    machine.noise.load = 0;
    EXPECT_GT(noisy_us, measure(machine, lists, 1'000).averaged_us * 1.1);
  }
}

// A range whose draws are all its least one makes calls that could be repeated be walked.
TEST(ANoisyCluster, repeats_a_call_only_where_it_would_be_the_same_again) {
  const Lists lists(Shape{.nodes = 16, .elements = 1, .degree = 4});
  for (const CarrierKind carrier : {CarrierKind::host, CarrierKind::card}) {
    Machine machine = noisy(card_machine(), carrier, {.load = 0.002, .length_ns = 50'000});
    machine.ranks_a_node = 2;
    const Samples repeated = measure(machine, lists, 2'000);
    machine.to_carrier_ns = {0, 1};
    const Samples walked = measure(machine, lists, 2'000);
    EXPECT_LT(repeated.letters, walked.letters);
    EXPECT_EQ(repeated.each_ns, walked.each_ns);
    EXPECT_EQ(repeated.averaged_us, walked.averaged_us);
  }
}

TEST(ACard, that_has_been_entered_is_not_delayed_by_daemons_as_a_host_is) {
  const Lists lists(Shape{.nodes = 64, .elements = 1, .degree = 4});
  Machine machine = card_machine();
  machine.processors_a_node = 1;
  machine.entry_ns = 0;
  machine.latency_ns = 50'000;
  machine.closing = Closing::broadcast;
  const std::int64_t quiet_ns = Cluster(machine, lists).call().end_ns;
  const Noise noise = noise_that_spares_the_root();
  // Every node enters at 0, when no daemon has begun.
  EXPECT_EQ(Cluster(noisy(machine, CarrierKind::card, noise), lists).call().end_ns, quiet_ns);
  EXPECT_GT(Cluster(noisy(machine, CarrierKind::host, noise), lists).call().end_ns, quiet_ns);
}

TEST(ACard, is_entered_late_where_a_daemon_has_the_processor) {
  const Lists lists(Shape{.nodes = 64, .elements = 1, .degree = 4});
  Machine machine = card_machine();
  machine.processors_a_node = 1;
  const double quiet_us = measure(machine, lists, 10).averaged_us;
  const Noise noise = noise_that_spares_the_root();
  EXPECT_GT(measure(noisy(machine, CarrierKind::card, noise), lists, 10).averaged_us, quiet_us * 1.1);
}

TEST(AnIdleProcessor, takes_the_daemons_of_its_node) {
  const Lists lists(Shape{.nodes = 64, .elements = 1, .degree = 4});
  Machine machine = noisy(card_machine(), CarrierKind::host, {.load = 0.001, .length_ns = 100'000});
  const double with_idle_us = measure(machine, lists, 2'000).averaged_us;
  machine.processors_a_node = 1;
  EXPECT_GT(measure(machine, lists, 2'000).averaged_us, with_idle_us * 1.01);
}

TEST(AThread, is_woken_by_each_letter_that_finds_it_with_nothing_to_do) {
  const Lists lists(Shape{.nodes = 5, .elements = 1, .degree = 5});
  Machine machine = card_machine();
  machine.carrier = CarrierKind::thread;
  const std::int64_t awake_ns = Cluster(machine, lists).call().end_ns;
  machine.wake_up_ns = {7'000, 7'000};
  // The letters of four leaves come at once: the first wakes it.
  EXPECT_EQ(Cluster(machine, lists).call().end_ns, awake_ns + 7'000);
}

TEST(ADedicatedAgent, is_disturbed_by_its_own_processors_noise_alone) {
  const Lists lists(Shape{.nodes = 64, .elements = 1, .degree = 4});
  Machine machine = card_machine();
  machine.carrier = CarrierKind::dedicated;
  const double quiet_us = measure(machine, lists, 200).averaged_us;
  machine.dedicated_noise = {.load = 0.01, .length_ns = 10'000};
  EXPECT_GT(measure(machine, lists, 200).averaged_us, quiet_us);
}

TEST(Samples, average_the_time_around_all_calls) {
  const Lists lists(Shape{.nodes = 64, .elements = 1, .degree = 4});
  const Machine machine = noisy(card_machine(), CarrierKind::host, {.load = 0.02, .length_ns = 30'000});
  Cluster cluster(machine, lists);
  const std::int64_t first_start_ns = cluster.call().start_ns;
  std::int64_t last_end_ns = 0;
  for (int i = 1; i < 500; ++i) {
    const Call call = cluster.call();
    EXPECT_GE(call.start_ns, call.released_ns);
    EXPECT_GE(call.start_ns, last_end_ns);
    last_end_ns = call.end_ns;
  }
  EXPECT_DOUBLE_EQ(measure(machine, lists, 500).averaged_us,
                   static_cast<double>(last_end_ns - first_start_ns) / 1000 / 500);
}

TEST(Samples, are_described_without_the_longest) {
  std::vector<std::int64_t> each_ns(198, 10'000);
  each_ns.push_back(14'000);
  each_ns.push_back(900'000);
  const Spread spread = spread_of(each_ns, 0.005);
  EXPECT_NEAR(spread.mean_us, 10 + 4.0 / 199, 1e-9);
  EXPECT_NEAR(spread.deviation_us, 0.2828, 1e-3);
  EXPECT_DOUBLE_EQ(spread_of(each_ns, 0.01).deviation_us, 0);
  EXPECT_DOUBLE_EQ(share_within(each_ns, 3'999), 0.99);
  EXPECT_DOUBLE_EQ(share_within(each_ns, 4'000), 0.995);
}

TEST(ALargeCluster, of_16384_nodes_with_two_ranks_each_runs) {
  const Lists lists(Shape{.nodes = 16'384, .elements = 1, .degree = 4});
  Machine machine = noisy(card_machine(), CarrierKind::card, {.load = 1e-6});
  machine.ranks_a_node = 2;
  const Samples samples = measure(machine, lists, 5);
  EXPECT_GE(samples.letters, 16'383U);
  EXPECT_GE(samples.each_ns.front(),
            trees::event_times({.nodes = 16'384, .elements = 1, .degree = 4}, costs_of_card()).root_ns);
}

}  // namespace
}  // namespace farsum::cluster
