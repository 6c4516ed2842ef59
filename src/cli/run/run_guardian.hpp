// The guardian: the process between the launcher and the ranks. It starts the ranks, reaps them, passes signals on, and
// ends every descendant of the job when it is told to, or when the launcher is gone. It decides nothing else.
#pragma once

#include "cli/run/run_spawn.hpp"
#include "cli/unique_fd.hpp"

namespace farsum::cli {

// Never returns. `channel` is the guardian's end. Precondition: called in a freshly forked process whose only open
// descriptors of the launcher are the channel and those named in the context.
[[noreturn]] void be_guardian(UniqueFd channel, SpawnContext context);

}  // namespace farsum::cli
