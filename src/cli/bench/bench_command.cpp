// `farsum bench`: starts the benchmark programs that lie beside this one.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/exit_codes.hpp"
#include "cli/own_folder.hpp"
#include "cli/run/run_launcher.hpp"

namespace farsum::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* bench_prefix = "bench-";
constexpr const char* bench_epilogue = R"(
Examples:
  farsum bench --list
  farsum bench engine                          a table
  farsum bench engine --json --plot sum.svg    JSON lines, and a figure
  farsum bench engine --help                   what this benchmark takes besides
  farsum bench mpi --cases create,counter      MPI programs without and with Farsum, under each MPI library here
  farsum bench ranks --rows 'lock-*'           how calls grow with the ranks of a node, libraries alone and with Farsum
  farsum bench model                           what Farsum chooses beside every path that can be forced
  farsum bench net --quick                     the same between two test hosts, beside MPI libraries and raw TCP (root)
  farsum bench reduce --measure                collective calls on this node, Farsum's and those of MPI libraries
  farsum bench reduce --overlap                the same beside computing; --steady: beside busy processes
  farsum bench reduce --measure --hosts 2      the same between two test hosts (root)
  farsum bench reduce --model                  reductions by trees, as the model of paper 5 has them

The benchmark runs as `farsum run -n N bench-NAME OPTIONS` would run it; options after NAME are its own. `mpi`, `net`,
`model`, `ranks` and `reduce` start their ranks themselves, as many as their cases need.
Exit code: that of `farsum run`; 2 wrong usage or no such benchmark; 77 where `net` or `reduce` cannot make its hosts.)";

struct BenchOptions {
  int ranks = 2;
  bool list = false;
  bool json = false;
  std::string plot;
};

std::vector<std::string> benchmarks_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(bench_prefix) && entry.is_regular_file(failed))
      names.push_back(name.substr(std::string(bench_prefix).size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

constexpr const char* not_installed = "they run from a build of the source tree, and are not installed";

int list(const std::vector<std::string>& names, bool json) {
  if (json) {
    fmt::print("{}\n", nlohmann::json(names).dump());
  } else {
    for (const std::string& name : names) fmt::print("{}\n", name);
  }
  if (names.empty()) return refuse("bench", fmt::format("there are no benchmarks here: {}", not_installed));
  return exit_ok;
}

int refuse_name(const std::string& sentence, const std::vector<std::string>& names) {
  const std::string known =
      names.empty() ? fmt::format("are none here: {}", not_installed) : fmt::format("are: {}", fmt::join(names, ", "));
  return refuse("bench", fmt::format("{}; there {}", sentence, known));
}

// What runs under other launchers than ours must not be a rank of ours.
bool starts_its_ranks(const std::string& name) {
  return name == "mpi" || name == "net" || name == "model" || name == "ranks" || name == "reduce";
}

int become(const JobSpec& job) {
  std::vector<char*> words;
  for (const std::string& word : job.arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(job.program_path.c_str(), words.data());
  fmt::print(stderr, "farsum bench: cannot run {}\n", job.program_path);
  return exit_not_found;
}

int bench(const BenchOptions& options, const std::vector<std::string>& command) {
  const fs::path folder = own_folder();
  const std::vector<std::string> names = benchmarks_in(folder);
  if (options.list) return list(names, options.json);
  if (command.empty()) return refuse_name("the name of a benchmark is missing", names);
  if (std::find(names.begin(), names.end(), command.front()) == names.end()) {
    return refuse_name(fmt::format("there is no benchmark called {}", command.front()), names);
  }
  JobSpec job;
  job.ranks = options.ranks;
  job.program_path = folder / (bench_prefix + command.front());
  job.arguments = command;
  job.arguments.front() = bench_prefix + command.front();
  if (options.json) job.arguments.emplace_back("--json");
  if (!options.plot.empty()) job.arguments.insert(job.arguments.end(), {"--plot", options.plot});
  return starts_its_ranks(command.front()) ? become(job) : run_job(job);
}

}  // namespace

void add_bench_command(CLI::App& farsum, CommandLine& line) {
  CLI::App* command = farsum.add_subcommand("bench", bench_description);
  auto options = std::make_shared<BenchOptions>();
  command->footer(bench_epilogue);
  command->add_option("-n,--ranks", options->ranks, "Number of ranks, 1 to 1024 (default 2)")
      ->check(CLI::Range(1, max_ranks));
  command->add_flag("--list", options->list, "Name the benchmarks there are");
  command->add_flag("--json", options->json, "Print JSON lines instead of a table");
  command->add_option("--plot", options->plot, "Write a figure to this file, where the benchmark has one");
  command->callback([options, &line] { line.exit_code = bench(*options, line.program); });
}

}  // namespace farsum::cli
