// Long reductions whose ranks copy from and to one another's memory: threads stand for processes, and copies are plain.
#include "collectives/copied_shares.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
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
  std::optional<std::uint32_t> refused;         // that rank reaches nobody
  std::optional<std::uint32_t> has_a_device;    // what it has can be loaded and stored, and not copied
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
  bool read(std::uint32_t, std::uintptr_t address, std::span<std::byte> into) override {
    const auto* const from = reinterpret_cast<const std::byte*>(address);
    if (!may_copy(from, into.size())) return false;
    std::memcpy(into.data(), from, into.size());
    return true;
  }
  bool write(std::uint32_t, std::uintptr_t address, std::span<const std::byte> from) override {
    auto* const to = reinterpret_cast<std::byte*>(address);
    if (!may_copy(to, from.size())) return false;
    std::memcpy(to, from.data(), from.size());
    return true;
  }

 private:
  bool may_copy(const std::byte* at, std::size_t bytes) {
    copying_.bytes += bytes;
    const std::byte* const hole = copying_.hole;
    return hole == nullptr || hole < at || hole >= at + bytes;
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
    for (const std::size_t count : {8191, 8193, 33'001}) {
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

TEST_P(Copied, short_ones_are_not) {
  run([&](Member member) { reduce_and_compare(member, Kind::allreduce, 1, CopiedShares::least_bytes / 8 - 1, false); });
  EXPECT_EQ(copying_.bytes, 0u);
}

TEST_P(Copied, memory_that_has_a_hole_fails_the_call_on_all_and_not_the_next) {
  if (ranks() > CopiedShares::most_members) return;
  constexpr std::size_t elements = 100'000;
  std::vector<Bytes> mine(ranks(), Bytes(elements * 8)), results = mine;
  for (const auto& holes : {&mine, &results}) {
    copying_.hole = holes->at(1).data() + 8;
    run([&](Member member) {
      const Status status = member.run({Kind::allreduce, doubles.type, doubles.op, 0, elements, mine[member.rank].data(),
                                        results[member.rank].data()});
      // Whoever has the hole reads and writes there itself: where it lies in the share of another it is seen.
      const bool is_seen = holes == &mine;
      EXPECT_EQ(status.code(), is_seen ? Code::argument : Code::ok) << status.text();
      if (is_seen) {
        EXPECT_NE(status.text().find("rank 1 of the group"), std::string_view::npos) << status.text();
      }
      copying_.hole = nullptr;
      reduce_and_compare(member, Kind::reduce, 1, elements, false);
    });
  }
}

}  // namespace
}  // namespace farsum
