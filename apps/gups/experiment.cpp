#include "experiment.hpp"

#include <algorithm>
#include <chrono>

#include "../common/statistics.hpp"
#include "table.hpp"
#include "updates.hpp"
#include "ways.hpp"

namespace gups {

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Times `work` between two barriers, on the slowest rank.
template <class Work>
double seconds_of(const apps::Job& job, Work&& work) {
  job.barrier();
  const auto start = std::chrono::steady_clock::now();
  work();
  job.barrier();
  const double mine = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::vector<double> all = job.gather(mine);
  return *std::max_element(all.begin(), all.end());
}

std::uint64_t sum_over_ranks(const apps::Job& job, std::uint64_t mine) {
  std::uint64_t sum = 0;
  for (const std::uint64_t one : job.gather(mine)) sum += one;
  return sum;
}

Updates make_updates(const apps::Job& job, const Options& options, const char* label) {
  const bool shows = job.is_root() && !options.quiet;
  const std::uint64_t share = Split(options.total_updates(), job.size()).count(job.rank());
  return {options.total_updates(), job.rank(), job.size(), Progress(shows ? label : nullptr, share)};
}

// `work` carries out this rank's updates on a fresh table.
template <class Work>
Measurement measure(const apps::Job& job, const Options& options, Table& table, Work&& work) {
  table.fill();
  const double seconds = seconds_of(job, work);
  const std::uint64_t wrong = sum_over_ranks(job, table.undo_and_count_wrong(options.op, options.total_updates()));
  return {.gups = static_cast<double>(options.total_updates()) / seconds * 1e-9, .wrong_words = wrong};
}

std::uint64_t measure_way(Way way, const apps::Job& job, const Options& options, Table& table, Result& result,
                          farsum_statistics& statistics) {
  Updates updates = make_updates(job, options, way_name(way));
  result.runs.push_back(measure(job, options, table, [&] {
    const farsum_statistics before = apps::read_statistics();
    update(way, job, options, table, updates);
    const farsum_statistics change = apps::difference(apps::read_statistics(), before);
    statistics = apps::total({statistics, change});
  }));
  return updates.high_water();
}

void measure_baseline(const apps::Job& job, const Options& options, Table& table, Result& result) {
  Updates updates = make_updates(job, options, "bare loop");
  bool was_mapped = true;
  const Measurement baseline =
      measure(job, options, table, [&] { was_mapped = update_with_bare_atomics(options, table, updates); });
  // Where any rank cannot reach the table there is nothing to compare with.
  const std::vector<int> mapped = job.gather(was_mapped ? 1 : 0);
  if (std::all_of(mapped.begin(), mapped.end(), [](int one) { return one == 1; })) result.baselines.push_back(baseline);
}

}  // namespace

double Result::median_gups() const {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const Measurement& run : runs) values.push_back(run.gups);
  return median(values);
}

std::optional<double> Result::median_ratio() const {
  if (baselines.empty()) return std::nullopt;
  std::vector<double> ratios;
  ratios.reserve(runs.size());
  for (std::size_t n = 0; n < runs.size(); ++n) ratios.push_back(runs[n].gups / baselines[n].gups);
  return median(ratios);
}

std::uint64_t Result::most_wrong_words() const {
  std::uint64_t most = 0;
  for (const Measurement& run : runs) most = std::max(most, run.wrong_words);
  return most;
}

bool Result::is_right(std::uint64_t words) const {
  constexpr double hpcc_allows = 0.01;
  for (const Measurement& baseline : baselines) {
    if (baseline.wrong_words != 0) return false;
  }
  if (high_water > hpcc_look_ahead) return false;
  if (is_atomic(way)) return most_wrong_words() == 0;
  return static_cast<double>(most_wrong_words()) <= hpcc_allows * static_cast<double>(words);
}

Result run_experiment(Way way, const apps::Job& job, const Options& options) {
  Result result{.way = way, .ranks = job.size(), .high_water = 0, .runs = {}, .baselines = {}, .statistics = {}};
  Table table(job, options, window_options(way, options, job.size()));
  if (way == Way::card) table.require_cards();
  farsum_statistics statistics{};
  std::uint64_t high_water = 0;
  for (int n = 0; n < options.repeat; ++n) {
    high_water = std::max(high_water, measure_way(way, job, options, table, result, statistics));
    if (options.baseline) measure_baseline(job, options, table, result);
  }
  for (const std::uint64_t mark : job.gather(high_water)) result.high_water = std::max(result.high_water, mark);
  result.statistics = job.gather(statistics);
  return result;
}

}  // namespace gups
