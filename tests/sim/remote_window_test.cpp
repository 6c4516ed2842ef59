// Windows whose targets are in no shared memory, each rank with its Window over the simulated transport. One thread
// plays all ranks: whoever waits lets the world go on.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/window.hpp"
#include "core_job.hpp"

namespace farsum {
namespace {

// Lets the world go on until the condition holds.
class SteppingWaiter final : public Waiter {
 public:
  explicit SteppingWaiter(SimWorld& world) : world_(world) {}
  Status wait(EventCount&, FunctionRef<bool()> done, const char* doing) override {
    while (!done()) {
      if (!world_.step()) return {Code::system, std::string(doing) + ": nothing happens any more"};
    }
    return {};
  }
  Status wait_word(std::atomic<std::uint32_t>& word, std::uint32_t while_value, const char* doing) override {
    return wait(
        events_, [&] { return word.load() != while_value; }, doing);
  }
  Status looked_in_vain(const char*) override { return {}; }
  EventCount& own_events() override { return events_; }

 private:
  SimWorld& world_;
  EventCount events_;
};

class WakingRinger final : public Ringer {
 public:
  explicit WakingRinger(SimWorld& world) : world_(world) {}
  void ring(std::uint32_t owner) const override {
    ++rings;
    world_.wake_agent(owner);
  }
  mutable int rings = 0;

 private:
  SimWorld& world_;
};

// Every message takes as long as every other, and nobody takes time for anything else.
constexpr SimTime latency_ns = 1'000;
constexpr SimTime round_trip_ns = 2 * latency_ns;

CoreJobOptions even_options(Rank ranks) {
  CoreJobOptions options;
  options.owners = ranks;
  options.sim.message_latency = {latency_ns, latency_ns};
  options.sim.long_delay_one_in = 0;
  options.sim.wake_up = options.sim.service = options.sim.origin_wake = options.sim.again_pause = {0, 0};
  options.sim.pair_messages = 64;
  return options;
}

struct WindowOptions {
  std::uint32_t promises = 0;
  bool dynamic = false;
  PathChoice path = PathChoice::automatic;
  Rank ranks_of_a_node = 1;
};

// Ranks of a job, neighbours on nodes of equal size, and one window over all of them.
class RemoteWindows {
 public:
  RemoteWindows(Rank ranks, const WindowOptions& wish, const CoreJobOptions& options)
      : job(1, ranks, options), waiter(job.world()), ringer(job.world()), ranks_(ranks), wish_(wish) {
    for (Rank rank = 0; rank < ranks; ++rank) windows_.push_back(std::make_unique<Window>(parts_of(rank, options)));
    for (const auto& window : windows_) window->refresh_views();
  }
  explicit RemoteWindows(Rank ranks, const WindowOptions& wish = {})
      : RemoteWindows(ranks, wish, even_options(ranks)) {}

  Window& operator[](Rank rank) { return *windows_[rank]; }
  SimTime now_ns() { return job.world().now_ns(); }
  std::uint64_t messages_of(Rank rank) { return job.rank(rank).engine.messages_sent(); }
  // Whatever the agents still have to do.
  void settle() { job.world().run(); }

  CoreJob job;
  SteppingWaiter waiter;
  WakingRinger ringer;

 private:
  Window::Parts parts_of(Rank rank, const CoreJobOptions& options) {
    Window::Parts parts;
    parts.id = CoreRank::window;
    parts.my_rank = rank;
    parts.promises = wish_.promises;
    parts.dynamic = wish_.dynamic;
    parts.settings.path = wish_.path;
    parts.shape = job.shape();
    parts.kernels = &ops::kernels_for_this_machine();
    parts.waiter = &waiter;
    parts.engine = &job.rank(rank).engine;
    parts.transport = &job.world().transport(rank);
    parts.counters = &counters_;
    parts.lock_agent.id = rank + 1;
    parts.lock_agent.ringer = &ringer;
    parts.make_region = [this](Rank owner, const SharedRegion& shared) {
      Region region;
      region.bytes = shared.bytes;
      region.mapped = job.memory(owner).data();
      region.domain = job.domain(owner);
      region.bulk = region.atomic = Path::direct;
      return region;
    };
    parts.wake_rank = [](Rank) {};
    parts.remote_regions.resize(ranks_);
    for (Rank target = 0; target < ranks_; ++target) {
      parts.ranks.push_back(target);
      parts.sizes.push_back(wish_.dynamic ? 0 : options.window_bytes);
      const bool is_here = target / wish_.ranks_of_a_node == rank / wish_.ranks_of_a_node;
      parts.shared.push_back(is_here ? job.rank_window(target) : RankWindow());
      if (!is_here) parts.remote_regions[target] = remote_region(options.window_bytes);
    }
    return parts;
  }
  RegionTable remote_region(std::uint64_t bytes) const {
    Region region;
    region.bytes = wish_.dynamic ? ~std::uint64_t{0} : bytes;
    if (wish_.path == PathChoice::aggregated) region.atomic = Path::aggregated;
    return std::make_shared<std::vector<Region>>(std::vector{region});
  }

  PathCounters counters_;
  Rank ranks_;
  WindowOptions wish_;
  std::vector<std::unique_ptr<Window>> windows_;
};

Operation put_of(const std::vector<std::byte>& bytes, std::uint64_t offset = 0) {
  Operation operation;
  operation.offset = offset;
  operation.bytes = bytes.size();
  operation.operand = bytes.data();
  operation.operand_layout = operation.target_layout = ops::LayoutView::contiguous(bytes.size());
  return operation;
}

std::vector<std::byte> ones(std::size_t count) { return std::vector<std::byte>(count, std::byte{1}); }

testing::AssertionResult fine(const Status& status) {
  if (status.is_ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status.text();
}

// ---- locks ----

TEST(RemoteWindow, locks_puts_and_unlocks_in_one_round_trip_with_three_messages) {
  RemoteWindows windows(2);
  const auto data = ones(64);
  const SimTime begin_ns = windows.now_ns();
  EXPECT_TRUE(fine(windows[1].lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data), 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[1].unlock(0)));
  EXPECT_EQ(windows.messages_of(1), 3);
  EXPECT_LT(windows.now_ns() - begin_ns, 2 * round_trip_ns);
  EXPECT_EQ(std::memcmp(windows.job.memory(0).data(), data.data(), data.size()), 0);
  EXPECT_TRUE(windows.job.lock_view(0).try_lock(1, LockMode::exclusive)) << "the lock was not given back";
}

TEST(RemoteWindow, keeps_what_comes_behind_a_lock_until_the_lock_is_granted) {
  RemoteWindows windows(3);
  const auto data = ones(8);
  ASSERT_TRUE(windows.job.lock_view(0).try_lock(1, LockMode::exclusive));
  std::uint64_t before = ~std::uint64_t{0};
  windows.job.world().call_after(50 * round_trip_ns, [&] {
    before = windows.job.word(0, 0);
    SharedLock<HolderDead> lock = windows.job.lock_view(0);
    EXPECT_TRUE(lock.unlock(1, LockMode::exclusive));
    EXPECT_TRUE(lock.granted_for_another());
    windows.job.world().wake_agent(0);
  });
  EXPECT_TRUE(fine(windows[1].lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data), 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[2].lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[2].operate(put_of(data, 8), 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[2].unlock(0))) << "the unlock behind rank 1's must be served once that is";
  EXPECT_TRUE(fine(windows[1].unlock(0)));
  EXPECT_EQ(before, 0) << "a put was done without the lock";
  EXPECT_EQ(windows.job.word(0, 0), 0x0101010101010101u);
  EXPECT_EQ(windows.job.word(0, 8), 0x0101010101010101u);
}

TEST(RemoteWindow, answers_a_get_behind_a_lock_with_what_is_there_when_the_lock_is_held) {
  RemoteWindows windows(2);
  ASSERT_TRUE(windows.job.lock_view(0).try_lock(1, LockMode::exclusive));
  windows.job.world().call_after(50 * round_trip_ns, [&] {
    std::memset(windows.job.memory(0).data(), 7, 8);
    EXPECT_TRUE(windows.job.lock_view(0).unlock(1, LockMode::exclusive));
    windows.job.world().wake_agent(0);
  });
  std::vector<std::byte> got(8);
  Operation get = put_of(got);
  get.kind = OperationKind::get;
  get.operand = nullptr;
  get.result = got.data();
  get.result_layout = ops::LayoutView::contiguous(8);
  EXPECT_TRUE(fine(windows[1].lock(0, LockMode::shared)));
  EXPECT_TRUE(fine(windows[1].operate(get, 0, Completion::blocking, nullptr)));
  EXPECT_EQ(got, std::vector<std::byte>(8, std::byte{7}));
  EXPECT_TRUE(fine(windows[1].unlock(0)));
}

TEST(RemoteWindow, sends_little_behind_a_lock_that_is_not_known_to_be_held) {
  RemoteWindows windows(2);
  const auto data = ones(1'024);
  ASSERT_TRUE(windows.job.lock_view(0).try_lock(1, LockMode::exclusive));
  std::uint64_t sent = 0;
  windows.job.world().call_after(50 * round_trip_ns, [&] {
    sent = windows.messages_of(1);
    EXPECT_TRUE(windows.job.lock_view(0).unlock(1, LockMode::exclusive));
    windows.job.world().wake_agent(0);
  });
  EXPECT_TRUE(fine(windows[1].lock(0, LockMode::exclusive)));
  for (int i = 0; i < 30; ++i)
    EXPECT_TRUE(fine(windows[1].operate(put_of(data, i % 4 * 1'024), 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[1].unlock(0)));
  EXPECT_GE(sent, 5);
  EXPECT_LE(sent, 9) << "8 KiB are 8 puts at most, and the lock";
  EXPECT_EQ(windows.messages_of(1), 32);
}

TEST(RemoteWindow, tells_of_a_refused_lock_and_does_nothing_behind_it) {
  CoreJobOptions options = even_options(2);
  options.refuses_locks = true;
  RemoteWindows windows(2, {}, options);
  const auto data = ones(8);
  EXPECT_TRUE(fine(windows[1].lock(0, LockMode::shared)));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data), 0, Completion::implicit, nullptr)));
  const Status flushed = windows[1].flush_one_target(0);
  EXPECT_EQ(flushed.code(), Code::sync);
  EXPECT_EQ(windows[1].operate(put_of(data), 0, Completion::implicit, nullptr).code(), Code::sync);
  const Status unlocked = windows[1].unlock(0);
  EXPECT_EQ(unlocked.code(), Code::sync);
  EXPECT_NE(unlocked.text().find("farsum_unlock"), std::string::npos) << unlocked.text();
  EXPECT_EQ(windows.job.word(0, 0), 0);
  EXPECT_TRUE(fine(windows[1].settle("the end")));
}

TEST(RemoteWindow, gives_the_lock_back_though_an_operation_failed_and_tells_of_it) {
  RemoteWindows windows(2, {.dynamic = true});
  const auto data = ones(8);
  EXPECT_TRUE(fine(windows[1].lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data, 1u << 30), 0, Completion::implicit, nullptr)));
  EXPECT_EQ(windows[1].unlock(0).code(), Code::range) << "that address is attached nowhere";
  EXPECT_EQ(windows[1].unlock(0).code(), Code::sync);
  EXPECT_TRUE(windows.job.lock_view(0).try_lock(1, LockMode::exclusive));
  EXPECT_TRUE(fine(windows[1].settle("the end")));
}

TEST(RemoteWindow, refuses_a_second_lock_and_an_unlock_without_one) {
  RemoteWindows windows(2);
  EXPECT_EQ(windows[1].unlock(0).code(), Code::sync);
  EXPECT_TRUE(fine(windows[1].lock(0, LockMode::shared)));
  EXPECT_EQ(windows[1].lock(0, LockMode::shared).code(), Code::sync);
  EXPECT_EQ(windows[1].lock_all().code(), Code::sync);
  EXPECT_EQ(windows[1].settle("the end").code(), Code::pending);
  EXPECT_TRUE(fine(windows[1].unlock(0)));
  EXPECT_TRUE(fine(windows[1].settle("the end")));
}

TEST(RemoteWindow, gives_back_what_it_holds_when_it_is_abandoned) {
  RemoteWindows windows(3);
  EXPECT_TRUE(fine(windows[1].lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[1].lock(2, LockMode::shared)));
  windows[1].abandon("the end");
  EXPECT_TRUE(windows.job.lock_view(0).try_lock(1, LockMode::exclusive));
  EXPECT_TRUE(windows.job.lock_view(2).try_lock(1, LockMode::exclusive));
}

TEST(RemoteWindow, locks_all_and_unlocks_all_in_one_round_trip_each) {
  constexpr Rank ranks = 9;
  RemoteWindows windows(ranks, {.ranks_of_a_node = 3});
  SimTime begin_ns = windows.now_ns();
  EXPECT_TRUE(fine(windows[0].lock_all()));
  EXPECT_LT(windows.now_ns() - begin_ns, 2 * round_trip_ns);
  for (Rank target = 0; target < ranks; ++target) {
    EXPECT_FALSE(windows.job.lock_view(target).try_lock(77, LockMode::exclusive)) << target;
  }
  const auto data = ones(16);
  for (Rank target = 0; target < ranks; ++target)
    EXPECT_TRUE(fine(windows[0].operate(put_of(data), target, Completion::implicit, nullptr)));
  begin_ns = windows.now_ns();
  EXPECT_TRUE(fine(windows[0].unlock_all()));
  EXPECT_LT(windows.now_ns() - begin_ns, 2 * round_trip_ns);
  EXPECT_EQ(windows.messages_of(0), 3 * 6);
  for (Rank target = 0; target < ranks; ++target) {
    EXPECT_TRUE(windows.job.lock_view(target).try_lock(77, LockMode::exclusive)) << target;
    EXPECT_EQ(std::memcmp(windows.job.memory(target).data(), data.data(), data.size()), 0) << target;
  }
}

// Else two ranks that lock all could wait for each other, each behind another's exclusive lock.
TEST(RemoteWindow, holds_nothing_behind_the_target_that_its_lock_all_waits_for) {
  RemoteWindows windows(5, {.ranks_of_a_node = 2});
  constexpr std::uint32_t another = 77;
  for (const Rank taken : {Rank{1}, Rank{2}, Rank{3}}) {
    ASSERT_TRUE(windows.job.lock_view(taken).try_lock(another, LockMode::exclusive)) << taken;
    std::vector<Rank> held;
    windows.job.world().call_after(50 * round_trip_ns, [&] {
      for (Rank target = 0; target < 5; ++target) {
        SharedLock<HolderDead> lock = windows.job.lock_view(target);
        if (target == taken) continue;
        lock.try_lock(another, LockMode::exclusive) ? (void)lock.unlock(another, LockMode::exclusive)
                                                    : held.push_back(target);
      }
      SharedLock<HolderDead> lock = windows.job.lock_view(taken);
      EXPECT_TRUE(lock.unlock(another, LockMode::exclusive));
      windows.job.world().wake_agent(taken);
    });
    EXPECT_TRUE(fine(windows[2].lock_all())) << taken;
    for (const Rank target : held) EXPECT_LT(target, taken);
    EXPECT_EQ(held.size(), taken) << "what is before it may be held at once";
    for (Rank target = 0; target < 5; ++target)
      EXPECT_FALSE(windows.job.lock_view(target).try_lock(another, LockMode::exclusive)) << target;
    EXPECT_TRUE(fine(windows[2].unlock_all()));
    for (Rank target = 0; target < 5; ++target) {
      SharedLock<HolderDead> lock = windows.job.lock_view(target);
      EXPECT_TRUE(lock.try_lock(another, LockMode::exclusive)) << target;
      EXPECT_TRUE(lock.unlock(another, LockMode::exclusive));
    }
  }
}

TEST(RemoteWindow, holds_no_lock_after_a_lock_all_that_was_refused_somewhere) {
  RemoteWindows windows(3);
  windows.job.rank(2).exposures.erase(CoreRank::window);
  EXPECT_EQ(windows[1].lock_all().code(), Code::handle);
  EXPECT_TRUE(windows.job.lock_view(0).try_lock(1, LockMode::exclusive));
  EXPECT_TRUE(windows.job.lock_view(1).try_lock(1, LockMode::exclusive));
  EXPECT_TRUE(fine(windows[1].settle("the end")));
}

// A rank of the owner's node unlocks in memory, on the short way and on the long one.
TEST(RemoteWindow, rings_the_owner_when_an_unlock_in_memory_grants_to_another_node) {
  for (const bool on_the_short_way : {true, false}) {
    RemoteWindows windows(3, {.ranks_of_a_node = 2});
    if (on_the_short_way) {
      EXPECT_TRUE(windows[1].hot().lock(0, LockMode::exclusive));
    } else {
      EXPECT_TRUE(fine(windows[1].lock(0, LockMode::exclusive)));
    }
    windows.job.world().call_after(50 * round_trip_ns, [&] {
      EXPECT_EQ(windows.ringer.rings, 0);
      if (on_the_short_way) {
        EXPECT_TRUE(windows[1].hot().unlock(0));
      } else {
        EXPECT_TRUE(fine(windows[1].unlock(0)));
      }
      EXPECT_EQ(windows.ringer.rings, 1);
    });
    EXPECT_TRUE(fine(windows[2].lock(0, LockMode::exclusive)));
    EXPECT_TRUE(fine(windows[2].unlock(0)));
    EXPECT_EQ(windows.ringer.rings, 1);
  }
}

// ---- post, start, complete, wait ----

TEST(RemoteWindow, completes_an_epoch_of_several_targets_in_one_round_trip) {
  constexpr Rank ranks = 5;
  RemoteWindows windows(ranks, {.ranks_of_a_node = 2});
  const std::vector<std::uint32_t> targets{1, 2, 3, 4};
  const std::vector<std::uint32_t> origin{0};
  for (const Rank target : targets) EXPECT_TRUE(fine(windows[target].post(origin)));
  windows.settle();
  EXPECT_TRUE(fine(windows[0].start(targets)));
  const auto data = ones(32);
  for (const Rank target : targets)
    EXPECT_TRUE(fine(windows[0].operate(put_of(data), target, Completion::implicit, nullptr)));
  const SimTime begin_ns = windows.now_ns();
  EXPECT_TRUE(fine(windows[0].complete()));
  EXPECT_LT(windows.now_ns() - begin_ns, 2 * round_trip_ns);
  EXPECT_EQ(windows.messages_of(0), 3 * 2) << "rank 1 is on the same node";
  for (const Rank target : targets) {
    EXPECT_TRUE(fine(windows[target].wait_exposure()));
    EXPECT_EQ(std::memcmp(windows.job.memory(target).data(), data.data(), data.size()), 0);
    EXPECT_TRUE(fine(windows[target].settle("the end")));
  }
  EXPECT_TRUE(fine(windows[0].settle("the end")));
}

TEST(RemoteWindow, keeps_operations_until_the_post_of_another_node_has_come) {
  RemoteWindows windows(2);
  const std::vector<std::uint32_t> target{0};
  const std::vector<std::uint32_t> origin{1};
  const auto data = ones(8);
  EXPECT_TRUE(fine(windows[1].start(target)));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data), 0, Completion::implicit, nullptr)));
  EXPECT_EQ(windows.messages_of(1), 0);
  windows.job.world().call_after(50 * round_trip_ns, [&] {
    EXPECT_EQ(windows.job.word(0, 0), 0);
    EXPECT_TRUE(fine(windows[0].post(origin)));
  });
  EXPECT_TRUE(fine(windows[1].complete()));
  EXPECT_TRUE(fine(windows[0].wait_exposure()));
  EXPECT_NE(windows.job.word(0, 0), 0);
}

TEST(RemoteWindow, ends_an_epoch_of_start_though_an_operation_failed_and_tells_of_it) {
  RemoteWindows windows(2, {.dynamic = true});
  const std::vector<std::uint32_t> target{0};
  const std::vector<std::uint32_t> origin{1};
  EXPECT_TRUE(fine(windows[0].post(origin)));
  windows.settle();
  EXPECT_TRUE(fine(windows[1].start(target)));
  const auto data = ones(8);
  EXPECT_TRUE(fine(windows[1].operate(put_of(data, 1u << 30), 0, Completion::implicit, nullptr)));
  EXPECT_EQ(windows[1].complete().code(), Code::range);
  EXPECT_TRUE(fine(windows[0].wait_exposure()));
  EXPECT_TRUE(fine(windows[1].settle("the end")));
}

// ---- operations ----

TEST(RemoteWindow, reaches_what_is_attached_in_a_dynamic_window_and_nothing_else) {
  RemoteWindows windows(2, {.dynamic = true});
  const auto data = ones(16);
  EXPECT_TRUE(fine(windows[1].lock_all()));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data, 4'080), 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[1].flush_one_target(0)));
  for (const std::uint64_t offset : {std::uint64_t{4'081}, std::uint64_t{1} << 40, ~std::uint64_t{0} - 64}) {
    EXPECT_TRUE(fine(windows[1].operate(put_of(data, offset), 0, Completion::implicit, nullptr)));
    EXPECT_EQ(windows[1].flush_one_target(0).code(), Code::range) << offset;
  }
  EXPECT_TRUE(fine(windows[1].unlock_all()));
}

TEST(RemoteWindow, refuses_what_lies_outside_a_part_before_it_is_sent) {
  RemoteWindows windows(2);
  EXPECT_TRUE(fine(windows[1].lock_all()));
  const std::uint64_t sent = windows.messages_of(1);
  EXPECT_EQ(windows[1].operate(put_of(ones(16), 4'081), 0, Completion::implicit, nullptr).code(), Code::range);
  EXPECT_EQ(windows.messages_of(1), sent);
  EXPECT_TRUE(fine(windows[1].unlock_all()));
}

// ---- flush_local ----

TEST(RemoteWindow, flushes_locally_without_a_wait_what_has_been_copied) {
  RemoteWindows windows(2);
  EXPECT_TRUE(fine(windows[1].lock_all()));
  auto data = ones(64);
  const SimTime begin_ns = windows.now_ns();
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(fine(windows[1].operate(put_of(data, i * 64), 0, Completion::implicit, nullptr)));
    EXPECT_TRUE(fine(windows[1].flush_one_target(0, Window::Reach::local)));
    // What flush_local has given back may change.
    std::fill(data.begin(), data.end(), static_cast<std::byte>(i + 2));
  }
  EXPECT_TRUE(fine(windows[1].flush_every_target(Window::Reach::local)));
  EXPECT_EQ(windows.now_ns(), begin_ns) << "somebody waited";
  EXPECT_TRUE(fine(windows[1].unlock_all()));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(windows.job.memory(0)[i * 64 + 63], static_cast<std::byte>(i + 1));
}

TEST(RemoteWindow, flushes_locally_no_sooner_than_results_have_come) {
  RemoteWindows windows(2);
  EXPECT_TRUE(fine(windows[1].lock_all()));
  std::memset(windows.job.memory(0).data(), 7, 8);
  std::vector<std::byte> got(8);
  Operation get = put_of(got);
  get.kind = OperationKind::get;
  get.operand = nullptr;
  get.result = got.data();
  get.result_layout = ops::LayoutView::contiguous(8);
  EXPECT_TRUE(fine(windows[1].operate(get, 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[1].flush_one_target(0, Window::Reach::local)));
  EXPECT_EQ(got, std::vector<std::byte>(8, std::byte{7}));
  EXPECT_TRUE(fine(windows[1].unlock_all()));
}

TEST(RemoteWindow, flushes_locally_only_within_an_epoch) {
  RemoteWindows windows(2);
  EXPECT_EQ(windows[1].flush_one_target(0, Window::Reach::local).code(), Code::sync);
  EXPECT_EQ(windows[1].flush_every_target(Window::Reach::local).code(), Code::sync);
  EXPECT_EQ(windows[1].flush_one_target(2, Window::Reach::local).code(), Code::rank);
}

TEST(RemoteWindow, sends_gathered_updates_before_the_end_of_the_epoch) {
  RemoteWindows windows(2, {.path = PathChoice::aggregated});
  const std::uint64_t one = 1;
  Operation add = put_of(ones(8), 8);
  add.kind = OperationKind::accumulate;
  add.type = ops::ElementType::uint64;
  add.op = ops::Operator::sum;
  add.operand = reinterpret_cast<const std::byte*>(&one);
  EXPECT_TRUE(fine(windows[1].lock(0, LockMode::shared)));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(fine(windows[1].operate(add, 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[1].unlock(0)));
  EXPECT_EQ(windows.job.word(0, 8), 20);
  EXPECT_EQ(windows.messages_of(1), 3) << "the lock, the updates, the unlock";
}

}  // namespace
}  // namespace farsum
