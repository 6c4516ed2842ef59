// How much longer a reduction takes on the simulated cluster by the degree that the table's formula chooses than by the
// best of all degrees from 2 to 8. What is chosen is printed before any tree is run.
#include "cost/reduction_choice.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/samples.hpp"

namespace farsum::cluster {
namespace {

struct ChosenShape {
  cost::ReducedVector vector;
  std::uint32_t nodes;
  std::uint64_t degree;
};

std::vector<ChosenShape> choose_and_print() {
  const cost::ReductionTable table = cost::table_of(cost::paper_model());
  std::vector<ChosenShape> shapes;
  for (const cost::ReductionTable::Row& row : table.rows()) {
    for (const std::uint32_t nodes : {31U, 512U}) {
      for (const std::uint64_t elements : cost::listed_elements) {
        const cost::ReducedVector vector = {row.op, row.type, elements};
        shapes.push_back({vector, nodes, cost::choose_degree(table, vector, nodes)});
        std::printf("%s %s, %u nodes, %u elements: degree %u\n", ops::name_of(row.type), ops::name_of(row.op), nodes,
                    static_cast<unsigned>(elements), static_cast<unsigned>(shapes.back().degree));
      }
    }
  }
  return shapes;
}

// Of cards, which nobody disturbs.
std::int64_t simulated_ns(const ChosenShape& shape, std::uint64_t degree) {
  const auto ns = [](double us) { return static_cast<std::int64_t>(std::llround(us * 1000)); };
  const auto part_of = [&](std::uint64_t elements) {
    cost::ReducedVector part = shape.vector;
    part.elements = elements;
    return *cost::terms_of(cost::paper_model(), part);
  };
  Machine machine;
  machine.entry_ns = ns(part_of(1).overhead_us);
  machine.latency_ns = ns(part_of(1).latency_us);
  machine.take_ns = [&](std::uint64_t elements) { return ns(part_of(elements).message_us); };
  machine.copy_ns = machine.take_ns;
  const Lists lists(trees::Shape{
      .nodes = shape.nodes, .elements = shape.vector.elements, .degree = static_cast<std::uint32_t>(degree)});
  return measure(machine, lists, 1).each_ns.front();
}

TEST(TheChosenDegree, takes_at_most_a_twentieth_longer_than_the_best_in_the_mean) {
  double logs = 0;
  double worst = 1;
  const std::vector<ChosenShape> shapes = choose_and_print();
  for (const ChosenShape& shape : shapes) {
    std::int64_t best = simulated_ns(shape, 2);
    for (std::uint64_t degree = 3; degree <= 8; ++degree) best = std::min(best, simulated_ns(shape, degree));
    const double regret = static_cast<double>(simulated_ns(shape, shape.degree)) / static_cast<double>(best);
    logs += std::log(regret);
    worst = std::max(worst, regret);
  }
  const double mean = std::exp(logs / static_cast<double>(shapes.size()));
  std::printf("geometric mean of regret %.4f, worst %.4f\n", mean, worst);
  EXPECT_LE(mean, 1.05);
  EXPECT_LE(worst, 1.15);
}

}  // namespace
}  // namespace farsum::cluster
