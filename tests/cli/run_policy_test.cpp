// The decisions about a job, without processes and without a clock.
#include "cli/run/run_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <string>

namespace farsum::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Milliseconds = JobPolicy::Milliseconds;

constexpr int exited_with(int code) { return code << 8; }
constexpr int killed_by(int signal) { return signal; }

JobPolicy started_job(int ranks, std::optional<Milliseconds> timeout = std::nullopt) {
  JobPolicy policy({ranks, "here", timeout});
  for (int rank = 0; rank < ranks; ++rank) policy.rank_started(rank, 100 + rank);
  return policy;
}

bool is_nothing(const Decision& decision) {
  return decision.sentences.empty() && decision.signal == 0 && !decision.kill_all && !decision.abandon_guardian &&
         !decision.give_up;
}

TEST(JobPolicy, waits_without_a_deadline_while_ranks_run) {
  JobPolicy policy = started_job(2);
  EXPECT_FALSE(policy.next_deadline());
  EXPECT_TRUE(is_nothing(policy.rank_exited(0, exited_with(0), Milliseconds{5})));
  EXPECT_FALSE(policy.next_deadline());
  EXPECT_EQ(policy.exit_code(), 0);
}

TEST(JobPolicy, lets_leftovers_finish_and_then_kills_them) {
  JobPolicy policy = started_job(1);
  EXPECT_TRUE(is_nothing(policy.rank_exited(0, exited_with(0), Milliseconds{10})));
  ASSERT_EQ(policy.next_deadline(), Milliseconds{10} + JobPolicy::grace_for_leftovers);
  EXPECT_TRUE(is_nothing(policy.time_passed(*policy.next_deadline() - Milliseconds{1})));
  EXPECT_TRUE(policy.time_passed(*policy.next_deadline()).kill_all);
  EXPECT_EQ(policy.exit_code(), 0);
}

TEST(JobPolicy, escalates_from_report_to_term_to_kill_within_five_seconds) {
  JobPolicy policy = started_job(3);
  const Decision first = policy.rank_exited(1, killed_by(SIGSEGV), Milliseconds{0});
  EXPECT_THAT(first.sentences,
              ElementsAre("rank 1 (pid 101 on host here) was killed by signal 11 (SIGSEGV); the other 2 "
                          "ranks still running get 2 s to report, then are ended"));
  EXPECT_EQ(first.signal, 0);
  EXPECT_EQ(policy.time_passed(*policy.next_deadline()).signal, SIGTERM);
  EXPECT_TRUE(policy.time_passed(*policy.next_deadline()).kill_all);
  EXPECT_TRUE(policy.time_passed(*policy.next_deadline()).abandon_guardian);
  EXPECT_LT(*policy.next_deadline() - JobPolicy::grace_after_kill, Milliseconds{5000});
  EXPECT_TRUE(policy.time_passed(*policy.next_deadline()).give_up);
  EXPECT_FALSE(policy.next_deadline());
  EXPECT_EQ(policy.exit_code(), 128 + SIGSEGV);
}

TEST(JobPolicy, names_the_first_death_by_signal_even_if_another_rank_failed_before) {
  JobPolicy policy = started_job(4);
  EXPECT_FALSE(is_nothing(policy.rank_exited(0, exited_with(1), Milliseconds{0})));
  EXPECT_THAT(policy.rank_exited(1, killed_by(SIGKILL), Milliseconds{1}).sentences,
              ElementsAre("rank 1 (pid 101 on host here) was killed by signal 9 (SIGKILL)"));
  EXPECT_TRUE(is_nothing(policy.rank_exited(2, killed_by(SIGABRT), Milliseconds{2})));
  EXPECT_EQ(policy.exit_code(), 1);
}

TEST(JobPolicy, names_every_signal_as_the_library_of_this_machine_does) {
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* known = sigabbrev_np(signal);
    const std::string name = known == nullptr ? "real-time signal" : std::string("(SIG") + known + ")";
    EXPECT_THAT(started_job(1).rank_exited(0, killed_by(signal), Milliseconds{1}).sentences,
                ElementsAre(HasSubstr(name)));
  }
}

TEST(JobPolicy, keeps_the_first_failure_and_counts_the_later_ones) {
  JobPolicy policy = started_job(4);
  EXPECT_THAT(policy.rank_exited(2, exited_with(7), Milliseconds{0}).sentences, testing::SizeIs(1));
  EXPECT_THAT(policy.closing_sentence(), IsEmpty());
  EXPECT_THAT(policy.rank_exited(0, exited_with(1), Milliseconds{1}).sentences, IsEmpty());
  EXPECT_EQ(policy.closing_sentence(), "1 more rank failed after it");
  EXPECT_THAT(policy.rank_exited(1, exited_with(1), Milliseconds{2}).sentences, IsEmpty());
  EXPECT_EQ(policy.closing_sentence(), "2 more ranks failed after it");
  EXPECT_EQ(policy.exit_code(), 7);
}

TEST(JobPolicy, does_not_count_ranks_that_it_has_ended_itself) {
  JobPolicy policy = started_job(2);
  EXPECT_FALSE(is_nothing(policy.rank_exited(0, exited_with(7), Milliseconds{0})));
  EXPECT_EQ(policy.time_passed(*policy.next_deadline()).signal, SIGTERM);
  EXPECT_TRUE(is_nothing(policy.rank_exited(1, killed_by(SIGTERM), Milliseconds{2001})));
  EXPECT_THAT(policy.closing_sentence(), IsEmpty());
}

TEST(JobPolicy, kills_leftovers_at_once_when_the_last_rank_of_a_failed_job_is_gone) {
  JobPolicy policy = started_job(1);
  const Decision decision = policy.rank_exited(0, exited_with(9), Milliseconds{0});
  EXPECT_TRUE(decision.kill_all);
  EXPECT_THAT(decision.sentences, ElementsAre("rank 0 (pid 100 on host here) exited with code 9"));
}

TEST(JobPolicy, passes_signals_on_and_kills_at_the_second_interrupt) {
  JobPolicy policy = started_job(2);
  for (const int signal : {SIGUSR1, SIGTERM, SIGTERM, SIGINT}) {
    const Decision decision = policy.user_signalled(signal, Milliseconds{0});
    EXPECT_EQ(decision.signal, signal);
    EXPECT_FALSE(decision.kill_all);
  }
  EXPECT_TRUE(policy.user_signalled(SIGINT, Milliseconds{1}).kill_all);
  EXPECT_TRUE(is_nothing(policy.user_signalled(SIGINT, Milliseconds{2})));
  EXPECT_EQ(policy.exit_code(), 128 + SIGINT);
}

TEST(JobPolicy, ends_the_job_at_its_time_limit) {
  JobPolicy policy = started_job(2, Milliseconds{1500});
  EXPECT_EQ(policy.next_deadline(), Milliseconds{1500});
  const Decision decision = policy.time_passed(Milliseconds{1500});
  EXPECT_EQ(decision.signal, SIGTERM);
  EXPECT_THAT(decision.sentences, ElementsAre(HasSubstr("the time limit of 1.5 s is over with 2 of 2 ranks")));
  EXPECT_EQ(policy.exit_code(), 124);
  EXPECT_TRUE(is_nothing(policy.rank_exited(0, killed_by(SIGTERM), Milliseconds{1501})));
  EXPECT_EQ(policy.exit_code(), 124);
}

TEST(JobPolicy, a_failure_replaces_the_time_limit) {
  JobPolicy policy = started_job(2, Milliseconds{1500});
  EXPECT_FALSE(is_nothing(policy.rank_exited(0, exited_with(1), Milliseconds{1000})));
  EXPECT_EQ(policy.next_deadline(), Milliseconds{1000} + JobPolicy::grace_to_report);
}

TEST(JobPolicy, clears_up_without_the_guardian_when_that_was_killed) {
  JobPolicy policy = started_job(2);
  const Decision decision = policy.guardian_died(killed_by(SIGKILL), Milliseconds{0});
  EXPECT_TRUE(decision.abandon_guardian);
  EXPECT_THAT(decision.sentences,
              ElementsAre(HasSubstr("guardian process of this job was killed by signal 9 (SIGKILL)")));
  EXPECT_EQ(policy.exit_code(), 128 + SIGKILL);
}

TEST(JobPolicy, says_why_a_program_could_not_be_started_and_nothing_else) {
  JobPolicy policy = started_job(2);
  const Decision decision = policy.start_failed("cannot start it", 126, Milliseconds{0});
  EXPECT_TRUE(decision.kill_all);
  EXPECT_THAT(decision.sentences, ElementsAre("cannot start it"));
  EXPECT_TRUE(is_nothing(policy.rank_exited(0, exited_with(127), Milliseconds{1})));
  EXPECT_EQ(policy.exit_code(), 126);
}

}  // namespace
}  // namespace farsum::cli
