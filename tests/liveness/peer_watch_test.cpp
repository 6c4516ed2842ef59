// How a rank sees that another one of its node has ended: all of them by one question, or one by one.
#include "liveness/peer_watch.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

namespace farsum::test {
namespace {

constexpr std::uint32_t ranks = 6;

// Rank 0 is the test; the others are processes that wait until they are ended.
class Peers : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<NodeSegment>> made =
        NodeSegment::create({.ranks = ranks, .segment_bytes = std::uint64_t{1} << 28, .team_bytes = 4096});
    ASSERT_TRUE(made.is_ok()) << made.take_status().text();
    segment_ = std::move(made.value());
    processes_.push_back(getpid());
    segment_->rank(0).pid = getpid();
    for (std::uint32_t rank = 1; rank < ranks; ++rank) {
      const pid_t process = fork();
      if (process == 0) {
        for (;;) pause();
      }
      processes_.push_back(process);
      segment_->rank(rank).pid = process;
    }
  }
  void TearDown() override {
    for (std::uint32_t rank = 1; rank < processes_.size(); ++rank) end(rank);
  }
  void end(std::uint32_t rank) {
    if (processes_[rank] == 0) return;
    kill(processes_[rank], SIGKILL);
    waitpid(processes_[rank], nullptr, 0);
    processes_[rank] = 0;
  }
  std::unique_ptr<PeerWatch> watch(Rank rank = 0) {
    return std::make_unique<PeerWatch>(*segment_, here_, remote_nodes_, rank);
  }

  NodeRanks here_ = NodeRanks::of_all(ranks);
  RemoteNodes remote_nodes_{here_};
  std::unique_ptr<NodeSegment> segment_;
  std::vector<pid_t> processes_;
};

TEST_F(Peers, are_asked_for_together_once_they_have_said_who_they_are) {
  segment_->rank(4).pid = 0;
  const auto watch = this->watch();
  EXPECT_EQ(watch->look(), 0U);
  EXPECT_EQ(watch->unwatched(), 1U);
  segment_->rank(4).pid = processes_[4];
  EXPECT_EQ(watch->look(), 0U);
  EXPECT_EQ(watch->unwatched(), 0U);
}

TEST_F(Peers, that_end_are_seen_by_each_that_looks) {
  const auto watch = this->watch();
  const auto another = this->watch();
  EXPECT_EQ(watch->look(), 0U);
  EXPECT_EQ(another->look(), 0U);
  end(3);
  EXPECT_EQ(watch->look(), 4U);
  // As if nobody had recorded it.
  segment_->failed_rank() = 0;
  EXPECT_EQ(another->look(), 4U);
  segment_->failed_rank() = 0;
  EXPECT_EQ(watch->look(), 4U) << "not shown to the first look alone";
}

TEST_F(Peers, that_end_are_seen_in_a_forked_child) {
  const auto watch = this->watch();
  EXPECT_EQ(watch->look(), 0U);
  end(2);
  const pid_t child = fork();
  if (child == 0) _exit(watch->look() == 3 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  segment_->failed_rank() = 0;
  EXPECT_EQ(watch->look(), 3U) << "the child has taken nothing away";
}

// In a process of its own, for the limit is the process's.
int look_with_descriptors(rlim_t most, std::uint32_t dead, const std::function<std::unique_ptr<PeerWatch>()>& make) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{most, most};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(2);
    const auto watch = make();
    const bool is_right = watch->look() == dead && watch->unwatched() >= (dead == 0 ? 1U : 0U);
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Peers, that_end_are_seen_by_a_process_that_has_few_descriptors_left) {
  const int lowest_free = dup(0);
  close(lowest_free);
  // A quarter of these is for peers, and is not enough for all.
  const auto few = static_cast<rlim_t>(std::max(lowest_free + 2, 12));
  const auto make = [&] { return watch(); };
  EXPECT_EQ(look_with_descriptors(few, 0, make), 0);
  end(5);
  EXPECT_EQ(look_with_descriptors(few, 6, make), 0);
}

}  // namespace
}  // namespace farsum::test
