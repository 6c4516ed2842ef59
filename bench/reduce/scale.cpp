#include "scale.hpp"

#include <ctime>

#include <fmt/format.h>

#include "common/lab.hpp"

#include "cluster/paper_cluster.hpp"
#include "cluster/samples.hpp"

namespace bench {

namespace cluster = farsum::cluster;

Scale measure_scale() {
  const cluster::Reduction reduction{
      .nodes = 16'384, .ranks_a_node = 2, .type = farsum::ops::ElementType::float64, .elements = 1};
  const cluster::PaperConstants constants{.barrier_ns = 10'920, .noise = {.load = 0.001, .length_ns = 1'000'000}};
  const cluster::Lists lists = cluster::paper_lists(cluster::CarrierKind::card, reduction);
  Scale scale{.nodes = reduction.nodes, .ranks = 2 * reduction.nodes, .calls = 200};
  const std::clock_t begin = std::clock();
  scale.letters =
      cluster::measure(cluster::paper_machine(cluster::CarrierKind::card, reduction, constants), lists, scale.calls)
          .letters;
  scale.effort = effort_since(begin);
  return scale;
}

std::string text_of(const Scale& scale) {
  return fmt::format(
      "{} nodes, {} ranks, {} reductions: {:.1f} million letters in {:.2f} s of processor time, {:.1f} million a "
      "second; {:.1f} MiB\n",
      scale.nodes, scale.ranks, scale.calls, static_cast<double>(scale.letters) / 1e6, scale.effort.processor_s,
      static_cast<double>(scale.letters) / scale.effort.processor_s / 1e6, scale.effort.peak_mib);
}

std::string lines_of(const Scale& scale) {
  const std::string name =
      fmt::format("scale: {} nodes, {} ranks, {} reductions", scale.nodes, scale.ranks, scale.calls);
  const Json rate = {{"bench", "reduce"},
                     {"case", name + ", letters"},
                     {"ours", static_cast<double>(scale.letters) / scale.effort.processor_s},
                     {"unit", "a second of processor time"},
                     {"letters", scale.letters}};
  const Json memory = {
      {"bench", "reduce"}, {"case", name + ", memory"}, {"ours", scale.effort.peak_mib}, {"unit", "MiB"}};
  return rate.dump() + "\n" + memory.dump() + "\n";
}

}  // namespace bench
