// Starts the `farsum` command for a test, with pipes on its three standard descriptors, and tells when no process of it
// is left.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

namespace farsum::cli::test {

// How a command ended and what it had written.
struct Ended {
  int exit_code = -1;  // 128 + signal when one killed it
  std::string out;
  std::string err;
};

class LaunchedJob {
 public:
  // Starts `farsum ARGUMENTS...`; `input` is what its stdin holds.
  explicit LaunchedJob(const std::vector<std::string>& arguments, const std::string& input = {});
  // Kills whatever a failed test left.
  ~LaunchedJob();
  LaunchedJob(const LaunchedJob&) = delete;
  LaunchedJob& operator=(const LaunchedJob&) = delete;

  [[nodiscard]] pid_t launcher() const { return launcher_; }
  // The guardian, once a rank has written: the launcher's only child.
  [[nodiscard]] pid_t guardian() const;
  // The next line of the job's stdout without its end; "" when the stream has ended.
  [[nodiscard]] std::string next_line();
  // Reads `count` lines in whatever order ranks write them, sorted.
  [[nodiscard]] std::vector<std::string> next_lines(int count);
  void send(int signal) const { ::kill(launcher_, signal); }
  // Waits until the launcher is stopped; false when it has ended instead.
  [[nodiscard]] bool has_stopped() const;
  // Reads both outputs to their ends, then waits for the launcher.
  [[nodiscard]] Ended wait();
  // Waits until nothing of the job runs. Every process of it inherits the write end of a pipe that the test reads to
  // its end; then /proc is searched for the mark in the environment. False when the watchdog's 20 seconds have passed.
  [[nodiscard]] bool nothing_is_left();

 private:
  int out_ = -1;
  int err_ = -1;
  int life_ = -1;
  pid_t launcher_ = -1;
  std::string mark_;
  std::string unread_;
};

// Runs a command to its end.
[[nodiscard]] Ended run_farsum(const std::vector<std::string>& arguments, const std::string& input = {});

// `farsum run -n RANKS [EXTRA] sh -c SCRIPT`.
[[nodiscard]] std::vector<std::string> shell_job(int ranks, const std::string& script,
                                                 const std::vector<std::string>& extra = {});

}  // namespace farsum::cli::test
