#include "cli/info/info_trees.hpp"

#include <farsum.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "cli/info/info_model.hpp"
#include "cli/info/info_nodes.hpp"
#include "cli/info/info_reducing.hpp"
#include "cli/info/info_timing.hpp"
#include "cost/reduction_choice.hpp"
#include "cost/reduction_model.hpp"
#include "os/usable_processors.hpp"
#include "runtime/link_models.hpp"
#include "runtime/reduction_models.hpp"
#include "runtime/tree_times.hpp"

namespace farsum::cli {

namespace {

constexpr int turns = 5;  // in each of which all degrees take their turn
constexpr double most_regret = 1.15;

// As in figure 10 of paper 5.
std::vector<TimedVector> vectors_of_figure_10() {
  std::vector<TimedVector> all;
  all.reserve(cost::listed_elements.size());
  for (const std::uint64_t elements : cost::listed_elements)
    all.push_back({FARSUM_DOUBLE, FARSUM_SUM, {ops::Operator::sum, ops::ElementType::float64, elements}});
  return all;
}

// The last has all send to one.
std::vector<int> degrees_for(int nodes) {
  std::vector<int> degrees;
  for (const int degree : {2, 3, 4, 8})
    if (degree < nodes) degrees.push_back(degree);
  degrees.push_back(nodes);
  return degrees;
}

// Every node calls; node 0 tells the lower deciles, by vector and degree.
void time_as_node(NodeHere& here, int nodes, std::span<const int> degrees, std::span<const TimedVector> vectors) {
  std::vector<std::vector<double>> times_us(degrees.size() * vectors.size());
  for (int round = 0; round < turns; ++round) {
    for (std::size_t at = 0; at < degrees.size(); ++at) {
      here.open(degrees[at]);
      {
        SomeNodes all(nodes);
        for (std::size_t i = 0; i < vectors.size(); ++i) all.time(vectors[i], times_us[i * degrees.size() + at]);
      }
      require(farsum_finalize());
    }
  }
  if (here.node() != 0) return;
  std::vector<double> deciles;
  std::transform(times_us.begin(), times_us.end(), std::back_inserter(deciles),
                 [](const std::vector<double>& us) { return lower_decile(us); });
  here.tell(deciles);
}

struct ChosenDegrees {
  std::vector<std::uint64_t> degree;  // by vector
  double ranks_per_processor = 1;
};

ChosenDegrees choose_and_say(const ReductionParameters& parameters, std::span<const TimedVector> vectors, int nodes) {
  ChosenDegrees choices;
  choices.ranks_per_processor = nodes / static_cast<double>(std::max(1U, os::report_processors().usable));
  cost::ReductionModel model = parameters.model;
  model.receive_us *= cost::crowding(choices.ranks_per_processor);
  for (cost::CombineParameters& combine : model.combines)
    for (double& us : combine.combine_us) us *= cost::crowding(choices.ranks_per_processor);
  const cost::ReductionTable table = cost::table_of(model);
  for (const TimedVector& vector : vectors) {
    choices.degree.push_back(cost::choose_degree(table, vector.modelled, static_cast<std::uint64_t>(nodes)));
    fmt::print(stderr, "farsum info: {} nodes, {} {} of {} elements: degree {} is chosen\n", nodes,
               ops::name_of(vector.modelled.op), ops::name_of(vector.modelled.type), vector.modelled.elements,
               choices.degree.back());
  }
  return choices;
}

double rounded(double value) { return std::round(value * 1e3) / 1e3; }

// `us` by vector and degree.
MeasuredTrees trees_of(std::span<const TimedVector> vectors, std::span<const int> degrees, std::span<const double> us,
                       int nodes) {
  MeasuredTrees trees;
  trees.nodes = static_cast<std::uint64_t>(nodes);
  trees.processors = std::max(1U, os::report_processors().usable);
  for (const TimedVector& vector : vectors) {
    TreeCurve& curve = trees.curves.emplace_back();
    curve.vector = vector.modelled;
    for (const int degree : degrees) {
      curve.times.push_back({.degree = static_cast<std::uint64_t>(degree), .us = us.front()});
      us = us.subspan(1);
    }
  }
  return trees;
}

// Where there is no folder they are shown and no more.
void keep(const std::string& folder, const MeasuredTrees& trees) {
  if (folder.empty()) return;
  if (Status status = write_measured_trees(folder, trees, today()); !status.is_ok())
    fmt::print(stderr, "farsum info: {}\n", status.text());
}

}  // namespace

std::optional<Report> measure_trees(const Settings& settings, int nodes) {
  const std::string folder = model_folder(settings, environment);
  const ReductionParameters parameters = read_reduction_parameters(folder);
  const std::vector<TimedVector> vectors = vectors_of_figure_10();
  const std::vector<int> degrees = degrees_for(nodes);
  const ChosenDegrees choices = choose_and_say(parameters, vectors, nodes);
  const auto told = run_nodes_here(nodes, [&](NodeHere& here) { time_as_node(here, nodes, degrees, vectors); });
  if (!told) return std::nullopt;
  keep(folder, trees_of(vectors, degrees, *told, nodes));
  Report report;
  double logs = 0;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const cost::ReductionTerms terms =
        cost::terms_of(parameters.model, vectors[i].modelled, choices.ranks_per_processor)
            .value_or(cost::ReductionTerms{});
    const auto measured = std::span(*told).subspan(i * degrees.size(), degrees.size());
    const double best = *std::min_element(measured.begin(), measured.end());
    for (std::size_t at = 0; at < degrees.size(); ++at) {
      const auto degree = static_cast<std::uint64_t>(degrees[at]);
      const bool is_chosen = degree == choices.degree[i];
      if (is_chosen) logs += std::log(measured[at] / best);
      report["trees"].push_back(
          {{"elements", vectors[i].modelled.elements},
           {"degree", degree},
           {"predicted_us", rounded(cost::tree_us(terms, static_cast<std::uint64_t>(nodes), degree))},
           {"measured_us", rounded(measured[at])},
           {"of_best", rounded(measured[at] / best)},
           {"choice", is_chosen ? "chosen" : ""}});
    }
  }
  const double regret = std::exp(logs / static_cast<double>(vectors.size()));
  report["regret"] = {
      {"nodes", nodes}, {"geometric_mean", rounded(regret)}, {"aim", most_regret}, {"met", regret <= most_regret}};
  return report;
}

}  // namespace farsum::cli
