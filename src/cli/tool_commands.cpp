// The program `farsum-tools`: what says and measures, and starts others that do.
#include "cli/commands.hpp"
#include "cli/programs.hpp"

namespace farsum::cli {

namespace {

void add_commands(CLI::App& farsum, CommandLine& line) {
  farsum.add_subcommand("run", run_description);
  add_info_command(farsum, line);
  add_bench_command(farsum, line);
  farsum.add_subcommand("mpi", mpi_description);
  add_lab_command(farsum, line);
}

}  // namespace

int serve_tool_commands(int argc, char** argv) {
  if (argc < 2 || !is_served_by_tools(argv[1])) return become_program_beside("farsum", argv);
  return serve_command_line(argc, argv, add_commands);
}

}  // namespace farsum::cli
