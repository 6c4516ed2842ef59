// `farsum lab`: starts a lab program under one of this machine's MPI libraries, without and with Farsum in turn.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "cli/argument_vector.hpp"
#include "cli/captured_run.hpp"
#include "cli/commands.hpp"
#include "cli/exit_codes.hpp"
#include "cli/lab/lab_hosts.hpp"
#include "cli/lab/lab_table.hpp"
#include "cli/mpi/mpi_installations.hpp"
#include "cli/mpi/mpi_linkage.hpp"
#include "cli/mpi/mpi_plan.hpp"
#include "cli/own_folder.hpp"

namespace farsum::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* lab_prefix = "lab-";
constexpr const char* lab_epilogue = R"(
Examples:
  farsum lab                                          name the programs, and the MPI libraries they can run under
  farsum lab counter --mpi mpich5                     without and with Farsum, as a table
  farsum lab counter --mpi impi -n 2 --with -- --help what this program takes besides
  farsum lab randomaccess --mpi openmpi --json        JSON lines; "farsum" tells the runs apart
  farsum lab counter --mpi mpich --hosts 2            a rank on each of two test hosts (docs/notes/hosts.md; needs root)

A lab program is plain MPI (bin/lab-NAME-ABI). It runs as `mpirun -n N lab-NAME-ABI OPTIONS` would run it; options after
-- are its own. Over hosts a window that the library keeps to itself ends the run with Farsum, unless FARSUM_MPI_STRICT says
otherwise.
Exit code: 0 when every run returned 0, else that of the first that did not; 2 wrong usage, or no such program or library;
77 this machine cannot make hosts.)";

struct LabOptions {
  std::string name;
  std::string mpi;
  int ranks = 0;  // 0: two, or one on each host
  int hosts = 0;  // 0: this one
  bool with = false;
  bool without = false;
  bool both = false;
  bool json = false;
  bool verbose = false;
  std::vector<std::string> through;
};

// NAME -> the ABIs that it was built for.
using LabPrograms = std::map<std::string, std::vector<MpiAbi>>;

LabPrograms lab_programs(const fs::path& folder) {
  LabPrograms programs;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const std::string file = entry.path().filename().string();
    const std::size_t dash = file.rfind('-');
    if (!file.starts_with(lab_prefix) || dash < std::string(lab_prefix).size() || !entry.is_regular_file(failed))
      continue;
    const auto abi = mpi_abi_called(file.substr(dash + 1));
    const std::size_t start = std::string(lab_prefix).size();
    if (abi) programs[file.substr(start, dash - start)].push_back(*abi);
  }
  return programs;
}

bool is_built_for(const std::vector<MpiAbi>& abis, MpiAbi abi) {
  return std::find(abis.begin(), abis.end(), abi) != abis.end();
}

fs::path program_file(const std::string& name, MpiAbi abi) {
  return own_folder() / fmt::format("{}{}-{}", lab_prefix, name, name_of(abi));
}

// Whether the program, built for this ABI, would load this very library, and no part of another version beside it: a
// Fortran program needs more of an MPI than all of them bring.
bool would_load(const fs::path& program, const MpiInstallation& mpi) {
  const auto elf = read_elf(program);
  if (!elf) return false;
  std::error_code failed;
  const Linkage linkage = follow_linkage(program, *elf, library_search(mpi.library_folder));
  const bool library = std::all_of(linkage.mpi.begin(), linkage.mpi.end(), [&](const MpiNeed& need) {
    return fs::equivalent(need.file, mpi.library, failed) && !failed;
  });
  const bool parts = std::all_of(linkage.mpi_parts.begin(), linkage.mpi_parts.end(), [&](const std::string& file) {
    return mpi.library_folder.empty() || fs::equivalent(fs::path(file).parent_path(), mpi.library_folder, failed);
  });
  return !linkage.mpi.empty() && library && parts;
}

bool can_run(const std::string& name, const std::vector<MpiAbi>& abis, const MpiInstallation& mpi) {
  return is_built_for(abis, mpi.abi) && would_load(program_file(name, mpi.abi), mpi);
}

int list(const LabPrograms& programs, const std::vector<MpiInstallation>& installations, bool json) {
  LabRecord all = LabRecord::array();
  for (const auto& [name, abis] : programs) {
    LabRecord under = LabRecord::array();
    for (const MpiInstallation& mpi : installations) {
      if (can_run(name, abis, mpi)) under.push_back(mpi.name);
    }
    all.push_back({{"name", name}, {"mpi", under}});
  }
  if (json) {
    fmt::print("{}\n", all.dump());
    return exit_ok;
  }
  for (const LabRecord& program : all) {
    std::string under;
    for (const auto& mpi : program["mpi"]) under += (under.empty() ? "" : ", ") + mpi.get<std::string>();
    fmt::print("{:<16} {}\n", program["name"].get<std::string>(),
               under.empty() ? "(no MPI library is here for it)" : under);
  }
  return exit_ok;
}

template <class Things, class NameOf>
std::string names_of(const Things& things, NameOf name_of_thing) {
  std::string names;
  for (const auto& thing : things) names += (names.empty() ? "" : ", ") + name_of_thing(thing);
  return names.empty() ? "there are none here" : "there are: " + names;
}

struct LabJob {
  MpiInstallation mpi;
  std::vector<std::string> command;  // without Farsum, on whatever host
  const LabHosts* hosts = nullptr;
  bool json = false;
  bool verbose = false;
  bool tells_abi = false;
};

std::vector<std::string> command_of(const LabJob& job, bool farsum) {
  std::vector<std::string> command;
  if (farsum) command = {(own_folder() / "farsum").string(), "mpi"};
  if (farsum && job.verbose) command.emplace_back("--verbose");
  if (farsum && job.tells_abi) command.insert(command.end(), {"--abi", std::string(name_of(job.mpi.abi))});
  command.insert(command.end(), job.command.begin(), job.command.end());
  return job.hosts != nullptr ? job.hosts->in_first(command) : command;
}

// One run that is not compared: the program speaks for itself.
int become(const std::vector<std::string>& command) {
  const std::vector<char*> arguments = argument_vector(command);
  execv(command.front().c_str(), arguments.data());
  fmt::print(stderr, "farsum lab: cannot run {}\n", command.front());
  return exit_not_found;
}

std::vector<LabRecord> run_once(const LabJob& job, bool farsum, int& exit_code) {
  const std::vector<std::string> command = command_of(job, farsum);
  if (job.verbose) fmt::print(stderr, "farsum lab: {}\n", shell_words(command));
  const CapturedRun run = run_captured(command, ErrorOutput::passed_on);
  std::vector<LabRecord> records = lab_records(run.out);
  if (job.json) {
    for (const LabRecord& record : records) {
      LabRecord line{{"mpi", job.mpi.name}, {"farsum", farsum}};
      line.update(record);
      fmt::print("{}\n", line.dump());
    }
    std::fflush(stdout);
  }
  if (run.exit_code != 0) {
    fmt::print(stderr, "farsum lab: the run {} Farsum ended with code {}\n", farsum ? "with" : "without",
               run.exit_code);
    if (exit_code == exit_ok) exit_code = run.exit_code;
  } else if (records.empty()) {
    fmt::print(stderr, "farsum lab: the run {} Farsum printed no record\n{}", farsum ? "with" : "without", run.out);
  }
  return records;
}

int compare(const LabJob& job, const LabOptions& options) {
  int exit_code = exit_ok;
  const auto without = run_once(job, false, exit_code);
  const auto with = run_once(job, true, exit_code);
  if (!options.json) {
    const std::string places = options.hosts == 0 ? "" : fmt::format(" of {} hosts", options.hosts);
    fmt::print("{} on {} ranks{}, {}\n{}", options.name, options.ranks, places, job.mpi.name,
               print_lab_table(compare_lab_records(without, with)));
  }
  return exit_code;
}

std::optional<MpiInstallation> choose_mpi(const LabOptions& options, const std::vector<MpiInstallation>& installations,
                                          const std::vector<MpiAbi>& abis) {
  for (const MpiInstallation& mpi : installations) {
    if (options.mpi.empty() ? can_run(options.name, abis, mpi) : mpi.name == options.mpi) return mpi;
  }
  return std::nullopt;
}

// The libraries outside the system's folders come before those that the program would find by itself.
void prefer_libraries(const std::string& folder) {
  if (folder.empty()) return;
  const char* before = std::getenv("LD_LIBRARY_PATH");
  const std::string path = before != nullptr && *before != '\0' ? folder + ":" + before : folder;
  setenv("LD_LIBRARY_PATH", path.c_str(), 1);
}

// The program and the library, or why they do not go together.
struct Chosen {
  MpiInstallation mpi;
  fs::path file;
};

std::optional<Chosen> choose(const LabOptions& options, const LabPrograms& programs,
                             const std::vector<MpiInstallation>& installations, std::string& why) {
  const auto program = programs.find(options.name);
  if (program == programs.end()) {
    why = fmt::format("there is no lab program called {}; {}", options.name,
                      names_of(programs, [](const auto& entry) { return entry.first; }));
    return std::nullopt;
  }
  const auto mpi = choose_mpi(options, installations, program->second);
  if (!mpi) {
    why = fmt::format("there is no MPI library {} on this machine (tools/mpi_libraries installs some); {}",
                      options.mpi.empty() ? "for " + options.name : "called " + options.mpi,
                      names_of(installations, [](const auto& entry) { return entry.name; }));
    return std::nullopt;
  }
  fs::path file = program_file(options.name, mpi->abi);
  if (!is_built_for(program->second, mpi->abi)) {
    why = fmt::format("{} was not built for {}: {} is not there", options.name, describe(mpi->abi), file.string());
  } else if (!would_load(file, *mpi)) {
    why =
        fmt::format("{} would not load {}: it needs another library or a part that this one lacks (ldd {} shows which)",
                    options.name, mpi->library, file.string());
  }
  return why.empty() ? std::optional<Chosen>({*mpi, std::move(file)}) : std::nullopt;
}

int run_job(LabJob& job, const LabOptions& options, const std::vector<std::string>& arguments) {
  prefer_libraries(job.mpi.library_folder);
  const bool one = options.with != options.without && !options.both;
  if (options.json || !one) job.command.emplace_back("--json");
  job.command.insert(job.command.end(), arguments.begin(), arguments.end());
  if (!one) return compare(job, options);
  if (!options.json) return become(command_of(job, options.with));
  int exit_code = exit_ok;
  run_once(job, options.with, exit_code);
  return exit_code;
}

// What it is started through may be no wrapper that `farsum mpi` knows, so it is told the program's MPI.
void append_program(LabJob& job, const LabOptions& options, const Chosen& chosen) {
  job.tells_abi = !options.through.empty();
  job.command.insert(job.command.end(), options.through.begin(), options.through.end());
  job.command.push_back(chosen.file.string());
}

int lab_over_hosts(const LabOptions& options, const Chosen& chosen, const std::vector<std::string>& arguments) {
  if (options.ranks % options.hosts != 0)
    return refuse("lab", fmt::format("{} ranks are not as many on each of {} hosts", options.ranks, options.hosts));
  LabHosts hosts(options.hosts);
  if (const int failed = hosts.make(); failed != exit_ok) return failed;
  LabJob job{chosen.mpi, hosts.launcher(chosen.mpi.name, options.ranks / options.hosts), &hosts, options.json,
             options.verbose};
  if (job.command.empty()) return exit_usage;
  append_program(job, options, chosen);
  setenv("FARSUM_MPI_STRICT", "1", 0);
  return run_job(job, options, arguments);
}

int lab(LabOptions options, const std::vector<std::string>& arguments) {
  const LabPrograms programs = lab_programs(own_folder());
  if (programs.empty())
    return refuse("lab", "no lab program is here: they run from a build of the source tree, and are not installed");
  const std::vector<MpiInstallation> installations = find_mpi_installations();
  if (options.name.empty()) return list(programs, installations, options.json);
  std::string why;
  const std::optional<Chosen> chosen = choose(options, programs, installations, why);
  if (!chosen) return refuse("lab", why);
  if (options.ranks == 0) options.ranks = options.hosts != 0 ? options.hosts : 2;
  if (options.hosts != 0) return lab_over_hosts(options, *chosen, arguments);
  LabJob job{chosen->mpi, chosen->mpi.mpirun, nullptr, options.json, options.verbose};
  job.command.insert(job.command.end(), {"-n", std::to_string(options.ranks)});
  append_program(job, options, *chosen);
  return run_job(job, options, arguments);
}

}  // namespace

void add_lab_command(CLI::App& farsum, CommandLine& line) {
  CLI::App* command = farsum.add_subcommand("lab", lab_description);
  auto options = std::make_shared<LabOptions>();
  command->footer(lab_epilogue);
  command->add_option("name", options->name, "The program; without one, a list");
  command->add_option(
      "--mpi", options->mpi,
      "The MPI library: mpich, openmpi, mpich5, mpich5-abi, openmpi5, impi, impi-abi; default: the first there is");
  command->add_option("-n,--ranks", options->ranks, "Number of ranks (default 2, or one on each host)")
      ->check(CLI::PositiveNumber);
  command->add_option("--hosts", options->hosts, "Over so many test hosts, made for the run")->check(CLI::Range(1, 26));
  command
      ->add_option("--through", options->through,
                   "A word of the command that starts each rank's program, such as a profiler; once for each word")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--with", options->with, "Run it with Farsum only");
  command->add_flag("--without", options->without, "Run it without Farsum only");
  command->add_flag("--both", options->both, "Run it without, then with Farsum, and compare (default)");
  command->add_flag("--json", options->json, "Print JSON lines instead of a table");
  command->add_flag("--verbose", options->verbose, "Say what is run");
  command->callback([options, &line] { line.exit_code = lab(*options, line.program); });
}

}  // namespace farsum::cli
