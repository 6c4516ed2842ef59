// The launcher's parts that are tested without starting it. They are compiled into this test, as the launcher is a
// program and no library.
#include "cli/commands.cpp"
#include "cli/event_loop.cpp"
#include "cli/info_paths.cpp"
#include "cli/run_binding.cpp"
#include "cli/run_output.cpp"
#include "cli/run_policy.cpp"
#include "cli/run_program.cpp"
#include "cli/run_sweep.cpp"
