// Decides what happens to a job: whom to signal and when, what to say, which code to return. A state machine without
// I/O and without a clock; the launcher feeds it events and carries its decisions out.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace farsum::cli {

// What the launcher must do now. Everything unset: nothing.
struct Decision {
  std::vector<std::string> sentences;  // for stderr
  int signal = 0;                      // send it to the job's process group
  bool kill_all = false;               // SIGKILL every descendant
  bool abandon_guardian = false;       // the guardian is gone or did not obey: clear up without it
  bool give_up = false;                // something cannot be killed (the kernel holds it): leave it
};

class JobPolicy {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // Together they stay under the 5 seconds within which a broken job is over.
  static constexpr Milliseconds grace_to_report{2000};
  static constexpr Milliseconds grace_after_term{1500};
  static constexpr Milliseconds grace_after_kill{1000};
  // What ranks left behind (a `tee` at the end of a pipe) may finish its work for this long after the last rank.
  static constexpr Milliseconds grace_for_leftovers{500};

  struct Options {
    int ranks = 1;
    std::string host;
    std::optional<Milliseconds> timeout;
  };

  // Times are milliseconds since the job was started.
  explicit JobPolicy(Options options);

  void rank_started(int rank, pid_t pid);
  [[nodiscard]] Decision rank_exited(int rank, int wait_status, Milliseconds now);
  // PROGRAM could not be executed: `sentence` says why, `exit_code` is 126 or 127.
  [[nodiscard]] Decision start_failed(const std::string& sentence, int exit_code, Milliseconds now);
  [[nodiscard]] Decision user_signalled(int signal, Milliseconds now);
  [[nodiscard]] Decision guardian_died(int wait_status, Milliseconds now);
  // To be called when next_deadline() has come.
  [[nodiscard]] Decision time_passed(Milliseconds now);

  [[nodiscard]] std::optional<Milliseconds> next_deadline() const { return deadline_; }
  // The sentence that sums up what followed the first failure; empty when there is nothing to add.
  [[nodiscard]] std::string closing_sentence() const;
  [[nodiscard]] int exit_code() const { return exit_code_; }

 private:
  // A job moves downwards only.
  enum class Stage { running, reporting, leftovers, terminating, killing, abandoned };

  [[nodiscard]] Decision first_failure(int rank, int wait_status, Milliseconds now);
  [[nodiscard]] Decision later_death(int rank, int wait_status);
  [[nodiscard]] std::string sentence_about(int rank, int wait_status) const;
  [[nodiscard]] Decision terminate(Milliseconds now);
  [[nodiscard]] Decision kill(Milliseconds now);
  [[nodiscard]] Decision all_ranks_gone(Decision decision, Milliseconds now);
  void enter(Stage stage, std::optional<Milliseconds> deadline);

  Options options_;
  std::vector<pid_t> pids_;
  Stage stage_ = Stage::running;
  std::optional<Milliseconds> deadline_;
  int running_;
  int later_failures_ = 0;
  int interrupts_ = 0;
  bool failed_ = false;
  bool death_named_ = false;
  int exit_code_ = 0;
};

// "was killed by signal 9 (SIGKILL)", "exited with code 3".
[[nodiscard]] std::string describe_wait_status(int wait_status);
// The code a shell would give: the exit code, or 128 + signal.
[[nodiscard]] int exit_code_of(int wait_status);

}  // namespace farsum::cli
