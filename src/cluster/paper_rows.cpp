#include "cluster/paper_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cluster/paper_cluster.hpp"
#include "cluster/samples.hpp"

namespace farsum::cluster {
namespace {

using ops::ElementType;

// Section 6.3: what the barrier and the noise's load are fitted on, of int32 on 906 nodes.
constexpr double fitted_one_rank_us = 40;
constexpr double fitted_two_ranks_us = 73;
constexpr std::uint32_t largest_nodes = 906;
// Fixed before anything is fitted.
constexpr std::int64_t noise_length_ns = 1'000'000;

constexpr std::array<CarrierKind, 4> all_carriers = {CarrierKind::host, CarrierKind::card, CarrierKind::thread,
                                                     CarrierKind::dedicated};

const char* name_of(CarrierKind carrier) {
  switch (carrier) {
    case CarrierKind::host:
      return "host";
    case CarrierKind::card:
      return "card";
    case CarrierKind::thread:
      return "agent as a thread";
    case CarrierKind::dedicated:
      return "dedicated agent";
  }
  return "";
}

const char* closing_of(CarrierKind carrier) {
  return carrier == CarrierKind::host ? "closing broadcast" : "barrier before the next call";
}

// Averages of the paper's card and, by its improvements of 121 % and 39 %, of the host.
std::optional<double> paper_average_us(CarrierKind carrier, const Reduction& reduction) {
  if (reduction.nodes != largest_nodes) return std::nullopt;
  const bool is_int32 = reduction.type == ElementType::int32;
  if (reduction.ranks_a_node == 1) {
    return carrier == CarrierKind::card ? std::optional(is_int32 ? fitted_one_rank_us : 65) : std::nullopt;
  }
  if (carrier == CarrierKind::card) return is_int32 ? fitted_two_ranks_us : 118;
  if (carrier == CarrierKind::host) return is_int32 ? 73 * 2.21 : 118 * 1.39;
  return std::nullopt;
}

class Figures {
 public:
  explicit Figures(const PaperRowOptions& options) : options_(options) {
    constants_.noise = {.load = 0, .length_ns = noise_length_ns, .share = 1, .seed = options.seed};
  }

  std::vector<PaperRow> rows() {
    fit_barrier();
    fit_load();
    latencies();
    if (!options_.is_short) other_lengths();
    barriers();
    distributions();
    splits();
    return std::move(rows_);
  }

 private:
  void fit_barrier();
  void fit_load();
  void latencies();
  void other_lengths();
  void barriers();
  void distributions();
  void distribution(CarrierKind carrier, bool has_idle_processor);
  void splits();
  double split_us(std::uint64_t elements, std::uint32_t splits, std::uint32_t degree) const;
  void add_split(std::uint64_t elements, std::uint32_t splits, const char* curve, bool any_degree);

  std::size_t calls_of(CarrierKind carrier, std::uint32_t nodes) const;
  Samples measure_card(const Reduction& reduction) const {
    return measure(paper_machine(CarrierKind::card, reduction, constants_), paper_lists(CarrierKind::card, reduction),
                   options_.calls);
  }
  PaperRow row_of(const char* figure, CarrierKind carrier, const Reduction& reduction) const;
  void add_average(const char* figure, CarrierKind carrier, const Reduction& reduction);

  PaperRowOptions options_;
  PaperConstants constants_;
  std::vector<PaperRow> rows_;
};

// Without noise, for the idle processor of each node takes its daemons.
void Figures::fit_barrier() {
  const double without_us = measure_card({}).averaged_us;
  constants_.barrier_ns = std::llround((fitted_one_rank_us - without_us) * 1000);
  PaperRow row = row_of("figure 11", CarrierKind::card, {});
  row.quantity = "barrier";
  row.ours = static_cast<double>(constants_.barrier_ns) / 1000;
  row.basis = Basis::fitted;
  rows_.push_back(row);
}

// Halves the logarithm of what the load can be.
void Figures::fit_load() {
  double low = std::log(1e-5);
  double high = std::log(1e-3);
  for (int i = 0; i < 14; ++i) {
    constants_.noise.load = std::exp((low + high) / 2);
    (measure_card({.ranks_a_node = 2}).averaged_us < fitted_two_ranks_us ? low : high) =
        std::log(constants_.noise.load);
  }
  PaperRow row = row_of("figure 11", CarrierKind::card, {.ranks_a_node = 2});
  row.quantity = "load of the noise";
  row.unit = "of a processor";
  row.ours = constants_.noise.load;
  row.basis = Basis::fitted;
  rows_.push_back(row);
}

void Figures::latencies() {
  const std::vector<std::uint32_t> all = {2, 4, 8, 16, 32, 64, 128, 256, 512, largest_nodes};
  const std::vector<std::uint32_t> few = {2, 64, largest_nodes};
  for (const ElementType type : {ElementType::int32, ElementType::float64}) {
    for (const std::uint32_t ranks : {1U, 2U}) {
      for (const CarrierKind carrier : all_carriers) {
        for (const std::uint32_t nodes : options_.is_short ? few : all) {
          add_average("figure 11", carrier, {.nodes = nodes, .ranks_a_node = ranks, .type = type});
        }
      }
    }
  }
}

// The noise's length is no more than a guess, so what is predicted is shown with others, too.
void Figures::other_lengths() {
  const Noise usual = constants_.noise;
  for (const std::int64_t length_ns : {100'000, 5'000'000}) {
    constants_.noise.length_ns = length_ns;
    fit_load();
    add_average("figure 11", CarrierKind::card, {.ranks_a_node = 2, .type = ElementType::float64});
    add_average("figure 11", CarrierKind::host, {.ranks_a_node = 2, .type = ElementType::float64});
  }
  constants_.noise = usual;
}

// Figure 1 has the host's barrier beside its reduce, which is in figure 11, too.
void Figures::barriers() {
  for (const std::uint32_t ranks : {1U, 2U}) {
    for (const std::uint32_t nodes : {2U, 64U, largest_nodes}) {
      const Reduction none{.nodes = nodes, .ranks_a_node = ranks, .elements = 0};
      Machine machine = paper_machine(CarrierKind::host, none, constants_);
      machine.closing = Closing::barrier;
      machine.closing_ns = constants_.barrier_ns;
      const Lists lists({.kind = trees::Kind::reduce, .nodes = nodes});
      PaperRow row = row_of("figure 1", CarrierKind::host, none);
      row.curve = "host, barrier alone";
      row.vector.clear();
      row.includes.clear();
      row.calls = options_.calls;
      row.ours = measure(machine, lists, row.calls).averaged_us;
      rows_.push_back(row);
    }
  }
}

void Figures::distributions() {
  for (const CarrierKind carrier : all_carriers) distribution(carrier, true);
  for (const CarrierKind carrier : {CarrierKind::host, CarrierKind::card}) distribution(carrier, false);
}

// Each call by itself, of float64 on 900 nodes.
void Figures::distribution(CarrierKind carrier, bool has_idle_processor) {
  const Reduction reduction{.nodes = 900, .type = ElementType::float64};
  Machine machine = paper_machine(carrier, reduction, constants_);
  if (!has_idle_processor) machine.processors_a_node = 1;
  PaperRow row = row_of("table 3", carrier, reduction);
  row.curve += has_idle_processor ? "" : ", no idle processor";
  if (!has_idle_processor) row.basis = Basis::assumed;
  const std::vector<std::int64_t> each_ns = measure(machine, paper_lists(carrier, reduction), row.calls).each_ns;
  const Spread spread = spread_of(each_ns, 0.01);
  const bool is_card = carrier == CarrierKind::card;
  const bool in_paper = has_idle_processor && (is_card || carrier == CarrierKind::host);
  const auto add = [&](const char* quantity, double ours, std::optional<double> paper) {
    row.quantity = quantity;
    row.ours = ours;
    row.paper = in_paper ? paper : std::nullopt;
    rows_.push_back(row);
  };
  add("mean", spread.mean_us, is_card ? 73.67 : 89.30);
  add("standard deviation", spread.deviation_us, is_card ? 0.29 : 65.26);
  row.figure = "figure 12";
  row.unit = "of calls";
  add("share within 4 us", share_within(each_ns, 4'000), is_card ? std::optional(0.97) : std::nullopt);
  add("share within 20 us", share_within(each_ns, 20'000), is_card ? std::nullopt : std::optional(0.57));
  constexpr std::int64_t bin_ns = 5'000;
  for (auto next = each_ns.begin(); next != each_ns.end() && *next < 100 * bin_ns;) {
    const std::int64_t bin = *next / bin_ns;
    const auto end = std::lower_bound(next, each_ns.end(), (bin + 1) * bin_ns);
    row.from_us = static_cast<double>(bin * bin_ns) / 1000;
    add("share in a bin of 5 us", static_cast<double>(end - next) / static_cast<double>(each_ns.size()), std::nullopt);
    next = end;
  }
}

// Section 6.5. What the text says in words, such as "nearly three", stands as that number.
void Figures::splits() {
  for (const std::uint64_t elements : {1, 2, 4, 8, 16}) {
    for (std::uint32_t splits = 0; std::uint64_t{1} << splits <= elements; ++splits) {
      add_split(elements, splits, "degree 4", false);
      add_split(elements, splits, "best degree", true);
    }
  }
}

double Figures::split_us(std::uint64_t elements, std::uint32_t splits, std::uint32_t degree) const {
  return measure_card(
             {.nodes = 512, .type = ElementType::float64, .elements = elements, .degree = degree, .splits = splits})
      .averaged_us;
}

void Figures::add_split(std::uint64_t elements, std::uint32_t splits, const char* curve, bool any_degree) {
  const Noise noise = std::exchange(constants_.noise, Noise{});
  Reduction reduction{.nodes = 512, .type = ElementType::float64, .elements = elements, .degree = 4, .splits = splits};
  const auto unsplit_us = [&] { return split_us(elements, 0, reduction.degree); };
  double us = split_us(elements, splits, reduction.degree);
  double least_unsplit_us = unsplit_us();
  for (std::uint32_t degree = 2; any_degree && degree <= 8; ++degree) {
    least_unsplit_us = std::min(least_unsplit_us, split_us(elements, 0, degree));
    const double other_us = split_us(elements, splits, degree);
    if (other_us < us) {
      us = other_us;
      reduction.degree = degree;
    }
  }
  PaperRow row = row_of("figure 13", CarrierKind::card, reduction);
  row.curve = curve;
  row.calls = 1;
  row.ours = us;
  if (elements == 16 && splits == 4) row.paper = 140;
  rows_.push_back(row);
  if (splits > 0) {
    row.quantity = "times as fast as unsplit";
    row.unit = "";
    row.ours = least_unsplit_us / us;
    row.paper.reset();
    if ((elements == 8 && splits == 3) || (elements == 16 && splits == 4)) row.paper = 3;
    if (elements == 2) row.paper = 1;
    rows_.push_back(row);
  }
  constants_.noise = noise;
}

std::size_t Figures::calls_of(CarrierKind carrier, std::uint32_t nodes) const {
  const bool walks_each = nodes > 1 && (carrier == CarrierKind::thread || carrier == CarrierKind::dedicated);
  return walks_each ? std::max<std::size_t>(1, options_.calls / 10) : options_.calls;
}

PaperRow Figures::row_of(const char* figure, CarrierKind carrier, const Reduction& reduction) const {
  PaperRow row;
  row.figure = figure;
  row.curve = name_of(carrier);
  row.quantity = "average";
  row.unit = "us";
  row.nodes = reduction.nodes;
  row.ranks = reduction.nodes * reduction.ranks_a_node;
  row.vector = reduction.type == ElementType::int32 ? "int32 sum" : "float64 sum";
  row.elements = reduction.elements;
  row.degree = carrier == CarrierKind::host ? 0 : reduction.degree;
  row.splits = reduction.splits;
  row.noise_length_us = constants_.noise.load > 0 ? static_cast<double>(constants_.noise.length_ns) / 1000 : 0;
  row.basis = carrier == CarrierKind::card ? Basis::predicted : Basis::assumed;
  row.includes = closing_of(carrier);
  row.calls = calls_of(carrier, reduction.nodes);
  return row;
}

void Figures::add_average(const char* figure, CarrierKind carrier, const Reduction& reduction) {
  PaperRow row = row_of(figure, carrier, reduction);
  row.paper = paper_average_us(carrier, reduction);
  row.ours =
      measure(paper_machine(carrier, reduction, constants_), paper_lists(carrier, reduction), row.calls).averaged_us;
  if (carrier == CarrierKind::card && reduction.type == ElementType::int32 && row.paper) row.basis = Basis::fitted;
  rows_.push_back(row);
}

}  // namespace

std::vector<PaperRow> paper_rows(const PaperRowOptions& options) { return Figures(options).rows(); }

}  // namespace farsum::cluster
