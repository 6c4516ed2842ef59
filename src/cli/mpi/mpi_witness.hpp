// Names the rank whose process ends before MPI_Finalize. Launchers name that process at best, and kill the other ranks
// before one of them can say what happened.
// Says too which ranks have come to MPI_Init where others do not.
#pragma once

#include <string>

namespace farsum::cli {

// The setting that tells the ranks of a job where its witness is.
extern const char* const witness_setting;

// A value for it: a socket in the abstract namespace, so that nothing is left behind. Ranks on other hosts do not reach
// it.
[[nodiscard]] std::string new_witness_name();

// Starts a process that is no child of this one, which afterwards becomes the launcher; it ends with the launcher. A
// job runs without a witness where none can be had.
void start_witness(const std::string& name);

}  // namespace farsum::cli
