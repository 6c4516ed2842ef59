// Reductions between processes: of any length, on one node and on two, what is refused, and what a death does to them;
// and broadcasts, which go the same way on a node.
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cfenv>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "rank_processes.hpp"
#include "several_nodes.hpp"

namespace farsum::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::array<std::size_t, 8> counts_of_interest = {0, 1, 5, 6, 512, 513, 8193, 100'000};

// Element i of what a rank brings: no two ranks bring the same, and sums tell who is in them.
std::uint64_t element(int rank, std::size_t i) { return (std::uint64_t{1} << (4 * rank)) + (i << 40); }

std::uint64_t sum_of(int ranks, std::size_t i) {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += element(rank, i);
  return sum;
}

using Values = std::vector<std::uint64_t>;

Values brought_by(int rank, std::size_t count) {
  Values words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = element(rank, i);
  return words;
}

void expect_sums(const std::uint64_t* words, int ranks, std::size_t from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(words[i], sum_of(ranks, from + i)) << "element " << i << " of " << count;
}

void allreduce_apart_and_in_place(farsum_group group, int rank, int ranks, std::size_t count) {
  Values mine = brought_by(rank, count), result(count);
  ASSERT_FINE(farsum_allreduce(group, mine.data(), result.data(), count, FARSUM_UINT64, FARSUM_SUM));
  expect_sums(result.data(), ranks, 0, count);
  ASSERT_FINE(farsum_allreduce(group, mine.data(), mine.data(), count, FARSUM_UINT64, FARSUM_SUM));
  EXPECT_EQ(mine, result);
}

void reduce_to_each(farsum_group group, int rank, int ranks, std::size_t count) {
  for (int root = 0; root < ranks; ++root) {
    const Values mine = brought_by(rank, count);
    Values result(count, 7);
    ASSERT_FINE(farsum_reduce(group, mine.data(), rank == root ? result.data() : nullptr, count, FARSUM_UINT64,
                              FARSUM_SUM, root));
    if (rank == root)
      expect_sums(result.data(), ranks, 0, count);
    else
      EXPECT_EQ(result, Values(count, 7));
  }
}

void scatter_apart_and_in_place(farsum_group group, int rank, int ranks, std::size_t count) {
  Values mine = brought_by(rank, count * static_cast<std::size_t>(ranks)), result(count);
  const std::size_t from = count * static_cast<std::size_t>(rank);
  ASSERT_FINE(farsum_reduce_scatter_block(group, mine.data(), result.data(), count, FARSUM_UINT64, FARSUM_SUM));
  expect_sums(result.data(), ranks, from, count);
  ASSERT_FINE(farsum_reduce_scatter_block(group, mine.data(), mine.data(), count, FARSUM_UINT64, FARSUM_SUM));
  expect_sums(mine.data(), ranks, from, count);
}

void reduce_all_ways(farsum_group group, int rank, int ranks) {
  for (const std::size_t count : counts_of_interest) {
    allreduce_apart_and_in_place(group, rank, ranks, count);
    reduce_to_each(group, rank, ranks, count);
    scatter_apart_and_in_place(group, rank, ranks, count);
  }
}

class ReductionsOfRanks : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Ranks, ReductionsOfRanks, testing::Values(1, 2, 3, 8, 9), testing::PrintToStringParamName());

TEST_P(ReductionsOfRanks, of_a_node_give_the_sums_of_any_length) {
  const int ranks = GetParam();
  run_ranks(ranks, [ranks](int rank) { reduce_all_ways(farsum_world(), rank, ranks); });
}

TEST(Reductions, of_4_mebibytes_give_the_sum) {
  run_ranks(2, [](int rank) { allreduce_apart_and_in_place(farsum_world(), rank, 2, std::size_t{1} << 19); });
}

TEST(Reductions, of_two_nodes_give_the_sums_of_any_length) {
  run_embedded(two_nodes, [](int rank, Gathering& everybody) {
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    ASSERT_FINE(farsum_init(&options));
    reduce_all_ways(farsum_world(), rank, most_ranks);
    const Values mine(3);
    EXPECT_REFUSED(
        farsum_allreduce(farsum_world(), mine.data(), nullptr, 0, rank == 2 ? FARSUM_INT8 : FARSUM_BYTE, FARSUM_BXOR),
        FARSUM_ERR_ARGUMENT, AllOf(HasSubstr("int8_t"), HasSubstr("byte"), HasSubstr("rank 2")));
    allreduce_apart_and_in_place(farsum_world(), rank, most_ranks, 100);
    ASSERT_FINE(farsum_barrier(farsum_world()));
    ASSERT_FINE(farsum_finalize());
  });
}

// Two groups of the same ranks, each used by a thread of its own.
TEST(Reductions, of_several_groups_go_on_at_once) {
  Job job;
  job.ranks = 3;
  run_ranks(job, [](int rank) {
    const std::array<int, 3> all = {0, 1, 2};
    std::array<farsum_group, 2> groups{};
    for (farsum_group& group : groups) ASSERT_FINE(farsum_group_create(farsum_world(), all.data(), 3, &group));
    std::vector<std::thread> threads;
    for (const farsum_group group : groups) {
      threads.emplace_back([=] {
        for (std::size_t round = 1; round < 100; ++round)
          allreduce_apart_and_in_place(group, rank, 3, round * round % 700);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (farsum_group& group : groups) ASSERT_FINE(farsum_group_free(&group));
  });
}

TEST(Reductions, of_a_group_whose_ranks_stand_in_another_order_give_each_its_block) {
  run_ranks(3, [](int rank) {
    const std::array<int, 3> turned = {2, 0, 1};
    farsum_group group{};
    ASSERT_FINE(farsum_group_create(farsum_world(), turned.data(), 3, &group));
    int place = -1;
    ASSERT_FINE(farsum_rank(group, &place));
    EXPECT_EQ(turned[static_cast<std::size_t>(place)], rank);
    reduce_to_each(group, place, 3, 4);
    scatter_apart_and_in_place(group, place, 3, 4);
    ASSERT_FINE(farsum_group_free(&group));
  });
}

// All ranks refuse the same, and none waits for another; then they reduce as ever.
TEST(Reductions, refuse_what_one_rank_can_see_to_be_wrong) {
  run_ranks(2, [](int rank) {
    const farsum_group world = farsum_world();
    Values words(16, 1);
    std::uint64_t* const mine = words.data();
    EXPECT_REFUSED(farsum_reduce(world, mine, mine, 1, FARSUM_UINT64, FARSUM_SUM, 2), FARSUM_ERR_RANK,
                   AllOf(HasSubstr("farsum_reduce"), HasSubstr("root 2"), HasSubstr("0 to 1")));
    EXPECT_REFUSED(farsum_reduce(world, mine, mine, 1, FARSUM_UINT64, FARSUM_SUM, -1), FARSUM_ERR_RANK,
                   HasSubstr("root -1"));
    for (const farsum_op op : {FARSUM_SCALED_SUM, FARSUM_REPLACE, FARSUM_NO_OP, FARSUM_MAXLOC}) {
      const std::string why = op == FARSUM_MAXLOC ? "" : ": replace, no_op and scaled_sum are for windows alone";
      EXPECT_REFUSED(farsum_allreduce(world, mine, mine, 1, FARSUM_UINT64, op), FARSUM_ERR_TYPE,
                     HasSubstr("uint64_t" + why + "; use sum, prod, min, max, band, bor, bxor, land, lor or lxor"));
    }
    if (enumerators_may_be_unknown) {
      EXPECT_REFUSED(farsum_allreduce(world, mine, mine, 1, unknown<farsum_type>(99), FARSUM_SUM), FARSUM_ERR_TYPE,
                     HasSubstr("unknown type 99"));
      EXPECT_REFUSED(farsum_allreduce(world, mine, mine, 1, FARSUM_INT8, unknown<farsum_op>(-1)), FARSUM_ERR_TYPE,
                     HasSubstr("unknown operator -1"));
    }
    EXPECT_REFUSED(farsum_allreduce(world, nullptr, mine, 1, FARSUM_UINT64, FARSUM_SUM), FARSUM_ERR_ARGUMENT,
                   HasSubstr("null"));
    EXPECT_REFUSED(farsum_allreduce(world, mine, nullptr, 1, FARSUM_UINT64, FARSUM_SUM), FARSUM_ERR_ARGUMENT,
                   HasSubstr("null"));
    EXPECT_REFUSED(farsum_allreduce(world, mine, mine + 3, 4, FARSUM_UINT64, FARSUM_SUM), FARSUM_ERR_ARGUMENT,
                   HasSubstr("24 bytes behind"));
    EXPECT_REFUSED(farsum_allreduce(world, mine + 3, mine, 4, FARSUM_UINT64, FARSUM_SUM), FARSUM_ERR_ARGUMENT,
                   HasSubstr("24 bytes before"));
    EXPECT_REFUSED(farsum_reduce_scatter_block(world, mine, mine + 4, 4, FARSUM_UINT64, FARSUM_SUM),
                   FARSUM_ERR_ARGUMENT, HasSubstr("32 bytes behind"));
    EXPECT_REFUSED(farsum_allreduce({12345}, mine, mine, 1, FARSUM_UINT64, FARSUM_SUM), FARSUM_ERR_HANDLE,
                   HasSubstr("does not live"));
    EXPECT_FINE(farsum_allreduce(world, mine, mine + 4, 4, FARSUM_UINT64, FARSUM_SUM));
    EXPECT_FINE(farsum_allreduce(world, nullptr, nullptr, 0, FARSUM_UINT64, FARSUM_SUM));
    allreduce_apart_and_in_place(world, rank, 2, 4);
  });
}

TEST(Reductions, refuse_more_bytes_than_memory_can_hold) {
  run_ranks(2, [](int) {
    const std::size_t most = std::numeric_limits<std::size_t>::max();
    std::uint64_t word = 0, other = 0;
    EXPECT_REFUSED(farsum_allreduce(farsum_world(), &word, &other, most / 8 + 1, FARSUM_UINT64, FARSUM_SUM),
                   FARSUM_ERR_RANGE, HasSubstr("8 bytes"));
    EXPECT_REFUSED(farsum_reduce_scatter_block(farsum_world(), &word, &other, most / 8, FARSUM_UINT64, FARSUM_SUM),
                   FARSUM_ERR_RANGE, HasSubstr("2 ranks"));
    EXPECT_REFUSED(farsum_allgather(farsum_world(), &word, &other, most / 2 + 2), FARSUM_ERR_RANGE,
                   HasSubstr("2 ranks"));
  });
}

TEST(Reductions, that_ranks_do_not_agree_on_are_told_to_all_that_wait_and_harm_no_other_call) {
  run_ranks(3, [](int rank) {
    const farsum_group world = farsum_world();
    Values mine = brought_by(rank, 3000), result(1000, 9);
    const int root = rank == 1 ? 0 : 2;
    // Nobody who waits for an answer is left without: of a short one the root alone waits, and rank 0 is none here.
    if (rank == 2) {
      EXPECT_REFUSED(farsum_reduce(world, mine.data(), result.data(), 10, FARSUM_UINT64, FARSUM_SUM, root),
                     FARSUM_ERR_ARGUMENT, AllOf(HasSubstr("root 0"), HasSubstr("root 2")));
    } else {
      EXPECT_FINE(farsum_reduce(world, mine.data(), nullptr, 10, FARSUM_UINT64, FARSUM_SUM, root));
    }
    EXPECT_REFUSED(farsum_reduce(world, mine.data(), result.data(), 1000, FARSUM_UINT64, FARSUM_SUM, root),
                   FARSUM_ERR_ARGUMENT, AllOf(HasSubstr("root 0"), HasSubstr("root 2")));
    EXPECT_REFUSED(farsum_allreduce(world, mine.data(), result.data(), rank == 0 ? 1 : 1000, FARSUM_UINT64, FARSUM_SUM),
                   FARSUM_ERR_ARGUMENT, AllOf(HasSubstr("of 1 elements"), HasSubstr("of 1000 elements")));
    EXPECT_REFUSED(rank == 0
                       ? farsum_allreduce(world, mine.data(), result.data(), 2, FARSUM_UINT64, FARSUM_SUM)
                       : farsum_reduce_scatter_block(world, mine.data(), result.data(), 2, FARSUM_UINT64, FARSUM_SUM),
                   FARSUM_ERR_ARGUMENT, AllOf(HasSubstr("farsum_allreduce"), HasSubstr("scatter")));
    EXPECT_EQ(result, Values(1000, 9));
    for (std::size_t count = 1; count <= 10; ++count) allreduce_apart_and_in_place(world, rank, 3, count);
  });
}

// The leaf is done with the group, or with Farsum, before its root has begun.
TEST(Reductions, leave_what_a_leaf_brought_to_a_root_that_comes_when_the_leaf_has_gone) {
  for (const bool frees : {true, false}) {
    const SharedWithRanks<std::atomic<bool>> has_returned;
    run_ranks(2, [&](int rank) {
      const std::array<int, 2> all = {0, 1};
      farsum_group group = farsum_world();
      if (frees) ASSERT_FINE(farsum_group_create(farsum_world(), all.data(), 2, &group));
      const std::uint64_t mine = element(rank, 0);
      std::uint64_t sum = 0;
      while (rank == 1 && !*has_returned) std::this_thread::yield();
      EXPECT_FINE(farsum_reduce(group, &mine, &sum, 1, FARSUM_UINT64, FARSUM_SUM, 1));
      EXPECT_EQ(sum, rank == 1 ? sum_of(2, 0) : 0);
      if (rank == 0) *has_returned = true;
      if (frees) EXPECT_FINE(farsum_group_free(&group));
    });
  }
}

// The others come when the root has returned twice; then it is never more than two calls ahead of them.
TEST(Broadcasts, let_their_root_return_before_the_others_have_come) {
  struct Progress {
    std::atomic<std::uint64_t> returned;
    std::atomic<std::uint64_t> entered;
  };
  const SharedWithRanks<Progress> progress;
  run_ranks(2, [&](int rank) {
    for (std::uint64_t call = 1; call <= 1000; ++call) {
      while (rank == 0 && call == 1 && progress->returned < 2) std::this_thread::yield();
      if (rank == 0) progress->entered = call;
      std::array<std::uint64_t, 9> told{};
      if (rank == 1) told.fill(call);
      ASSERT_FINE(farsum_broadcast(farsum_world(), told.data(), (call % 2 == 0 ? 1 : 9) * sizeof call, 1));
      EXPECT_EQ(told[0], call);
      if (rank == 1) {
        progress->returned = call;
        EXPECT_LE(call, progress->entered + 2);
      }
    }
  });
}

// The root is on its way to free the group, or to finalize, before the others begin.
TEST(Broadcasts, leave_what_a_root_tells_to_those_that_come_when_it_has_gone) {
  for (const bool frees : {true, false}) {
    const SharedWithRanks<std::atomic<bool>> has_returned;
    run_ranks(2, [&](int rank) {
      const std::array<int, 2> all = {0, 1};
      farsum_group group = farsum_world();
      if (frees) ASSERT_FINE(farsum_group_create(farsum_world(), all.data(), 2, &group));
      std::uint64_t told = rank == 0 ? 5 : 0;
      while (rank == 1 && !*has_returned) std::this_thread::yield();
      EXPECT_FINE(farsum_broadcast(group, &told, sizeof told, 0));
      EXPECT_EQ(told, 5);
      if (rank == 0) *has_returned = true;
      if (frees) EXPECT_FINE(farsum_group_free(&group));
    });
  }
}

TEST(Broadcasts, tell_a_rank_of_another_length_that_of_the_root) {
  run_ranks(3, [](int rank) {
    std::vector<char> buffer(100'000, 9);
    for (const std::size_t right : {std::size_t{8}, buffer.size()}) {
      for (const std::size_t wrong : {std::size_t{9}, buffer.size() - 1}) {
        if (rank == 2) {
          EXPECT_REFUSED(farsum_broadcast(farsum_world(), buffer.data(), wrong, 0), FARSUM_ERR_ARGUMENT,
                         AllOf(HasSubstr(std::to_string(right) + " bytes"), HasSubstr("root 0")));
        } else {
          EXPECT_FINE(farsum_broadcast(farsum_world(), buffer.data(), right, 0));
        }
        int told = rank;
        EXPECT_FINE(farsum_broadcast(farsum_world(), &told, sizeof told, 1));
        EXPECT_EQ(told, 1);
      }
    }
    EXPECT_EQ(buffer, std::vector<char>(100'000, 9));
  });
}

TEST(Reductions, compute_as_a_process_begins_whatever_a_thread_has_set) {
  run_ranks(2, [](int rank) {
    ASSERT_EQ(std::fesetround(rank == 0 ? FE_UPWARD : FE_DOWNWARD), 0);
    const double mine = rank == 0 ? 1 : 0x1p-80;
    double sum = 0;
    ASSERT_FINE(farsum_allreduce(farsum_world(), &mine, &sum, 1, FARSUM_DOUBLE, FARSUM_SUM));
    EXPECT_EQ(std::fegetround(), rank == 0 ? FE_UPWARD : FE_DOWNWARD);
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(sum, 1);
  });
}

// One rank ends without a word; the others are told in the call that waits for it, and in each after that.
// Takes seconds: each call has a job of its own.
TEST(Reductions, end_for_all_others_when_a_rank_dies) {
  for (const std::size_t count : {1, 100'000}) {
    Job job;
    job.ranks = 3;
    job.starts = false;
    run_ranks(job, [count](int rank) {
      ASSERT_FINE(farsum_init(nullptr));
      allreduce_apart_and_in_place(farsum_world(), rank, 3, count);
      if (rank == 1) _exit(0);
      Values mine(count), result(count);
      for (int call = 0; call < 2; ++call) {
        EXPECT_REFUSED(farsum_allreduce(farsum_world(), mine.data(), result.data(), count, FARSUM_UINT64, FARSUM_SUM),
                       FARSUM_ERR_PEER_FAILED, HasSubstr("rank 1"));
      }
    });
  }
}

}  // namespace
}  // namespace farsum::test
