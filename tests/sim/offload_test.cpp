// Windows that are declared for network cards alone, where every rank's operations are cards': exact, and whole before
// anybody is told. The simulated card is slower than messages and writes in two halves.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "remote_windows.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t seeds = 20;
constexpr std::uint64_t all_ones = 0x0101010101010101u;

template <class T>
Operation accumulate_of(const std::vector<T>& operand, ops::ElementType type, ops::Operator op,
                        std::uint64_t offset = 0) {
  Operation operation;
  operation.kind = OperationKind::accumulate;
  operation.type = type;
  operation.op = op;
  operation.offset = offset;
  operation.bytes = operand.size() * sizeof(T);
  operation.operand = reinterpret_cast<const std::byte*>(operand.data());
  operation.operand_layout = operation.target_layout = ops::LayoutView::contiguous(operation.bytes);
  return operation;
}

Operation sum_of(const std::vector<std::uint64_t>& operand, std::uint64_t offset = 0) {
  return accumulate_of(operand, ops::ElementType::uint64, ops::Operator::sum, offset);
}

// The same, with the old values.
template <class T>
Operation fetching(Operation operation, std::vector<T>& result) {
  operation.kind = OperationKind::get_accumulate;
  operation.result = reinterpret_cast<std::byte*>(result.data());
  operation.result_layout = ops::LayoutView::contiguous(operation.bytes);
  return operation;
}

template <class T>
std::vector<T> memory_as(RemoteWindows& windows, Rank owner, std::size_t count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), windows.job.memory(owner).data(), count * sizeof(T));
  return values;
}

// Two ranks a node: rank 0 owns, 1 is beside it, 2 and 3 are remote.
RemoteWindows two_nodes(std::uint64_t seed) {
  return RemoteWindows(4, {.ranks_of_a_node = 2, .seed = seed, .network_only = true});
}

// Looks at every instant until `happened` first holds, and says what `look` sees then.
void look_when(RemoteWindows& windows, std::function<bool()> happened, std::function<void()> look) {
  SimWorld& world = windows.job.world();
  world.call_after(1, [&windows, happened = std::move(happened), look = std::move(look)]() mutable {
    if (happened()) return look();
    look_when(windows, std::move(happened), std::move(look));
  });
}

TEST(Offload, counts_exactly_what_neighbours_strangers_and_the_owner_itself_add) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    RemoteWindows windows = two_nodes(seed);
    const std::vector<std::uint64_t> one{1};
    for (Rank rank = 0; rank < 4; ++rank) ASSERT_TRUE(fine(windows[rank].all_locks().lock()));
    const std::uint64_t messages = windows.messages_of(2);
    for (int i = 0; i < 25; ++i) {
      for (Rank rank = 0; rank < 4; ++rank)
        ASSERT_TRUE(fine(windows[rank].operate(sum_of(one), 0, Completion::implicit, nullptr)));
    }
    for (Rank rank = 0; rank < 4; ++rank) ASSERT_TRUE(fine(windows[rank].flush_every_target()));
    EXPECT_EQ(windows.job.word(0, 0), 100) << "seed " << seed;
    EXPECT_EQ(windows.operations_by(Path::offload), 100);
    EXPECT_EQ(windows.messages_of(2), messages) << "the owner's agent had part in it";
    for (Rank rank = 0; rank < 4; ++rank) ASSERT_TRUE(fine(windows[rank].all_locks().unlock()));
  }
}

TEST(Offload, gives_every_ticket_once) {
  RemoteWindows windows = two_nodes(1);
  const std::vector<std::uint64_t> one{1};
  std::vector<std::vector<std::uint64_t>> tickets(40, std::vector<std::uint64_t>(1));
  for (Rank rank = 0; rank < 4; ++rank) ASSERT_TRUE(fine(windows[rank].all_locks().lock()));
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    ASSERT_TRUE(fine(windows[static_cast<Rank>(i % 4)].operate(fetching(sum_of(one), tickets[i]), 0,
                                                               Completion::implicit, nullptr)));
  }
  for (Rank rank = 0; rank < 4; ++rank) ASSERT_TRUE(fine(windows[rank].flush_every_target()));
  std::set<std::uint64_t> seen;
  for (const auto& ticket : tickets) seen.insert(ticket[0]);
  EXPECT_EQ(seen.size(), tickets.size());
  EXPECT_EQ(*seen.rbegin(), tickets.size() - 1);
}

// ---- who is told of it finds it ----

TEST(Offload, has_put_everything_before_the_lock_is_free) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (const Rank origin : {0u, 1u, 2u}) {
      RemoteWindows windows = two_nodes(seed);
      const auto data = ones(256);
      ASSERT_TRUE(fine(windows[origin].locks().lock(0, LockMode::exclusive)));
      // Of a remote rank the lock has only been asked for: once it is held.
      windows.settle();
      std::vector<std::byte> found;
      look_when(
          windows, [&] { return windows.job.lock_view(0).try_lock(9, LockMode::exclusive); },
          [&] { found.assign(windows.job.memory(0).begin(), windows.job.memory(0).begin() + 256); });
      ASSERT_TRUE(fine(windows[origin].operate(put_of(data), 0, Completion::implicit, nullptr)));
      ASSERT_TRUE(fine(windows[origin].locks().unlock(0)));
      windows.settle();
      EXPECT_EQ(found, data) << "seed " << seed << ", origin " << origin;
    }
  }
}

TEST(Offload, touches_nothing_before_the_lock_is_granted) {
  RemoteWindows windows = two_nodes(1);
  const std::vector<std::uint64_t> one{1};
  ASSERT_TRUE(windows.job.lock_view(0).try_lock(9, LockMode::exclusive));
  std::uint64_t before = ~std::uint64_t{0};
  windows.job.world().call_after(1'000'000, [&] {
    before = windows.job.word(0, 0);
    SharedLock<HolderDead> lock = windows.job.lock_view(0);
    EXPECT_TRUE(lock.unlock(9, LockMode::exclusive));
    windows.job.world().wake_agent(0);
  });
  ASSERT_TRUE(fine(windows[2].locks().lock(0, LockMode::exclusive)));
  ASSERT_TRUE(fine(windows[2].operate(sum_of(one), 0, Completion::implicit, nullptr)));
  ASSERT_TRUE(fine(windows[2].locks().unlock(0)));
  EXPECT_EQ(before, 0);
  EXPECT_EQ(windows.job.word(0, 0), 1);
}

TEST(Offload, has_put_everything_before_a_notification_comes) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (const Rank origin : {1u, 2u}) {
      for (const bool in_one : {true, false}) {
        RemoteWindows windows = two_nodes(seed);
        const auto data = ones(256);
        std::vector<std::byte> found;
        look_when(
            windows, [&] { return windows.job.notifications(0, 3) == 1; },
            [&] { found.assign(windows.job.memory(0).begin(), windows.job.memory(0).begin() + 256); });
        Operation put = put_of(data);
        Operation bare;
        (in_one ? put : bare).notify = true;
        (in_one ? put : bare).notify_slot = 3;
        ASSERT_TRUE(fine(windows[origin].all_locks().lock()));
        ASSERT_TRUE(fine(windows[origin].operate(put, 0, Completion::implicit, nullptr)));
        if (!in_one) {
          ASSERT_TRUE(fine(windows[origin].operate(bare, 0, Completion::implicit, nullptr)));
        }
        ASSERT_TRUE(fine(windows[origin].flush_every_target()));
        windows.settle();
        EXPECT_EQ(found, data) << "seed " << seed << ", origin " << origin;
      }
    }
  }
}

TEST(Offload, has_put_everything_before_the_target_sees_an_access_epoch_completed) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (const std::uint32_t origin : {1u, 2u}) {
      RemoteWindows windows = two_nodes(seed);
      const auto data = ones(256);
      const std::uint32_t target = 0;
      std::vector<std::byte> found;
      look_when(
          windows, [&] { return windows.job.rank_window(0).head().completes.load() == 1; },
          [&] { found.assign(windows.job.memory(0).begin(), windows.job.memory(0).begin() + 256); });
      ASSERT_TRUE(fine(windows[0].posts().post(std::span(&origin, 1))));
      ASSERT_TRUE(fine(windows[origin].posts().start(std::span(&target, 1))));
      ASSERT_TRUE(fine(windows[origin].operate(put_of(data), 0, Completion::implicit, nullptr)));
      ASSERT_TRUE(fine(windows[origin].posts().complete()));
      windows.settle();
      EXPECT_EQ(found, data) << "seed " << seed << ", origin " << origin;
    }
  }
}

TEST(Offload, has_put_everything_when_a_flush_or_a_blocking_put_returns) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    RemoteWindows windows = two_nodes(seed);
    const auto data = ones(256);
    ASSERT_TRUE(fine(windows[2].all_locks().lock()));
    ASSERT_TRUE(fine(windows[2].operate(put_of(data), 0, Completion::implicit, nullptr)));
    ASSERT_TRUE(fine(windows[2].flush_one_target(0)));
    EXPECT_EQ(memory_as<std::byte>(windows, 0, 256), data);
    ASSERT_TRUE(fine(windows[2].operate(put_of(data), 1, Completion::blocking, nullptr)));
    EXPECT_EQ(memory_as<std::byte>(windows, 1, 256), data);
  }
}

TEST(Offload, has_done_with_the_buffers_when_a_local_flush_or_a_request_says_so) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    RemoteWindows windows = two_nodes(seed);
    auto data = ones(256);
    ASSERT_TRUE(fine(windows[2].all_locks().lock()));
    ASSERT_TRUE(fine(windows[2].operate(put_of(data), 0, Completion::implicit, nullptr)));
    ASSERT_TRUE(fine(windows[2].flush_one_target(0, Window::Reach::local)));
    std::fill(data.begin(), data.end(), std::byte{9});
    auto more = ones(256);
    RequestState request;
    ASSERT_TRUE(fine(windows[2].operate(put_of(more, 256), 0, Completion::by_request, &request)));
    EXPECT_TRUE(request.done.load());
    std::fill(more.begin(), more.end(), std::byte{9});
    ASSERT_TRUE(fine(windows[2].flush_one_target(0)));
    EXPECT_EQ(memory_as<std::byte>(windows, 0, 512), ones(512));
  }
}

// ---- what operators become ----

TEST(Offload, keeps_the_order_of_accumulates_on_one_location) {
  using ops::Operator;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    RemoteWindows windows = two_nodes(seed);
    const auto type = ops::ElementType::uint64;
    const std::vector<std::uint64_t> five{5}, six{6}, mask{4};
    std::vector<std::uint64_t> read(1);
    ASSERT_TRUE(fine(windows[2].all_locks().lock()));
    const auto issue = [&](const Operation& operation) {
      ASSERT_TRUE(fine(windows[2].operate(operation, 0, Completion::implicit, nullptr)));
    };
    issue(accumulate_of(five, type, Operator::replace));
    issue(accumulate_of(six, type, Operator::replace));
    issue(accumulate_of(five, type, Operator::sum));  // 11
    issue(accumulate_of(mask, type, Operator::bor));  // 15
    issue(fetching(accumulate_of(mask, type, Operator::no_op), read));
    issue(accumulate_of(six, type, Operator::bxor));  // 9
    issue(accumulate_of(six, type, Operator::min));   // 6
    ASSERT_TRUE(fine(windows[2].flush_one_target(0)));
    EXPECT_EQ(windows.job.word(0, 0), 6) << "seed " << seed;
    EXPECT_EQ(read[0], 15) << "seed " << seed;
  }
}

TEST(Offload, orders_what_comes_behind_farsum_order) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    RemoteWindows windows = two_nodes(seed);
    const auto first = ones(8);
    const std::vector<std::byte> second(8, std::byte{2});
    ASSERT_TRUE(fine(windows[2].all_locks().lock()));
    ASSERT_TRUE(fine(windows[2].operate(put_of(first), 0, Completion::implicit, nullptr)));
    windows[2].order();
    ASSERT_TRUE(fine(windows[2].operate(put_of(second), 0, Completion::implicit, nullptr)));
    ASSERT_TRUE(fine(windows[2].flush_one_target(0)));
    EXPECT_EQ(windows.job.word(0, 0), 2 * all_ones) << "seed " << seed;
  }
}

TEST(Offload, computes_here_what_no_card_does_and_loses_nothing_to_others) {
  constexpr std::size_t count = 300;  // more than go at once
  constexpr std::uint64_t adds = 3;
  const std::vector<std::uint64_t> twos(count, 2), fresh(count, 1);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    RemoteWindows windows = two_nodes(seed);
    std::memcpy(windows.job.memory(0).data(), fresh.data(), 8 * count);
    // Another rank's additions fall between what is read here and what is written.
    const auto base = reinterpret_cast<std::uintptr_t>(windows.job.memory(0).data());
    SimRdma& other = windows.card(1);
    const Rdma::Reached part =
        other.reach(0, other.expose(windows.job.memory(0).data(), windows.job.memory(0).size()).value().key);
    for (std::uint64_t i = 0; i < adds; ++i) {
      windows.job.world().call_after(1'000 + 60'000 * i, [&other, part, base] {
        for (std::uint64_t k = 0; k < count; k += 3)
          EXPECT_TRUE(fine(other.update(part, {base + 8 * k, 8}, CardUpdate::add, 1)));
      });
    }
    std::vector<std::uint64_t> old(count, 99);
    ASSERT_TRUE(fine(windows[2].all_locks().lock()));
    const Operation doubling = accumulate_of(twos, ops::ElementType::uint64, ops::Operator::prod);
    ASSERT_TRUE(fine(windows[2].operate(fetching(doubling, old), 0, Completion::blocking, nullptr)));
    windows.settle();
    const auto values = memory_as<std::uint64_t>(windows, 0, count);
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint64_t all_adds = k % 3 == 0 ? adds : 0;
      EXPECT_EQ(values[k], 2 * old[k] + (all_adds - (old[k] - 1))) << k << ", seed " << seed;
    }
  }
}

TEST(Offload, updates_words_of_four_bytes_and_leaves_their_neighbours_alone) {
  RemoteWindows windows = two_nodes(1);
  const std::vector<std::int32_t> threes{3, 3};
  std::vector<std::int32_t> old(2, -1);
  ASSERT_TRUE(fine(windows[2].all_locks().lock()));
  Operation operation = accumulate_of(threes, ops::ElementType::int32, ops::Operator::sum, 4);
  ASSERT_TRUE(fine(windows[2].operate(operation, 0, Completion::blocking, nullptr)));
  operation.op = ops::Operator::prod;
  ASSERT_TRUE(fine(windows[2].operate(fetching(operation, old), 0, Completion::blocking, nullptr)));
  EXPECT_EQ(memory_as<std::int32_t>(windows, 0, 4), (std::vector<std::int32_t>{0, 9, 9, 0}));
  EXPECT_EQ(old, (std::vector<std::int32_t>{3, 3}));
}

TEST(Offload, compares_and_swaps) {
  RemoteWindows windows = two_nodes(1);
  const std::uint64_t seven = 7;
  ASSERT_TRUE(fine(windows[2].all_locks().lock()));
  for (const std::uint64_t expected : {0u, 0u, 7u}) {
    std::uint64_t found = 99;
    Operation swap;
    swap.kind = OperationKind::compare_and_swap;
    swap.type = ops::ElementType::uint64;
    swap.bytes = 8;
    const std::uint64_t fresh = expected + seven;
    swap.operand = reinterpret_cast<const std::byte*>(&fresh);
    swap.compare = reinterpret_cast<const std::byte*>(&expected);
    swap.result = reinterpret_cast<std::byte*>(&found);
    swap.operand_layout = swap.target_layout = swap.result_layout = ops::LayoutView::contiguous(8);
    const std::uint64_t before = windows.job.word(0, 0);
    ASSERT_TRUE(fine(windows[2].operate(swap, 0, Completion::blocking, nullptr)));
    EXPECT_EQ(found, before);
    EXPECT_EQ(windows.job.word(0, 0), before == expected ? fresh : before);
  }
  EXPECT_EQ(windows.job.word(0, 0), 14);
}

TEST(Offload, moves_spread_pieces_there_and_back) {
  RemoteWindows windows = two_nodes(1);
  std::vector<std::byte> source(64), back(64);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i);
  const std::vector<ops::Piece> there{{8, 3}, {100, 5}}, here{{0, 2}, {10, 6}};
  Operation put = put_of(source);
  put.bytes = 8;
  put.target_layout = ops::LayoutView::indexed(there);
  put.operand_layout = ops::LayoutView::indexed(here);
  ASSERT_TRUE(fine(windows[2].all_locks().lock()));
  ASSERT_TRUE(fine(windows[2].operate(put, 0, Completion::implicit, nullptr)));
  ASSERT_TRUE(fine(windows[2].flush_one_target(0)));
  Operation get = put;
  get.kind = OperationKind::get;
  get.operand = nullptr;
  get.result = back.data();
  get.result_layout = ops::LayoutView::indexed(here);
  ASSERT_TRUE(fine(windows[2].operate(get, 0, Completion::blocking, nullptr)));
  EXPECT_EQ(windows.job.memory(0)[8], std::byte{0});
  EXPECT_EQ(windows.job.memory(0)[10], std::byte{10});
  EXPECT_EQ(windows.job.memory(0)[104], std::byte{15});
  for (const std::size_t i : {0u, 1u, 10u, 15u}) EXPECT_EQ(back[i], source[i]);
  EXPECT_EQ(back[2], std::byte{0});
}

// ---- what cannot be ----

TEST(Offload, refuses_what_no_card_can_do_and_changes_nothing) {
  RemoteWindows windows = two_nodes(1);
  ASSERT_TRUE(fine(windows[2].all_locks().lock()));
  const std::vector<std::int16_t> shorts{1, 2};
  const Status narrow = windows[2].operate(accumulate_of(shorts, ops::ElementType::int16, ops::Operator::sum), 0,
                                           Completion::implicit, nullptr);
  EXPECT_EQ(narrow.code(), Code::unsupported);
  EXPECT_NE(narrow.text().find("network-only"), std::string::npos) << narrow.text();
  const std::vector<double> pair{1, 2};
  EXPECT_EQ(windows[2]
                .operate(accumulate_of(pair, ops::ElementType::complex128, ops::Operator::sum), 0, Completion::implicit,
                         nullptr)
                .code(),
            Code::unsupported);
  const std::vector<std::uint64_t> one{1};
  EXPECT_EQ(windows[2].operate(sum_of(one, 4), 0, Completion::implicit, nullptr).code(), Code::argument);
  ASSERT_TRUE(fine(windows[2].flush_one_target(0)));
  EXPECT_EQ(windows.operations_by(Path::offload), 0);
  EXPECT_EQ(memory_as<std::uint64_t>(windows, 0, 4), std::vector<std::uint64_t>(4, 0));
  // Whole bytes and pairs of them are only moved.
  ASSERT_TRUE(fine(windows[2].operate(accumulate_of(shorts, ops::ElementType::int16, ops::Operator::replace), 0,
                                      Completion::blocking, nullptr)));
  EXPECT_EQ(memory_as<std::int16_t>(windows, 0, 2), shorts);
}

TEST(Offload, keeps_the_owners_agent_away) {
  RemoteWindows windows = two_nodes(1);
  const auto data = ones(8);
  Operation put = put_of(data);
  Outstanding outstanding;
  RequestState request;
  ASSERT_TRUE(windows.job.rank(2).engine.submit(0, ProtocolRank::window, put, outstanding, &request));
  windows.settle();
  windows.job.rank(2).engine.progress(0);
  EXPECT_EQ(request.code.load(), Code::range);
  EXPECT_EQ(windows.job.word(0, 0), 0);
}

TEST(Offload, answers_peer_failed_when_the_owner_dies) {
  RemoteWindows windows = two_nodes(1);
  const auto data = ones(8);
  ASSERT_TRUE(fine(windows[2].all_locks().lock()));
  windows.job.world().kill_after(0, 1);
  ASSERT_TRUE(fine(windows[2].operate(put_of(data), 0, Completion::implicit, nullptr)));
  EXPECT_EQ(windows[2].flush_one_target(0).code(), Code::peer_failed);
}

}  // namespace
}  // namespace farsum
