// What subcommands share: refusals, and where the launcher's arguments end and a program's begin.
#include "cli/commands.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace farsum::cli {

namespace {

bool value_follows(const CLI::App& command, const std::string& argument) {
  const CLI::Option* option = command.get_option_no_throw(argument);
  return option != nullptr && option->get_items_expected_max() > 0;
}

}  // namespace

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
