// When the agent's thread exists.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "in_process_job.hpp"

namespace farsum::test {
namespace {

int agents_of_this_process() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name == "farsum-agent") ++count;
  }
  return count;
}

TEST(Agent, is_started_by_the_first_window_and_ends_with_the_context) {
  run_in_process({on_path(PathChoice::automatic)}, [](InProcessRank rank) {
    EXPECT_EQ(rank.context.statistics().agent_wakeups, 0U);
    Result<Mutexes*> mutexes = rank.context.mutexes().create(rank.context.world(), 2);
    ASSERT_TRUE(mutexes.is_ok());
    EXPECT_EQ(agents_of_this_process(), 0);
    Result<WindowObject*> first = rank.context.windows().allocate(rank.context.world(), 64, {});
    Result<WindowObject*> second = rank.context.windows().create_dynamic(rank.context.world(), {});
    ASSERT_TRUE(first.is_ok() && second.is_ok());
    EXPECT_EQ(agents_of_this_process(), 1);
    EXPECT_GOOD(rank.context.windows().free(first.value()));
    EXPECT_GOOD(rank.context.windows().free(second.value()));
    EXPECT_GOOD(rank.context.mutexes().free(mutexes.value()));
  });
  EXPECT_EQ(agents_of_this_process(), 0);
}

TEST(Agent, runs_where_the_process_began_though_its_starter_was_bound_since) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  run_in_process({on_path(PathChoice::owner)}, [&](InProcessRank rank) {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    Result<WindowObject*> window = rank.context.windows().allocate(rank.context.world(), 64, {});
    ASSERT_TRUE(window.is_ok());
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::ifstream(task.path() / "comm") >> name;
      if (name != "farsum-agent") continue;
      cpu_set_t agents;
      ASSERT_EQ(sched_getaffinity(std::stoi(task.path().filename().string()), sizeof agents, &agents), 0);
      EXPECT_TRUE(CPU_EQUAL(&agents, &all));
    }
    EXPECT_GOOD(rank.context.windows().free(window.value()));
  });
}

}  // namespace
}  // namespace farsum::test
