// Starts one rank: fork, set up the child, execute the program. Runs in the guardian, which has a single thread.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>

#include "cli/run/run_spec.hpp"
#include "cli/unique_fd.hpp"

namespace farsum::cli {

// How the launcher was started, which ranks get back unchanged although the launcher needs it otherwise for itself.
struct InheritedState {
  sigset_t signal_mask{};
  bool ignores_sigpipe = false;
  bool ignores_sigchld = false;
  unsigned long open_files_soft_limit = 0;
};

// What all ranks of a job share. The descriptors stay the caller's.
struct SpawnContext {
  const JobSpec* job = nullptr;
  const InheritedState* inherited = nullptr;
  std::string job_id;  // 128 random bits in hexadecimal
  int node_fd = -1;    // the empty memfd of the node segment
  int first_stdin = -1;
  int null_fd = -1;
  int failure_pipe = -1;  // close-on-exec: a child that cannot execute the program writes a StartFailure to it
};

struct StartFailure {
  int rank;
  int error;
};

struct StartedRank {
  pid_t pid = -1;  // -1: the system refused, `error` says why
  int error = 0;
  UniqueFd out;
  UniqueFd err;
};

[[nodiscard]] StartedRank start_rank(const SpawnContext& context, int rank);

}  // namespace farsum::cli
