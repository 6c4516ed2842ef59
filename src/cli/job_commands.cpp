// The program `farsum`: what starts jobs.
#include "cli/commands.hpp"
#include "cli/programs.hpp"

namespace farsum::cli {

namespace {

void add_commands(CLI::App& farsum, CommandLine& line) {
  add_run_command(farsum, line);
  farsum.add_subcommand("info", info_description);
  farsum.add_subcommand("bench", bench_description);
  add_mpi_command(farsum, line);
  farsum.add_subcommand("lab", lab_description);
}

}  // namespace

int serve_job_commands(int argc, char** argv) {
  if (argc > 1 && is_served_by_tools(argv[1])) return become_program_beside("farsum-tools", argv);
  return serve_command_line(argc, argv, add_commands);
}

}  // namespace farsum::cli
