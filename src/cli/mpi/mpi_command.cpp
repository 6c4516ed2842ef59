// `farsum mpi`: reads its options, prints the plan where asked to, and becomes the launcher.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/settings.hpp"
#include "cli/argument_vector.hpp"
#include "cli/commands.hpp"
#include "cli/exit_codes.hpp"
#include "cli/mpi/mpi_plan.hpp"
#include "cli/mpi/mpi_witness.hpp"
#include "cli/own_folder.hpp"

extern char** environ;

namespace farsum::cli {

namespace {

constexpr const char* mpi_epilogue = R"(
Examples:
  farsum mpi mpirun -n 2 nwchem h2o.nw
  farsum mpi --stats mpiexec.hydra -n 4 -ppn 2 ./program input.dat
  farsum mpi --verbose srun -n 8 --export=ALL ./program
  farsum mpi --abi mpich mpirun -n 2 python3 script.py    where the MPI cannot be seen in a file
  farsum mpi --dry-run mpirun -n 1 ./a : -n 3 ./b         print the command line and start nothing

The command is run as it stands, with options of the launcher's own put in behind its name, which give the ranks
LD_PRELOAD=.../libfarsum_mpi_ABI.so and the FARSUM_ variables of this environment. The launcher itself gets no preload.
--verbose says which launcher, which program and which MPI of the program were found.

Exit code: that of the launcher; 2 wrong usage, or a job that Farsum cannot serve (nothing was started then).)";

struct MpiOptions {
  bool verbose = false;
  bool stats = false;
  bool dry_run = false;
  std::string stats_file;
  std::string abi = "auto";
  std::string path;
};

Variables environment_of_process() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos && equals > 0) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

Variables settings_from(const MpiOptions& options) {
  Variables settings{{"FARSUM_MPI_LAUNCHED", "1"}};
  if (options.stats) settings["FARSUM_MPI_STATS"] = "1";
  if (!options.stats_file.empty()) {
    // The ranks may run in other folders.
    std::error_code failed;
    const std::filesystem::path file = std::filesystem::absolute(options.stats_file, failed);
    settings["FARSUM_MPI_STATS_FILE"] = failed ? options.stats_file : file.string();
  }
  if (!options.path.empty()) settings["FARSUM_PATH"] = options.path;
  // A command that is only printed can be run later, when no witness lives.
  if (!options.dry_run) settings[witness_setting] = new_witness_name();
  return settings;
}

// A setting that the ranks could not read is better refused here, once.
std::string unreadable_setting(const LaunchRequest& request) {
  const auto value_of = [&request](const char* name) -> const char* {
    const auto own = request.settings.find(name);
    if (own != request.settings.end()) return own->second.c_str();
    const auto inherited = request.environment.find(name);
    return inherited != request.environment.end() ? inherited->second.c_str() : nullptr;
  };
  auto settings = read_settings(value_of);
  return settings.is_ok() ? std::string{} : settings.take_status().text();
}

void print_plan(const LaunchPlan& plan) {
  const auto line = [](std::string_view title, std::string_view text) {
    fmt::print(stderr, "farsum mpi: {:<9} {}\n", title, text);
  };
  for (const auto& [title, sentence] : plan.findings) line(title, sentence);
  for (const auto& [name, value] : plan.passed_environment) line("ranks get", fmt::format("{}={}", name, value));
  line("command", shell_words(plan.command));
}

int become(const LaunchPlan& plan) {
  for (const auto& [name, value] : plan.own_environment) setenv(name.c_str(), value.c_str(), 1);
  const std::vector<char*> arguments = argument_vector(plan.command);
  execv(plan.program.c_str(), arguments.data());
  return refuse("mpi", fmt::format("cannot run {}: {}", plan.program, std::strerror(errno)));
}

int mpi(const MpiOptions& options, const std::vector<std::string>& command) {
  LaunchRequest request;
  request.command = command;
  request.abi = mpi_abi_called(options.abi);
  request.settings = settings_from(options);
  request.environment = environment_of_process();
  request.libraries = own_front_folder();
  const std::string unreadable = unreadable_setting(request);
  if (!unreadable.empty()) return refuse("mpi", unreadable);
  const LaunchPlan plan = plan_launch(request);
  if (!plan.refusal.empty()) return refuse("mpi", plan.refusal);
  if (options.verbose) print_plan(plan);
  if (options.dry_run) {
    fmt::print("{}\n", shell_words(plan.command));
    return exit_ok;
  }
  start_witness(request.settings.at(witness_setting));
  return become(plan);
}

}  // namespace

void add_mpi_command(CLI::App& farsum, CommandLine& line) {
  CLI::App* command = farsum.add_subcommand("mpi", mpi_description);
  auto options = std::make_shared<MpiOptions>();
  command->footer(mpi_epilogue);
  command->add_flag("--verbose", options->verbose, "Say what was found and what is run");
  command->add_flag("--stats", options->stats, "Print at the end what each window and operation did");
  command->add_option("--json-stats", options->stats_file, "Write the same to this file, as JSON lines")
      ->type_name("FILE");
  command
      ->add_option("--abi", options->abi,
                   "Which MPI the program uses: auto (default: look), mpich (Intel MPI too), openmpi, abi")
      ->check(CLI::IsMember({"auto", "mpich", "openmpi", "abi"}));
  command->add_option("--path", options->path,
                      "Force a path, as FARSUM_PATH does: auto, direct, attach, caller, owner, aggregated, offload");
  command->add_flag("--dry-run", options->dry_run, "Print the command line and start nothing");
  command->callback([options, &line] { line.exit_code = mpi(*options, line.program); });
}

}  // namespace farsum::cli
