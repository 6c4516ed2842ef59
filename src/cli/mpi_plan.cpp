// The decisions of `farsum mpi`, in the order in which they are taken: launcher, programs, front, insertion.
#include "cli/mpi_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/mpi_insertion.hpp"
#include "cli/mpi_linkage.hpp"
#include "cli/mpi_program.hpp"
#include "cli/mpi_wrappers.hpp"
#include "cli/run_program.hpp"

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
  const std::set<std::string> of_launcher = {"FARSUM_RANK", "FARSUM_SIZE", "FARSUM_NODE_FD", "FARSUM_JOB"};
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

// Looks at the programs of all contexts; they must agree.
struct JobFinding {
  std::string refusal;
  std::optional<MpiAbi> abi;
  std::vector<std::string> sentences;
};

JobFinding examine_job(const Launcher& launcher, const std::vector<std::string>& arguments,
                       const std::vector<LaunchContext>& contexts, const ProgramSurroundings& surroundings) {
  JobFinding job;
  for (const LaunchContext& context : contexts) {
    if (!context.program) {
      return {fmt::format("no program was found in '{}'{}", shell_words(arguments),
                          contexts.size() > 1 ? " between its colons" : ""),
              {},
              {}};
    }
    const ProgramFinding found = examine_program(arguments, *context.program, context.end,
                                                 surroundings_of(launcher.kind, context, surroundings));
    if (!found.abi) {
      const auto unknown = std::find_if(context.options.begin(), context.options.end(),
                                        [](const auto& option) { return !option.known; });
      const std::string hint =
          unknown == context.options.end()
              ? ""
              : fmt::format(" ({} is an option that farsum mpi does not know: '{}' was taken for the program)",
                            arguments[unknown->position], arguments[*context.program]);
      return {found.sentence + hint, {}, {}};
    }
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

// A mismatch that MPI itself would answer with N jobs of one rank each.
std::string describe_mismatch(const Launcher& launcher, MpiAbi abi) {
  const auto usual = usual_abi(launcher.kind);
  if (!usual || *usual == abi || abi == MpiAbi::standard) return {};
  return fmt::format("the launcher is that of {}, but the program needs {}: each rank would run alone",
                     describe(launcher.kind), describe(abi));
}

Variables passed_to_ranks(const LaunchRequest& request, const std::string& library) {
  Variables passed = settings_of(request.environment);
  for (const auto& [name, value] : request.settings) passed[name] = value;
  passed["LD_PRELOAD"] = prepend_preload(library, value_in(request.environment, "LD_PRELOAD"));
  return passed;
}

LaunchPlan plan_job(const LaunchRequest& request, const Launcher& launcher, const ProgramSurroundings& surroundings) {
  const std::vector<std::string> arguments = arguments_behind(request, launcher);
  const auto is_program = [&](const std::string& token) { return !locate_program(token, surroundings).empty(); };
  auto contexts = read_launch(launcher.kind, arguments, is_program);
  JobFinding job{{}, request.abi, {"not looked at: --abi was given"}};
  if (!request.abi) job = examine_job(launcher, arguments, contexts, surroundings);
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
  Insertion inserted = insert_variables({launcher.kind, arguments, std::move(contexts), library,
                                         value_in(request.environment, "LD_PRELOAD"), settings_of(request.environment),
                                         request.settings, value_in(request.environment, "SLURM_EXPORT_ENV")});
  if (!inserted.refusal.empty()) return refuse_plan(inserted.refusal);
  plan.command.assign(request.command.begin(),
                      request.command.begin() + static_cast<std::ptrdiff_t>(launcher.position) + 1);
  plan.command.insert(plan.command.end(), inserted.arguments.begin(), inserted.arguments.end());
  plan.own_environment = std::move(inserted.own_environment);
  plan.passed_environment = passed_to_ranks(request, library);
  return plan;
}

// A program started without a launcher: MPI makes it a job of one rank.
LaunchPlan plan_single(const LaunchRequest& request, const ProgramSurroundings& surroundings) {
  ProgramFinding found{request.abi, "not looked at: --abi was given"};
  if (!request.abi) found = examine_program(request.command, 0, request.command.size(), surroundings);
  if (!found.abi) return refuse_plan(found.sentence);
  const FrontChoice front = check_front(request, *found.abi);
  if (!front.refusal.empty()) return refuse_plan(front.refusal);
  LaunchPlan plan;
  plan.findings = {{"launcher", "none: the program is started as one rank"}, {"program", found.sentence}};
  plan.command = request.command;
  plan.passed_environment = passed_to_ranks(request, front_library(request.libraries, front.abi));
  plan.own_environment = plan.passed_environment;
  return plan;
}

}  // namespace

std::string prepend_preload(const std::string& library, const std::string& preload) {
  std::string merged = library;
  std::size_t start = 0;
  for (std::size_t end = 0; end != std::string::npos; start = end + 1) {
    end = preload.find_first_of(": ", start);
    const std::string part = preload.substr(start, end == std::string::npos ? end : end - start);
    if (!part.empty() && part != library) merged += ":" + part;
  }
  return merged;
}

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
