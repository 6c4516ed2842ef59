#include "report.hpp"

#include <cstdlib>

#include <fmt/format.h>

#include "../common/statistics.hpp"

namespace counter {

namespace {

const char* environment_or(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

const RankTimes& at(const Outcome& outcome, int rank) { return outcome.ranks[static_cast<std::size_t>(rank)]; }

nlohmann::json rank_json(const RankTimes& times) {
  return {{"gets", times.gets},
          {"tasks", times.tasks},
          {"get_mean_us", times.get_mean_us},
          {"get_median_us", times.get_median_us},
          {"get_max_us", times.get_max_us},
          {"work_mean_ms", times.work_mean_ms},
          {"work_max_ms", times.work_max_ms},
          {"barrier_ms", times.barrier_ms},
          {"total_ms", times.total_ms},
          {"statistics", apps::statistics_json(times.statistics)}};
}

}  // namespace

int reported_rank(int size, int home) {
  if (size == 1) return 0;
  return home == 1 ? 0 : 1;
}

void print_heading(const Options& options, int size) {
  fmt::print("{} ranks, the counter on rank {}; {} tasks a rank of {} ms on average\n", size, options.home,
             options.tasks_per_rank, options.work_ms);
  fmt::print("FARSUM_PATH={} FARSUM_AGENT={}; the times are those of rank {}\n", environment_or("FARSUM_PATH", "auto"),
             environment_or("FARSUM_AGENT", "sleep"), reported_rank(size, options.home));
  fmt::print("case 3 is case 1 run again: Farsum's agent is paper 3's helper thread and is there in every case\n");
  if (size == 1) fmt::print("case 2 is left out: it needs a second rank to draw while the owner waits\n");
  fmt::print("\n");
  fmt::print("{:>4}  {:<9}{:<10}{:>6}{:>12}{:>12}{:>12}{:>11}{:>11}{:>12}\n", "case", "kind", "tasks", "gets", "get us",
             "median us", "max us", "work ms", "work/get", "total ms");
}

void print_outcome(const Run& run, const Outcome& outcome, const Options& options) {
  const RankTimes& asker = at(outcome, reported_rank(static_cast<int>(outcome.ranks.size()), options.home));
  const farsum_statistics& owner = at(outcome, options.home).statistics;
  const double ratio = asker.get_mean_us > 0 ? asker.work_mean_ms * 1e3 / asker.get_mean_us : 0;
  fmt::print("{:>4}  {:<9}{:<10}{:>6}{:>12.3f}{:>12.3f}{:>12.3f}{:>11.3f}{:>11.0f}{:>12.3f}\n", run.number,
             kind_name(run.kind), tasks_name(run.tasks), asker.gets, asker.get_mean_us, asker.get_median_us,
             asker.get_max_us, asker.work_mean_ms, ratio, asker.total_ms);
  fmt::print("      {}{}; operations: {}; the owner's agent woke {} times and served {} messages\n",
             outcome.verdict.right ? "" : "WRONG: ", outcome.verdict.text, apps::operations_text(asker.statistics),
             owner.agent_wakeups, owner.messages_served);
}

nlohmann::json outcome_json(const Run& run, const Outcome& outcome, const Options& options) {
  nlohmann::json json = {{"case", run.number},
                         {"kind", kind_name(run.kind)},
                         {"tasks", tasks_name(run.tasks)},
                         {"task_count", run.task_count},
                         {"home", options.home},
                         {"reported_rank", reported_rank(static_cast<int>(outcome.ranks.size()), options.home)},
                         {"right", outcome.verdict.right},
                         {"verdict", outcome.verdict.text},
                         {"ranks", nlohmann::json::array()}};
  for (const RankTimes& times : outcome.ranks) json["ranks"].push_back(rank_json(times));
  return json;
}

}  // namespace counter
