// Nothing grows with the number of reductions and groups: what is allocated of the node segment, the memory of each
// process, its open files. FARSUM_SOAK_REDUCTIONS and FARSUM_SOAK_GROUPS say how many (10^6 and 10^5 in `make soak`).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

#include "capi/global.hpp"
#include "collective_of.hpp"
#include "farsum_embed.h"
#include "rank_processes.hpp"
#include "several_nodes.hpp"

namespace farsum::test {
namespace {

constexpr std::size_t growing_ranks = 2;

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Footprint {
  std::uint64_t segment_bytes = 0;
  std::size_t resident_pages = 0;
  std::ptrdiff_t open_files = 0;

  // Nobody allocates before all have looked.
  static Footprint now() {
    Footprint found;
    found.segment_bytes = capi::live_context()->segment().heap().allocated_bytes();
    std::size_t all = 0;
    std::ifstream("/proc/self/statm") >> all >> found.resident_pages;
    found.open_files = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    EXPECT_FINE(farsum_barrier(farsum_world()));
    return found;
  }
};

// `some` does something so many times, and leaves all ranks at the same point.
void expect_no_growth(std::uint64_t times, const std::function<void(std::uint64_t)>& some) {
  alarm(3600);
  // The first look at the other ranks, which a wait that lasts takes, opens what later ones need.
  EXPECT_TRUE(capi::live_context()->waiter().looked_in_vain("test").is_ok());
  some(std::max<std::uint64_t>(times / 10, 2'000));
  const Footprint before = Footprint::now();
  some(times);
  const Footprint after = Footprint::now();
  EXPECT_EQ(after.segment_bytes, before.segment_bytes);
  EXPECT_EQ(after.open_files, before.open_files);
#if !defined(__SANITIZE_ADDRESS__)  // which keeps what was freed
  EXPECT_LE(after.resident_pages, before.resident_pages + 100);
#endif
}

// An allreduce, a reduce or a reduce-scatter, short or now and then long, that is waited for or begun and then waited
// for.
void reduce_once(farsum_group group, int rank, std::uint64_t round) {
  static std::array<std::uint64_t, growing_ranks * 5'000> mine, result;
  const std::size_t count = round % 1'000 == 0 ? 5'000 : round % 7;
  const int root = static_cast<int>(round % growing_ranks);
  mine[0] = round;
  const farsum_collective collective = allreduce_of(mine.data(), result.data(), count);
  farsum_request request{};
  switch (round % 4) {
    case 0:
      ASSERT_FINE(farsum_allreduce(group, mine.data(), result.data(), count, FARSUM_UINT64, FARSUM_SUM));
      break;
    case 1:
      ASSERT_FINE(farsum_reduce(group, mine.data(), rank == root ? result.data() : nullptr, count, FARSUM_UINT64,
                                FARSUM_SUM, root));
      if (rank != root) return;
      break;
    case 2:
      ASSERT_FINE(farsum_reduce_scatter_block(group, mine.data(), result.data(), count, FARSUM_UINT64, FARSUM_SUM));
      if (rank != 0) return;
      break;
    default:
      ASSERT_FINE(farsum_collect(group, &collective, &request));
      ASSERT_FINE(farsum_wait(&request));
  }
  if (count == 0) return;
  ASSERT_EQ(result[0], growing_ranks * round) << "round " << round;
}

void reduce_often(int rank) {
  expect_no_growth(number_in("FARSUM_SOAK_REDUCTIONS", 10'000), [rank](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times && !testing::Test::HasFailure(); ++i) reduce_once(farsum_world(), rank, i);
    ASSERT_FINE(farsum_barrier(farsum_world()));
  });
}

void group_often(int rank) {
  expect_no_growth(number_in("FARSUM_SOAK_GROUPS", 1'000), [rank](std::uint64_t times) {
    constexpr std::array<int, growing_ranks> all = {0, 1};
    for (std::uint64_t i = 0; i < times && !testing::Test::HasFailure(); ++i) {
      farsum_group group{};
      ASSERT_FINE(farsum_group_create(farsum_world(), all.data(), growing_ranks, &group));
      for (std::uint64_t round = 0; round < 4; ++round) reduce_once(group, rank, i + round);
      ASSERT_FINE(farsum_group_free(&group));
    }
    ASSERT_FINE(farsum_barrier(farsum_world()));
  });
}

void run_over_two_nodes(void (*body)(int rank)) {
  const std::vector<Variables> a_node_each = {{{"FARSUM_NODE_NAME", "fox"}}, {{"FARSUM_NODE_NAME", "owl"}}};
  const auto as_rank = [body](int rank, Gathering& everybody) {
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    ASSERT_FINE(farsum_init(&options));
    body(rank);
    ASSERT_FINE(farsum_finalize());
  };
  run_embedded(a_node_each, as_rank, growing_ranks);
}

TEST(Growth, is_none_with_reductions_on_one_node) { run_ranks(growing_ranks, reduce_often); }

TEST(Growth, is_none_with_reductions_over_two_nodes) { run_over_two_nodes(reduce_often); }

TEST(Growth, is_none_with_groups_on_one_node) { run_ranks(growing_ranks, group_often); }

TEST(Growth, is_none_with_groups_over_two_nodes) { run_over_two_nodes(group_often); }

}  // namespace
}  // namespace farsum::test
