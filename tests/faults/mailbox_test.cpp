// A mailbox that is full pushes back and loses nothing, and a process that is stopped is not dead.
#include <signal.h>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "job.hpp"

namespace farsum::faults {
namespace {

constexpr std::uint64_t updates = 4000;  // per sender: more than ring and backlog hold
constexpr std::size_t most_elements = 1500;

// How often the first thread of a process has gone to sleep.
std::uint64_t sleeps_of(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("voluntary_ctxt_switches:")) return std::stoull(line.substr(24));
  }
  return 0;
}

std::size_t elements_of(std::uint64_t update) { return 1 + update * 37 % most_elements; }

int send_all(const Rank& self) {
  farsum_window window{};
  void* memory = nullptr;
  if (!self.ok(self.init())) return 1;
  if (!self.ok(
          farsum_window_allocate(farsum_world(), self.rank == 0 ? most_elements * 8 : 0, nullptr, &memory, &window)))
    return 1;
  if (!self.ok(farsum_lock_all(window))) return 1;
  self.words().ready.store(1);
  while (self.rank != 0 && self.control->go.load() == 0) farsum_sync(window);
  const std::vector<std::int64_t> ones(most_elements, 1);
  for (std::uint64_t update = 0; self.rank != 0 && update < updates; ++update) {
    if (!self.ok(farsum_accumulate(window, 0, 0, ones.data(), elements_of(update), FARSUM_INT64, FARSUM_SUM))) return 1;
    self.words().rounds.store(update + 1);
  }
  if (!self.ok(farsum_unlock_all(window)) || !self.ok(farsum_barrier(farsum_world()))) return 1;
  if (self.rank == 0) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < most_elements; ++i)
      sum += static_cast<std::uint64_t>(static_cast<std::int64_t*>(memory)[i]);
    self.words().value.store(sum);
  }
  return self.ok(farsum_window_free(&window)) && self.ok(farsum_finalize()) ? 0 : 1;
}

TEST(FullMailbox, pushes_back_while_the_receiver_is_stopped_and_loses_nothing) {
  JobOptions options;
  options.ranks = 4;
  options.environment = {
      {"FARSUM_PATH", "owner"}, {"FARSUM_CHANNEL_BYTES", "131072"}, {"FARSUM_WAIT_GAP_NS", "20000000"}};
  Job job(options);
  job.start(send_all);
  ASSERT_TRUE(job.wait_for(
      [&] { return job.words(0).ready && job.words(1).ready && job.words(2).ready && job.words(3).ready; }));
  ASSERT_EQ(kill(job.pid(0), SIGSTOP), 0);
  ASSERT_EQ(waitpid(job.pid(0), nullptr, WUNTRACED), job.pid(0));
  job.control().go.store(1);

  // Each sender stands still, and has looked several times in vain whether the receiver lives.
  for (int rank = 1; rank < job.size(); ++rank) {
    std::uint64_t posted = ~std::uint64_t{0};
    std::uint64_t sleeps = 0;
    ASSERT_TRUE(job.wait_for([&] {
      if (job.words(rank).rounds != posted) {
        posted = job.words(rank).rounds;
        sleeps = sleeps_of(job.pid(rank));
      }
      return posted > 1000 && sleeps_of(job.pid(rank)) >= sleeps + 4;
    })) << "rank "
        << rank << " after " << posted << " updates: " << job.words(rank).text.data();
    EXPECT_LT(posted, updates) << "rank " << rank << " was never held back";
  }
  ASSERT_EQ(kill(job.pid(0), SIGCONT), 0);

  std::uint64_t expected = 0;
  for (std::uint64_t update = 0; update < updates; ++update) expected += 3 * elements_of(update);
  for (int rank = 0; rank < job.size(); ++rank) {
    EXPECT_EQ(job.wait_rank(rank, now_ns() + 60'000'000'000), 0) << job.words(rank).text.data();
  }
  EXPECT_EQ(job.words(0).value, expected);
  EXPECT_EQ(job.leftovers(), "");
}

}  // namespace
}  // namespace farsum::faults
