#include "rank_processes.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace farsum::test {
namespace {

// A rank that waits for ever is ended, so that the test fails instead of hanging.
constexpr unsigned watchdog_s = 60;

void run_as_rank(const Job& job, int rank, int node_fd, const std::function<void(int)>& body) {
  alarm(watchdog_s);
  setenv("FARSUM_RANK", std::to_string(rank).c_str(), 1);
  setenv("FARSUM_SIZE", std::to_string(job.ranks).c_str(), 1);
  setenv("FARSUM_NODE_FD", std::to_string(node_fd).c_str(), 1);
  for (const auto& [name, value] : job.settings) setenv(name.c_str(), value.c_str(), 1);
  if (static_cast<std::size_t>(rank) < job.of_rank.size()) {
    for (const auto& [name, value] : job.of_rank[static_cast<std::size_t>(rank)])
      setenv(name.c_str(), value.c_str(), 1);
  }
  if (!job.starts) {
    body(rank);
    return;
  }
  ASSERT_FINE(farsum_init(nullptr));
  body(rank);
  // After a fatal failure the others may be anywhere: they learn from this process's end.
  if (!testing::Test::HasFatalFailure()) EXPECT_FINE(farsum_finalize());
}

}  // namespace

void barrier() { EXPECT_FINE(farsum_barrier(farsum_world())); }

void run_ranks(const Job& job, const std::function<void(int rank)>& body) {
  const int node_fd = memfd_create("farsum-node", 0);
  std::fflush(nullptr);
  std::vector<pid_t> processes;
  for (int rank = 0; rank < job.ranks; ++rank) {
    const pid_t process = fork();
    if (process == 0) {
      run_as_rank(job, rank, node_fd, body);
      std::fflush(nullptr);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    processes.push_back(process);
  }
  close(node_fd);
  for (int rank = 0; rank < job.ranks; ++rank) {
    int status = 0;
    waitpid(processes[static_cast<std::size_t>(rank)], &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << "rank " << rank << " was ended by signal " << WTERMSIG(status);
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0) << "rank " << rank << " failed; its report is above";
    }
  }
}

std::string said(farsum_status status) {
  return status == FARSUM_OK ? "FARSUM_OK" : std::string(farsum_status_name(status)) + ": " + farsum_last_error();
}

}  // namespace farsum::test
