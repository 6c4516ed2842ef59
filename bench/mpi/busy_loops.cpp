#include "busy_loops.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

namespace bench {
namespace {

constexpr int no_such_use = 2;
constexpr int no_such_program = 127;

[[noreturn]] void loop(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // it has ended meanwhile
  for (volatile unsigned long turns = 0;;) turns = turns + 1;
}

pid_t start_loop(bool in_own_session) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    if (in_own_session) setsid();
    loop(parent);
  }
  return child;
}

// As the launchers of the libraries say it to a rank.
int own_rank() {
  for (const char* name : {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    if (const char* value = std::getenv(name); value != nullptr) return std::atoi(value);
  }
  return 0;
}

}  // namespace

BusyLoops::BusyLoops(int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t child = start_loop(true);
    if (child < 0) throw std::runtime_error("no process is to be had for a busy loop");
    loops_.push_back(child);
  }
}

BusyLoops::~BusyLoops() {
  for (const pid_t loop : loops_) {
    kill(loop, SIGKILL);
    waitpid(loop, nullptr, 0);
  }
}

int run_rank_with_loop(int count, char** words) {
  constexpr int program = 3;
  if (count <= program) {
    fmt::print(stderr, "bench-mpi: {} needs a number of loops and a program\n", with_loop_word);
    return no_such_use;
  }
  if (own_rank() < std::atoi(words[2]) && start_loop(false) < 0) {
    fmt::print(stderr, "bench-mpi: no process is to be had for a busy loop\n");
    return no_such_program;
  }
  execvp(words[program], words + program);
  fmt::print(stderr, "bench-mpi: cannot run {}\n", words[program]);
  return no_such_program;
}

}  // namespace bench
