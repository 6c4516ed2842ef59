// `farsum run`: reads and checks its command line.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <memory>

#include "cli/commands.hpp"
#include "cli/exit_codes.hpp"
#include "cli/processors.hpp"
#include "cli/run/run_binding.hpp"
#include "cli/run/run_launcher.hpp"
#include "cli/run/run_program.hpp"

namespace farsum::cli {

namespace {

constexpr const char* run_epilogue = R"(
Examples:
  farsum run -n 4 ./stencil 1024
  farsum run -n 2 --bind core --tag ./counter --tasks 100000
  farsum run -n 2 --env FARSUM_PATH=owner --timeout 60 ./gups

Output comes in whole lines. stdin goes to rank 0. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT
are passed to all ranks; a second SIGINT kills them. When a rank fails, the others get 2 s to report and are ended within 5 s.
Whatever the ranks have forked ends with the job.

Exit code: 0 when every rank returned 0, else the first failing rank's code, or 128 + the signal that killed it;
2 wrong usage, 124 --timeout was reached, 125 the launcher itself failed, 126 PROGRAM is not executable, 127 not found.)";

struct RunOptions {
  int ranks = 1;
  std::string bind = "none";
  bool tag = false;
  double timeout_s = 0;
  std::vector<std::string> environment;
};

// True when `text` is NAME=VALUE with a name that is the user's to set.
bool parse_assignment(const std::string& text, JobSpec& job) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  job.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  return true;
}

int run(const RunOptions& options, std::vector<std::string> command) {
  if (command.empty()) return refuse("run", "PROGRAM is missing; farsum run --help shows how to call it");
  JobSpec job;
  job.ranks = options.ranks;
  job.tag_output = options.tag;
  if (options.timeout_s > 0) job.timeout = std::chrono::milliseconds{std::llround(std::ceil(options.timeout_s * 1000))};
  for (const std::string& assignment : options.environment) {
    if (!parse_assignment(assignment, job))
      return refuse("run", fmt::format("--env takes NAME=VALUE, not '{}'", assignment));
  }
  Bindings bindings =
      choose_bindings(options.bind, job.ranks, options.bind == "none" ? std::vector<CpuList>{} : allowed_cores());
  if (!bindings.sentence.empty()) return refuse("run", bindings.sentence);
  job.bindings = std::move(bindings.of_ranks);

  const char* search_path = std::getenv("PATH");
  const FoundProgram program = find_program(command.front(), search_path != nullptr ? search_path : "/usr/bin:/bin");
  if (program.path.empty()) return refuse("run", program.sentence, program.exit_code);
  job.program_path = program.path;
  job.arguments = std::move(command);
  return run_job(job);
}

}  // namespace

void add_run_command(CLI::App& farsum, CommandLine& line) {
  CLI::App* command = farsum.add_subcommand("run", run_description);
  auto options = std::make_shared<RunOptions>();
  command->footer(run_epilogue);
  command->add_option("-n,--ranks", options->ranks, "Number of ranks, 1 to 1024 (default 1)")
      ->check(CLI::Range(1, max_ranks));
  command->add_option(
      "--bind", options->bind,
      "none (default): the scheduler places ranks; core: one core each, in turn, nothing if there are more ranks than "
      "cores; LIST such as 0,1 or 0-3,6: one processing unit each, in turn");
  command->add_flag("--tag", options->tag, "Put [rank] before each line of output");
  command->add_option("--timeout", options->timeout_s, "End the job after this many seconds, with exit code 124")
      ->check(CLI::PositiveNumber);
  command->add_option("--env", options->environment, "Set a variable for the ranks; may be given several times")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->callback([options, &line] { line.exit_code = run(*options, line.program); });
}

}  // namespace farsum::cli
