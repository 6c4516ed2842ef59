#include "report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "../common/statistics.hpp"

namespace gups {

namespace {

double percent_wrong(const Result& result, const Options& options) {
  return 100.0 * static_cast<double>(result.most_wrong_words()) / static_cast<double>(options.words());
}

std::string rule(const Result& result, const Options& options) {
  const bool right = result.is_right(options.words());
  if (is_atomic(result.way)) return right ? "zero: right" : "not zero: WRONG";
  return right ? "within HPCC's 1 %" : "beyond HPCC's 1 %: WRONG";
}

std::vector<double> rates(const std::vector<Measurement>& runs) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const Measurement& run : runs) values.push_back(run.gups);
  return values;
}

std::string spread(const Result& result) {
  const std::vector<double> values = rates(result.runs);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{:.6f} to {:.6f} in {} runs", *least, *most, values.size());
}

}  // namespace

void print_heading(const Options& options, int ranks) {
  fmt::print("{} ranks, {} words ({} MiB), {} updates by {}, {} memory\n\n", ranks, options.words(),
             static_cast<double>(options.words()) * 8 / (1 << 20), options.total_updates(), op_name(options.op),
             options.memory == Memory::allocated ? "allocated" : "adopted");
  fmt::print("{:<12}{:>12}{:>10}{:>12}{:>9}{:>11}  {}\n", "way", "GUP/s", "errors", "% of words", "ahead",
             options.baseline ? "x lock-op" : "", "errors are");
}

void print_result(const Result& result, const Options& options) {
  const std::optional<double> ratio = result.median_ratio();
  fmt::print("{:<12}{:>12.6f}{:>10}{:>12.6f}{:>9}{:>11}  {}\n", way_name(result.way), result.median_gups(),
             result.most_wrong_words(), percent_wrong(result, options), result.high_water,
             ratio ? fmt::format("{:.3f}", *ratio) : (options.baseline ? "not mapped" : ""), rule(result, options));
  const farsum_statistics all = apps::total(result.statistics);
  fmt::print("            operations: {}; messages served {}, agent wake-ups {}", apps::operations_text(all),
             all.messages_served, all.agent_wakeups);
  if (result.runs.size() > 1) fmt::print("; {}", spread(result));
  fmt::print("\n");
}

nlohmann::json result_json(const Result& result, const Options& options) {
  nlohmann::json json = {{"way", way_name(result.way)},
                         {"op", op_name(options.op)},
                         {"gups", result.median_gups()},
                         {"gups_runs", rates(result.runs)},
                         {"updates", options.total_updates()},
                         {"errors", result.most_wrong_words()},
                         {"error_percent", percent_wrong(result, options)},
                         {"hpcc_allowed_percent", 1.0},
                         {"is_atomic", is_atomic(result.way)},
                         {"right", result.is_right(options.words())},
                         {"look_ahead_high_water", result.high_water},
                         {"statistics", nlohmann::json::array()}};
  if (const std::optional<double> ratio = result.median_ratio()) {
    json["baseline_gups_runs"] = rates(result.baselines);
    json["ratio_to_baseline"] = *ratio;
  }
  for (const farsum_statistics& rank : result.statistics) json["statistics"].push_back(apps::statistics_json(rank));
  return json;
}

}  // namespace gups
