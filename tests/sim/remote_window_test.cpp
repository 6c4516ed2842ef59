// What ranks do to windows whose targets are in no shared memory.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "remote_windows.hpp"

namespace farsum {
namespace {

// ---- locks ----

TEST(RemoteWindow, locks_puts_and_unlocks_in_one_round_trip_with_three_messages) {
  RemoteWindows windows(2);
  const auto data = ones(64);
  const SimTime begin_ns = windows.now_ns();
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data), 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
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
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data), 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[2].locks().lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[2].operate(put_of(data, 8), 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[2].locks().unlock(0))) << "the unlock behind rank 1's must be served once that is";
  EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
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
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::shared)));
  EXPECT_TRUE(fine(windows[1].operate(get, 0, Completion::blocking, nullptr)));
  EXPECT_EQ(got, std::vector<std::byte>(8, std::byte{7}));
  EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
}

TEST(RemoteWindow, leaves_a_lock_and_little_behind_it_for_the_end_of_the_epoch) {
  // With their headers, 192 bytes each.
  for (const std::size_t bytes : {832, 833}) {
    RemoteWindows windows(2);
    const auto data = ones(bytes);
    const auto kept = [&] { return windows.job.rank(1).trace.total().kept; };
    EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
    EXPECT_EQ(kept(), 1u);
    EXPECT_TRUE(fine(windows[1].operate(put_of(data), 0, Completion::implicit, nullptr)));
    EXPECT_EQ(kept(), bytes == 832 ? 2u : 1u);
    EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
    EXPECT_EQ(kept(), bytes == 832 ? 2u : 1u) << "the unlock was kept";
  }
}

TEST(RemoteWindow, leaves_nothing_for_the_end_that_somebody_waits_for) {
  RemoteWindows windows(2);
  const auto data = ones(8);
  const auto kept = [&] { return windows.job.rank(1).trace.total().kept; };
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
  Operation notifying = put_of(data);
  notifying.notify = true;
  EXPECT_TRUE(fine(windows[1].operate(notifying, 0, Completion::implicit, nullptr)));
  EXPECT_EQ(kept(), 1u) << "the lock alone";
  EXPECT_TRUE(fine(windows[1].operate(put_of(data), 0, Completion::blocking, nullptr)));
  EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
  EXPECT_EQ(kept(), 1u) << "all are asked at once";
}

TEST(RemoteWindow, has_mutexes_that_exclude_ranks_of_all_nodes_and_not_each_other) {
  RemoteWindows windows(2);
  ASSERT_TRUE(windows.job.lock_view(0, 2).try_lock(1, LockMode::exclusive));
  bool is_released = false;
  windows.job.world().call_after(50 * round_trip_ns, [&] {
    is_released = true;
    SharedLock<HolderDead> lock = windows.job.lock_view(0, 2);
    EXPECT_TRUE(lock.unlock(1, LockMode::exclusive));
    EXPECT_TRUE(lock.granted_for_another());
    windows.job.world().wake_agent(0);
  });
  EXPECT_TRUE(fine(windows[1].locks().lock_mutex(0, 0)));
  EXPECT_FALSE(is_released) << "mutex 0 waited for mutex 1";
  EXPECT_TRUE(fine(windows[1].locks().lock_mutex(0, 1)));
  EXPECT_TRUE(is_released) << "mutex 1 was had while another rank held it";
  for (std::uint32_t index = 0; index <= 2; ++index)
    EXPECT_EQ(windows.job.lock_view(0, index).try_lock(1, LockMode::exclusive), index == 0) << index;
  EXPECT_TRUE(fine(windows[1].locks().unlock_mutex(0, 1)));
  EXPECT_TRUE(windows.job.lock_view(0, 2).try_lock(1, LockMode::exclusive));
  EXPECT_EQ(windows[1].locks().unlock_mutex(0, 1).code(), Code::sync) << "it is held by another";
  EXPECT_TRUE(fine(windows[1].locks().unlock_mutex(0, 0)));
  const Status none = windows[1].locks().lock_mutex(0, 2);
  EXPECT_EQ(none.code(), Code::range);
  EXPECT_NE(none.text().find("rank 0"), std::string::npos) << none.text();
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
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
  for (int i = 0; i < 30; ++i)
    EXPECT_TRUE(fine(windows[1].operate(put_of(data, i % 4 * 1'024), 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
  EXPECT_GE(sent, 5);
  EXPECT_LE(sent, 9) << "8 KiB are 8 puts at most, and the lock";
  EXPECT_EQ(windows.messages_of(1), 32);
}

TEST(RemoteWindow, tells_of_a_refused_lock_and_does_nothing_behind_it) {
  ProtocolJobOptions options = even_options(2);
  options.refuses_locks = true;
  RemoteWindows windows(2, {}, options);
  const auto data = ones(8);
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::shared)));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data), 0, Completion::implicit, nullptr)));
  const Status flushed = windows[1].flush_one_target(0);
  EXPECT_EQ(flushed.code(), Code::sync);
  EXPECT_EQ(windows[1].operate(put_of(data), 0, Completion::implicit, nullptr).code(), Code::sync);
  const Status unlocked = windows[1].locks().unlock(0);
  EXPECT_EQ(unlocked.code(), Code::sync);
  EXPECT_NE(unlocked.text().find("farsum_unlock"), std::string::npos) << unlocked.text();
  EXPECT_EQ(windows.job.word(0, 0), 0);
  EXPECT_TRUE(fine(windows[1].settle("the end")));
}

TEST(RemoteWindow, gives_the_lock_back_though_an_operation_failed_and_tells_of_it) {
  RemoteWindows windows(2, {.dynamic = true});
  const auto data = ones(8);
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data, 1u << 30), 0, Completion::implicit, nullptr)));
  EXPECT_EQ(windows[1].locks().unlock(0).code(), Code::range) << "that address is attached nowhere";
  EXPECT_EQ(windows[1].locks().unlock(0).code(), Code::sync);
  EXPECT_TRUE(windows.job.lock_view(0).try_lock(1, LockMode::exclusive));
  EXPECT_TRUE(fine(windows[1].settle("the end")));
}

TEST(RemoteWindow, refuses_a_second_lock_and_an_unlock_without_one) {
  RemoteWindows windows(2);
  EXPECT_EQ(windows[1].locks().unlock(0).code(), Code::sync);
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::shared)));
  EXPECT_EQ(windows[1].locks().lock(0, LockMode::shared).code(), Code::sync);
  EXPECT_EQ(windows[1].all_locks().lock().code(), Code::sync);
  EXPECT_EQ(windows[1].settle("the end").code(), Code::pending);
  EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
  EXPECT_TRUE(fine(windows[1].settle("the end")));
}

TEST(RemoteWindow, gives_back_what_it_holds_when_it_is_abandoned) {
  RemoteWindows windows(3);
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[1].locks().lock(2, LockMode::shared)));
  windows[1].abandon("the end");
  EXPECT_TRUE(windows.job.lock_view(0).try_lock(1, LockMode::exclusive));
  EXPECT_TRUE(windows.job.lock_view(2).try_lock(1, LockMode::exclusive));
}

TEST(RemoteWindow, locks_all_and_unlocks_all_in_one_round_trip_each) {
  constexpr Rank ranks = 9;
  RemoteWindows windows(ranks, {.ranks_of_a_node = 3});
  SimTime begin_ns = windows.now_ns();
  EXPECT_TRUE(fine(windows[0].all_locks().lock()));
  EXPECT_LT(windows.now_ns() - begin_ns, 2 * round_trip_ns);
  for (Rank target = 0; target < ranks; ++target) {
    EXPECT_FALSE(windows.job.lock_view(target).try_lock(77, LockMode::exclusive)) << target;
  }
  const auto data = ones(16);
  for (Rank target = 0; target < ranks; ++target)
    EXPECT_TRUE(fine(windows[0].operate(put_of(data), target, Completion::implicit, nullptr)));
  begin_ns = windows.now_ns();
  EXPECT_TRUE(fine(windows[0].all_locks().unlock()));
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
  // Rank 2 has asked no other node before it has what its own has.
  const std::map<Rank, std::vector<Rank>> held_meanwhile{{1, {0}}, {2, {}}, {3, {2}}, {4, {0, 1, 2, 3}}};
  for (const auto& [taken, may_be_held] : held_meanwhile) {
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
    EXPECT_TRUE(fine(windows[2].all_locks().lock())) << taken;
    EXPECT_EQ(held, may_be_held) << taken;
    for (Rank target = 0; target < 5; ++target)
      EXPECT_FALSE(windows.job.lock_view(target).try_lock(another, LockMode::exclusive)) << target;
    EXPECT_TRUE(fine(windows[2].all_locks().unlock()));
    for (Rank target = 0; target < 5; ++target) {
      SharedLock<HolderDead> lock = windows.job.lock_view(target);
      EXPECT_TRUE(lock.try_lock(another, LockMode::exclusive)) << target;
      EXPECT_TRUE(lock.unlock(another, LockMode::exclusive));
    }
  }
}

TEST(RemoteWindow, holds_no_lock_after_a_lock_all_that_was_refused_somewhere) {
  RemoteWindows windows(3);
  windows.job.rank(2).exposures.erase(ProtocolRank::window);
  EXPECT_EQ(windows[1].all_locks().lock().code(), Code::handle);
  EXPECT_TRUE(windows.job.lock_view(0).try_lock(1, LockMode::exclusive));
  EXPECT_TRUE(windows.job.lock_view(1).try_lock(1, LockMode::exclusive));
  EXPECT_TRUE(fine(windows[1].settle("the end")));
}

// On the short way and on the long one: it may be chosen before it has gone to sleep.
TEST(RemoteWindow, says_when_it_queues_for_a_lock_that_its_thread_would_not_look) {
  constexpr std::uint32_t another = 77;
  for (const std::uint32_t word : {lock_word::waiting, lock_word::asleep_for_good}) {
    RemoteWindows windows(2, {.ranks_of_a_node = 2, .queues_as = word});
    const HotWindow hot = windows[1].hot();
    SharedLock<HolderDead> lock = windows.job.lock_view(0);
    ASSERT_TRUE(lock.try_lock(another, LockMode::exclusive));
    const Requested requested = hot.lock(0, LockMode::exclusive);
    ASSERT_EQ(requested.kind, Requested::Kind::queued);
    const auto& slot = BasicLockSlots<SystemAtomics>(hot.views[0].lock->slots(), 2)[requested.slot];
    EXPECT_EQ(slot.word, word);
    EXPECT_TRUE(lock.unlock(another, LockMode::exclusive));
    EXPECT_TRUE(fine(windows[1].locks().await_queued(0, LockMode::exclusive, requested.slot)));
    EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
    ASSERT_TRUE(lock.try_lock(another, LockMode::exclusive));
    windows.job.world().call_after(50 * round_trip_ns, [&] {
      EXPECT_EQ(slot.word, word);
      EXPECT_TRUE(lock.unlock(another, LockMode::exclusive));
    });
    EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
    EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
  }
}

TEST(RemoteWindow, may_lock_again_after_an_unlock_that_found_its_lock_gone) {
  RemoteWindows windows(2, {.ranks_of_a_node = 2});
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
  ASSERT_TRUE(windows.job.lock_view(0).unlock(2, LockMode::exclusive));
  EXPECT_EQ(windows[1].locks().unlock(0).code(), Code::system);
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  ASSERT_TRUE(windows.job.lock_view(0).unlock(2, LockMode::shared));
  EXPECT_EQ(windows[1].all_locks().unlock().code(), Code::system);
  EXPECT_TRUE(windows.job.lock_view(1).try_lock(77, LockMode::exclusive))
      << "the locks that it had were not given back";
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
}

// A rank of the owner's node unlocks in memory, on the short way and on the long one.
TEST(RemoteWindow, rings_the_owner_when_an_unlock_in_memory_grants_to_another_node) {
  for (const bool on_the_short_way : {true, false}) {
    RemoteWindows windows(3, {.ranks_of_a_node = 2});
    if (on_the_short_way) {
      EXPECT_EQ(windows[1].hot().lock(0, LockMode::exclusive).kind, Requested::Kind::granted);
    } else {
      EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
    }
    windows.job.world().call_after(50 * round_trip_ns, [&] {
      EXPECT_EQ(windows.ringer.rings, 0);
      if (on_the_short_way) {
        EXPECT_TRUE(windows[1].hot().unlock(0));
      } else {
        EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
      }
      EXPECT_EQ(windows.ringer.rings, 1);
    });
    EXPECT_TRUE(fine(windows[2].locks().lock(0, LockMode::exclusive)));
    EXPECT_TRUE(fine(windows[2].locks().unlock(0)));
    EXPECT_EQ(windows.ringer.rings, 1);
  }
}

// ---- post, start, complete, wait ----

TEST(RemoteWindow, completes_an_epoch_of_several_targets_in_one_round_trip) {
  constexpr Rank ranks = 5;
  RemoteWindows windows(ranks, {.ranks_of_a_node = 2});
  const std::vector<std::uint32_t> targets{1, 2, 3, 4};
  const std::vector<std::uint32_t> origin{0};
  for (const Rank target : targets) EXPECT_TRUE(fine(windows[target].posts().post(origin)));
  windows.settle();
  EXPECT_TRUE(fine(windows[0].posts().start(targets)));
  const auto data = ones(32);
  for (const Rank target : targets)
    EXPECT_TRUE(fine(windows[0].operate(put_of(data), target, Completion::implicit, nullptr)));
  const SimTime begin_ns = windows.now_ns();
  EXPECT_TRUE(fine(windows[0].posts().complete()));
  EXPECT_LT(windows.now_ns() - begin_ns, 2 * round_trip_ns);
  EXPECT_EQ(windows.messages_of(0), 3 * 2) << "rank 1 is on the same node";
  for (const Rank target : targets) {
    EXPECT_TRUE(fine(windows[target].posts().wait()));
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
  EXPECT_TRUE(fine(windows[1].posts().start(target)));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data), 0, Completion::implicit, nullptr)));
  EXPECT_EQ(windows.messages_of(1), 0);
  windows.job.world().call_after(50 * round_trip_ns, [&] {
    EXPECT_EQ(windows.job.word(0, 0), 0);
    EXPECT_TRUE(fine(windows[0].posts().post(origin)));
  });
  EXPECT_TRUE(fine(windows[1].posts().complete()));
  EXPECT_TRUE(fine(windows[0].posts().wait()));
  EXPECT_NE(windows.job.word(0, 0), 0);
}

// The unchecked start uses up a post that is still under way; the next start finds its own, and no other.
TEST(RemoteWindow, counts_the_post_of_a_start_that_did_not_look_for_it) {
  RemoteWindows windows(2);
  const std::vector<std::uint32_t> target{0};
  const std::vector<std::uint32_t> origin{1};
  const auto data = ones(8);
  const auto put_and_complete = [&] {
    EXPECT_TRUE(fine(windows[1].operate(put_of(data), 0, Completion::implicit, nullptr)));
    EXPECT_TRUE(fine(windows[1].posts().complete()));
  };
  EXPECT_TRUE(fine(windows[0].posts().post(origin)));  // no message has come yet
  EXPECT_TRUE(fine(windows[1].posts().start(target, PostEpochs::Posts::known)));
  put_and_complete();
  EXPECT_NE(windows.job.word(0, 0), 0);
  EXPECT_TRUE(fine(windows[0].posts().wait()));
  std::memset(windows.job.memory(0).data(), 0, 8);
  EXPECT_TRUE(fine(windows[1].posts().start(target)));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data), 0, Completion::implicit, nullptr)));
  windows.settle();
  EXPECT_EQ(windows.job.word(0, 0), 0) << "the put of the second epoch came before its post";
  windows.job.world().call_after(50 * round_trip_ns, [&] {
    EXPECT_EQ(windows.job.word(0, 0), 0);
    EXPECT_TRUE(fine(windows[0].posts().post(origin)));
  });
  EXPECT_TRUE(fine(windows[1].posts().complete()));
  EXPECT_NE(windows.job.word(0, 0), 0);
  EXPECT_TRUE(fine(windows[0].posts().wait()));
}

// Also at a target whose lock another rank holds, by message and on the target's node.
TEST(RemoteWindow, sends_nothing_for_an_unchecked_lock) {
  for (const Rank holder : {1, 2}) {
    RemoteWindows windows(4, {.ranks_of_a_node = 2});
    EXPECT_TRUE(fine(windows[holder].locks().lock(0, LockMode::exclusive)));
    if (holder == 2) {
      EXPECT_TRUE(fine(windows[holder].operate(put_of(ones(8)), 0, Completion::blocking, nullptr)));
    }
    const std::uint64_t before = windows.messages_of(3);
    const auto data = ones(8);
    EXPECT_TRUE(fine(windows[3].locks().lock_unchecked(0)));
    EXPECT_EQ(windows[3].locks().lock(0, LockMode::shared).code(), Code::sync);
    EXPECT_TRUE(fine(windows[3].operate(put_of(data, 64), 0, Completion::implicit, nullptr)));
    EXPECT_TRUE(fine(windows[3].locks().unlock(0)));
    EXPECT_NE(windows.job.word(0, 64), 0);
    EXPECT_EQ(windows[3].locks().unlock(0).code(), Code::sync);
    EXPECT_TRUE(fine(windows[3].all_locks().lock_unchecked()));
    EXPECT_TRUE(fine(windows[3].operate(put_of(data, 128), 0, Completion::implicit, nullptr)));
    EXPECT_TRUE(fine(windows[3].all_locks().unlock()));
    EXPECT_NE(windows.job.word(0, 128), 0);
    EXPECT_EQ(windows.messages_of(3), before + 2) << "more than the two puts";
    EXPECT_TRUE(fine(windows[holder].locks().unlock(0)));
    for (const Rank next : {3, 1}) {
      EXPECT_TRUE(fine(windows[next].locks().lock(0, LockMode::exclusive)));
      EXPECT_TRUE(fine(windows[next].locks().unlock(0)));
    }
  }
}

// What a lock was asked for and is not held yet waits behind it; what is under none, of another rank, does not.
TEST(RemoteWindow, keeps_unchecked_operations_apart_from_those_behind_a_lock) {
  RemoteWindows windows(3);
  const auto data = ones(8);
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data), 0, Completion::blocking, nullptr)));
  EXPECT_TRUE(fine(windows[2].locks().lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[2].operate(put_of(data, 8), 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(
      fine(windows[2].locks().lock_unchecked(1)));  // its thread has asked for a lock, which this does not wait for
  EXPECT_TRUE(fine(windows[2].operate(put_of(data), 1, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[2].locks().unlock(1)));
  EXPECT_NE(windows.job.word(1, 0), 0);
  EXPECT_EQ(windows.job.word(0, 8), 0);
  EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
  EXPECT_TRUE(fine(windows[2].locks().unlock(0)));
  EXPECT_NE(windows.job.word(0, 8), 0);
}

TEST(RemoteWindow, gives_back_no_lock_of_an_unchecked_epoch_when_it_is_abandoned) {
  RemoteWindows windows(4, {.ranks_of_a_node = 2});
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[0].locks().lock_unchecked(0)));
  EXPECT_TRUE(fine(windows[2].all_locks().lock_unchecked()));
  const std::uint64_t before = windows.messages_of(2);
  windows[0].abandon("the end");
  windows[2].abandon("the end");
  EXPECT_EQ(windows.messages_of(2), before);
  EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
}

TEST(RemoteWindow, ends_an_epoch_of_start_though_an_operation_failed_and_tells_of_it) {
  RemoteWindows windows(2, {.dynamic = true});
  const std::vector<std::uint32_t> target{0};
  const std::vector<std::uint32_t> origin{1};
  EXPECT_TRUE(fine(windows[0].posts().post(origin)));
  windows.settle();
  EXPECT_TRUE(fine(windows[1].posts().start(target)));
  const auto data = ones(8);
  EXPECT_TRUE(fine(windows[1].operate(put_of(data, 1u << 30), 0, Completion::implicit, nullptr)));
  EXPECT_EQ(windows[1].posts().complete().code(), Code::range);
  EXPECT_TRUE(fine(windows[0].posts().wait()));
  EXPECT_TRUE(fine(windows[1].settle("the end")));
}

// ---- operations ----

TEST(RemoteWindow, reaches_what_is_attached_in_a_dynamic_window_and_nothing_else) {
  RemoteWindows windows(2, {.dynamic = true});
  const auto data = ones(16);
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  EXPECT_TRUE(fine(windows[1].operate(put_of(data, 4'080), 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[1].flush_one_target(0)));
  for (const std::uint64_t offset : {std::uint64_t{4'081}, std::uint64_t{1} << 40, ~std::uint64_t{0} - 64}) {
    EXPECT_TRUE(fine(windows[1].operate(put_of(data, offset), 0, Completion::implicit, nullptr)));
    EXPECT_EQ(windows[1].flush_one_target(0).code(), Code::range) << offset;
  }
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
}

TEST(RemoteWindow, refuses_what_lies_outside_a_part_before_it_is_sent) {
  RemoteWindows windows(2);
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  const std::uint64_t sent = windows.messages_of(1);
  EXPECT_EQ(windows[1].operate(put_of(ones(16), 4'081), 0, Completion::implicit, nullptr).code(), Code::range);
  EXPECT_EQ(windows.messages_of(1), sent);
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
}

// ---- flush_local ----

TEST(RemoteWindow, flushes_locally_without_a_wait_what_has_been_copied) {
  RemoteWindows windows(2);
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
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
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(windows.job.memory(0)[i * 64 + 63], static_cast<std::byte>(i + 1));
}

TEST(RemoteWindow, flushes_locally_no_sooner_than_results_have_come) {
  RemoteWindows windows(2);
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
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
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
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
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::shared)));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(fine(windows[1].operate(add, 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
  EXPECT_EQ(windows.job.word(0, 8), 20);
  EXPECT_EQ(windows.messages_of(1), 3) << "the lock, the updates, the unlock";
}

// As farsum_accumulate does: the short way where it serves, else the long one. Answers whether it did.
bool accumulate_word(Window& window, std::uint64_t offset, const std::uint64_t& operand, ops::Operator op) {
  if (window.update_remote(0, offset, &operand, ops::ElementType::uint64, op)) return true;
  Operation operation = put_of(ones(8), offset);
  operation.kind = OperationKind::accumulate;
  operation.type = ops::ElementType::uint64;
  operation.op = op;
  operation.operand = reinterpret_cast<const std::byte*>(&operand);
  EXPECT_TRUE(fine(window.operate(operation, 0, Completion::implicit, nullptr)));
  return false;
}

TEST(RemoteWindow, gathers_updates_the_short_way_in_program_order_and_sends_no_more_than_the_limit_at_once) {
  RemoteWindows windows(2, {.path = PathChoice::aggregated, .aggregate_limit = 16});
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  EXPECT_TRUE(fine(windows[1].flush_one_target(0)));
  const std::uint64_t one = 1, bits = 0x55, fresh = 40;
  std::uint64_t expected = 0;
  int short_ways = 0;
  for (int i = 0; i < 10; ++i) {
    for (int n = 0; n < 33; ++n) short_ways += accumulate_word(windows[1], 8, one, ops::Operator::sum) ? 1 : 0;
    expected = (expected + 33) ^ bits;
    accumulate_word(windows[1], 8, bits, ops::Operator::bxor);
  }
  EXPECT_EQ(short_ways, 10 * 28) << "of 33 the first of each message, and the last of each full one, go the long way";
  EXPECT_EQ(windows.operations_by(Path::aggregated), 340);
  EXPECT_EQ(windows.bytes_by(Path::aggregated), 8 * 340);
  const std::uint64_t sent = windows.messages_of(1);
  accumulate_word(windows[1], 16, fresh, ops::Operator::replace);
  accumulate_word(windows[1], 16, one, ops::Operator::replace);
  EXPECT_EQ(windows.messages_of(1), sent + 1) << "the last exclusive or, which is of another kind";
  EXPECT_TRUE(fine(windows[1].flush_one_target(0)));
  EXPECT_EQ(windows.job.word(0, 8), expected);
  EXPECT_EQ(windows.job.word(0, 16), one);
  EXPECT_EQ(windows.messages_of(1), sent + 2);
  EXPECT_FALSE(windows[1].update_remote(0, ~std::uint64_t{0} - 7, &one, ops::ElementType::uint64, ops::Operator::sum));
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
}

// ---- caller-computes ----

Operation byte_sum_of(const std::vector<std::byte>& bytes, std::uint64_t offset = 0) {
  Operation operation = put_of(bytes, offset);
  operation.kind = OperationKind::accumulate;
  operation.type = ops::ElementType::uint8;
  operation.op = ops::Operator::sum;
  return operation;
}

TEST(RemoteWindow, has_summed_by_caller_when_the_call_returns) {
  RemoteWindows windows(2, {.path = PathChoice::caller});
  const auto data = ones(64);
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  const std::uint64_t sent = windows.messages_of(1);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(fine(windows[1].operate(byte_sum_of(data), 0, Completion::implicit, nullptr)));
  EXPECT_EQ(windows.job.memory(0)[63], std::byte{3});
  EXPECT_EQ(windows.messages_of(1) - sent, 6) << "a lease and a put each";
  EXPECT_EQ(windows.operations_by(Path::caller), 3);
  EXPECT_EQ(windows.bytes_by(Path::caller), 2 * 3 * 64) << "the payload moves twice";
  EXPECT_EQ(windows.operations_by(Path::owner), 0);
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
}

TEST(RemoteWindow, sends_by_caller_what_needs_no_computing_in_one_message) {
  RemoteWindows windows(2, {.path = PathChoice::caller});
  const auto data = ones(64);
  std::vector<std::byte> got(64);
  Operation replace = byte_sum_of(data);
  replace.op = ops::Operator::replace;
  Operation look = byte_sum_of(data);
  look.kind = OperationKind::get_accumulate;
  look.op = ops::Operator::no_op;
  look.result = got.data();
  look.result_layout = ops::LayoutView::contiguous(64);
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  const std::uint64_t sent = windows.messages_of(1);
  const SimTime begin_ns = windows.now_ns();
  for (const Operation& operation : {put_of(data), replace, look})
    EXPECT_TRUE(fine(windows[1].operate(operation, 0, Completion::implicit, nullptr)));
  EXPECT_EQ(windows.messages_of(1) - sent, 3);
  EXPECT_EQ(windows.now_ns(), begin_ns) << "somebody waited";
  EXPECT_TRUE(fine(windows[1].flush_every_target()));
  EXPECT_EQ(got, data);
  EXPECT_EQ(windows.operations_by(Path::caller), 3);
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
}

// Messages of both kinds are under way at once: what is summed comes behind what was replaced.
TEST(RemoteWindow, keeps_the_order_of_what_it_replaces_and_sums_by_caller) {
  RemoteWindows windows(2, {.path = PathChoice::caller});
  const auto data = ones(64);
  Operation replace = byte_sum_of(data);
  replace.op = ops::Operator::replace;
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(fine(windows[1].operate(replace, 0, Completion::implicit, nullptr)));
    EXPECT_TRUE(fine(windows[1].operate(byte_sum_of(data), 0, Completion::implicit, nullptr)));
    EXPECT_EQ(windows.job.memory(0)[63], std::byte{2});
  }
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
}

TEST(RemoteWindow, sums_by_caller_only_where_that_is_forced) {
  const auto data = ones(4096);
  for (const auto& [path, by_caller] : {std::pair{PathChoice::automatic, 0u}, {PathChoice::caller, 2u}}) {
    RemoteWindows windows(2, {.path = path});
    EXPECT_TRUE(fine(windows[1].all_locks().lock()));
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(fine(windows[1].operate(byte_sum_of(data), 0, Completion::implicit, nullptr)));
    EXPECT_EQ(windows.operations_by(Path::caller), by_caller);
    EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
    EXPECT_EQ(windows.job.memory(0).back(), std::byte{2});
  }
}

TEST(RemoteWindow, sums_by_caller_under_a_lock_once_that_is_held) {
  RemoteWindows windows(2, {.path = PathChoice::caller});
  const auto data = ones(8);
  ASSERT_TRUE(windows.job.lock_view(0).try_lock(1, LockMode::exclusive));
  windows.job.world().call_after(50 * round_trip_ns, [&] {
    EXPECT_EQ(windows.job.word(0, 0), 0) << "summed without the lock";
    EXPECT_TRUE(windows.job.lock_view(0).unlock(1, LockMode::exclusive));
    windows.job.world().wake_agent(0);
  });
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
  EXPECT_TRUE(fine(windows[1].operate(byte_sum_of(data), 0, Completion::implicit, nullptr)));
  EXPECT_EQ(windows.job.word(0, 0), 0x0101010101010101u);
  EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
}

TEST(RemoteWindow, leaves_to_the_owner_what_ends_with_a_notification) {
  RemoteWindows windows(2, {.path = PathChoice::caller});
  const auto data = ones(8);
  Operation notifying = byte_sum_of(data);
  notifying.notify = true;
  notifying.notify_slot = 1;
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  EXPECT_TRUE(fine(windows[1].operate(notifying, 0, Completion::blocking, nullptr)));
  EXPECT_EQ(windows.job.notifications(0, 1), 1);
  EXPECT_EQ(windows.operations_by(Path::owner), 1);
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
}

TEST(RemoteWindow, counts_as_the_owners_what_found_no_room_for_a_lease) {
  ProtocolJobOptions options = even_options(2);
  options.leases.pool_bytes = 0;
  RemoteWindows windows(2, {.path = PathChoice::caller}, options);
  const auto data = ones(64);
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  EXPECT_TRUE(fine(windows[1].operate(byte_sum_of(data), 0, Completion::implicit, nullptr)));
  EXPECT_EQ(windows.job.memory(0)[63], std::byte{1});
  EXPECT_EQ(windows.operations_by(Path::owner), 1);
  EXPECT_EQ(windows.bytes_by(Path::owner), 64);
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
}

TEST(RemoteWindow, tells_of_memory_that_no_lease_is_granted_on) {
  RemoteWindows windows(2, {.dynamic = true, .path = PathChoice::caller});
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  const Status outside = windows[1].operate(byte_sum_of(ones(16), 1u << 30), 0, Completion::implicit, nullptr);
  EXPECT_EQ(outside.code(), Code::range) << outside.text();
  EXPECT_TRUE(fine(windows[1].flush_every_target()));
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
}

}  // namespace
}  // namespace farsum
