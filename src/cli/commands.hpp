// The subcommands of `farsum`. Each adds itself to the parser and, when it is the one asked for, does its work and
// leaves its exit code.
//
// Two programs serve them: `farsum` starts jobs, and becomes `farsum-tools`, which lies beside it, for what takes long
// to build and is wanted now and then. Nobody need know of the second.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/exit_codes.hpp"

namespace farsum::cli {

inline constexpr const char* run_description =
    "Start the ranks of a job on this machine: farsum run -n N [OPTIONS] PROGRAM [ARGS...]";
inline constexpr const char* info_description = "Say whether Farsum works here, and what this machine allows";
inline constexpr const char* bench_description = "Run a benchmark: farsum bench [OPTIONS] NAME [ITS OPTIONS...]";
inline constexpr const char* mpi_description =
    "Run an MPI program with Farsum in front of MPI: farsum mpi [OPTIONS] mpirun ...";
inline constexpr const char* lab_description =
    "Run a lab program without and with Farsum: farsum lab [NAME] [OPTIONS] [-- ITS OPTIONS...]";

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

using AddCommands = void(CLI::App& farsum, CommandLine& line);

// The whole of a program: parses its arguments, lets the subcommand do its work, and returns the exit code. `add` adds
// all five subcommands, for --help, those that the other program serves without more than a name and a description.
int serve_command_line(int argc, char** argv, AddCommands* add);

// Becomes the program of this name beside this one, with the same arguments. Returns where that is not there.
int become_program_beside(const char* name, char** argv);

// Says on stderr why `farsum NAME` ends, and returns what it ends with.
int refuse(const char* name, const std::string& sentence, int exit_code = exit_usage);

// Splits the arguments of a subcommand where a program's name comes: at the first one that is neither an option of
// `command` nor an option's value, or after "--". The parser cannot do it: it would take a program called `info` for
// the subcommand.
void split_at_program(const CLI::App& command, const std::vector<std::string>& arguments, CommandLine& line);

}  // namespace farsum::cli
