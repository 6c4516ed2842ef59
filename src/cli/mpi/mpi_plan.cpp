// The decisions of `farsum mpi`, in the order in which they are taken: launcher, programs, front, insertion.
#include "cli/mpi/mpi_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/mpi/mpi_insertion.hpp"
#include "cli/mpi/mpi_linkage.hpp"
#include "cli/mpi/mpi_preload.hpp"
#include "cli/mpi/mpi_program.hpp"
#include "cli/mpi/mpi_wrappers.hpp"
#include "cli/run/run_program.hpp"
#include "setting.h"

namespace farsum::cli {

namespace {

LaunchPlan refuse_plan(std::string sentence) {
  LaunchPlan plan;
  plan.refusal = std::move(sentence);
  return plan;
}

std::string value_in(const Variables& variables, const std::string& name, const std::string& otherwise = {}) {
  const auto found = variables.find(name);
  return found == variables.end() ? otherwise : found->second;
}

// FARSUM_ variables of the environment; those that `farsum run` gives to its ranks are no settings.
Variables settings_of(const Variables& environment) {
  const std::set<std::string> of_launcher = {"FARSUM_RANK", "FARSUM_SIZE", "FARSUM_NODE_FD", "FARSUM_JOB",
                                             FARSUM_MPI_RUNTIMES_SETTING};
  Variables settings;
  for (const auto& [name, value] : environment) {
    if (name.starts_with("FARSUM_") && !of_launcher.contains(name)) settings.emplace(name, value);
  }
  return settings;
}

ProgramSurroundings surroundings_of(const LaunchRequest& request) {
  ProgramSurroundings surroundings;
  surroundings.search_path = value_in(request.environment, "PATH", "/usr/bin:/bin");
  surroundings.library_path = value_in(request.environment, "LD_LIBRARY_PATH");
  surroundings.mpi4py_abi = value_in(request.environment, "MPI4PY_MPIABI");
  return surroundings;
}

// What the options of one context change for its program.
ProgramSurroundings surroundings_of(LauncherKind kind, const LaunchContext& context, ProgramSurroundings surroundings) {
  surroundings.assumed = usual_abi(kind);
  surroundings.library_path = passed_value(kind, context, "LD_LIBRARY_PATH").value_or(surroundings.library_path);
  surroundings.mpi4py_abi = passed_value(kind, context, "MPI4PY_MPIABI").value_or(surroundings.mpi4py_abi);
  surroundings.search_path = passed_value(kind, context, "PATH").value_or(surroundings.search_path);
  for (const GivenOption& option : context.options) {
    if (option.values.size() != 1) continue;
    const bool slurm = kind == LauncherKind::slurm;
    const bool is_folder = slurm ? option.name == "chdir" || option.name == "D"
                                 : option.name == "wdir" || option.name == "wd" || option.name == "dir";
    if (is_folder) surroundings.folder = option.values[0];
    if (option.name == "path") surroundings.search_path = option.values[0] + ":" + surroundings.search_path;
  }
  return surroundings;
}

struct FrontChoice {
  std::string refusal;
  MpiAbi abi{};
};

FrontChoice check_front(const LaunchRequest& request, MpiAbi abi) {
  const std::string library = front_library(request.libraries, abi);
  if (library.find_first_of(" \t:") != std::string::npos) {
    return {
        fmt::format("LD_PRELOAD, by which MPI programs get Farsum, cannot name {}, for a space or a colon would split "
                    "it; install Farsum below a folder without one",
                    library),
        abi};
  }
  if (access(library.c_str(), R_OK) == 0) return {{}, abi};
  return {fmt::format("the front for {} was not built: {} is not there; install that MPI's development package (or run "
                      "tools/mpi_libraries) and build again",
                      describe(abi), library),
          abi};
}

struct Launcher {
  std::size_t position = 0;
  std::string path;
  LauncherKind kind{};
};

struct LauncherSearch {
  std::string refusal;
  std::optional<Launcher> launcher;  // nothing: the command is the program itself
};

LauncherSearch ask_launcher(const LaunchRequest& request, std::size_t position,
                            const ProgramSurroundings& surroundings) {
  const std::string& name = request.command[position];
  if (judge_launcher_name(name) == LauncherName::unsupported) {
    return {fmt::format("{} is a launcher that Farsum cannot pass variables through; give its ranks LD_PRELOAD={} as "
                        "its manual says",
                        name, front_library(request.libraries, request.abi.value_or(MpiAbi::mpich))),
            {}};
  }
  const FoundProgram found = find_program(name, surroundings.search_path);
  if (found.path.empty()) return {found.sentence, {}};
  const std::string version = ask_version(found.path);
  const auto kind = classify_launcher(version);
  if (!kind) {
    return {
        fmt::format(
            "cannot tell what kind of launcher {} is: {} --version says '{}'; Farsum knows Open MPI's, MPICH's, Intel "
            "MPI's and Slurm's",
            name, found.path, version.substr(0, version.find('\n'))),
        {}};
  }
  return {{}, Launcher{position, found.path, *kind}};
}

// The launcher may itself stand behind wrappers: time mpirun ... A program of MPI is neither, whatever its name.
LauncherSearch find_launcher(const LaunchRequest& request, const ProgramSurroundings& surroundings) {
  for (std::size_t at = 0;;) {
    const std::string& name = request.command[at];
    const bool is_launcher = judge_launcher_name(name) != LauncherName::none;
    if (!is_launcher && !is_wrapper(name)) return {};
    if (is_mpi_program(name, surroundings)) return {};
    if (is_launcher) return ask_launcher(request, at, surroundings);
    const auto inner = look_through(request.command, at, request.command.size());
    if (!inner) return {};
    at = inner->position;
  }
}

std::vector<std::string> arguments_behind(const LaunchRequest& request, const Launcher& launcher) {
  return {request.command.begin() + static_cast<std::ptrdiff_t>(launcher.position) + 1, request.command.end()};
}

// What each context starts.
std::vector<ProgramFinding> examine_programs(const Launcher& launcher, const std::vector<std::string>& arguments,
                                             const std::vector<LaunchContext>& contexts,
                                             const ProgramSurroundings& surroundings) {
  std::vector<ProgramFinding> programs;
  for (const LaunchContext& context : contexts) {
    if (context.program) {
      programs.push_back(examine_program(arguments, *context.program, context.end,
                                         surroundings_of(launcher.kind, context, surroundings)));
    } else {
      programs.push_back({std::nullopt,
                          fmt::format("no program was found in '{}'{}", shell_words(arguments),
                                      contexts.size() > 1 ? " between its colons" : ""),
                          {}});
    }
  }
  return programs;
}

struct JobFinding {
  std::string refusal;
  std::optional<MpiAbi> abi;
  std::vector<std::string> sentences;
};

std::string hint_of(const LaunchContext& context, const std::vector<std::string>& arguments) {
  const auto unknown =
      std::find_if(context.options.begin(), context.options.end(), [](const auto& option) { return !option.known; });
  if (!context.program || unknown == context.options.end()) return {};
  return fmt::format(" ({} is an option that farsum mpi does not know: '{}' was taken for the program)",
                     arguments[unknown->position], arguments[*context.program]);
}

// The programs of all contexts must agree.
JobFinding judge_job(const std::vector<std::string>& arguments, const std::vector<LaunchContext>& contexts,
                     const std::vector<ProgramFinding>& programs) {
  JobFinding job;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const ProgramFinding& found = programs[i];
    if (!found.abi) return {found.sentence + hint_of(contexts[i], arguments), {}, {}};
    if (job.abi && *job.abi != *found.abi) {
      return {
          fmt::format("the programs of this job need different MPIs: {}; {}", job.sentences.front(), found.sentence),
          {},
          {}};
    }
    job.abi = found.abi;
    job.sentences.push_back(found.sentence);
  }
  return job;
}

// ---- runtimes of sanitizers ---------------------------------------------------------------------------------------

void add_once(std::vector<std::string>& list, const std::vector<std::string>& more) {
  for (const std::string& one : more) {
    if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
  }
}

std::string describe_conflict(const std::vector<std::string>& runtimes) {
  for (const std::string& one : runtimes) {
    for (const std::string& other : runtimes) {
      if (!exclude_each_other(sanitizer_of(one), sanitizer_of(other))) continue;
      return fmt::format(
          "this launcher gives all programs of a job the same LD_PRELOAD, and theirs need two runtimes of sanitizers "
          "that exclude each other, {} and {}: build them with one sanitizer",
          one, other);
    }
  }
  return {};
}

struct Runtimes {
  std::string refusal;
  std::vector<std::string> added;  // to what the user preloads, in any of the contexts
};

// Hands each context what its program needs, or, where the launcher gives all the same variables, what any needs.
Runtimes give_runtimes(const Launcher& launcher, const std::vector<ProgramFinding>& programs,
                       const std::string& users_preload, std::vector<LaunchContext>& contexts) {
  Runtimes given;
  std::vector<std::string> of_all;
  for (const ProgramFinding& program : programs) add_once(of_all, program.runtimes);
  const bool are_shared = !variables_are_per_context(launcher.kind);
  if (are_shared && contexts.size() > 1) given.refusal = describe_conflict(of_all);
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    contexts[i].runtimes = are_shared ? of_all : programs[i].runtimes;
    add_once(given.added,
             runtimes_to_add(contexts[i].runtimes,
                             passed_value(launcher.kind, contexts[i], "LD_PRELOAD").value_or(users_preload)));
  }
  return given;
}

// So that children of the ranks, which are none of the job's, do not inherit them.
void name_runtimes(const std::vector<std::string>& added, Variables& settings) {
  if (!added.empty()) settings[FARSUM_MPI_RUNTIMES_SETTING] = fmt::format("{}", fmt::join(added, ":"));
}

// A mismatch that MPI itself would answer with N jobs of one rank each.
std::string describe_mismatch(const Launcher& launcher, MpiAbi abi) {
  const auto usual = usual_abi(launcher.kind);
  if (!usual || *usual == abi || abi == MpiAbi::standard) return {};
  return fmt::format("the launcher is that of {}, but the program needs {}: each rank would run alone",
                     describe(launcher.kind), describe(abi));
}

Variables passed_to_ranks(const LaunchRequest& request, const Variables& settings, const std::string& library,
                          const std::vector<std::string>& runtimes) {
  Variables passed = settings_of(request.environment);
  for (const auto& [name, value] : settings) passed[name] = value;
  passed["LD_PRELOAD"] = merge_preload(library, runtimes, value_in(request.environment, "LD_PRELOAD"));
  return passed;
}

LaunchPlan plan_job(const LaunchRequest& request, const Launcher& launcher, const ProgramSurroundings& surroundings) {
  const std::vector<std::string> arguments = arguments_behind(request, launcher);
  const std::string users_preload = value_in(request.environment, "LD_PRELOAD");
  const auto is_program = [&](const std::string& token) { return !locate_program(token, surroundings).empty(); };
  auto contexts = read_launch(launcher.kind, arguments, is_program);
  // With --abi as well, for what else they need; where they cannot be seen, that is nothing.
  const auto programs = examine_programs(launcher, arguments, contexts, surroundings);
  JobFinding job{{}, request.abi, {"not asked for its MPI: --abi was given"}};
  if (!request.abi) job = judge_job(arguments, contexts, programs);
  if (!job.refusal.empty()) return refuse_plan(job.refusal);
  const FrontChoice front = check_front(request, *job.abi);
  if (!front.refusal.empty()) return refuse_plan(front.refusal);

  const std::string library = front_library(request.libraries, front.abi);
  LaunchPlan plan;
  plan.findings.emplace_back("launcher", fmt::format("{}: {}", launcher.path, describe(launcher.kind)));
  for (const std::string& sentence : job.sentences) plan.findings.emplace_back("program", sentence);
  const std::string mismatch = request.abi ? "" : describe_mismatch(launcher, front.abi);
  if (!mismatch.empty()) {
    return refuse_plan(fmt::format(
        "{}; use the mpirun of the program's own MPI, or, where its MPI can be started by this one, --abi {}", mismatch,
        name_of(front.abi)));
  }
  const Runtimes runtimes = give_runtimes(launcher, programs, users_preload, contexts);
  if (!runtimes.refusal.empty()) return refuse_plan(runtimes.refusal);
  Variables settings = request.settings;
  name_runtimes(runtimes.added, settings);
  Insertion inserted =
      insert_variables({launcher.kind, arguments, std::move(contexts), library, users_preload,
                        settings_of(request.environment), settings, value_in(request.environment, "SLURM_EXPORT_ENV")});
  if (!inserted.refusal.empty()) return refuse_plan(inserted.refusal);
  plan.command.assign(request.command.begin(),
                      request.command.begin() + static_cast<std::ptrdiff_t>(launcher.position) + 1);
  plan.command.insert(plan.command.end(), inserted.arguments.begin(), inserted.arguments.end());
  plan.own_environment = std::move(inserted.own_environment);
  plan.passed_environment = passed_to_ranks(request, settings, library, runtimes.added);
  return plan;
}

// A program started without a launcher: MPI makes it a job of one rank.
LaunchPlan plan_single(const LaunchRequest& request, const ProgramSurroundings& surroundings) {
  ProgramFinding found = examine_program(request.command, 0, request.command.size(), surroundings);
  if (request.abi) {
    found.abi = request.abi;
    found.sentence = "not asked for its MPI: --abi was given";
  }
  if (!found.abi) return refuse_plan(found.sentence);
  const FrontChoice front = check_front(request, *found.abi);
  if (!front.refusal.empty()) return refuse_plan(front.refusal);
  Variables settings = request.settings;
  name_runtimes(runtimes_to_add(found.runtimes, value_in(request.environment, "LD_PRELOAD")), settings);
  LaunchPlan plan;
  plan.findings = {{"launcher", "none: the program is started as one rank"}, {"program", found.sentence}};
  plan.command = request.command;
  plan.passed_environment =
      passed_to_ranks(request, settings, front_library(request.libraries, front.abi), found.runtimes);
  plan.own_environment = plan.passed_environment;
  return plan;
}

}  // namespace

std::string shell_words(const std::vector<std::string>& command) {
  const auto quoted = [](const std::string& word) {
    constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
    std::string result = "'";
    for (const char letter : word) result += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    return result + "'";
  };
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + quoted(word);
  return line;
}

LaunchPlan plan_launch(const LaunchRequest& request) {
  if (request.command.empty()) {
    return refuse_plan("the command is missing: farsum mpi mpirun -n 2 ./program; farsum mpi --help shows more");
  }
  const ProgramSurroundings surroundings = surroundings_of(request);
  const LauncherSearch search = find_launcher(request, surroundings);
  if (!search.refusal.empty()) return refuse_plan(search.refusal);
  LaunchPlan plan =
      search.launcher ? plan_job(request, *search.launcher, surroundings) : plan_single(request, surroundings);
  if (!plan.refusal.empty()) return plan;
  const FoundProgram found = find_program(plan.command.front(), surroundings.search_path);
  if (found.path.empty()) return refuse_plan(found.sentence);
  plan.program = found.path;
  return plan;
}

}  // namespace farsum::cli
