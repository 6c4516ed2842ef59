// Ranks that are killed exactly where it hurts: while they hold a given lock, wait for it, have a mailbox slot half
// written, or hand something over. The victim is run until it takes the lock, where the processor can tell of that,
// else instruction by instruction until it is there, and killed at a seeded instruction from then on.
// FARSUM_FAULT_SEEDS and FARSUM_FAULT_SEED as in kill_test.cpp.
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "capi/global.hpp"
#include "collectives/node_rounds.hpp"
#include "job.hpp"
#include "lockfree/handover.hpp"
#include "lockfree/ring.hpp"
#include "lockfree/shared_lock.hpp"
#include "stepper.hpp"
#include "workloads.hpp"

namespace farsum::faults {
namespace {

// ---- where the locks are: in a rank, told to the test as offsets in the node's memory ----

const Window& engine_window(const Scene& scene) { return *capi::find_window(scene.window)->object->window; }

std::uint64_t offset_of(const void* address) { return capi::live_context()->segment().offset_of(address); }

// The stripe of the first byte of a rank's part.
std::uint64_t stripe_of(Scene& scene, int rank) {
  NodeSegment& segment = capi::live_context()->segment();
  const auto index = static_cast<std::uint32_t>(rank);
  const SharedRegion& region = engine_window(scene).parts().shared[index].regions()[0];
  const bool in_segment = (region.flags & region_segment_key) != 0;
  StripeLock* locks = in_segment ? segment.stripes() : segment.rank(index).stripes;
  const std::uint64_t key = in_segment ? region.segment_offset : region.owner_address;
  return offset_of(&locks[(key >> stripe_shift) & ((in_segment ? node_stripes : rank_stripes) - 1)]);
}

std::uint64_t target_stripe(Scene& scene) { return stripe_of(scene, scene.next); }
std::uint64_t own_stripe(Scene& scene) { return stripe_of(scene, scene.self.rank); }
std::uint64_t heap_lock(Scene&) { return offset_of(&capi::live_context()->segment().heap_lock()); }
std::uint64_t window_lock(Scene& scene) { return offset_of(&engine_window(scene).parts().shared[0].lock()); }
std::uint64_t window_bias(Scene& scene) { return offset_of(engine_window(scene).parts().shared[0].bias().state()); }
std::uint64_t table_lock_of(Scene& scene, int rank) {
  return offset_of(&engine_window(scene).parts().shared[static_cast<std::size_t>(rank)].head().table_lock);
}
std::uint64_t own_table_lock(Scene& scene) { return table_lock_of(scene, scene.self.rank); }
std::uint64_t target_table_lock(Scene& scene) { return table_lock_of(scene, scene.next); }
std::uint64_t mutex_lock(Scene& scene) {
  // The second mutex of rank 0.
  const Mutexes& mutexes = *capi::global().mutexes.find(scene.mutex.bits)->mutexes;
  return offset_of(&mutexes.object().window->parts().shared[0].lock(2));
}
// What a rank leaves for the roots of its reduces, and for those whom it tells something.
std::uint64_t own_handover(Scene& scene) {
  const auto ranks = static_cast<std::uint32_t>(scene.self.size);
  return offset_of(capi::live_context()->segment().world_team()) + GroupBlock::rounds_at(ranks) +
         NodeRoundsBlock::handover_at(ranks) + static_cast<std::uint64_t>(scene.self.rank) * sizeof(HandoverPart);
}
std::uint64_t nowhere(Scene&) { return 0; }

// ---- whether the victim is there: in the test, through its own mapping ----

struct View {
  NodeSegment& segment;
  std::uint64_t lock;    // what the rank told
  std::uint32_t victim;  // rank
  std::uint32_t ranks;
  std::uint32_t id() const { return victim + 1; }
  template <class T>
  T& at(std::uint64_t offset) const {
    // What the ranks use, the test has not mapped.
    if (!segment.reach({offset, sizeof(T)}).is_ok()) std::abort();
    return *reinterpret_cast<T*>(segment.at(offset));
  }
};

bool holds_stripe(const View& view) { return view.at<StripeLock>(view.lock).holder() == view.id(); }
bool holds_guard(const View& view) { return view.at<SharedLockState>(view.lock).guard.holder() == view.id(); }
bool holds_exclusive(const View& view) {
  return view.at<SharedLockState>(view.lock).queue.exclusive_holder == view.id();
}
bool holds_shared(const View& view) {
  bool found = false;
  const SharedLock<> lock(view.at<SharedLockState>(view.lock), view.ranks);
  lock.for_each_holder(
      [&](std::uint32_t id, LockMode mode) { found = found || (id == view.id() && mode == LockMode::shared); });
  return found;
}
bool holds_by_bias(const View& view) {
  if (!view.segment.reach({view.lock, LockBias::footprint(view.ranks)}).is_ok()) std::abort();
  bool found = false;
  const LockBias bias(view.at<LockBiasState>(view.lock), view.ranks);
  bias.for_each_holder([&](Contender who) { found = found || who.id == view.id(); });
  return found;
}
bool waits_in_queue(const View& view) {
  constexpr std::uint32_t waiting = 1;
  const BasicLockSlots<SystemAtomics> slots(view.at<SharedLockState>(view.lock).slots(), view.ranks);
  for (std::uint32_t slot = 0; slot < view.ranks; ++slot) {
    if (slots[slot].id == view.id() && slots[slot].state == waiting) return true;
  }
  return false;
}
// A record is begun behind what is published, in a ring that is used for the first time.
bool writes_slot(const View& view) {
  const std::uint64_t offset = view.segment.channel((view.victim + 1) % view.ranks, view.victim).load();
  if (offset == 0) return false;
  auto& ring = view.at<BasicRingShared<SystemAtomics>>(offset);
  const auto& first = *reinterpret_cast<const ring_detail::RecordHeader<SystemAtomics>*>(ring.storage());
  const volatile std::uint32_t& record_bytes = first.record_bytes;
  return ring.published.load() == 0 && record_bytes != 0;
}

// A line that was written before has no number while it is written.
bool leaves_part(const View& view) {
  const auto& lines = view.at<HandoverPart>(view.lock).lines;
  return std::any_of(std::begin(lines), std::end(lines),
                     [](const auto& line) { return line.number.load() == 0 && line.what.load() != 0; });
}
// Of a number the lowest byte is the step.
std::uint64_t last_call(const HandoverPart& part) {
  return std::max(part.lines[0].number.load(), part.lines[1].number.load()) >> 8;
}
// Who gets something, of all or of the root, says that it has come before it says that it has read. Whoever gets
// nothing says that it has come last.
bool reads_parts(const View& view) {
  const auto& part = view.at<HandoverPart>(view.lock);
  return last_call(part) > part.done.load();
}
// By the root of a broadcast, whose followers say later that they have read.
bool leaves_word(const View& view) {
  const auto& part = view.at<HandoverPart>(view.lock);
  return leaves_part(view) && part.done.load() > last_call(part);
}

// ---- the cases ----

struct Case {
  const char* name;
  const char* workload;
  std::uint64_t (*find)(Scene&);
  bool (*there)(const View&);
  std::uint64_t most_instructions;  // under the lock, before the kill
  bool agent = false;               // the victim's agent is the one to be stopped there
  int victim = -1;                  // -1: any
  bool from_first_round = false;
  bool just_behind = false;  // not there but at the first instruction after it
};

constexpr Case cases[] = {
    {"stripe_by_direct_accumulate", "accumulate_direct", target_stripe, holds_stripe, 400},
    {"stripe_by_direct_get_accumulate", "get_accumulate_direct", target_stripe, holds_stripe, 400},
    {"stripe_by_large_accumulate", "accumulate_large_direct", target_stripe, holds_stripe, 2000},
    {"stripe_by_caller", "accumulate_caller", target_stripe, holds_stripe, 1000},
    {"stripe_by_caller_region", "accumulate_caller_region", target_stripe, holds_stripe, 5000},
    {"stripe_by_attach", "accumulate_adopted", target_stripe, holds_stripe, 1000},
    {"stripe_by_agent", "accumulate_owner", own_stripe, holds_stripe, 400, true},
    {"stripe_by_agent_on_user_memory", "fetch_op_adopted", own_stripe, holds_stripe, 1000, true, 0},
    {"stripe_by_attach_to_one_element", "fetch_op_adopted_attach", target_stripe, holds_stripe, 1000},
    {"stripe_by_agent_aggregated", "accumulate_aggregated", own_stripe, holds_stripe, 60, true},
    {"heap_by_window", "window_allocate_free", heap_lock, holds_stripe, 300, false, 0},
    {"heap_by_group", "group", heap_lock, holds_stripe, 300},
    {"heap_by_promotion", "window_promote_free", heap_lock, holds_stripe, 60},
    {"heap_by_mutexes", "mutexes_come_and_go", heap_lock, holds_stripe, 300, false, 0},
    {"queue_guard_exclusive", "lock_exclusive", window_lock, holds_guard, 300},
    {"queue_guard_shared", "lock_shared", window_lock, holds_guard, 300},
    {"queue_guard_lock_all", "lock_one_and_all", window_lock, holds_guard, 300},
    {"queue_guard_of_mutex", "mutex", mutex_lock, holds_guard, 300},
    {"window_lock_exclusive", "lock_exclusive", window_lock, holds_exclusive, 3000},
    {"window_lock_shared", "lock_shared", window_lock, holds_shared, 3000},
    {"window_lock_of_all", "lock_one_and_all", window_lock, holds_shared, 1000},
    {"window_lock_of_all_by_bias", "lock_all", window_bias, holds_by_bias, 1000},
    {"mutex", "mutex", mutex_lock, holds_exclusive, 1000},
    {"window_lock_of_counter", "counter_per_rank", nowhere, nullptr, 30000},
    {"region_table_by_owner", "window_attach_detach", own_table_lock, holds_stripe, 100},
    {"region_table_by_reader", "window_attach_detach", target_table_lock, holds_stripe, 100},
    {"part_that_is_being_left", "reduce", own_handover, leaves_part, 40},
    {"part_that_was_left_and_not_told", "reduce", own_handover, leaves_part, 1, false, -1, false, true},
    {"parts_that_are_being_read", "reduce", own_handover, reads_parts, 1000},
    {"parts_that_were_read_and_not_told", "reduce", own_handover, reads_parts, 1, false, -1, false, true},
    {"word_for_all_that_is_being_left", "broadcast", own_handover, leaves_word, 40},
    {"word_for_all_that_was_left_and_not_told", "broadcast", own_handover, leaves_word, 1, false, -1, false, true},
    {"word_of_the_root_that_is_being_read", "broadcast", own_handover, reads_parts, 100},
    {"mailbox_slot", "put_owner", nowhere, writes_slot, 80, false, -1, true},
    {"mailbox_slot_of_descriptor", "put_owner_pulls", nowhere, writes_slot, 60, false, -1, true},
};

std::string kill_there(const Case& one, std::uint64_t seed, std::string& skipped) {
  const Workload& workload = *find_workload(one.workload);
  Random random(seed * 7919 + std::hash<std::string>{}(one.name) % 1000);
  JobOptions options;
  options.environment = workload.environment;
  options.environment.push_back(soon_looked);
  const int victim = one.victim >= 0 ? one.victim : static_cast<int>(random.below(3));
  const std::uint64_t instructions = random.below(one.most_instructions);
  const bool reap = random.below(2) == 1;
  Job job(options);
  job.start([&](const Rank& self) {
    return run_workload(self, workload, ~std::uint64_t{0}, [&](Scene& scene) {
      const std::uint64_t offset = one.find(scene);
      self.words().value.store(offset);
      self.words().address.store(reinterpret_cast<std::uintptr_t>(capi::live_context()->segment().at(offset)));
      self.words().ready.store(1);
      while (one.from_first_round && self.control->go.load() == 0) farsum_sync(scene.window);
    });
  });
  const auto going = [&] {
    return job.words(victim).ready.load() != 0 && (one.from_first_round || job.words(victim).rounds.load() >= 2);
  };
  if (!job.wait_for(going)) return fmt::format("\n  the ranks did not get going: {}", job.words(victim).text.data());

  const auto rank = static_cast<std::uint32_t>(victim);
  const View view{job.segment(), job.words(victim).value.load(), rank, static_cast<std::uint32_t>(job.size())};
  std::uint64_t under_lock = 0;
  std::string wrong;
  {
    Stepper stepper(one.agent ? agent_of(job.pid(victim)) : job.pid(victim), !one.agent);
    if (!stepper.attached()) {
      skipped = "the kernel refuses to trace the ranks here";
      return "";
    }
    job.control().go.store(1);
    const auto dies_here = [&] {
      const bool is_there = one.there == nullptr || one.there(view);
      if (is_there) ++under_lock;
      if (one.just_behind) return under_lock != 0 && !is_there;
      // What comes once only: just after it will do.
      return under_lock > instructions || (one.from_first_round && under_lock != 0 && !is_there);
    };
    // A copy on the way to a lock, and from one time under it to the next, takes a step for each few bytes.
    const auto runs_to_lock = [&] {
      return one.there == holds_stripe && !holds_stripe(view) &&
             stepper.run_to_write(job.words(victim).address.load(), [&] { return holds_stripe(view); });
    };
    bool got_there = dies_here();
    while (!got_there && (runs_to_lock() || stepper.step())) got_there = dies_here();
    if (!got_there)
      return fmt::format("\n  after {} instructions rank {} was not there ({})", stepper.steps(), victim, under_lock);
    job.kill_rank(victim, false);
  }
  if (reap) (void)job.wait_rank(victim, now_ns() + report_deadline_ns);
  wrong = judge_death(job, victim);
  return wrong.empty() ? wrong
                       : fmt::format("rank {} killed at instruction {} there ({}):{}", victim, instructions,
                                     reap ? "reaped" : "a zombie", wrong);
}

class KilledHolder : public testing::TestWithParam<Case> {};

// In make test-all (*/word_for_all_that_was_left_and_not_told): the word is held seldom.
// In make test-all (*/stripe_by_large_accumulate): the stripe is held seldom.
TEST_P(KilledHolder, is_reported_by_all_others_and_leaves_nothing) {
  const std::uint64_t first = environment_number("FARSUM_FAULT_SEED", 1);
  const std::uint64_t seeds = environment_number("FARSUM_FAULT_SEEDS", 1);
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    std::string skipped;
    const std::string wrong = kill_there(GetParam(), seed, skipped);
    if (!skipped.empty()) GTEST_SKIP() << skipped;
    ASSERT_EQ(wrong, "") << "seed " << seed << "; replay: FARSUM_FAULT_SEED=" << seed
                         << " bin/tests/test_faults --gtest_filter='*KilledHolder*/" << GetParam().name << "'";
  }
}

INSTANTIATE_TEST_SUITE_P(Of, KilledHolder, testing::ValuesIn(cases),
                         [](const auto& one) { return std::string(one.param.name); });

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

// ---- a rank that dies while it waits: the lock is handed to it in its turn, and those behind it must find out ----

template <class Lock, class Unlock>
bool queue_up(const Rank& self, Lock&& lock, Unlock&& unlock) {
  enum : int { holder = 0, victim = 1 };
  const auto& words = self.control->ranks;
  if (self.rank != holder) {
    while (words[holder].ready.load() == 0) sched_yield();
  }
  if (self.rank > victim) {
    while (self.control->go.load() == 0) sched_yield();
  }
  if (!self.ok(lock())) return false;
  self.words().ready.store(1);
  while (self.rank == holder && self.control->stop.load() == 0) sched_yield();
  return self.ok(unlock()) && self.ok(farsum_barrier(farsum_world()));
}

void kill_a_waiter(const char* workload_name, std::uint64_t (*find)(Scene&), const std::function<bool(Scene&)>& queue) {
  constexpr int victim = 1;
  const Workload& workload = *find_workload(workload_name);
  Job job(JobOptions{});
  job.start([&](const Rank& self) {
    Scene scene(self);
    if (!self.ok(self.init()) || !workload.set_up(scene)) return 1;
    self.words().value.store(find(scene));
    (void)queue(scene);
    return 0;
  });
  ASSERT_TRUE(job.wait_for([&] { return job.words(0).ready && job.words(victim).value != 0; }));
  const View view{job.segment(), job.words(victim).value.load(), victim, 3};
  ASSERT_TRUE(job.wait_for([&] { return waits_in_queue(view); }));
  job.control().go.store(1);
  const View third{job.segment(), view.lock, 2, 3};
  ASSERT_TRUE(job.wait_for([&] { return waits_in_queue(third); }));
  job.kill_rank(victim, false);
  job.control().stop.store(1);
  EXPECT_EQ(judge_death(job, victim), "");
}

TEST(KilledWaiter, of_a_window_lock_is_reported_by_the_holder_and_by_who_waits_behind) {
  kill_a_waiter("lock_exclusive", window_lock, [](Scene& scene) {
    return queue_up(
        scene.self, [&] { return farsum_lock(scene.window, 0, FARSUM_LOCK_EXCLUSIVE); },
        [&] { return farsum_unlock(scene.window, 0); });
  });
}

TEST(KilledWaiter, of_a_mutex_is_reported_by_the_holder_and_by_who_waits_behind) {
  kill_a_waiter("mutex", mutex_lock, [](Scene& scene) {
    return queue_up(
        scene.self, [&] { return farsum_mutex_lock(scene.mutex, 0, 1); },
        [&] { return farsum_mutex_unlock(scene.mutex, 0, 1); });
  });
}

// ---- anywhere at all: so many instructions after a round, whatever they do ----

class KilledAnywhere : public testing::TestWithParam<std::string> {};

TEST_P(KilledAnywhere, is_reported_by_all_others_and_leaves_nothing) {
  const std::uint64_t first = environment_number("FARSUM_FAULT_SEED", 1);
  const std::uint64_t seeds = environment_number("FARSUM_FAULT_SEEDS", 1);
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    Case anywhere{"anywhere", GetParam().c_str(), nowhere, nullptr, 0};
    Random random(seed * 31337 + std::hash<std::string>{}(GetParam()) % 1000);
    anywhere.most_instructions = 1 + random.below(20'000);
    std::string skipped;
    const std::string wrong = kill_there(anywhere, seed, skipped);
    if (!skipped.empty()) GTEST_SKIP() << skipped;
    ASSERT_EQ(wrong, "") << "seed " << seed << "; replay: FARSUM_FAULT_SEED=" << seed
                         << " bin/tests/test_faults --gtest_filter='*KilledAnywhere*/" << GetParam() << "'";
  }
}

INSTANTIATE_TEST_SUITE_P(In, KilledAnywhere,
                         testing::Values("put_owner", "get_accumulate_owner", "accumulate_aggregated", "lock_exclusive",
                                         "mutex", "fence", "post_start", "notify_owner", "window_allocate_free",
                                         "window_adopt_free", "group", "barrier"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace farsum::faults
