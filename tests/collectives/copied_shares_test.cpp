// Long reductions whose ranks copy from and to one another's memory: threads stand for processes, and copies are plain.
#include "collectives/copied_shares.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "group_of_threads.hpp"
#include "odd_elements.hpp"

namespace farsum {
namespace {

using Kind = GroupReduction::Kind;
using Bytes = std::vector<std::byte>;

// What the threads copy, and what they may not.
struct Copying {
  std::atomic<std::uint64_t> bytes{0};
  std::optional<std::uint32_t> refused;       // that rank reaches nobody
  std::optional<std::uint32_t> has_a_device;  // what it has can be loaded and stored, and not copied
  std::atomic<int> held{0};                   // calls during which pages stay
  std::atomic<bool> refuses_at_last{false};   // the kernel does, though it did not before
  std::function<void(std::uint32_t rank)> before_copy = [](std::uint32_t) {};
  std::atomic<const std::byte*> hole{nullptr};  // cannot be copied, though the ends of what holds it can
};

class PlainMemory final : public PeerMemory {
 public:
  PlainMemory(Copying& copying, std::uint32_t rank) : copying_(copying), rank_(rank) {}
  // Places on the node need not be the ranks of a group.
  static std::uint32_t place_of(std::uint32_t rank) { return 100 + rank; }

  std::uint32_t my_place() const override { return place_of(rank_); }
  bool reaches_all() const override { return copying_.refused != rank_; }
  bool can_copy_own(std::span<const std::uintptr_t> addresses) override {
    EXPECT_LE(addresses.size(), most_addresses);
    return copying_.has_a_device != rank_;
  }
  bool hold_pages() override {
    ++copying_.held;
    return true;
  }
  void let_go() override { --copying_.held; }
  PeerCopy read(std::uint32_t place, std::uintptr_t address, std::span<std::byte> into) override {
    const auto* const from = reinterpret_cast<const std::byte*>(address);
    return copy(place, from, into.data(), from, into.size());
  }
  PeerCopy write(std::uint32_t place, std::uintptr_t address, std::span<const std::byte> from) override {
    auto* const to = reinterpret_cast<std::byte*>(address);
    return copy(place, to, to, from.data(), from.size());
  }

 private:
  PeerCopy copy(std::uint32_t place, const std::byte* theirs, std::byte* to, const std::byte* from, std::size_t bytes) {
    EXPECT_NE(place, my_place());
    EXPECT_GE(place, place_of(0));
    EXPECT_GT(copying_.held, 0);
    copying_.before_copy(rank_);
    copying_.bytes += bytes;
    if (copying_.refuses_at_last) return PeerCopy::refused;
    const std::byte* const hole = copying_.hole;
    const auto has_it = [&](const std::byte* at) { return hole != nullptr && hole >= at && hole < at + bytes; };
    if (has_it(theirs) || has_it(to) || has_it(from)) return PeerCopy::not_mapped;
    std::memcpy(to, from, bytes);
    return PeerCopy::done;
  }

  Copying& copying_;
  std::uint32_t rank_;
};

constexpr Foldable doubles{ElementType::float64, Operator::sum};

class Copied : public testing::TestWithParam<std::uint32_t> {
 protected:
  std::uint32_t ranks() const { return GetParam(); }

  void run(const std::function<void(Member)>& body, bool is_crowded = false) {
    std::vector<std::unique_ptr<PlainMemory>> memory;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank)
      memory.push_back(std::make_unique<PlainMemory>(copying_, rank));
    GroupOfThreads::Means means;
    means.peers = [&](std::uint32_t rank) { return memory[rank].get(); };
    GroupOfThreads(Nodes(ranks(), 0), is_crowded, means).run(body);
  }

  // Their sum has other bits in another order.
  Bytes brought_by(std::uint32_t rank, std::uint64_t call, std::size_t elements) const {
    std::vector<double> values(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<double>((rank * 71 + i * 13 + call) % 1009) / 7;
    Bytes bytes(elements * sizeof(double));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }

  // From the left, by the plainest kernel.
  Bytes expected(std::uint64_t call, std::size_t elements) const {
    const auto kernel = ops::kernels(ops::Isa::baseline).bulk(doubles.type, doubles.op);
    Bytes folded = brought_by(0, call, elements);
    for (std::uint32_t rank = 1; rank < ranks(); ++rank)
      kernel(folded.data(), brought_by(rank, call, elements).data(), elements, nullptr);
    return folded;
  }

  // All of it, or the block of the rank; and whether what it brought is as it was.
  void reduce_and_compare(Member member, Kind kind, std::uint64_t call, std::size_t count, bool in_place) const {
    const bool scatters = kind == Kind::reduce_scatter_block;
    const std::size_t elements = scatters ? count * ranks() : count;
    const std::uint32_t root = kind == Kind::reduce ? static_cast<std::uint32_t>(call % ranks()) : 0;
    const bool gets = kind != Kind::reduce || member.rank == root;
    Bytes mine = brought_by(member.rank, call, elements);
    Bytes apart(count * sizeof(double));
    std::byte* const result = !gets ? nullptr : in_place ? mine.data() : apart.data();
    const Status status = member.run({kind, doubles.type, doubles.op, root, count, mine.data(), result});
    ASSERT_TRUE(status.is_ok()) << status.text();
    if (!in_place || !gets) {
      ASSERT_EQ(mine, brought_by(member.rank, call, elements));
    }
    if (!gets) return;
    const Bytes all = expected(call, elements);
    const std::byte* const begin = all.data() + (scatters ? member.rank * count * sizeof(double) : 0);
    ASSERT_EQ(std::memcmp(result, begin, count * sizeof(double)), 0);
  }

  // Calls of every kind, of lengths about the least and of some tiles that end anywhere.
  void reduce_all_kinds(Member member) const {
    std::uint64_t call = 0;
    for (const std::size_t count : {8191, 8192, 33'001}) {
      for (const Kind kind : {Kind::allreduce, Kind::reduce, Kind::reduce_scatter_block}) {
        for (const bool in_place : {false, true}) {
          ++call;
          reduce_and_compare(member, kind, call, kind == Kind::reduce_scatter_block ? count / ranks() + 1 : count,
                             in_place);
        }
      }
    }
  }

  Copying copying_;
};
INSTANTIATE_TEST_SUITE_P(Ranks, Copied, testing::Values(2, 3, 8, 9), testing::PrintToStringParamName());

TEST_P(Copied, reductions_give_what_others_give) {
  run([&](Member member) { reduce_all_kinds(member); });
  EXPECT_EQ(copying_.bytes > 0, ranks() <= CopiedShares::most_members);
}

TEST_P(Copied, reductions_of_ranks_that_have_to_share_processors_give_the_same) {
  run([&](Member member) { reduce_all_kinds(member); }, true);
  EXPECT_EQ(copying_.bytes > 0, ranks() <= CopiedShares::most_members);
}

TEST_P(Copied, reductions_go_through_shared_memory_where_one_rank_reaches_no_other) {
  copying_.refused = ranks() - 1;
  run([&](Member member) { reduce_all_kinds(member); });
  EXPECT_EQ(copying_.bytes, 0u);
}

TEST_P(Copied, reductions_go_through_shared_memory_where_one_has_what_the_kernel_does_not_copy) {
  copying_.has_a_device = 1;
  run([&](Member member) { reduce_all_kinds(member); });
  EXPECT_EQ(copying_.bytes, 0u);
}

// Lengths that do not go by the number of ranks, from each root.
TEST_P(Copied, broadcasts_bring_what_the_root_has) {
  const auto broadcast_from_all = [&](Member member) {
    std::uint64_t call = 0;
    for (const std::size_t elements : {8191, 8192, 33'001}) {
      for (std::uint32_t root = 0; root < ranks(); ++root) {
        ++call;
        Bytes buffer = brought_by(member.rank, call, elements);
        const Status status =
            member.reductions.broadcast(std::span(buffer).first(buffer.size() - 3), root, "broadcast");
        ASSERT_TRUE(status.is_ok()) << status.text();
        Bytes told = brought_by(root, call, elements);
        std::ranges::copy_n(brought_by(member.rank, call, elements).end() - 3, 3, told.end() - 3);
        ASSERT_EQ(buffer, told);
      }
    }
  };
  run(broadcast_from_all);
  EXPECT_EQ(copying_.bytes > 0, ranks() <= CopiedShares::most_members);
  run(broadcast_from_all, true);
  EXPECT_EQ(copying_.held, 0);
}

TEST_P(Copied, short_ones_are_not) {
  run([&](Member member) { reduce_and_compare(member, Kind::allreduce, 1, CopiedShares::least_bytes / 8 - 1, false); });
  EXPECT_EQ(copying_.bytes, 0u);
}

TEST_P(Copied, reductions_let_pages_go_when_they_end) {
  run([&](Member member) { reduce_all_kinds(member); });
  EXPECT_EQ(copying_.held, 0);
}

// What a rank has found lies where nobody writes before all have read it.
TEST_P(Copied, reductions_and_those_in_pieces_go_one_after_the_other) {
  for (const bool is_crowded : {false, true}) {
    run(
        [&](Member member) {
          for (std::uint64_t call = 1; call <= 60; ++call) {
            const auto kind = static_cast<Kind>(call % 3);
            const std::size_t blocks = kind == Kind::reduce_scatter_block ? ranks() : 1;
            reduce_and_compare(member, kind, call, 8193 / blocks + 1, false);
            reduce_and_compare(member, kind, call, 1000 / blocks + 1, false);
          }
        },
        is_crowded);
  }
}

class CopiedByAll : public Copied {};
INSTANTIATE_TEST_SUITE_P(Ranks, CopiedByAll, testing::Values(2, 3, 8), testing::PrintToStringParamName());

TEST_P(CopiedByAll, memory_that_has_a_hole_fails_the_call_on_all_and_not_the_next) {
  constexpr std::size_t elements = 100'000;
  std::vector<Bytes> mine(ranks(), Bytes(elements * 8)), results = mine;
  // The start is in the share of rank 0, which reads it; of its own result it is rank 0 that writes the end last.
  const std::array<const std::byte*, 2> holes = {mine[1].data() + 8, results[0].data() + elements * 8 - 16};
  for (const std::byte* const hole : holes) {
    copying_.hole = hole;
    run([&](Member member) {
      const Status status = member.run({Kind::allreduce, doubles.type, doubles.op, 0, elements,
                                        mine[member.rank].data(), results[member.rank].data()});
      EXPECT_EQ(status.code(), Code::argument) << status.text();
      EXPECT_NE(status.text().find("rank 0 of the group could not copy"), std::string_view::npos) << status.text();
      copying_.hole = nullptr;
      reduce_and_compare(member, Kind::reduce, 1, 1000, false);
      reduce_and_compare(member, Kind::reduce, 2, elements, false);
    });
  }
}

TEST_P(CopiedByAll, broadcasts_meet_where_one_expects_another_length_and_harm_no_other_call) {
  run([&](Member member) {
    const std::uint32_t astray = ranks() - 1;
    const std::size_t length = member.rank == astray ? 8000 : 9000;
    Bytes buffer = brought_by(member.rank, 1, length);
    const Status status = member.reductions.broadcast(buffer, 0, "broadcast");
    EXPECT_EQ(status.code(), member.rank == astray ? Code::argument : Code::ok) << status.text();
    EXPECT_EQ(buffer, brought_by(member.rank == astray ? astray : 0, 1, length));
    EXPECT_EQ(copying_.bytes, 0);
    ASSERT_TRUE(member.team.barrier("meet").is_ok());
    Bytes next = brought_by(member.rank, 2, 9000);
    const Status then = member.reductions.broadcast(next, 0, "broadcast");
    EXPECT_TRUE(then.is_ok()) << then.text();
    EXPECT_EQ(next, brought_by(0, 2, 9000));
  });
  EXPECT_GT(copying_.bytes, 0);
}

TEST_P(CopiedByAll, broadcasts_into_a_hole_fail_on_all_and_not_the_next_time) {
  constexpr std::size_t elements = 100'000;
  std::vector<Bytes> buffers(ranks(), Bytes(elements * 8));
  copying_.hole = buffers[1].data() + elements * 4;
  run([&](Member member) {
    Bytes& buffer = buffers[member.rank];
    const Status status = member.reductions.broadcast(buffer, 0, "broadcast");
    EXPECT_EQ(status.code(), Code::argument) << status.text();
    copying_.hole = nullptr;
    const Status then = member.reductions.broadcast(buffer, 0, "broadcast");
    EXPECT_TRUE(then.is_ok()) << then.text();
  });
}

// Until there is a death, of which whoever waits is told.
class WaiterThatIsTold : public SleepingWaiter {
 public:
  explicit WaiterThatIsTold(const std::atomic<bool>& is_dead) : is_dead_(is_dead) {}
  Status wait(EventCount&, FunctionRef<bool()> done, const char*) override {
    while (!done()) {
      if (is_dead_) return {Code::peer_failed, "a rank is dead"};
      std::this_thread::yield();
    }
    return {};
  }

 private:
  const std::atomic<bool>& is_dead_;
};

// Who has left for a death has its memory back.
TEST(CopiedByTwo, fails_for_one_that_copies_while_the_other_leaves_for_a_death) {
  std::atomic<bool> is_dead{false}, has_left{false};
  Copying copying;
  copying.before_copy = [&](std::uint32_t rank) {
    if (rank != 1) return;
    is_dead = true;
    has_left.wait(false);
  };
  std::array<PlainMemory, 2> memory{PlainMemory(copying, 0), PlainMemory(copying, 1)};
  std::array<WaiterThatIsTold, 2> waiters{WaiterThatIsTold(is_dead), WaiterThatIsTold(is_dead)};
  GroupOfThreads::Means means;
  means.peers = [&](std::uint32_t rank) { return &memory[rank]; };
  means.waiter = [&](std::uint32_t rank) { return &waiters[rank]; };
  // Memory of this process has to be there for plain copies, whoever has it back.
  constexpr std::size_t elements = 10'000;
  const std::array<Bytes, 2> mine{Bytes(2 * elements * 8), Bytes(2 * elements * 8)};
  std::array<Bytes, 2> results{Bytes(elements * 8), Bytes(elements * 8)};
  GroupOfThreads(Nodes(2, 0), false, means).run([&](Member member) {
    const Status status = member.run({Kind::reduce_scatter_block, doubles.type, doubles.op, 0, elements,
                                      mine[member.rank].data(), results[member.rank].data()});
    EXPECT_EQ(status.code(), Code::peer_failed) << member.rank << status.text();
    EXPECT_EQ(status.text(), "a rank is dead");
    if (member.rank != 0) return;
    has_left = true;
    has_left.notify_all();
  });
}

TEST_P(CopiedByAll, what_the_kernel_refuses_at_last_goes_through_shared_memory_from_then_on) {
  copying_.refuses_at_last = true;
  run([&](Member member) {
    const std::size_t elements = 50'000;
    const Bytes mine(elements * 8);
    Bytes result(elements * 8);
    const Status status =
        member.run({Kind::allreduce, doubles.type, doubles.op, 0, elements, mine.data(), result.data()});
    EXPECT_EQ(status.code(), Code::unreachable) << status.text();
    const std::uint64_t copied = copying_.bytes;
    reduce_and_compare(member, Kind::allreduce, 1, elements, false);
    if (member.rank == 0) {
      EXPECT_EQ(copying_.bytes, copied);
    }
  });
}

}  // namespace
}  // namespace farsum
