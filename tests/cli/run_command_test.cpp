// What a user of `farsum run` sees: codes, sentences, environment, output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "launched_job.hpp"

namespace farsum::cli::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(RunCommand, returns_zero_and_says_nothing_when_every_rank_succeeds) {
  const Ended ended = run_farsum(shell_job(3, "exit 0"));
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.err, IsEmpty());
}

TEST(RunCommand, gives_each_rank_its_number_and_all_the_same_job) {
  const Ended ended = run_farsum(shell_job(3, "echo $FARSUM_RANK of $FARSUM_SIZE"));
  EXPECT_THAT(sorted_lines(ended.out), testing::ElementsAre("0 of 3", "1 of 3", "2 of 3"));
  const auto jobs = sorted_lines(run_farsum(shell_job(3, "echo $FARSUM_JOB")).out);
  EXPECT_EQ(std::set<std::string>(jobs.begin(), jobs.end()).size(), 1u);
  EXPECT_EQ(jobs.front().size(), 32u);
  EXPECT_NE(jobs.front(), sorted_lines(run_farsum(shell_job(1, "echo $FARSUM_JOB")).out).front());
}

TEST(RunCommand, hands_all_ranks_one_empty_memory_file) {
  const std::string script =
      "stat -L -c '%i %s' /proc/self/fd/$FARSUM_NODE_FD; readlink /proc/self/fd/$FARSUM_NODE_FD >&2";
  const Ended ended = run_farsum(shell_job(2, script));
  const auto lines = sorted_lines(ended.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], lines[1]);
  EXPECT_THAT(lines[0], testing::EndsWith(" 0"));
  EXPECT_THAT(ended.err, HasSubstr("memfd:"));
}

TEST(RunCommand, passes_the_environment_asked_for) {
  const Ended ended = run_farsum(shell_job(1, "echo $ONE $TWO", {"--env", "ONE=1=1", "--env", "TWO=2"}));
  EXPECT_EQ(ended.out, "1=1 2\n");
}

TEST(RunCommand, tags_each_line_with_its_rank) {
  const Ended ended = run_farsum(shell_job(2, "echo a; echo b", {"--tag"}));
  EXPECT_THAT(sorted_lines(ended.out), testing::ElementsAre("[0] a", "[0] b", "[1] a", "[1] b"));
}

TEST(RunCommand, flushes_a_last_line_without_an_end) {
  const Ended ended = run_farsum(shell_job(1, "printf 'one\\ntwo'; printf three >&2"));
  EXPECT_EQ(ended.out, "one\ntwo");
  EXPECT_EQ(ended.err, "three");
}

TEST(RunCommand, gives_stdin_to_rank_zero_only) {
  const Ended ended = run_farsum({"run", "-n", "3", "--tag", "cat"}, "hello\nworld\n");
  EXPECT_EQ(ended.out, "[0] hello\n[0] world\n");
  EXPECT_EQ(ended.exit_code, 0);
}

TEST(RunCommand, carries_ten_megabytes_from_each_of_four_ranks_without_mixing_lines) {
  const Ended ended =
      run_farsum(shell_job(4, "yes $FARSUM_RANK.abcdefghijklmnopqrstuvwxyz.$FARSUM_RANK | head -n 330000"));
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_GT(ended.out.size(), std::size_t{40'000'000});
  std::array<int, 4> lines{};
  std::istringstream in(ended.out);
  for (std::string line; std::getline(in, line);) {
    const int rank = line.front() - '0';
    ASSERT_TRUE(rank >= 0 && rank < 4) << line;
    ASSERT_EQ(line, std::to_string(rank) + ".abcdefghijklmnopqrstuvwxyz." + std::to_string(rank));
    lines[static_cast<std::size_t>(rank)] += 1;
  }
  EXPECT_THAT(lines, testing::Each(330000));
}

TEST(RunCommand, holds_ranks_back_while_nobody_reads_and_loses_nothing) {
  // stderr is read to its end first; stdout, far beyond what pipes hold, waits meanwhile.
  LaunchedJob job(shell_job(2, "yes 0123456789 | head -n 300000; echo done >&2"));
  const Ended ended = job.wait();
  EXPECT_EQ(ended.out.size(), 2u * 11u * 300000u);
  EXPECT_EQ(ended.err, "done\ndone\n");
}

TEST(RunCommand, lets_ranks_end_by_sigpipe_when_its_reader_leaves) {
  const Ended ended = run_farsum({"run", "sh", "-c", FARSUM_BIN_DIR "/farsum run yes | head -n 1"});
  EXPECT_EQ(ended.out, "y\n");
  EXPECT_THAT(ended.err, HasSubstr("SIGPIPE"));
}

TEST(RunCommand, returns_the_code_of_the_first_rank_that_fails_and_names_it) {
  const Ended ended = run_farsum(shell_job(3, "[ $FARSUM_RANK = 1 ] && exit 3; exit 0"));
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_THAT(ended.err, testing::ContainsRegex("rank 1 \\(pid [0-9]+ on host [^)]+\\) exited with code 3"));
}

TEST(RunCommand, returns_128_plus_the_signal_and_names_it) {
  const Ended ended = run_farsum(shell_job(2, "[ $FARSUM_RANK = 1 ] && kill -9 $$; exit 0"));
  EXPECT_EQ(ended.exit_code, 128 + SIGKILL);
  EXPECT_THAT(ended.err,
              testing::ContainsRegex("rank 1 \\(pid [0-9]+ on host [^)]+\\) was killed by signal 9 \\(SIGKILL\\)"));
}

TEST(RunCommand, gives_the_others_time_to_report_after_a_failure) {
  // Rank 0 ends by itself once rank 1 is gone, as a rank does that gets an error from a Farsum call. A closed pipe
  // would not do: the kernel closes the files of a dying process before it is dead.
  const std::string pipe = testing::TempDir() + "farsum_report_" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string script = "if [ $FARSUM_RANK = 1 ]; then echo $$ > " + pipe + "; exit 5; fi; read pid < " + pipe +
                             "; while [ -e /proc/$pid ]; do :; done; echo reported; exit 6";
  const Ended ended = run_farsum(shell_job(2, script));
  EXPECT_EQ(ended.exit_code, 5);
  EXPECT_EQ(ended.out, "reported\n");
  EXPECT_THAT(ended.err, HasSubstr("1 more rank failed after it"));
  unlink(pipe.c_str());
}

TEST(RunCommand, treats_a_rank_that_leaves_early_with_zero_as_normal) {
  const Ended ended = run_farsum(shell_job(2, "[ $FARSUM_RANK = 1 ] && exit 0; read line; echo $line"), "late\n");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.out, "late\n");
}

TEST(RunCommand, ends_the_job_at_its_time_limit) {
  const Ended ended = run_farsum({"run", "-n", "2", "--timeout", "0.1", "sleep", "1000"});
  EXPECT_EQ(ended.exit_code, 124);
  EXPECT_THAT(ended.err, HasSubstr("time limit of 0.1 s"));
}

TEST(RunCommand, explains_a_program_that_cannot_be_run) {
  EXPECT_EQ(run_farsum({"run", "no-such-program"}).exit_code, 127);
  EXPECT_THAT(run_farsum({"run", "no-such-program"}).err, HasSubstr("cannot find no-such-program in PATH"));
  EXPECT_EQ(run_farsum({"run", "./no-such-program"}).exit_code, 127);
  EXPECT_EQ(run_farsum({"run", "/etc/passwd"}).exit_code, 126);
  EXPECT_EQ(run_farsum({"run", "/"}).exit_code, 126);
}

TEST(RunCommand, refuses_a_wrong_command_line_with_two) {
  EXPECT_EQ(run_farsum({"run", "-n", "0", "true"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"run", "-n", "1025", "true"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"run", "-n", "two", "true"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"run", "--bind", "0-", "true"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"run", "--bind", "65000", "true"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"run", "--env", "NAME", "true"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"run", "--no-such-option", "true"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"run"}).exit_code, 2);
}

TEST(RunCommand, leaves_the_options_of_the_program_alone) {
  EXPECT_EQ(run_farsum({"run", "-n", "1", "echo", "--tag", "-n", "7", "--", "info"}).out, "--tag -n 7 -- info\n");
  EXPECT_EQ(run_farsum({"run", "--", "echo", "--", "x"}).out, "-- x\n");
  EXPECT_THAT(run_farsum({"run", "info"}).err, HasSubstr("cannot find info"));
}

TEST(RunCommand, starts_as_many_ranks_as_it_promises) {
  const Ended ended = run_farsum(shell_job(1024, "echo $FARSUM_RANK"));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const auto lines = sorted_lines(ended.out);
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), 1024u);
}

TEST(RunCommand, gives_ranks_the_limits_and_signals_it_was_started_with) {
  const std::string state = "ulimit -n; grep -E 'Sig(Blk|Ign)' /proc/self/status";
  const Ended plain = run_farsum({"run", "sh", "-c", state});
  LaunchedJob nested({"run", FARSUM_BIN_DIR "/farsum", "run", "sh", "-c", state});
  EXPECT_EQ(nested.wait().out, plain.out);
  EXPECT_THAT(plain.out, HasSubstr("SigBlk:\t0000000000000000"));
}

TEST(RunCommand, says_so_when_the_limit_on_open_files_is_too_low) {
  const Ended ended = run_farsum({"run", "sh", "-c", "ulimit -n 60; " FARSUM_BIN_DIR "/farsum run -n 100 sleep 1000"});
  EXPECT_EQ(ended.exit_code, 125);
  EXPECT_THAT(ended.err, HasSubstr("the limit on open files is reached (ulimit -n)"));
}

TEST(RunCommand, says_so_when_a_script_names_no_interpreter_that_exists) {
  const std::string script = testing::TempDir() + "farsum_script_" + std::to_string(getpid());
  std::ofstream(script) << "#!/no/such/interpreter\n";
  chmod(script.c_str(), 0755);
  const Ended ended = run_farsum({"run", "-n", "2", script});
  EXPECT_EQ(ended.exit_code, 127);
  EXPECT_THAT(ended.err, HasSubstr("the interpreter or loader that it names does not exist"));
  unlink(script.c_str());
}

TEST(RunCommand, runs_with_its_standard_descriptors_closed) {
  const Ended ended = run_farsum({"run", "sh", "-c", FARSUM_BIN_DIR "/farsum run sh -c 'exit 4' <&- >&- 2>&-"});
  EXPECT_EQ(ended.exit_code, 4);
}

TEST(RunCommand, binds_each_rank_to_the_unit_asked_for) {
  const Ended ended = run_farsum(shell_job(2, "grep Cpus_allowed_list /proc/self/status", {"--bind", "0"}));
  EXPECT_EQ(ended.out, "Cpus_allowed_list:\t0\nCpus_allowed_list:\t0\n") << ended.err;
}

TEST(RunCommand, has_help_with_an_example) {
  const Ended ended = run_farsum({"run", "--help"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.out, HasSubstr("farsum run -n 4 ./stencil 1024"));
}

}  // namespace
}  // namespace farsum::cli::test
