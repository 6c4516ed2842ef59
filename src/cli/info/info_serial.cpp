// Reductions in which all nodes send to one, which tells all: by a degree that makes each node the root's child.
#include "cli/info/info_serial.hpp"

#include <farsum.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/exit_codes.hpp"
#include "cli/info/info_model.hpp"
#include "cli/info/info_nodes.hpp"
#include "cli/info/info_reducing.hpp"
#include "cli/info/info_timing.hpp"
#include "os/usable_processors.hpp"
#include "runtime/link_models.hpp"
#include "runtime/reduction_models.hpp"

namespace farsum::cli {

namespace {

constexpr int least_nodes = 2;
constexpr int rounds = 3;  // in each of which all vectors take their turn
// What fits the longest slot for letters goes as one.
constexpr std::uint64_t packet_bytes = 4032;

// Every node calls; node 0 gets the times.
void measure_over(int nodes, const std::vector<TimedVector>& all, SerialReductions& measured) {
  SomeNodes some(nodes);
  // A reduction goes up to the root and down again.
  if (nodes == least_nodes) measured.conditions.half_round_trip_us = some.round_trip_us();
  std::vector<std::vector<double>> times_us(all.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) some.time(all[i], times_us[i]);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    measured.curves[i].vector = all[i].modelled;
    measured.curves[i].times.push_back({static_cast<std::uint64_t>(nodes), lower_decile(times_us[i])});
  }
}

void measure_as_node(NodeHere& here, int most_nodes, const std::string& folder) {
  here.open(most_nodes);
  const std::vector<TimedVector> all = timed_vectors();
  SerialReductions measured;
  measured.curves.resize(all.size());
  for (int nodes = least_nodes; nodes <= most_nodes; ++nodes) {
    if (here.node() < nodes) measure_over(nodes, all, measured);
    here.meet();
  }
  require(farsum_finalize());
  if (here.node() != 0) return;
  measured.conditions.processors = std::max(1U, os::report_processors().usable);
  measured.conditions.packet_bytes = packet_bytes;
  if (Status status = write_serial_reductions(folder, measured, today()); !status.is_ok())
    throw std::runtime_error(status.text());
}

}  // namespace

int measure_serial_reductions(const Settings& settings, int most_nodes) {
  const std::string folder = model_folder(settings, environment);
  if (folder.empty()) {
    fmt::print(stderr, "farsum info: there is no folder to keep it in: FARSUM_MODEL is none, or HOME is not set\n");
    return exit_failure;
  }
  const auto work = [&](NodeHere& here) { measure_as_node(here, most_nodes, folder); };
  return run_nodes_here(most_nodes, work) ? exit_ok : exit_failure;
}

}  // namespace farsum::cli
