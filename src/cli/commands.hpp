// The subcommands of `farsum`. Each adds itself to the parser and, when it is the one asked for, does its work and
// leaves its exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/exit_codes.hpp"

namespace farsum::cli {

struct CommandLine {
  std::vector<std::string> own;      // for the parser
  std::vector<std::string> program;  // what is run, with its arguments; never looked at by the parser
  int exit_code = 0;
};

void add_run_command(CLI::App& farsum, CommandLine& line);
void add_info_command(CLI::App& farsum, CommandLine& line);
void add_bench_command(CLI::App& farsum, CommandLine& line);
void add_mpi_command(CLI::App& farsum, CommandLine& line);
void add_lab_command(CLI::App& farsum, CommandLine& line);

// Says on stderr why `farsum NAME` ends, and returns what it ends with.
int refuse(const char* name, const std::string& sentence, int exit_code = exit_usage);

// Splits the arguments of a subcommand where a program's name comes: at the first one that is neither an option of
// `command` nor an option's value, or after "--". The parser cannot do it: it would take a program called `info` for
// the subcommand.
void split_at_program(const CLI::App& command, const std::vector<std::string>& arguments, CommandLine& line);

}  // namespace farsum::cli
