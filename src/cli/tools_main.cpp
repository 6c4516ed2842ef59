// What the `farsum` command becomes for some of its subcommands.
#include "cli/programs.hpp"

int main(int argc, char** argv) { return farsum::cli::serve_tool_commands(argc, argv); }
