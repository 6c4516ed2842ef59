// Every operation means the same on every path and on every kind of memory, also where ranks use different paths in one
// window.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "rank_processes.hpp"
#include "workout.hpp"

namespace farsum::test {
namespace {

struct Paths {
  std::string name;
  std::vector<Variables> of_rank;
  bool by_element = false;  // somewhere
};

Variables path_and_lock(const char* name, const char* caller_lock = "stripe") {
  return {{"FARSUM_PATH", name}, {"FARSUM_CALLER_LOCK", caller_lock}};
}

std::vector<Paths> all_paths() {
  std::vector<Paths> paths;
  for (const char* name : {"auto", "direct", "attach", "owner", "aggregated"}) {
    paths.push_back({name, std::vector<Variables>(workout_ranks, path_and_lock(name))});
  }
  for (const char* lock : {"region", "stripe", "element"}) {
    paths.push_back({std::string("caller_by_") + lock,
                     std::vector<Variables>(workout_ranks, path_and_lock("caller", lock)),
                     std::string(lock) == "element"});
  }
  paths.push_back({"direct_owner_and_caller",
                   {path_and_lock("direct"), path_and_lock("owner"), path_and_lock("caller", "element")},
                   true});
  paths.push_back({"aggregated_attach_and_caller",
                   {path_and_lock("aggregated"), path_and_lock("attach"), path_and_lock("caller", "region")}});
  paths.push_back({"auto_with_copies_refused_by_one",
                   {path_and_lock("auto"), {{"FARSUM_ATTACH", "refuse"}}, path_and_lock("direct")}});
  return paths;
}

// A lock, a get and a put for each element take 5 s for all of the memory. There a pulled piece is the longest
// operation, and what lies behind is not compared; the ring, and two pieces, only where regions touch, and on the other
// paths.
std::size_t exercised_bytes(const Paths& paths, MemoryOf kind) {
  constexpr std::size_t enough = 256 << 10;
  const bool is_all = !paths.by_element || kind == MemoryOf::dynamic_in_touching_regions;
  return is_all ? part_bytes(kind) : std::min(part_bytes(kind), enough);
}

using Case = std::tuple<Paths, MemoryOf>;

class OperationsOn : public testing::TestWithParam<Case> {};

// In make test-all (*caller_by_element_on_touching_attached_regions): each element is a lock, a copy and a copy back.
TEST_P(OperationsOn, have_the_same_effect_and_answers_whatever_the_path) {
  const auto& [paths, kind] = GetParam();
  const SharedWithRanks<Expected> expected;
  Job job;
  job.ranks = workout_ranks;
  job.of_rank = paths.of_rank;
  run_ranks(job, [&, kind = kind, exercised = exercised_bytes(paths, kind)](int rank) {
    ExposedMemory memory(kind);
    Workout workout(rank, memory, exercised, *expected);
    const auto run = [&](void (Workout::*exercise)()) {
      if (!testing::Test::HasFatalFailure()) (workout.*exercise)();
    };
    run(&Workout::try_every_legal_pair);
    run(&Workout::straddle_thresholds);
    run(&Workout::keep_program_order);
    run(&Workout::order_puts_among_accumulates);
    run(&Workout::compare_and_swap_each_type);
    run(&Workout::hammer_shared_words);
    run(&Workout::compare_memory);
    // Whoever has failed does not come to the collective calls: its end tells the others.
    if (testing::Test::HasFatalFailure()) _exit(1);
  });
}

INSTANTIATE_TEST_SUITE_P(EveryPath, OperationsOn,
                         testing::Combine(testing::ValuesIn(all_paths()), testing::ValuesIn(all_kinds_of_memory())),
                         [](const testing::TestParamInfo<Case>& tested) {
                           return std::get<0>(tested.param).name + "_on_" + name_of(std::get<1>(tested.param));
                         });

}  // namespace
}  // namespace farsum::test
