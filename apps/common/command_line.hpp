// The frame of a program: options, then the work, then one exit code: 0 right, 1 a wrong answer or a failure, 2 bad
// options.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "job.hpp"

namespace apps {

enum ExitCode : int { exit_right = 0, exit_wrong = 1, exit_bad_options = 2 };

// Values that FARSUM_PATH takes.
inline const std::vector<std::string>& path_choices() {
  static const std::vector<std::string> choices = {"auto",  "direct",     "attach", "caller",
                                                   "owner", "aggregated", "offload"};
  return choices;
}

// Sets a variable that Farsum reads when it is started; an empty value takes it away.
inline void set_environment(const char* name, const std::string& value) {
  if (value.empty()) {
    unsetenv(name);
  } else {
    setenv(name, value.c_str(), 1);
  }
}

// Joins the job to learn which rank prints, so that one text comes out whatever the number of ranks. Nobody leaves
// before it is out.
template <class Print>
void print_once(Print&& print) {
  int rank = 0;
  const bool joined = farsum_init(nullptr) == FARSUM_OK && farsum_rank(farsum_world(), &rank) == FARSUM_OK;
  if (rank == 0) print();
  std::fflush(nullptr);
  if (joined) static_cast<void>(farsum_finalize());
}

// Parses the options. A value is the exit code of a program that ends here: after --help, or a text about what is
// wrong.
inline std::optional<int> parse_options(CLI::App& options, int argc, char** argv) {
  try {
    options.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& answer) {
    print_once([&] { options.exit(answer); });
    return answer.get_exit_code() == 0 ? exit_right : exit_bad_options;
  }
}

// Says once what the user asked for and cannot have, in a job that has started. Called by every rank alike.
inline int refuse(const Job& job, const char* name, const std::string& sentence) {
  if (job.is_root()) fmt::print(stderr, "{}: {}\n", name, sentence);
  std::fflush(stderr);
  job.barrier();
  return exit_bad_options;
}

// Runs the work and turns what it throws into an exit code.
template <class Work>
int run_program(const char* name, Work&& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    // The other ranks may wait for this one; ending at once is what tells them.
    fmt::print(stderr, "{}: {}\n", name, error.what());
    std::fflush(nullptr);
    std::_Exit(exit_wrong);
  }
}

}  // namespace apps
