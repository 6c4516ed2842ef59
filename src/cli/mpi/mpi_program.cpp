// From a file to the front that serves it. Every refusal ends with what the user can do.
#include "cli/mpi/mpi_program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <set>

#include "cli/base_name.hpp"
#include "cli/exit_codes.hpp"
#include "cli/mpi/mpi_linkage.hpp"
#include "cli/mpi/mpi_wrappers.hpp"
#include "cli/run/run_program.hpp"

namespace farsum::cli {

namespace {

constexpr const char* say_which = "say which MPI it uses with --abi mpich, --abi openmpi or --abi abi";

ProgramFinding refuse_program(std::string sentence) { return {std::nullopt, std::move(sentence), {}}; }

// Programs that read their work from a script and load MPI, if any, later.
bool is_interpreter(std::string_view name) {
  constexpr std::array names = {"sh",   "bash",   "dash",    "zsh",     "ksh",    "csh",   "tcsh",
                                "fish", "python", "pypy",    "ipython", "perl",   "julia", "ruby",
                                "lua",  "tclsh",  "Rscript", "R",       "octave", "java",  "node"};
  // python3.11 is python.
  while (!name.empty() && (std::isdigit(static_cast<unsigned char>(name.back())) != 0 || name.back() == '.')) {
    name.remove_suffix(1);
  }
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string script_interpreter(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line.starts_with("#!") ? line.substr(std::min(line.find_first_not_of(" \t", 2), line.size())) : "";
}

bool is_setuid(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && (about.st_mode & (S_ISUID | S_ISGID)) != 0;
}

std::optional<MpiAbi> abi_of_mpi4py(const std::string& name) {
  if (name == "mpich" || name == "impi") return MpiAbi::mpich;
  if (name == "openmpi") return MpiAbi::openmpi;
  if (name == "mpiabi") return MpiAbi::standard;
  return std::nullopt;
}

// What cannot be seen from its file: `what` is "/bin/sh is an interpreter".
ProgramFinding assume(const std::string& what, bool is_python, const ProgramSurroundings& surroundings) {
  if (is_python) {
    if (const auto abi = abi_of_mpi4py(surroundings.mpi4py_abi)) {
      return {abi, fmt::format("{}, and MPI4PY_MPIABI is {}: {}", what, surroundings.mpi4py_abi, describe(*abi)), {}};
    }
  }
  if (!surroundings.assumed) return refuse_program(fmt::format("{}: its MPI cannot be seen; {}", what, say_which));
  return {surroundings.assumed,
          fmt::format("{}: taken for {}, as the launcher's; --abi says otherwise{}", what,
                      describe(*surroundings.assumed), is_python ? " (mpi4py's wheels may load another MPI)" : ""),
          {}};
}

std::string words_of(const MpiNeed& need) {
  return fmt::format("{} ({})", need.soname, need.file.empty() ? "not found here" : need.file);
}

ProgramFinding judge_needs(const std::string& path, const std::vector<MpiNeed>& needs) {
  std::set<MpiAbi> abis;
  std::vector<std::string> words;
  for (const MpiNeed& need : needs) {
    words.push_back(words_of(need));
    const auto abi = need.is_old_openmpi ? std::nullopt : mpi_abi_of_library(need.soname);
    if (!abi) {
      return refuse_program(
          fmt::format("{} needs {}, an MPI that Farsum has no front for; there are fronts for MPICH and Intel MPI "
                      "(libmpi.so.12, libmpich.so.12), Open MPI 3 to 5 (libmpi.so.40) and MPI-5's standard ABI "
                      "(libmpi_abi.so): link the program with one of those",
                      need.needed_by, words.back()));
    }
    abis.insert(*abi);
  }
  if (abis.size() > 1) {
    return refuse_program(
        fmt::format("{} needs the libraries of more than one MPI: {}; one of what it links was built for another MPI "
                    "than the rest: relink it (ldd {} shows which)",
                    path, fmt::join(words, " and "), path));
  }
  return {*abis.begin(), fmt::format("{} needs {}: {}", path, fmt::join(words, " and "), describe(*abis.begin())), {}};
}

// `not_found`: the program that stands behind `path` on the command line, where there is no such file; else empty.
ProgramFinding refuse_without_mpi(const std::string& path, const Linkage& linkage, const std::string& not_found) {
  if (!linkage.program.defined_mpi.empty()) {
    return refuse_program(
        fmt::format("{} has MPI linked in statically (it defines {}), where no preload can stand in front of it; link "
                    "it with the shared library of MPI",
                    path, linkage.program.defined_mpi.front()));
  }
  if (!linkage.program.needs_linker) {
    return refuse_program(fmt::format(
        "{} is linked statically, so nothing can be preloaded into it; link it with shared libraries", path));
  }
  const std::string missing = linkage.missing.empty() ? ""
                                                      : fmt::format(" ({} could not be found and may need one)",
                                                                    fmt::join(linkage.missing, ", "));
  const std::string behind = not_found.empty() ? "" : fmt::format(", and {} was not found", not_found);
  return refuse_program(
      fmt::format("{} needs no MPI library{}{}; if it loads MPI while it runs, {}", path, missing, behind, say_which));
}

ProgramFinding judge_linkage(const std::string& path, const Linkage& linkage, const std::string& not_found,
                             const ProgramSurroundings& surroundings) {
  if (!linkage.mpi.empty()) return judge_needs(path, linkage.mpi);
  const std::string_view name = base_name(path);
  if (is_interpreter(name)) {
    return assume(fmt::format("{} is an interpreter", path), name.find("py") != std::string_view::npos, surroundings);
  }
  return refuse_without_mpi(path, linkage, not_found);
}

ProgramFinding examine_file(const std::string& path, const ElfFile& elf, const std::string& not_found,
                            const ProgramSurroundings& surroundings) {
  if (is_setuid(path)) {
    return refuse_program(
        fmt::format("{} is set-user-ID or set-group-ID, and the system preloads nothing into such programs", path));
  }
  const Linkage linkage = follow_linkage(path, elf, library_search(surroundings.library_path));
  ProgramFinding finding = judge_linkage(path, linkage, not_found, surroundings);
  finding.runtimes = linkage.runtimes;
  return finding;
}

FoundProgram find_there(const std::string& name, const ProgramSurroundings& surroundings) {
  const bool relative = name.find('/') != std::string::npos && !name.starts_with('/');
  const std::string where = relative && !surroundings.folder.empty() ? surroundings.folder + "/" + name : name;
  FoundProgram found = find_program(where, surroundings.search_path);
  // Open MPI and Hydra also start what lies in the working folder under a bare name.
  if (found.path.empty() && name.find('/') == std::string::npos) {
    found = find_program((surroundings.folder.empty() ? "." : surroundings.folder) + "/" + name, "");
  }
  return found;
}

ProgramFinding examine_wrapped(const std::vector<std::string>& arguments, std::size_t wrapper, std::size_t end,
                               const ProgramSurroundings& surroundings) {
  const auto inner = look_through(arguments, wrapper, end);
  if (!inner) return refuse_program(fmt::format("no program follows {}; {}", arguments[wrapper], say_which));
  if (inner->clears_environment) {
    return refuse_program(fmt::format(
        "{} takes away the environment, and Farsum's preload with it; set variables without clearing others",
        arguments[wrapper]));
  }
  if (inner->sets_preload) {
    return refuse_program(
        fmt::format("{} sets LD_PRELOAD for {} anew, which takes Farsum's away; set it in front of all: "
                    "LD_PRELOAD=... farsum mpi ...",
                    arguments[wrapper], arguments[inner->position]));
  }
  ProgramFinding finding = examine_program(arguments, inner->position, end, surroundings);
  if (finding.abi) finding.sentence = fmt::format("through {}: {}", arguments[wrapper], finding.sentence);
  return finding;
}

}  // namespace

std::string locate_program(const std::string& name, const ProgramSurroundings& surroundings) {
  return find_there(name, surroundings).path;
}

bool is_mpi_program(const std::string& name, const ProgramSurroundings& surroundings) {
  const std::string path = locate_program(name, surroundings);
  const auto elf = path.empty() ? std::optional<ElfFile>{} : read_elf(path);
  if (!elf) return false;
  return !elf->defined_mpi.empty() ||
         !follow_linkage(path, *elf, library_search(surroundings.library_path)).mpi.empty();
}

ProgramFinding examine_program(const std::vector<std::string>& arguments, std::size_t program, std::size_t end,
                               const ProgramSurroundings& surroundings) {
  const std::string& name = arguments[program];
  const std::string path = locate_program(name, surroundings);
  if (path.empty()) {
    const FoundProgram reason = find_program(name, surroundings.search_path);
    return refuse_program(fmt::format("{}; a program that is on other hosts only: {}", reason.sentence, say_which));
  }
  const std::string interpreter = script_interpreter(path);
  const bool is_path = name.find('/') != std::string::npos;
  std::string not_found;
  if (is_wrapper(name) && !is_mpi_program(name, surroundings)) {
    // What a path leads to is a wrapper by its name alone where a program follows it.
    const auto inner = look_through(arguments, program, end);
    const FoundProgram behind = inner ? find_there(arguments[inner->position], surroundings) : FoundProgram{};
    if (!is_path || !behind.path.empty()) return examine_wrapped(arguments, program, end, surroundings);
    if (behind.exit_code == exit_not_found) not_found = arguments[inner->position];
  }
  if (const auto elf = read_elf(path)) return examine_file(path, *elf, not_found, surroundings);
  if (interpreter.empty()) {
    return refuse_program(
        fmt::format("{} is neither a 64-bit program of this machine nor a script that names its interpreter", path));
  }
  const bool is_python = base_name(name).starts_with("python") || interpreter.find("python") != std::string::npos;
  return assume(fmt::format("{} is a script of {}", path, interpreter), is_python, surroundings);
}

}  // namespace farsum::cli
