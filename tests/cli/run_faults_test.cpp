// Nothing of a job stays behind, whoever is killed and whatever the ranks do about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "launched_job.hpp"

namespace farsum::cli::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A rank that ignores whatever can be ignored, and so do its child and a daemon in a session of its own.
constexpr const char* stubborn =
    "trap '' TERM INT HUP QUIT USR1 USR2; "
    "sleep 1000 & setsid sh -c 'sh -c \"sleep 1000; :\" & sh -c \"sleep 1000; :\"; :' & "
    "echo $FARSUM_RANK $$; while :; do sleep 1000; done";

pid_t second_word(const std::string& line) { return std::stoi(line.substr(line.find(' ') + 1)); }

// The watchdog of "over within 5 seconds", with room for a machine that does other work too.
class Watchdog {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};
constexpr double deadline_s = 5.0;

// Takes seconds: the launcher gives ranks time to end.
TEST(RunFaults, a_killed_rank_ends_the_job_within_five_seconds_even_if_the_others_ignore_it) {
  LaunchedJob job(shell_job(3, stubborn));
  const auto lines = job.next_lines(3);
  const Watchdog watchdog;
  kill(second_word(lines[1]), SIGKILL);
  const Ended ended = job.wait();
  EXPECT_EQ(ended.exit_code, 128 + SIGKILL);
  EXPECT_THAT(ended.err, HasSubstr("rank 1 (pid " + std::to_string(second_word(lines[1])) + " on host "));
  EXPECT_THAT(ended.err, HasSubstr("was killed by signal 9 (SIGKILL); the other 2 ranks"));
  EXPECT_TRUE(job.nothing_is_left());
  EXPECT_LT(watchdog.seconds(), deadline_s);
}

TEST(RunFaults, ranks_killed_as_soon_as_they_run_end_the_job) {
  for (int round = 0; round < 20; ++round) {
    LaunchedJob job(shell_job(4, "[ $FARSUM_RANK = 2 ] && kill -KILL $$; exit 0"));
    EXPECT_EQ(job.wait().exit_code, 128 + SIGKILL);
    EXPECT_TRUE(job.nothing_is_left());
  }
}

TEST(RunFaults, nothing_is_left_after_the_launcher_is_killed) {
  LaunchedJob job(shell_job(3, stubborn));
  ASSERT_EQ(job.next_lines(3).size(), 3u);
  job.send(SIGKILL);
  EXPECT_EQ(job.wait().exit_code, 128 + SIGKILL);
  EXPECT_TRUE(job.nothing_is_left());
}

TEST(RunFaults, nothing_is_left_after_the_launcher_is_killed_at_any_moment_of_the_start) {
  for (int ranks = 1; ranks <= 64; ranks += 3) {
    // The first line comes from whichever rank is first, so the others are at every stage between fork and exec.
    LaunchedJob job(shell_job(ranks, "echo here; sleep 1000 & sleep 1000"));
    ASSERT_EQ(job.next_line(), "here");
    job.send(SIGKILL);
    EXPECT_EQ(job.wait().exit_code, 128 + SIGKILL);
    EXPECT_TRUE(job.nothing_is_left());
  }
}

TEST(RunFaults, nothing_is_left_after_the_guardian_is_killed) {
  LaunchedJob job(shell_job(3, stubborn));
  ASSERT_EQ(job.next_lines(3).size(), 3u);
  kill(job.guardian(), SIGKILL);
  const Ended ended = job.wait();
  EXPECT_EQ(ended.exit_code, 128 + SIGKILL);
  EXPECT_THAT(ended.err, HasSubstr("guardian process of this job was killed by signal 9 (SIGKILL)"));
  EXPECT_TRUE(job.nothing_is_left());
}

// In make test-all: the launcher gives ranks time to end.
TEST(RunFaults, a_guardian_that_was_stopped_does_not_keep_the_job_alive) {
  LaunchedJob job(shell_job(2, stubborn, {"--timeout", "0.5"}));
  ASSERT_EQ(job.next_lines(2).size(), 2u);
  kill(job.guardian(), SIGSTOP);
  EXPECT_EQ(job.wait().exit_code, 124);
  EXPECT_TRUE(job.nothing_is_left());
}

TEST(RunFaults, daemons_end_with_the_job_they_came_from) {
  LaunchedJob job(shell_job(2, "setsid sh -c 'sleep 1000 & sleep 1000; :' > /dev/null 2>&1 & echo started"));
  const Ended ended = job.wait();
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.out, "started\nstarted\n");
  EXPECT_TRUE(job.nothing_is_left());
}

TEST(RunFaults, hundreds_of_daemons_end_while_they_still_multiply) {
  LaunchedJob job(shell_job(2,
                            "i=0; while [ $i -lt 200 ]; do i=$((i+1)); (setsid sh -c 'sleep 1000 & sleep 1000; :' &); "
                            "[ $i = 100 ] && echo half; done; sleep 1000"));
  EXPECT_THAT(job.next_lines(2), ElementsAre("half", "half"));
  job.send(SIGKILL);
  EXPECT_TRUE(job.nothing_is_left());
}

TEST(RunFaults, what_a_rank_leaves_behind_may_finish_its_work_first) {
  // `cat` outlives its rank by no more than it needs for what is in the pipe.
  LaunchedJob job(shell_job(1, "{ echo one; echo two; } | cat & exit 0"));
  EXPECT_EQ(job.wait().out, "one\ntwo\n");
}

// Takes seconds: ranks sleep until they are asked.
TEST(RunFaults, signals_reach_every_rank) {
  for (const auto& [signal, name] : std::vector<std::pair<int, std::string>>{{SIGINT, "INT"},
                                                                             {SIGTERM, "TERM"},
                                                                             {SIGHUP, "HUP"},
                                                                             {SIGQUIT, "QUIT"},
                                                                             {SIGUSR1, "USR1"},
                                                                             {SIGUSR2, "USR2"}}) {
    const std::string trap =
        "trap 'echo " + name + "; exit 0' " + name + "; echo ready; while :; do sleep 1000 & wait; done";
    LaunchedJob job(shell_job(2, trap));
    EXPECT_THAT(job.next_lines(2), ElementsAre("ready", "ready"));
    job.send(signal);
    EXPECT_THAT(job.next_lines(2), ElementsAre(name, name));
    EXPECT_EQ(job.wait().exit_code, 0) << name;
    EXPECT_TRUE(job.nothing_is_left());
  }
}

TEST(RunFaults, stopping_and_continuing_the_launcher_stops_and_continues_the_ranks) {
  LaunchedJob job(shell_job(
      1, "trap 'echo stopping' TSTP; trap 'echo going; exit 0' CONT; echo ready; while :; do sleep 1000 & wait; done"));
  EXPECT_EQ(job.next_line(), "ready");
  job.send(SIGTSTP);
  // Sent any earlier, SIGCONT would be forgotten by the kernel when the launcher stops itself.
  ASSERT_TRUE(job.has_stopped());
  job.send(SIGCONT);
  const Ended ended = job.wait();
  EXPECT_THAT(ended.out, HasSubstr("going"));
  EXPECT_EQ(ended.exit_code, 0);
}

TEST(RunFaults, an_interrupt_ends_ranks_that_do_not_care_for_it) {
  LaunchedJob job(shell_job(2, "echo ready; exec sleep 1000"));
  EXPECT_THAT(job.next_lines(2), ElementsAre("ready", "ready"));
  job.send(SIGINT);
  EXPECT_EQ(job.wait().exit_code, 128 + SIGINT);
  EXPECT_TRUE(job.nothing_is_left());
}

TEST(RunFaults, a_second_interrupt_kills_ranks_that_ignore_the_first) {
  LaunchedJob job(shell_job(2, "trap 'echo once' INT; echo ready; while :; do sleep 1000 & wait; done"));
  EXPECT_THAT(job.next_lines(2), ElementsAre("ready", "ready"));
  job.send(SIGINT);
  EXPECT_THAT(job.next_lines(2), ElementsAre("once", "once"));
  job.send(SIGINT);
  EXPECT_EQ(job.wait().exit_code, 128 + SIGINT);
  EXPECT_TRUE(job.nothing_is_left());
}

// In make test-all: the launcher gives ranks time to end.
TEST(RunFaults, a_time_limit_ends_ranks_that_ignore_sigterm) {
  LaunchedJob job({"run", "-n", "2", "--timeout", "0.5", "sh", "-c", stubborn});
  const Watchdog watchdog;
  EXPECT_EQ(job.wait().exit_code, 124);
  EXPECT_TRUE(job.nothing_is_left());
  EXPECT_LT(watchdog.seconds(), deadline_s);
}

TEST(RunFaults, children_that_the_launcher_had_before_are_not_its_to_end) {
  // The inner shell starts a child, then becomes a launcher whose guardian is killed, so that the launcher clears up
  // itself.
  const std::string script =
      "pid=$(sh -c 'sleep 1000 > /dev/null 2>&1 & echo $!; exec " FARSUM_BIN_DIR
      "/farsum run sh -c \"kill -9 \\$PPID; sleep 1000\"'); echo inner code $?; kill -0 $pid && echo spared";
  LaunchedJob job({"run", "sh", "-c", script});
  const Ended ended = job.wait();
  EXPECT_EQ(ended.out, "inner code 137\nspared\n");
  EXPECT_TRUE(job.nothing_is_left());
}

TEST(RunFaults, no_file_appears_in_shared_memory_or_tmp) {
  LaunchedJob job(shell_job(2, "echo ready; sleep 1000"));
  EXPECT_THAT(job.next_lines(2), ElementsAre("ready", "ready"));
  for (const char* folder : {"/dev/shm", "/tmp"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("farsum-node"))) << folder;
    }
  }
  job.send(SIGKILL);
  EXPECT_TRUE(job.nothing_is_left());
}

}  // namespace
}  // namespace farsum::cli::test
