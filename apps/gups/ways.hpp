// The ways to update a random word of another rank, each with calls of farsum.h only.
#pragma once

#include "../common/job.hpp"
#include "options.hpp"
#include "table.hpp"
#include "updates.hpp"

namespace gups {

// What a way asks of its window.
[[nodiscard]] farsum_window_options window_options(Way way, const Options& options, int ranks);

// Carries out this rank's updates. Complete at their targets on return.
void update(Way way, const apps::Job& job, const Options& options, Table& table, Updates& updates);

// The limit to compare with: the processor's locked instruction in a bare loop over the mapped table. False where the
// table is not mapped here; then nothing was done.
[[nodiscard]] bool update_with_bare_atomics(const Options& options, const Table& table, Updates& updates);

}  // namespace gups
