#include "rank_with_loop.hpp"

#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

#include "common/busy_loops.hpp"

namespace bench {
namespace {

constexpr int no_such_use = 2;
constexpr int no_such_program = 127;

// As the launchers of the libraries say it to a rank.
int own_rank() {
  for (const char* name : {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    if (const char* value = std::getenv(name); value != nullptr) return std::atoi(value);
  }
  return 0;
}

}  // namespace

int run_rank_with_loop(int count, char** words) {
  constexpr int program = 3;
  if (count <= program) {
    fmt::print(stderr, "bench-mpi: {} needs a number of loops and a program\n", with_loop_word);
    return no_such_use;
  }
  if (own_rank() < std::atoi(words[2]) && start_busy_loop(LoopSession::of_parent) < 0) {
    fmt::print(stderr, "bench-mpi: no process is to be had for a busy loop\n");
    return no_such_program;
  }
  execvp(words[program], words + program);
  fmt::print(stderr, "bench-mpi: cannot run {}\n", words[program]);
  return no_such_program;
}

}  // namespace bench
