// The `farsum` command.
#include "cli/programs.hpp"

int main(int argc, char** argv) { return farsum::cli::serve_job_commands(argc, argv); }
