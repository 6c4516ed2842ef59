// The `farsum` command: picks the subcommand. Each one lives in a file of its own.
#include <farsum.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/commands.hpp"
#include "cli/exit_codes.hpp"

namespace {

constexpr const char* epilogue = R"(
Examples:
  farsum run -n 2 ./program      start a program on two ranks
  farsum mpi mpirun -n 2 ./prog  run an MPI program with Farsum in front of its one-sided calls
  farsum info                    what was built, and what this machine allows
  farsum bench --list            the benchmarks there are
  farsum lab                     the lab programs: plain MPI, run without and with Farsum

farsum COMMAND --help says more about each.)";

// Some commands start a program, whose arguments are not ours to parse.
void take_arguments(CLI::App& farsum, const std::vector<std::string>& arguments, farsum::cli::CommandLine& line) {
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
  farsum::cli::split_at_program(*farsum.get_subcommand(arguments.front()), {arguments.begin() + 1, arguments.end()},
                                line);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace farsum::cli;
  CLI::App farsum("Farsum: one-sided communication with atomic reduction", "farsum");
  farsum.set_version_flag("--version", fmt::format("farsum {}.{}", FARSUM_VERSION_MAJOR, FARSUM_VERSION_MINOR));
  farsum.footer(epilogue);
  farsum.require_subcommand(1);
  CommandLine line;
  add_run_command(farsum, line);
  add_info_command(farsum, line);
  add_bench_command(farsum, line);
  add_mpi_command(farsum, line);
  add_lab_command(farsum, line);
  take_arguments(farsum, {argv + 1, argv + argc}, line);
  try {
    // The parser takes its arguments from the back.
    farsum.parse(std::vector<std::string>(line.own.rbegin(), line.own.rend()));
  } catch (const CLI::ParseError& error) {
    return farsum.exit(error) == 0 ? exit_ok : exit_usage;
  }
  return line.exit_code;
}
