#include "workloads.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace farsum::faults {
namespace {

constexpr std::size_t small_count = 256;        // elements: one stripe, rides in the message
constexpr std::size_t large_count = 96 * 1024;  // elements: many stripes, pulled by the agent
constexpr std::size_t window_bytes = 1 << 20;
constexpr std::size_t adopted_bytes = 1 << 20;
constexpr auto type = FARSUM_INT64;

}  // namespace

Scene::Scene(const Rank& rank)
    : self(rank), next((rank.rank + 1) % rank.size), operand(large_count, 1), result(large_count, 0) {}

namespace {

// ---- windows ----

bool allocate(Scene& scene) {
  farsum_window_options options{};
  options.struct_bytes = sizeof options;
  return scene.ok(farsum_window_allocate(farsum_world(), window_bytes, &options, &scene.memory, &scene.window));
}

bool allocate_and_open(Scene& scene) { return allocate(scene) && scene.ok(farsum_lock_all(scene.window)); }

bool adopt(Scene& scene) {
  scene.user.resize(adopted_bytes);
  return scene.ok(farsum_window_adopt(farsum_world(), scene.user.data(), adopted_bytes, nullptr, &scene.window));
}

bool adopt_and_open(Scene& scene) { return adopt(scene) && scene.ok(farsum_lock_all(scene.window)); }

bool release(Scene& scene) { return scene.ok(farsum_window_free(&scene.window)); }
bool close_and_release(Scene& scene) {
  return scene.ok(farsum_unlock_all(scene.window)) && scene.barrier() && release(scene);
}

bool flush(Scene& scene) { return scene.ok(farsum_flush(scene.window, scene.next)); }

// ---- operations ----

template <std::size_t count>
bool put(Scene& scene) {
  return scene.ok(farsum_put(scene.window, scene.next, 0, scene.operand.data(), count * 8)) && flush(scene) &&
         scene.meet_now_and_then();
}

template <std::size_t count>
bool get(Scene& scene) {
  return scene.ok(farsum_get(scene.window, scene.next, 0, scene.result.data(), count * 8)) && flush(scene) &&
         scene.meet_now_and_then();
}

template <std::size_t count>
bool accumulate(Scene& scene) {
  return scene.ok(farsum_accumulate(scene.window, scene.next, 0, scene.operand.data(), count, type, FARSUM_SUM)) &&
         flush(scene) && scene.meet_now_and_then();
}

template <std::size_t count>
bool get_accumulate(Scene& scene) {
  return scene.ok(farsum_get_accumulate(scene.window, scene.next, 0, scene.operand.data(), scene.result.data(), count,
                                        type, FARSUM_SUM)) &&
         flush(scene) && scene.meet_now_and_then();
}

bool fetch_op(Scene& scene) {
  return scene.ok(farsum_fetch_op(scene.window, 0, 8, scene.operand.data(), scene.result.data(), type, FARSUM_SUM)) &&
         scene.meet_now_and_then();
}

bool compare_and_swap(Scene& scene) {
  const std::int64_t seen = scene.result[0];
  const std::int64_t wish = seen + 1;
  return scene.ok(farsum_compare_and_swap(scene.window, 0, 16, &seen, &wish, scene.result.data(), type)) &&
         scene.meet_now_and_then();
}

// Many single updates, sent together.
bool accumulate_singles(Scene& scene) {
  for (std::uint64_t i = 0; i < 64; ++i) {
    if (!scene.ok(farsum_accumulate(scene.window, scene.next, 8 * i, scene.operand.data(), 1, type, FARSUM_SUM)))
      return false;
  }
  return flush(scene) && scene.meet_now_and_then();
}

// Nothing is waited for but room in the mailbox.
bool fill_mailbox(Scene& scene) {
  for (int i = 0; i < 64; ++i) {
    if (!scene.ok(farsum_accumulate(scene.window, scene.next, 0, scene.operand.data(), small_count, type, FARSUM_SUM)))
      return false;
  }
  return scene.meet_now_and_then();
}

// ---- locks ----

template <farsum_lock_mode mode>
bool lock_and_put(Scene& scene) {
  return scene.ok(farsum_lock(scene.window, 0, mode)) &&
         scene.ok(farsum_accumulate(scene.window, 0, 0, scene.operand.data(), small_count, type, FARSUM_SUM)) &&
         scene.ok(farsum_unlock(scene.window, 0)) && scene.meet_now_and_then();
}

bool lock_all(Scene& scene) {
  return scene.ok(farsum_lock_all(scene.window)) && scene.ok(farsum_unlock_all(scene.window)) &&
         scene.meet_now_and_then();
}

// All one by one, and now and then by an offer that somebody makes and the next ends.
bool lock_one_and_all(Scene& scene) {
  return scene.ok(farsum_lock(scene.window, 0, FARSUM_LOCK_EXCLUSIVE)) && scene.ok(farsum_unlock(scene.window, 0)) &&
         lock_all(scene);
}
bool lock_all_and_one(Scene& scene) {
  return scene.ok(farsum_lock_all(scene.window)) && scene.ok(farsum_unlock_all(scene.window)) &&
         scene.ok(farsum_lock(scene.window, 0, FARSUM_LOCK_EXCLUSIVE)) && scene.ok(farsum_unlock(scene.window, 0)) &&
         scene.meet_now_and_then();
}

bool make_mutexes(Scene& scene) { return scene.ok(farsum_mutex_create(farsum_world(), 2, &scene.mutex)); }
bool free_mutexes(Scene& scene) { return scene.ok(farsum_mutex_free(&scene.mutex)); }
bool mutex(Scene& scene) {
  return scene.ok(farsum_mutex_lock(scene.mutex, 0, 1)) && scene.ok(farsum_mutex_unlock(scene.mutex, 0, 1)) &&
         scene.meet_now_and_then();
}

// ---- synchronisation ----

bool nothing(Scene&) { return true; }
bool barrier(Scene& scene) { return scene.barrier(); }

template <std::size_t bytes>
bool broadcast(Scene& scene) {
  const int root = static_cast<int>(scene.round % static_cast<std::uint64_t>(scene.self.size));
  return scene.ok(farsum_broadcast(farsum_world(), scene.result.data(), bytes, root));
}

bool allgather(Scene& scene) {
  std::array<char, 600> mine{};
  std::array<char, 600 * most_ranks> all{};
  return scene.ok(farsum_allgather(farsum_world(), mine.data(), all.data(), mine.size()));
}

template <std::size_t count>
bool allreduce(Scene& scene) {
  return scene.ok(farsum_allreduce(farsum_world(), scene.operand.data(), scene.result.data(), count, type, FARSUM_SUM));
}

bool reduce(Scene& scene) {
  const int root = static_cast<int>(scene.round % static_cast<std::uint64_t>(scene.self.size));
  return scene.ok(
      farsum_reduce(farsum_world(), scene.operand.data(), scene.result.data(), 100, type, FARSUM_SUM, root));
}

bool reduce_scatter(Scene& scene) {
  return scene.ok(farsum_reduce_scatter_block(farsum_world(), scene.operand.data(), scene.result.data(),
                                              large_count / most_ranks, type, FARSUM_SUM));
}

bool fence(Scene& scene) {
  return scene.ok(farsum_fence(scene.window, 0)) &&
         scene.ok(farsum_put(scene.window, scene.next, 0, scene.operand.data(), 4096));
}
bool end_fence(Scene& scene) { return scene.ok(farsum_fence(scene.window, FARSUM_FENCE_NO_SUCCEED)) && release(scene); }

bool post_start(Scene& scene) {
  const int before = (scene.self.rank + scene.self.size - 1) % scene.self.size;
  return scene.ok(farsum_post(scene.window, &before, 1)) && scene.ok(farsum_start(scene.window, &scene.next, 1)) &&
         scene.ok(farsum_put(scene.window, scene.next, 0, scene.operand.data(), 4096)) &&
         scene.ok(farsum_complete(scene.window)) && scene.ok(farsum_wait_exposure(scene.window));
}

bool notify(Scene& scene) {
  return scene.ok(farsum_put_notify(scene.window, scene.next, 0, scene.operand.data(), 512, 1)) &&
         scene.ok(farsum_notify_wait(scene.window, 1, scene.round + 1));
}

// ---- making and unmaking ----

bool allocate_free(Scene& scene) { return allocate(scene) && release(scene); }
bool adopt_free(Scene& scene) { return adopt(scene) && release(scene); }

bool attach_detach(Scene& scene) {
  // Offsets are addresses in the target; all ranks were forked from one process and may still differ.
  std::array<std::uint64_t, most_ranks> addresses{};
  const std::uint64_t mine = reinterpret_cast<std::uintptr_t>(scene.user.data());
  const auto target = static_cast<std::size_t>(scene.next);
  return scene.ok(farsum_window_attach(scene.window, scene.user.data(), scene.user.size())) &&
         scene.ok(farsum_allgather(farsum_world(), &mine, addresses.data(), sizeof mine)) &&
         scene.ok(farsum_lock_all(scene.window)) &&
         scene.ok(farsum_accumulate(scene.window, scene.next, addresses[target] + 64, scene.operand.data(), small_count,
                                    type, FARSUM_SUM)) &&
         scene.ok(farsum_unlock_all(scene.window)) && scene.barrier() &&
         scene.ok(farsum_window_detach(scene.window, scene.user.data()));
}
bool make_dynamic(Scene& scene) {
  scene.user.resize(1 << 16);
  return scene.ok(farsum_window_create_dynamic(farsum_world(), nullptr, &scene.window));
}

bool groups(Scene& scene) {
  std::array<int, most_ranks> ranks{};
  for (int i = 0; i < scene.self.size; ++i) ranks[static_cast<std::size_t>(i)] = scene.self.size - 1 - i;
  farsum_group group{};
  return scene.ok(farsum_group_create(farsum_world(), ranks.data(), scene.self.size, &group)) &&
         scene.ok(farsum_barrier(group)) && scene.ok(farsum_group_free(&group));
}

bool mutexes_come_and_go(Scene& scene) { return make_mutexes(scene) && free_mutexes(scene); }

bool life(Scene& scene) { return scene.ok(scene.self.init()) && scene.barrier() && scene.ok(farsum_finalize()); }

// ---- counters ----

template <apps::CounterKind kind>
bool make_counter(Scene& scene) {
  return scene.ok(scene.counter.create(kind, 0, 1 << 20));
}
bool count(Scene& scene) {
  std::uint64_t ticket = 0;
  return scene.ok(scene.counter.next(&ticket)) && scene.meet_now_and_then();
}
bool free_counter(Scene& scene) { return scene.ok(scene.counter.free()); }

// ---- the table ----

using Variables = std::vector<std::pair<std::string, std::string>>;

void add_operations(std::vector<Workload>& table, const std::string& path, const Variables& environment) {
  const auto add = [&](const char* name, bool (*round)(Scene&)) {
    table.push_back({std::string(name) + "_" + path, environment, allocate_and_open, round, close_and_release});
  };
  add("put", put<small_count>);
  add("get", get<small_count>);
  add("accumulate", accumulate<small_count>);
  add("get_accumulate", get_accumulate<small_count>);
  add("fetch_op", fetch_op);
  add("compare_and_swap", compare_and_swap);
}

std::vector<Workload> make_table() {
  std::vector<Workload> table;
  for (const char* path : {"direct", "attach", "caller", "owner"}) add_operations(table, path, {{"FARSUM_PATH", path}});
  const Variables owner = {{"FARSUM_PATH", "owner"}, {"FARSUM_PULL_BYTES", "65536"}};
  table.push_back({"put_owner_pulls", owner, allocate_and_open, put<large_count>, close_and_release});
  table.push_back({"get_owner_pushes", owner, allocate_and_open, get<large_count>, close_and_release});
  table.push_back({"accumulate_owner_pulls", owner, allocate_and_open, accumulate<large_count>, close_and_release});
  table.push_back(
      {"get_accumulate_owner_pulls", owner, allocate_and_open, get_accumulate<large_count>, close_and_release});
  table.push_back({"accumulate_owner_no_attach",
                   {{"FARSUM_PATH", "owner"}, {"FARSUM_ATTACH", "refuse"}},
                   allocate_and_open,
                   accumulate<large_count>,
                   close_and_release});
  table.push_back({"accumulate_large_direct",
                   {{"FARSUM_PATH", "direct"}},
                   allocate_and_open,
                   accumulate<large_count>,
                   close_and_release});
  table.push_back({"accumulate_caller_region",
                   {{"FARSUM_PATH", "caller"}, {"FARSUM_CALLER_LOCK", "region"}},
                   allocate_and_open,
                   accumulate<large_count>,
                   close_and_release});
  table.push_back({"accumulate_aggregated",
                   {{"FARSUM_PATH", "aggregated"}, {"FARSUM_AGGREGATE", "48"}},
                   allocate_and_open,
                   accumulate_singles,
                   close_and_release});
  table.push_back({"mailbox_full",
                   {{"FARSUM_PATH", "owner"}, {"FARSUM_CHANNEL_BYTES", "131072"}},
                   allocate_and_open,
                   fill_mailbox,
                   close_and_release});
  const Variables adopted = {{"FARSUM_PROMOTION", "refuse"}};
  table.push_back({"accumulate_adopted", adopted, adopt_and_open, accumulate<small_count>, close_and_release});
  table.push_back({"fetch_op_adopted",
                   {{"FARSUM_PROMOTION", "refuse"}, {"FARSUM_PATH", "owner"}},
                   adopt_and_open,
                   fetch_op,
                   close_and_release});
  table.push_back({"fetch_op_adopted_attach", adopted, adopt_and_open, fetch_op, close_and_release});
  table.push_back({"accumulate_promoted", {}, adopt_and_open, accumulate<small_count>, close_and_release});

  table.push_back({"lock_exclusive", {}, allocate, lock_and_put<FARSUM_LOCK_EXCLUSIVE>, release});
  table.push_back({"lock_shared", {}, allocate, lock_and_put<FARSUM_LOCK_SHARED>, release});
  table.push_back({"lock_all", {}, allocate, lock_all, release});
  table.push_back({"lock_one_and_all", {}, allocate, lock_one_and_all, release});
  table.push_back({"lock_all_and_one", {}, allocate, lock_all_and_one, release});
  table.push_back({"mutex", {}, make_mutexes, mutex, free_mutexes});

  table.push_back({"barrier", {}, nothing, barrier, nothing});
  table.push_back({"broadcast", {}, nothing, broadcast<800>, nothing});
  table.push_back({"broadcast_long", {}, nothing, broadcast<200'000>, nothing});
  table.push_back({"allgather", {}, nothing, allgather, nothing});
  table.push_back({"allreduce", {}, nothing, allreduce<1>, nothing});
  table.push_back({"allreduce_long", {}, nothing, allreduce<20'000>, nothing});
  table.push_back({"reduce", {}, nothing, reduce, nothing});
  table.push_back({"reduce_scatter", {}, nothing, reduce_scatter, nothing});
  table.push_back({"fence", {}, allocate, fence, end_fence});
  table.push_back({"post_start", {}, allocate, post_start, release});
  table.push_back({"notify_direct", {}, allocate_and_open, notify, close_and_release});
  table.push_back({"notify_owner", {{"FARSUM_PATH", "owner"}}, allocate_and_open, notify, close_and_release});

  table.push_back({"window_allocate_free", {}, nothing, allocate_free, nothing});
  table.push_back({"window_adopt_free", {{"FARSUM_PROMOTION", "refuse"}}, nothing, adopt_free, nothing});
  table.push_back({"window_promote_free", {}, nothing, adopt_free, nothing});
  table.push_back({"window_attach_detach", {}, make_dynamic, attach_detach, release});
  table.push_back({"group", {}, nothing, groups, nothing});
  table.push_back({"mutexes_come_and_go", {}, nothing, mutexes_come_and_go, nothing});
  table.push_back({"life", {}, nothing, life, nothing, true});

  table.push_back({"counter_strict", {}, make_counter<apps::CounterKind::strict>, count, free_counter});
  table.push_back({"counter_leased", {}, make_counter<apps::CounterKind::leased>, count, free_counter});
  table.push_back({"counter_per_rank", {}, make_counter<apps::CounterKind::per_rank>, count, free_counter});
  table.push_back({"counter_tree", {}, make_counter<apps::CounterKind::tree>, count, free_counter});
  return table;
}

}  // namespace

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> table = make_table();
  return table;
}

const Workload* find_workload(const std::string& name) {
  for (const Workload& workload : workloads()) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

int run_workload(const Rank& self, const Workload& workload, std::uint64_t rounds,
                 const std::function<void(Scene&)>& prepared) {
  Scene scene(self);
  if (!workload.joins_itself && !self.ok(self.init())) return 0;
  if (!workload.set_up(scene)) return 0;
  if (prepared) prepared(scene);
  // Relaxed throughout: the test only looks at these words.
  self.words().ready.store(1, std::memory_order_relaxed);
  for (; scene.round < rounds; ++scene.round) {
    if (!workload.round(scene)) return 0;
    self.words().rounds.store(scene.round + 1, std::memory_order_relaxed);
  }
  if (!workload.joins_itself) {
    if (!scene.barrier() || !workload.tear_down(scene)) return 0;
    if (!self.ok(farsum_finalize())) return 0;
  }
  self.words().value.store(1, std::memory_order_relaxed);
  return 0;
}

}  // namespace farsum::faults
