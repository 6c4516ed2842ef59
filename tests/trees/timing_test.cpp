// Event times by the parameters of paper 5, table 2, against sums done by hand and by another program.
#include "trees/timing.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

namespace farsum::trees {
namespace {

constexpr std::int64_t latency = 2100;
constexpr std::int64_t overhead = 9200;
constexpr std::int64_t reception = 420;

// Float64 additions, of 1, 2, 4 and 8 elements.
std::int64_t sum_ns(std::uint64_t elements) {
  constexpr std::int64_t by_power[] = {1500, 2950, 5800, 11'560};
  return by_power[std::bit_width(elements) - 1];
}

Costs paper() {
  return {.latency_ns = latency,
          .overhead_ns = overhead,
          .receive_ns = [](std::uint64_t) { return reception; },
          .combine_ns = sum_ns};
}

std::vector<std::int64_t> by_degree(std::uint64_t elements, ChildOrder order) {
  std::vector<std::int64_t> times;
  for (const std::uint32_t degree : {2U, 3U, 4U}) {
    times.push_back(event_times({Kind::reduce, 31, 0, elements, degree}, paper(), order).root_ns);
  }
  return times;
}

using Nanoseconds = std::vector<std::int64_t>;

TEST(EventTimes, of_31_nodes_in_the_order_of_arrival) {
  EXPECT_EQ(by_degree(1, ChildOrder::arrival), (Nanoseconds{27'200, 27'020, 27'020}));
  EXPECT_EQ(by_degree(2, ChildOrder::arrival), (Nanoseconds{34'450, 36'990, 36'990}));
  EXPECT_EQ(by_degree(4, ChildOrder::arrival), (Nanoseconds{48'700, 56'940, 56'940}));
  EXPECT_EQ(by_degree(8, ChildOrder::arrival), (Nanoseconds{77'500, 97'260, 97'260}));
}

TEST(EventTimes, of_31_nodes_in_the_order_of_slots) {
  EXPECT_EQ(by_degree(1, ChildOrder::slot), (Nanoseconds{27'200, 28'940, 28'940}));
  EXPECT_EQ(by_degree(2, ChildOrder::slot), (Nanoseconds{34'450, 39'090, 39'090}));
  EXPECT_EQ(by_degree(8, ChildOrder::slot), (Nanoseconds{77'500, 99'360, 99'360}));
}

TEST(EventTimes, of_512_nodes_fall_with_splits_as_the_vector_is_long) {
  const auto times = [](std::uint64_t elements, std::uint32_t most_splits) {
    Nanoseconds found;
    for (std::uint32_t splits = 0; splits <= most_splits; ++splits) {
      found.push_back(event_times({Kind::reduce, 512, 0, elements, 4, splits}, paper()).root_ns);
    }
    return found;
  };
  EXPECT_EQ(times(2, 1), (Nanoseconds{63'510, 47'180}));
  EXPECT_EQ(times(8, 3), (Nanoseconds{175'440, 103'080, 68'450, 55'630}));
}

TEST(EventTimes, of_a_serial_reduction_are_the_papers_sum) {
  for (std::uint32_t nodes = 2; nodes <= 13; ++nodes) {
    const std::int64_t expected = overhead + latency + (nodes - 1) * (reception + 1500);
    EXPECT_EQ(event_times({Kind::reduce, nodes, 0, 1, nodes}, paper()).root_ns, expected);
  }
}

TEST(EventTimes, of_a_full_tree_are_a_serial_reduction_a_phase) {
  for (const std::uint32_t degree : {2U, 3U, 5U}) {
    const std::int64_t phase = latency + (degree - 1) * (reception + 1500);
    for (const ChildOrder order : {ChildOrder::arrival, ChildOrder::slot}) {
      const Shape shape{Kind::reduce, degree * degree * degree, 3, 1, degree};
      EXPECT_EQ(event_times(shape, paper(), order).root_ns, overhead + 3 * phase);
    }
  }
}

TEST(EventTimes, of_a_barrier_are_a_letter_a_round) {
  const Times times = event_times({Kind::barrier, 100}, paper());
  EXPECT_EQ(times.finish_ns, Nanoseconds(100, overhead + 7 * (latency + reception)));
  EXPECT_EQ(times.last_ns, times.root_ns);
}

TEST(EventTimes, of_a_broadcast_grow_with_the_gap_between_letters_of_a_node) {
  Costs costs = paper();
  costs.send_gap_ns = latency;
  const Times times = event_times({Kind::broadcast, 4, 0, 1, 4}, costs);
  const std::int64_t first = overhead + latency + reception;
  EXPECT_EQ(times.finish_ns, (Nanoseconds{overhead + 2 * latency, first, first + latency, first + 2 * latency}));
  EXPECT_EQ(times.root_ns, overhead + 2 * latency);
  EXPECT_EQ(times.last_ns, first + 2 * latency);
}

TEST(EventTimes, of_a_reduce_have_no_use_for_the_gap) {
  Costs costs = paper();
  costs.send_gap_ns = latency;
  for (std::uint32_t splits = 0; splits <= 3; ++splits) {
    const Shape shape{Kind::reduce, 512, 0, 8, 4, splits};
    EXPECT_EQ(event_times(shape, costs).finish_ns, event_times(shape, paper()).finish_ns);
  }
}

TEST(EventTimes, of_an_allreduce_are_those_of_its_reduce_and_then_the_broadcast) {
  const std::int64_t reduced = event_times({Kind::reduce, 31, 0, 1, 4}, paper()).root_ns;
  Costs costs = paper();
  costs.overhead_ns = 0;
  const std::int64_t broadcast = event_times({Kind::broadcast, 31, 0, 1, 2}, costs).last_ns;
  EXPECT_EQ(event_times({Kind::allreduce, 31, 0, 1, 4, 0, 2}, paper()).last_ns, reduced + broadcast);
}

TEST(EventTimes, of_one_node_are_the_overhead) {
  EXPECT_EQ(event_times({Kind::reduce, 1, 0, 1}, paper()).finish_ns, Nanoseconds{overhead});
}

}  // namespace
}  // namespace farsum::trees
