// Farsum as a guest in a program: idle it costs nothing, signals of the program neither disturb it nor reach its agent,
// a forked child is no rank, and jobs do not see each other. FARSUM_IDLE_SECONDS sets how long the idle job is watched
// (3 by default).
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "job.hpp"
#include "stepper.hpp"
#include "workloads.hpp"

namespace farsum::faults {
namespace {

// ---- idle ----

// How often a thread has been put to sleep or off its processor.
std::uint64_t switches_of(pid_t process, pid_t thread) {
  std::ifstream status(fmt::format("/proc/{}/task/{}/status", process, thread));
  std::uint64_t sum = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("voluntary_ctxt_switches:")) sum += std::stoull(line.substr(24));
  }
  return sum;
}

std::uint64_t wakeups() {
  farsum_statistics statistics{};
  statistics.struct_bytes = sizeof statistics;
  return farsum_statistics_read(&statistics) == FARSUM_OK ? statistics.agent_wakeups : ~std::uint64_t{0};
}

// Takes seconds: it counts the wake-ups of some seconds.
TEST(IdleJob, never_wakes_its_agents_and_a_waiting_thread_only_to_look_at_its_peers) {
  const std::uint64_t seconds = environment_number("FARSUM_IDLE_SECONDS", 3);
  std::array<int, 2> wake{};
  ASSERT_EQ(pipe(wake.data()), 0);
  JobOptions options;
  options.ranks = 2;
  Job job(options);
  // Rank 0 sleeps in a read of its own, rank 1 waits for it in a barrier.
  job.start([&](const Rank& self) {
    Scene scene(self);
    if (!self.ok(self.init()) || !find_workload("accumulate_owner")->set_up(scene) || !scene.barrier()) return 1;
    const std::uint64_t before = wakeups();
    self.words().ready.store(1);
    char byte = 0;
    if (self.rank == 0 && read(wake[0], &byte, 1) != 1) return 1;
    self.words().value.store(wakeups() - before);
    if (!scene.barrier()) return 1;
    return scene.ok(farsum_unlock_all(scene.window)) && scene.ok(farsum_window_free(&scene.window)) &&
                   scene.ok(farsum_finalize())
               ? 0
               : 1;
  });
  ASSERT_TRUE(job.wait_for([&] { return job.words(0).ready && job.words(1).ready; }));
  const std::array<pid_t, 2> agents = {agent_of(job.pid(0)), agent_of(job.pid(1))};
  ASSERT_NE(agents[0], 0);
  ASSERT_NE(agents[1], 0);
  const auto read_all = [&] {
    return std::array<std::uint64_t, 4>{switches_of(job.pid(0), agents[0]), switches_of(job.pid(1), agents[1]),
                                        switches_of(job.pid(0), job.pid(0)), switches_of(job.pid(1), job.pid(1))};
  };
  // The ranks settle: all four threads are asleep when two looks agree but for the waiting thread's.
  std::array<std::uint64_t, 4> before = read_all();
  ASSERT_TRUE(job.wait_for([&] {
    const std::array<std::uint64_t, 4> now = read_all();
    const bool settled = now[0] == before[0] && now[1] == before[1] && now[2] == before[2];
    before = now;
    return settled;
  }));
  // A measurement, so the clock is the point.
  sleep(static_cast<unsigned>(seconds));
  const std::array<std::uint64_t, 4> after = read_all();
  EXPECT_EQ(after[0] - before[0], 0U) << "wake-ups of rank 0's agent";
  EXPECT_EQ(after[1] - before[1], 0U) << "wake-ups of rank 1's agent";
  EXPECT_EQ(after[2] - before[2], 0U) << "wake-ups of a thread that does not wait in Farsum";
  const std::uint64_t looks = after[3] - before[3];
  EXPECT_LE(looks, 12 * seconds) << "wake-ups of a thread that waits in a barrier";
  RecordProperty("barrier_wakeups", static_cast<int>(looks));
  RecordProperty("seconds", static_cast<int>(seconds));
  ASSERT_EQ(write(wake[1], "x", 1), 1);
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_EQ(job.wait_rank(rank, now_ns() + 20'000'000'000), 0) << job.words(rank).text.data();
  EXPECT_EQ(job.words(0).value, 0U) << "the agent counts wake-ups of rank 0";
  close(wake[0]);
  close(wake[1]);
}

// ---- signals ----

std::atomic<std::uint64_t> ticks{0};
std::atomic<std::uint64_t> ticks_elsewhere{0};

void tick(int) {
  ticks.fetch_add(1, std::memory_order_relaxed);
  if (syscall(SYS_gettid) != getpid()) ticks_elsewhere.fetch_add(1, std::memory_order_relaxed);
}

class Interrupted : public testing::TestWithParam<std::string> {};

TEST_P(Interrupted, by_a_timer_all_the_time_comes_to_its_end_and_the_agent_never_runs_the_handler) {
  const Workload& workload = *find_workload(GetParam());
  JobOptions options;
  options.by_allgather = !workload.joins_itself;
  options.environment = workload.environment;
  Job job(options);
  job.start([&](const Rank& self) {
    // No SA_RESTART: every system call of the program's thread may be cut short.
    struct sigaction action {};
    action.sa_handler = tick;
    sigaction(SIGALRM, &action, nullptr);
    const itimerval timer{{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &timer, nullptr);
    const int result = run_workload(self, workload, 60);
    self.control->words[0].fetch_add(ticks.load());
    self.control->words[1].fetch_add(ticks_elsewhere.load());
    return result;
  });
  for (int rank = 0; rank < job.size(); ++rank) {
    EXPECT_EQ(job.wait_rank(rank, now_ns() + 60'000'000'000), 0);
    EXPECT_EQ(job.words(rank).value.load(), 1U) << job.words(rank).text.data();
  }
  EXPECT_EQ(job.control().words[1], 0U) << "of " << job.control().words[0] << " signals ran on another thread";
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Workload& workload : workloads()) names.push_back(workload.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Job, Interrupted, testing::ValuesIn(all_names()), [](const auto& one) { return one.param; });

// ---- fork ----

class ForkingRank : public testing::TestWithParam<std::string> {};

// Every rank forks a child in every round; the child finds that it is no rank, writes into the memory it was left, and
// goes.
TEST_P(ForkingRank, works_on_and_its_child_is_refused) {
  const Workload& workload = *find_workload(GetParam());
  JobOptions options;
  options.environment = workload.environment;
  Job job(options);
  job.start([&](const Rank& self) {
    Scene scene(self);
    if (!self.ok(self.init()) || !workload.set_up(scene)) return 1;
    for (; scene.round < 20; ++scene.round) {
      const pid_t child = fork();
      if (child == 0) {
        const std::int64_t one = 1;
        const bool refused = farsum_put(scene.window, 0, 0, &one, sizeof one) == FARSUM_ERR_NOT_INITIALIZED &&
                             farsum_barrier(farsum_world()) == FARSUM_ERR_NOT_INITIALIZED &&
                             farsum_finalize() == FARSUM_ERR_NOT_INITIALIZED && farsum_is_initialized() == 0;
        _exit(refused ? 0 : 1);
      }
      if (!workload.round(scene)) return 1;
      int status = 0;
      if (waitpid(child, &status, 0) != child || status != 0) return 2;
    }
    if (!scene.barrier() || !workload.tear_down(scene) || !self.ok(farsum_finalize())) return 1;
    return 0;
  });
  for (int rank = 0; rank < job.size(); ++rank) {
    EXPECT_EQ(job.wait_rank(rank, now_ns() + 60'000'000'000), 0) << job.words(rank).text.data();
  }
  EXPECT_EQ(job.leftovers(), "");
}

INSTANTIATE_TEST_SUITE_P(Job, ForkingRank,
                         testing::Values("accumulate_direct", "accumulate_owner", "get_owner_pushes",
                                         "accumulate_adopted", "accumulate_promoted", "fence", "lock_exclusive"),
                         [](const auto& one) { return one.param; });

// ---- two jobs ----

TEST(TwoJobs, at_once_do_not_see_each_other_and_one_outlives_a_death_in_the_other) {
  constexpr std::uint64_t rounds = 400;
  const Workload& workload = *find_workload("accumulate_owner");
  JobOptions options;
  options.environment = workload.environment;
  Job dying(options);
  options.by_allgather = true;
  Job living(options);
  dying.start([&](const Rank& self) { return run_workload(self, workload, ~std::uint64_t{0}); });
  living.start([&](const Rank& self) { return run_workload(self, workload, rounds); });
  ASSERT_TRUE(dying.wait_for([&] { return dying.words(1).rounds >= 20; }));
  dying.kill_rank(1, true);
  for (const int rank : {0, 2}) {
    EXPECT_EQ(dying.wait_rank(rank, dying.killed_ns() + report_deadline_ns), 0);
    EXPECT_EQ(dying.words(rank).status, FARSUM_ERR_PEER_FAILED) << dying.words(rank).text.data();
  }
  for (int rank = 0; rank < living.size(); ++rank) {
    EXPECT_EQ(living.wait_rank(rank, now_ns() + 60'000'000'000), 0);
    EXPECT_EQ(living.words(rank).rounds, rounds) << living.words(rank).text.data();
    EXPECT_EQ(living.words(rank).value, 1U) << living.words(rank).text.data();
  }
  EXPECT_EQ(dying.leftovers(), "");
  EXPECT_EQ(living.leftovers(), "");
}

// ---- under the launcher ----

// A rank of the test below: this program, started again by `farsum run`, repeats a workload until it is killed.
class RankProgram : public testing::Environment {
 public:
  void SetUp() override {
    const char* workload = std::getenv("FARSUM_FAULT_WORKLOAD");
    const char* rank = std::getenv("FARSUM_RANK");
    if (workload == nullptr || rank == nullptr) return;
    static Control control;
    const Rank self{std::atoi(rank), std::atoi(std::getenv("FARSUM_SIZE")), &control, false};
    std::printf("rank %d is process %d\n", self.rank, getpid());
    std::fflush(stdout);
    run_workload(self, *find_workload(workload), ~std::uint64_t{0});
    std::fprintf(stderr, "%s\n", self.words().text.data());
    _exit(1);
  }
};

const testing::Environment* const rank_program = testing::AddGlobalTestEnvironment(new RankProgram);

class LaunchedJob : public testing::TestWithParam<std::string> {};

// Takes seconds: a launcher ends a job in seconds.
TEST_P(LaunchedJob, ends_with_all_its_processes_when_a_rank_is_killed) {
  const std::uint64_t first = environment_number("FARSUM_FAULT_SEED", 1);
  const std::uint64_t seeds = environment_number("FARSUM_FAULT_SEEDS", 1);
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    Random random(seed);
    const std::string command =
        fmt::format("FARSUM_FAULT_WORKLOAD={} exec {}/farsum run -n 3 {}/tests/test_faults 2>&1", GetParam(),
                    FARSUM_BIN_DIR, FARSUM_BIN_DIR);
    FILE* output = popen(command.c_str(), "r");
    ASSERT_NE(output, nullptr);
    std::array<pid_t, 3> ranks{};
    std::string text;
    int known = 0;
    const auto victim = static_cast<std::size_t>(random.below(3));
    std::array<char, 1024> line{};
    std::uint64_t killed_ns = 0;
    while (std::fgets(line.data(), line.size(), output) != nullptr) {
      text += line.data();
      int rank = 0;
      int pid = 0;
      if (std::sscanf(line.data(), "rank %d is process %d", &rank, &pid) == 2 && rank >= 0 && rank < 3) {
        ranks[static_cast<std::size_t>(rank)] = pid;
        ++known;
      }
      if (known == 3 && killed_ns == 0) {
        usleep(static_cast<useconds_t>(random.below(30'000)));
        kill(ranks[victim], SIGKILL);
        killed_ns = now_ns();
      }
    }
    // The output ends when nobody holds it any more.
    const int status = pclose(output);
    ASSERT_NE(killed_ns, 0U) << text;
    EXPECT_LE(now_ns() - killed_ns, report_deadline_ns) << "seed " << seed << "\n" << text;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 0) << status;
    EXPECT_NE(text.find(fmt::format("rank {}", victim)), std::string::npos) << text;
    for (const pid_t pid : ranks) EXPECT_NE(kill(pid, 0), 0) << "process " << pid << " is left; seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Under, LaunchedJob,
                         testing::Values("accumulate_owner", "accumulate_direct", "lock_exclusive",
                                         "window_allocate_free", "life"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace farsum::faults
