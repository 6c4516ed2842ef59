// What may depend on who is fast and who is slow, and what may not.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "symbolic_cluster.hpp"
#include "trees/fnomial.hpp"
#include "trees/schedule.hpp"

namespace farsum::trees {
namespace {

std::vector<Shape> some_shapes() {
  std::vector<Shape> shapes;
  for (const std::uint32_t nodes : {2U, 3U, 5U, 8U, 13U, 31U, 64U}) {
    for (const std::uint32_t degree : {2U, 3U, nodes}) {
      for (const std::uint32_t splits : {0U, 1U, 3U}) {
        shapes.push_back({Kind::reduce, nodes, nodes / 2, 9, degree, splits});
        shapes.push_back({Kind::allreduce, nodes, 0, 9, degree, splits, 4});
      }
      shapes.push_back({Kind::broadcast, nodes, nodes - 1, 2, degree});
    }
    for (const std::uint32_t degree : {2U, 3U, nodes}) {
      shapes.push_back({Kind::barrier, nodes, 0, 1, degree});
      shapes.push_back({Kind::allgather, nodes, 0, 0, degree});
    }
  }
  return shapes;
}

TEST(Order, of_arrival_changes_neither_the_bracketing_nor_that_all_lists_end) {
  for (const Shape& shape : some_shapes()) {
    SymbolicCluster reference(shape, {});
    ASSERT_EQ(reference.run(), "");
    for (std::uint32_t seed = 1; seed <= 8; ++seed) {
      SymbolicCluster cluster(shape, {.room = seed % 3 + 1, .seed = seed, .starve_root = seed % 2 == 0});
      ASSERT_EQ(cluster.run(), "") << "seed " << seed << ", " << shape.nodes << " nodes";
      const std::uint32_t root = normalised(shape).root;
      ASSERT_EQ(cluster.bracketing(root), reference.bracketing(root)) << "seed " << seed;
    }
  }
}

TEST(Order, of_rounds_back_to_back_is_kept_with_room_for_one_letter) {
  for (const std::uint32_t nodes : {2U, 3U, 9U, 20U}) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      SymbolicCluster cluster({Kind::reduce, nodes, 0, 4, 3}, {.room = 1, .seed = seed, .starve_root = seed % 2 == 0});
      cluster.add_round({Kind::broadcast, nodes, nodes - 1, 4, 2});
      cluster.add_round({Kind::reduce, nodes, nodes / 2, 4, 2, 2});
      cluster.add_round({Kind::allreduce, nodes, 0, 4, 4, 1});
      cluster.add_round({Kind::allgather, nodes, 0, 4});
      cluster.add_round({Kind::allgather, nodes, 0, 4, nodes});
      cluster.add_round({Kind::barrier, nodes, 0, 4});
      cluster.add_round({Kind::barrier, nodes, 0, 4, nodes});
      ASSERT_EQ(cluster.run(), "") << nodes << " nodes, seed " << seed;
    }
  }
}

// What a node keeps room for.
TEST(Order, of_one_collective_has_two_letters_from_a_node_to_another_at_most) {
  for (std::uint32_t nodes = 2; nodes <= 70; ++nodes) {
    for (const std::uint32_t degree : {2U, 3U, 8U, nodes}) {
      for (const std::uint32_t splits : {0U, 1U, 2U, 5U}) {
        for (std::uint32_t node = 0; node < nodes; ++node) {
          std::map<std::uint32_t, int> letters;
          for (const Step& step : steps_of({Kind::allreduce, nodes, 0, 64, degree, splits, 3}, node)) {
            letters[step.peer] += step.action == Action::send ? 1 : 0;
            ASSERT_LE(letters[step.peer], 2);
          }
        }
      }
    }
  }
}

TEST(Order, of_a_barrier_and_an_allgather_has_one_letter_from_a_node_to_another_at_most) {
  for (const Kind kind : {Kind::barrier, Kind::allgather}) {
    for (std::uint32_t nodes = 2; nodes <= 70; ++nodes) {
      for (const std::uint32_t degree : {2U, 3U, 8U, nodes}) {
        std::map<std::uint32_t, int> letters;
        for (const Step& step : steps_of({.kind = kind, .nodes = nodes, .degree = degree}, nodes - 1)) {
          letters[step.peer] += step.action == Action::send ? 1 : 0;
          ASSERT_LE(letters[step.peer], 1);
        }
      }
    }
  }
}

// The children of the root as they come, one after the other, where a letter takes `latency` and a combine `gap`.
std::vector<std::uint32_t> children_by_time(const Fnomial& tree, std::int64_t latency, std::int64_t gap) {
  std::vector<std::uint32_t> order;
  const std::function<std::int64_t(std::uint32_t)> done = [&](std::uint32_t node) {
    std::vector<std::pair<std::int64_t, std::uint32_t>> arrivals;
    for (const Fnomial::Child& child : tree.children(node))
      arrivals.emplace_back(done(child.node) + latency, child.node);
    std::sort(arrivals.begin(), arrivals.end());
    std::int64_t now = 0;
    for (const auto& [arrival, child] : arrivals) now = std::max(now, arrival) + gap;
    if (node == 0) {
      for (const auto& [arrival, child] : arrivals) order.push_back(child);
    }
    return now;
  };
  done(0);
  return order;
}

TEST(Order, of_the_children_is_that_of_their_arrival_in_units_of_time_and_in_times_that_were_measured) {
  // L and r + c: units; the paper's in ns with the slowest and the fastest operators; letters slow and fast.
  const std::array<std::pair<std::int64_t, std::int64_t>, 6> times = {
      {{1, 1}, {2100, 11'980}, {2100, 670}, {2100, 1920}, {20'000, 500}, {5, 5000}}};
  for (std::uint32_t degree = 2; degree <= 8; ++degree) {
    for (std::uint32_t nodes = 2; nodes <= 150; ++nodes) {
      std::vector<std::uint32_t> order;
      for (const Step& step : steps_of({Kind::reduce, nodes, 0, 1, degree}, 0)) order.push_back(step.peer);
      for (const auto& [latency, gap] : times) {
        ASSERT_EQ(order, children_by_time(Fnomial(nodes, degree), latency, gap))
            << nodes << " nodes, degree " << degree << ", " << latency << " and " << gap;
      }
    }
  }
}

TEST(Hash, is_the_same_of_shapes_that_do_the_same) {
  EXPECT_EQ(hash_of({Kind::reduce, 31, 3, 8, 31}), hash_of({Kind::reduce, 31, 3, 8, 1000}));
  EXPECT_EQ(hash_of({Kind::reduce, 31, 3, 8, 2, 3}), hash_of({Kind::reduce, 31, 3, 8, 2, 9}));
  EXPECT_EQ(hash_of({Kind::reduce, 31, 3, 3, 2, 1}), hash_of({Kind::reduce, 31, 3, 3, 2, 2}));
  EXPECT_EQ(hash_of({Kind::reduce, 3, 0, 8, 2, 1}), hash_of({Kind::reduce, 3, 0, 8, 2, 2}));
  EXPECT_EQ(hash_of({Kind::broadcast, 31, 3, 8, 2, 1}), hash_of({Kind::broadcast, 31, 3, 8, 2}));
  EXPECT_EQ(hash_of({Kind::allreduce, 31, 3, 8, 4}), hash_of({Kind::allreduce, 31, 0, 8, 4, 0, 4}));
  EXPECT_EQ(hash_of({Kind::barrier, 31, 3, 8, 2}), hash_of({Kind::barrier, 31}));
  EXPECT_EQ(hash_of({Kind::barrier, 31, 0, 0, 77}), hash_of({Kind::barrier, 31, 0, 0, 31}));
  EXPECT_EQ(hash_of({Kind::allgather, 31, 3, 8, 2, 5}), hash_of({Kind::allgather, 31}));
  EXPECT_EQ(hash_of({Kind::reduce, 31, 3, 0, 4}), hash_of({Kind::broadcast, 31, 0, 0, 2}));
}

TEST(Hash, is_one_of_shapes_whose_lists_are_the_same_and_of_no_others) {
  std::map<std::uint64_t, Lists> lists_by_hash;
  for (const std::uint32_t nodes : {2U, 3U, 8U, 31U}) {
    for (const std::uint32_t root : {0U, 1U}) {
      for (const std::uint64_t elements : {1U, 2U, 8U}) {
        for (const std::uint32_t degree : {2U, 3U, 4U, 40U}) {
          for (const std::uint32_t splits : {0U, 1U, 2U}) {
            for (const Kind kind : {Kind::reduce, Kind::broadcast, Kind::allreduce, Kind::barrier, Kind::allgather}) {
              const Shape shape{kind, nodes, root, elements, degree, splits};
              const auto [known, is_new] = lists_by_hash.emplace(hash_of(shape), lists_of(shape));
              ASSERT_EQ(known->second, lists_of(shape));
            }
          }
        }
      }
    }
  }
  std::vector<Lists> different;
  for (const auto& [hash, lists] : lists_by_hash) {
    ASSERT_EQ(std::count(different.begin(), different.end(), lists), 0) << "one list, two hashes";
    different.push_back(lists);
  }
  EXPECT_GT(different.size(), 200U);
}

// Another number here means that programs get other last bits than they had: say so to their users.
TEST(Hash, of_these_shapes_has_not_changed) {
  EXPECT_EQ(hash_of({Kind::reduce, 31, 0, 8, 4}), 2952939974954803316U);
  EXPECT_EQ(hash_of({Kind::allreduce, 100, 0, 64, 3, 2, 5}), 13689571659031066275U);
}

TEST(Normalised, shape_has_no_more_than_can_be_done) {
  const Shape reduce = normalised({Kind::reduce, 9, 4, 100, 77, 9, 5});
  EXPECT_EQ(reduce, (Shape{Kind::reduce, 9, 4, 100, 9, 3, 0}));
  EXPECT_EQ(normalised(reduce), reduce);
  EXPECT_EQ(normalised({Kind::reduce, 9, 4, 3, 0, 9}), (Shape{Kind::reduce, 9, 4, 3, 2, 1, 0}));
  EXPECT_EQ(normalised({Kind::allreduce, 9, 4, 3, 3, 0, 0}), (Shape{Kind::allreduce, 9, 0, 3, 3, 0, 3}));
  EXPECT_EQ(normalised({Kind::broadcast, 1, 0, 3, 3, 2}), (Shape{Kind::broadcast, 1}));
  EXPECT_EQ(normalised({Kind::barrier, 9, 4, 3, 0, 2}), (Shape{Kind::barrier, 9, 0, 0, 2}));
  EXPECT_EQ(normalised({Kind::allgather, 9, 4, 3, 77, 2}), (Shape{Kind::allgather, 9, 0, 9, 9}));
}

}  // namespace
}  // namespace farsum::trees
