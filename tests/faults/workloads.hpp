// What ranks do while a test disturbs them: one workload per kind of operation, path, lock and collective. Each round
// ends in a state from which the next can begin, and every rank makes the same number of rounds, so that rounds may
// synchronise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../../apps/common/any_counter.hpp"
#include "job.hpp"

namespace farsum::faults {

// What a workload's rounds share in one rank.
struct Scene {
  explicit Scene(const Rank& self);

  const Rank& self;
  int next;  // the rank that this one works on
  std::uint64_t round = 0;
  farsum_window window{};
  farsum_mutex mutex{};
  apps::AnyCounter counter;
  void* memory = nullptr;
  std::vector<std::byte> user;  // memory of the program, where it is adopted
  std::vector<std::int64_t> operand;
  std::vector<std::int64_t> result;

  bool ok(farsum_status status) const { return self.ok(status); }
  bool barrier() const { return ok(farsum_barrier(farsum_world())); }
  // Every 8th round all meet: an operation that needs nobody's answer says nothing about the dead.
  bool meet_now_and_then() const { return round % 8 != 7 || barrier(); }
};

struct Workload {
  std::string name;
  std::vector<std::pair<std::string, std::string>> environment;
  bool (*set_up)(Scene&) = nullptr;
  bool (*round)(Scene&) = nullptr;
  // Ends what set_up began; collective.
  bool (*tear_down)(Scene&) = nullptr;
  // farsum_init and finalize belong to the rounds.
  bool joins_itself = false;
};

const std::vector<Workload>& workloads();
const Workload* find_workload(const std::string& name);

// The body of a rank: joins, repeats the workload's rounds until the test says stop (all ranks then stop in the same
// round), a call fails, or `rounds` are done, then leaves. Returns 0 also after a failed call, which the test judges.
// `prepared`, where given, is called between set_up and the first round.
int run_workload(const Rank& self, const Workload& workload, std::uint64_t rounds,
                 const std::function<void(Scene&)>& prepared = {});

}  // namespace farsum::faults
