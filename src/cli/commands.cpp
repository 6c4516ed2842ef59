// What subcommands share: the way through a command line, refusals, and where the launcher's arguments end and a
// program's begin.
#include "cli/commands.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/misspelt_settings.hpp"
#include "cli/own_folder.hpp"
#include "cli/version.hpp"

namespace farsum::cli {

namespace {

bool value_follows(const CLI::App& command, const std::string& argument) {
  const CLI::Option* option = command.get_option_no_throw(argument);
  return option != nullptr && option->get_items_expected_max() > 0;
}

constexpr const char* epilogue = R"(
Examples:
  farsum run -n 2 ./program      start a program on two ranks
  farsum mpi mpirun -n 2 ./prog  run an MPI program with Farsum in front of its one-sided calls
  farsum info                    whether Farsum works here, and with which MPI libraries
  farsum bench --list            the benchmarks there are
  farsum lab                     the lab programs: plain MPI, run without and with Farsum

farsum COMMAND --help says more about each.)";

// Some commands start a program, whose arguments are not ours to parse.
void take_arguments(CLI::App& farsum, const std::vector<std::string>& arguments, CommandLine& line) {
  if (!arguments.empty() && arguments.front() == "lab") {
    // Here the name comes first and the program's own arguments after "--".
    const auto end = std::find(arguments.begin(), arguments.end(), "--");
    line.own.assign(arguments.begin(), end);
    if (end != arguments.end()) line.program.assign(end + 1, arguments.end());
    return;
  }
  constexpr std::array starting = {"run", "bench", "mpi"};
  if (arguments.empty() || std::find(starting.begin(), starting.end(), arguments.front()) == starting.end()) {
    line.own = arguments;
    return;
  }
  line.own.push_back(arguments.front());
  split_at_program(*farsum.get_subcommand(arguments.front()), {arguments.begin() + 1, arguments.end()}, line);
}

}  // namespace

int serve_command_line(int argc, char** argv, AddCommands* add) {
  for (const std::string& sentence : misspelt_settings(environ)) fmt::print(stderr, "farsum: {}\n", sentence);
  CLI::App farsum("Farsum: one-sided communication with atomic reduction", "farsum");
  farsum.set_version_flag("--version", version_text());
  farsum.footer(epilogue);
  farsum.require_subcommand(1);
  CommandLine line;
  add(farsum, line);
  take_arguments(farsum, {argv + 1, argv + argc}, line);
  try {
    // The parser takes its arguments from the back.
    farsum.parse(std::vector<std::string>(line.own.rbegin(), line.own.rend()));
  } catch (const CLI::ParseError& error) {
    return farsum.exit(error) == 0 ? exit_ok : exit_usage;
  }
  return line.exit_code;
}

int become_program_beside(const char* name, char** argv) {
  const std::string path = own_folder() / name;
  execv(path.c_str(), argv);
  return refuse(argv[1] != nullptr ? argv[1] : name, fmt::format("{} cannot be run: {}", path, std::strerror(errno)),
                exit_launcher_failed);
}

int refuse(const char* name, const std::string& sentence, int exit_code) {
  fmt::print(stderr, "farsum {}: {}\n", name, sentence);
  return exit_code;
}

void split_at_program(const CLI::App& command, const std::vector<std::string>& arguments, CommandLine& line) {
  auto program = arguments.begin();
  while (program != arguments.end() && program->starts_with('-') && *program != "--") {
    const bool two = value_follows(command, *program) && program + 1 != arguments.end();
    program += two ? 2 : 1;
  }
  line.own.insert(line.own.end(), arguments.begin(), program);
  if (program != arguments.end() && *program == "--") ++program;
  line.program.assign(program, arguments.end());
}

}  // namespace farsum::cli
