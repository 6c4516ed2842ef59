// Finds and kills everything that descends from this process. Works because the caller is a child subreaper: what its
// children leave behind, daemons included, becomes its own child.
#pragma once

#include <sys/types.h>

#include <unordered_set>
#include <vector>

namespace farsum::cli {

using PidSet = std::unordered_set<pid_t>;

// The living and the unreaped descendants of `root`, parents before their children. Those in `spared` and below are
// left out.
[[nodiscard]] std::vector<pid_t> descendants_of(pid_t root, const PidSet& spared);

// Sends SIGKILL to every descendant once and says how many there were. A descendant may fork at that moment: call again
// after each child that was reaped, until this returns 0. That finds all, since whoever a killed process leaves behind
// becomes the caller's child no later than when that process can be reaped.
[[nodiscard]] std::size_t kill_descendants(const PidSet& spared);

}  // namespace farsum::cli
