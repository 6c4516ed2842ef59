#include "options.hpp"

#include <CLI/CLI.hpp>

#include "../common/command_line.hpp"

namespace counter {

namespace {

constexpr const char* description =
    "The shared counter of van Dam et al. (paper 3): every rank draws tasks from one counter and computes.\n\n"
    "  case 1  all ranks draw and compute, the counter's owner too\n"
    "  case 2  the owner draws nothing and waits in a barrier\n"
    "  case 3  case 1 with a helper thread in every process. Farsum always has one, the agent, so that cases 1 and 3\n"
    "          are the same run and should agree: in Farsum the owner's work does not delay the others\n";

constexpr const char* example =
    "Example:\n"
    "  farsum run -n 2 build/bin/counter --kind all --tasks both --path owner\n\n"
    "The exit code is 0 when every ticket came exactly once, 1 when not, 2 for bad options.";

struct Words {
  std::string cases = "all";
  std::string kind = "strict";
  std::string tasks = "irregular";
  std::string path;
  std::string agent;
};

void take_words(const Words& words, Options& options) {
  if (words.cases != "all") options.cases = {std::stoi(words.cases)};
  if (words.kind == "all") {
    options.kinds = {apps::CounterKind::strict, apps::CounterKind::leased, apps::CounterKind::per_rank,
                     apps::CounterKind::tree};
  } else {
    options.kinds = {apps::counter_kinds().at(words.kind)};
  }
  if (words.tasks == "equal") options.tasks = {Tasks::equal};
  if (words.tasks == "both") options.tasks = {Tasks::equal, Tasks::irregular};
  if (!words.path.empty()) apps::set_environment("FARSUM_PATH", words.path);
  if (!words.agent.empty()) apps::set_environment("FARSUM_AGENT", words.agent);
}

}  // namespace

const char* kind_name(apps::CounterKind kind) {
  for (const auto& [name, value] : apps::counter_kinds()) {
    if (value == kind) return name.c_str();
  }
  return "unknown";
}

const char* tasks_name(Tasks tasks) { return tasks == Tasks::equal ? "equal" : "irregular"; }

std::optional<int> read_options(int argc, char** argv, Options& options) {
  Words words;
  CLI::App parser(description, "counter");
  parser.footer(example);
  parser.add_option("--case", words.cases, "1, 2, 3 or all")
      ->check(CLI::IsMember({"1", "2", "3", "all"}))
      ->capture_default_str();
  parser.add_option("--kind", words.kind, "the counter: strict, leased, per-rank, tree or all")
      ->check(CLI::IsMember({"strict", "leased", "per-rank", "tree", "all"}))
      ->capture_default_str();
  parser.add_option("--tasks", words.tasks, "equal, irregular (exponential, cut off at five means) or both")
      ->check(CLI::IsMember({"equal", "irregular", "both"}))
      ->capture_default_str();
  parser.add_option("--tasks-per-rank", options.tasks_per_rank, "tasks of a case, per rank")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}))
      ->capture_default_str();
  parser.add_option("--work-ms", options.work_ms, "mean computation of a task in milliseconds")
      ->check(CLI::Range(0.0, 60'000.0))
      ->capture_default_str();
  parser.add_option("--seed", options.seed, "seed of the irregular tasks")->capture_default_str();
  parser.add_option("--home", options.home, "the rank that owns the counter")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  parser.add_option("--path", words.path, "sets FARSUM_PATH: owner puts the counter behind its owner's agent")
      ->check(CLI::IsMember(apps::path_choices()));
  parser.add_option("--agent", words.agent, "sets FARSUM_AGENT")->check(CLI::IsMember({"sleep", "dedicated"}));
  parser.add_flag("--json", options.json, "print one JSON document instead of the tables");

  if (const std::optional<int> code = apps::parse_options(parser, argc, argv)) return code;
  take_words(words, options);
  return std::nullopt;
}

}  // namespace counter
