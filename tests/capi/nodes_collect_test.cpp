// Collectives over several nodes where something is in the way: a rank that dies, a request that nobody waits for, a
// program that does not call; and groups of one, calls without elements, integers that overflow.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "collective_of.hpp"
#include "rank_processes.hpp"
#include "several_nodes.hpp"

namespace farsum::test {
namespace {

using testing::HasSubstr;

const std::vector<Variables> three_nodes = {{{"FARSUM_NODE_NAME", "fox"}},
                                            {{"FARSUM_NODE_NAME", "owl"}},
                                            {{"FARSUM_NODE_NAME", "elk"}},
                                            {{"FARSUM_NODE_NAME", "fox"}},
                                            {{"FARSUM_NODE_NAME", "owl"}}};

std::vector<Variables> nodes_of_one(int nodes) {
  std::vector<Variables> named;
  for (int rank = 0; rank < nodes; ++rank) named.push_back({{"FARSUM_NODE_NAME", std::to_string(rank)}});
  return named;
}

// How many ranks have come to a point, which they tell each other without Farsum.
struct Milestones {
  std::array<std::atomic<int>, 4> reached;

  void reach(std::size_t milestone) { reached[milestone].fetch_add(1, std::memory_order_acq_rel); }
  void await(std::size_t milestone, int ranks) const {
    while (reached[milestone].load(std::memory_order_acquire) < ranks) std::this_thread::yield();
  }
};

// One of the calls that are there both ways, of words.
struct EitherWay {
  farsum_collective_kind kind;
  std::size_t count;
  std::vector<std::uint64_t> mine, result;

  EitherWay(farsum_collective_kind of_kind, std::size_t of_count, int ranks)
      : kind(of_kind), count(of_count), mine(count * ranks, 1), result(count * ranks) {}

  farsum_collective collective() {
    farsum_collective made = collective_of(kind, kind == FARSUM_COLLECT_BARRIER ? 0 : count);
    made.mine = mine.data();
    made.result = result.data();
    return made;
  }
  farsum_status begin(farsum_group group, farsum_request& request) {
    const farsum_collective made = collective();
    return farsum_collect(group, &made, &request);
  }
  farsum_status block(farsum_group group, int rank) {
    switch (kind) {
      case FARSUM_COLLECT_BARRIER:
        return farsum_barrier(group);
      case FARSUM_COLLECT_BROADCAST:
        return farsum_broadcast(group, mine.data(), 8 * count, 0);
      case FARSUM_COLLECT_ALLGATHER:
        return farsum_allgather(group, mine.data(), result.data(), 8 * count);
      case FARSUM_COLLECT_ALLREDUCE:
        return farsum_allreduce(group, mine.data(), result.data(), count, FARSUM_UINT64, FARSUM_SUM);
      case FARSUM_COLLECT_REDUCE:
        return farsum_reduce(group, mine.data(), rank == 0 ? result.data() : nullptr, count, FARSUM_UINT64, FARSUM_SUM,
                             0);
      case FARSUM_COLLECT_REDUCE_SCATTER_BLOCK:
        break;
    }
    return farsum_reduce_scatter_block(group, mine.data(), result.data(), count, FARSUM_UINT64, FARSUM_SUM);
  }
};

constexpr std::array<farsum_collective_kind, 6> kinds_both_ways = {
    FARSUM_COLLECT_BARRIER,   FARSUM_COLLECT_BROADCAST, FARSUM_COLLECT_ALLGATHER,
    FARSUM_COLLECT_ALLREDUCE, FARSUM_COLLECT_REDUCE,    FARSUM_COLLECT_REDUCE_SCATTER_BLOCK};

// ---- a rank that dies

struct DyingJob {
  std::vector<Variables> nodes;
  int victim;
};

// All have made the call once, both ways. Then the victim ends without a word while the others have begun the next ones
// and wait for the last. Nobody leaves before all have been told, so that no other rank is missed.
void expect_death_is_told(const DyingJob& job, farsum_collective_kind kind) {
  const int ranks = static_cast<int>(job.nodes.size());
  std::vector<Variables> of_rank = job.nodes;
  for (Variables& variables : of_rank) variables["FARSUM_NET_TIMEOUT"] = "2";
  const SharedWithRanks<Milestones> milestones;
  const std::string name_of_victim = "rank " + std::to_string(job.victim) + " of the job";
  const auto body = [&](int rank, Gathering& everybody) {
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    ASSERT_FINE(farsum_init(&options));
    const farsum_group world = farsum_world();
    EitherWay before(kind, 3, ranks), brief(kind, 2, ranks), extended(kind, 20'000, ranks), last(kind, 1, ranks);
    farsum_request request{}, of_brief{}, of_extended{};
    ASSERT_FINE(before.block(world, rank));
    ASSERT_FINE(before.begin(world, request));
    ASSERT_FINE(farsum_wait(&request));
    if (rank == job.victim) {
      milestones->await(0, ranks - 1);
      _exit(0);
    }
    ASSERT_FINE(brief.begin(world, of_brief));
    ASSERT_FINE(extended.begin(world, of_extended));
    milestones->reach(0);
    const farsum_status blocked = last.block(world, rank);
    // A root of a broadcast waits for nobody, nor does whoever hears from it past the dead; of a reduce the root waits.
    const bool may_not_wait = kind == FARSUM_COLLECT_BROADCAST || (kind == FARSUM_COLLECT_REDUCE && rank != 0);
    if (!may_not_wait || blocked != FARSUM_OK) {
      EXPECT_REFUSED(blocked, FARSUM_ERR_PEER_FAILED, HasSubstr(name_of_victim));
    }
    EXPECT_REFUSED(farsum_wait(&of_extended), FARSUM_ERR_PEER_FAILED, HasSubstr(name_of_victim));
    EXPECT_REFUSED(farsum_wait(&of_brief), FARSUM_ERR_PEER_FAILED, HasSubstr(name_of_victim));
    EXPECT_REFUSED(farsum_barrier(world), FARSUM_ERR_PEER_FAILED, HasSubstr(name_of_victim));
    milestones->reach(1);
    milestones->await(1, ranks - 1);
  };
  run_embedded(of_rank, body, ranks);
}

// In make test-all: a death on another node is known by its silence.
TEST(DeathsOverNodes, of_a_nodes_first_rank_are_told_to_all_in_calls_that_wait_and_in_requests) {
  constexpr std::array<const char*, 6> names = {"barrier",   "broadcast", "allgather",
                                                "allreduce", "reduce",    "reduce_scatter_block"};
  run_jobs_at_once(kinds_both_ways.size(), [&](int job) {
    const farsum_collective_kind kind = kinds_both_ways[static_cast<std::size_t>(job)];
    SCOPED_TRACE(names[kind]);
    expect_death_is_told({three_nodes, 1}, kind);
  });
}

// Takes seconds: a death on another node is known by its silence.
TEST(DeathsOverNodes, of_a_rank_that_is_a_node_are_told_to_all) {
  expect_death_is_told({three_nodes, 2}, FARSUM_COLLECT_ALLREDUCE);
}

TEST(DeathsOverNodes, of_a_rank_that_speaks_for_no_node_are_told_to_all) {
  expect_death_is_told({three_nodes, 4}, FARSUM_COLLECT_ALLREDUCE);
}

// So many nodes that they are in a tree, of which rank 8 has four behind it.
// In make test-all: a death on another node is known by its silence.
TEST(DeathsOverNodes, of_a_rank_in_the_middle_of_a_tree_are_told_to_all) {
  expect_death_is_told({nodes_of_one(13), 8}, FARSUM_COLLECT_ALLREDUCE);
}

// ---- programs that do not call, do not wait, or want to end

// What a rank gets of a call of ones; a broadcast's root and others than the root of a reduce get nothing.
void expect_ones_summed(const EitherWay& made, int rank, int ranks) {
  const bool is_root = rank == 0;
  if (made.kind == FARSUM_COLLECT_BARRIER || (made.kind == FARSUM_COLLECT_BROADCAST && is_root)) return;
  if (made.kind == FARSUM_COLLECT_REDUCE && !is_root) return;
  const bool sums = made.kind != FARSUM_COLLECT_BROADCAST && made.kind != FARSUM_COLLECT_ALLGATHER;
  const std::size_t got = made.kind == FARSUM_COLLECT_ALLGATHER ? made.result.size() : made.count;
  const std::uint64_t expected = sums ? static_cast<std::uint64_t>(ranks) : 1;
  for (std::size_t i = 0; i < got; ++i) ASSERT_EQ(made.result[i], expected) << "element " << i << " of " << made.kind;
}

// The idle rank begins a call of each kind, and goes on only when all others have their answers. It never waits for
// its own.
void expect_idle_rank_holds_up_nobody(const std::vector<Variables>& nodes, int idle, std::size_t count) {
  const int ranks = static_cast<int>(nodes.size());
  const SharedWithRanks<Milestones> milestones;
  const auto body = [&](int rank, Gathering& everybody) {
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    ASSERT_FINE(farsum_init(&options));
    std::vector<EitherWay> calls;
    for (const farsum_collective_kind kind : kinds_both_ways) calls.emplace_back(kind, count, ranks);
    std::vector<farsum_request> requests(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) ASSERT_FINE(calls[i].begin(farsum_world(), requests[i]));
    if (rank == idle) {
      milestones->await(0, ranks - 1);
    } else {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        ASSERT_FINE(farsum_wait(&requests[i]));
        expect_ones_summed(calls[i], rank, ranks);
      }
      milestones->reach(0);
    }
    ASSERT_FINE(farsum_finalize_forced());
  };
  run_embedded(nodes, body, ranks);
}

TEST(CollectOverNodes, needs_no_call_of_a_rank_that_has_begun_nor_that_it_waits) {
  for (const std::size_t count : {3, 20'000}) {
    for (const int idle : {0, 1, 2, 4}) expect_idle_rank_holds_up_nobody(three_nodes, idle, count);
  }
}

// Rank 8 has to forward what four others bring and get.
TEST(CollectOverNodes, needs_no_call_of_a_rank_in_the_middle_of_a_tree) {
  expect_idle_rank_holds_up_nobody(nodes_of_one(13), 8, 3);
}

// Numbers whose sums depend on the order; ranks are dealt out to the nodes as three_nodes has them.
TEST(CollectOverNodes, reduces_by_ranks_to_the_bits_of_the_blocking_calls) {
  std::vector<Variables> by_ranks = three_nodes;
  for (Variables& variables : by_ranks) variables["FARSUM_REDUCE_ORDER"] = "ranks";
  const int ranks = static_cast<int>(by_ranks.size());
  const auto body = [&](int rank, Gathering& everybody) {
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    ASSERT_FINE(farsum_init(&options));
    for (const std::size_t count : {1, 33, 20'000}) {
      std::vector<double> mine(count), blocking(count), begun(count);
      for (std::size_t i = 0; i < count; ++i)
        mine[i] = std::ldexp(1.0 + 0.001 * rank, 17 * rank % 60 + static_cast<int>(i % 5));
      ASSERT_FINE(farsum_allreduce(farsum_world(), mine.data(), blocking.data(), count, FARSUM_DOUBLE, FARSUM_SUM));
      farsum_collective collective = allreduce_of(mine.data(), begun.data(), count);
      collective.type = FARSUM_DOUBLE;
      farsum_request request{};
      ASSERT_FINE(farsum_collect(farsum_world(), &collective, &request));
      ASSERT_FINE(farsum_wait(&request));
      EXPECT_EQ(begun, blocking);
    }
    ASSERT_FINE(farsum_finalize());
  };
  run_embedded(by_ranks, body, ranks);
}

// More calls than places, so that some wait for others. All ranks are refused alike, and then have their answers.
TEST(CollectOverNodes, is_not_cut_short_by_ranks_that_come_to_finalize_with_calls_under_way) {
  const int ranks = static_cast<int>(three_nodes.size());
  const auto body = [&](int rank, Gathering& everybody) {
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    ASSERT_FINE(farsum_init(&options));
    std::vector<EitherWay> calls;
    for (const farsum_collective_kind kind : kinds_both_ways) calls.emplace_back(kind, 9'000, ranks);
    std::vector<farsum_request> requests(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) ASSERT_FINE(calls[i].begin(farsum_world(), requests[i]));
    if (rank == 1) {
      EXPECT_REFUSED(farsum_finalize(), FARSUM_ERR_PENDING, HasSubstr("farsum_collect"));
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      ASSERT_FINE(farsum_wait(&requests[i]));
      expect_ones_summed(calls[i], rank, ranks);
    }
    if (rank != 1) {
      EXPECT_REFUSED(farsum_finalize(), FARSUM_ERR_PENDING, HasSubstr("rank 1"));
    }
    ASSERT_FINE(farsum_finalize());
  };
  run_embedded(three_nodes, body, ranks);
}

// The late rank comes when the other has told of its wait, which goes on as if nothing had been.
// Takes seconds: a rank is late.
TEST(WaitNotice, is_told_where_a_rank_is_late_and_is_no_error) {
  Job job;
  job.settings = {{"FARSUM_WAIT_NOTICE", "1"}};
  const int told = memfd_create("told", 0);
  const auto text_told = [told] {
    std::array<char, 1000> text{};
    EXPECT_GE(pread(told, text.data(), text.size() - 1, 0), 0);
    return std::string(text.data());
  };
  run_ranks(job, [&](int rank) {
    const std::uint64_t mine = 1;
    std::uint64_t sum = 0;
    if (rank == 0) {
      ASSERT_EQ(dup2(told, STDERR_FILENO), STDERR_FILENO);
    }
    while (rank == 1 && text_told().empty()) std::this_thread::yield();
    ASSERT_FINE(farsum_allreduce(farsum_world(), &mine, &sum, 1, FARSUM_UINT64, FARSUM_SUM));
    EXPECT_EQ(sum, 2u);
    EXPECT_THAT(text_told(), HasSubstr("farsum_allreduce: rank 0 of the job has waited for others for 1 s"));
  });
  close(told);
}

// ---- groups of one, no elements, overflow

TEST(CollectOverNodes, of_a_group_of_one_gives_what_the_rank_has) {
  run_embedded(two_nodes, [](int rank, Gathering& everybody) {
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    ASSERT_FINE(farsum_init(&options));
    farsum_group alone{};
    ASSERT_FINE(farsum_group_create(farsum_world(), &rank, 1, &alone));
    for (const farsum_collective_kind kind : kinds_both_ways) {
      for (const std::size_t count : {0, 1, 20'000}) {
        EitherWay begun(kind, count, 1), blocking(kind, count, 1);
        farsum_request request{};
        ASSERT_FINE(begun.begin(alone, request));
        ASSERT_FINE(farsum_wait(&request));
        expect_ones_summed(begun, 0, 1);
        ASSERT_FINE(blocking.block(alone, 0));
        if (kind != FARSUM_COLLECT_BROADCAST) expect_ones_summed(blocking, 0, 1);
      }
    }
    ASSERT_FINE(farsum_group_free(&alone));
    ASSERT_FINE(farsum_finalize());
  });
}

void collect_no_elements(farsum_group group, int rank) {
  for (const farsum_collective_kind kind : kinds_both_ways) {
    EitherWay none(kind, 0, most_ranks);
    farsum_collective nowhere = none.collective();
    nowhere.mine = nowhere.result = nullptr;
    farsum_request request{};
    ASSERT_FINE(farsum_collect(group, &nowhere, &request));
    ASSERT_FINE(farsum_wait(&request));
    ASSERT_FINE(none.block(group, rank));
  }
}

template <class Integer>
void expect_wrapped(farsum_type type, farsum_op op, std::size_t count, Integer mine, Integer expected) {
  const std::vector<Integer> brought(count, mine);
  std::vector<Integer> blocking(count), begun(count);
  ASSERT_FINE(farsum_allreduce(farsum_world(), brought.data(), blocking.data(), count, type, op));
  EXPECT_EQ(blocking, std::vector<Integer>(count, expected));
  farsum_collective collective = allreduce_of(brought.data(), begun.data(), count);
  collective.type = type;
  collective.op = op;
  farsum_request request{};
  ASSERT_FINE(farsum_collect(farsum_world(), &collective, &request));
  ASSERT_FINE(farsum_wait(&request));
  EXPECT_EQ(begun, blocking);
}

// Four ranks.
void overflow_in_all_lengths() {
  for (const std::size_t count : {1, 700, 40'000}) {
    expect_wrapped<std::int8_t>(FARSUM_INT8, FARSUM_SUM, count, 100, -112);
    expect_wrapped<std::uint8_t>(FARSUM_UINT8, FARSUM_PROD, count, 7, 97);
    expect_wrapped<std::int32_t>(FARSUM_INT32, FARSUM_SUM, count, std::numeric_limits<std::int32_t>::max(), -4);
    expect_wrapped<std::int64_t>(FARSUM_INT64, FARSUM_SUM, count, std::numeric_limits<std::int64_t>::max(), -4);
    expect_wrapped<std::int64_t>(FARSUM_INT64, FARSUM_PROD, count, std::int64_t{1} << 16, 0);
  }
}

TEST(Reductions, of_integers_that_overflow_wrap_around) {
  run_ranks(most_ranks, [](int) { overflow_in_all_lengths(); });
  run_embedded(two_nodes, [](int rank, Gathering& everybody) {
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    ASSERT_FINE(farsum_init(&options));
    overflow_in_all_lengths();
    ASSERT_FINE(farsum_finalize());
  });
}

TEST(Collect, takes_no_elements_from_nowhere) {
  run_ranks(most_ranks, [](int rank) { collect_no_elements(farsum_world(), rank); });
  run_embedded(two_nodes, [](int rank, Gathering& everybody) {
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    ASSERT_FINE(farsum_init(&options));
    collect_no_elements(farsum_world(), rank);
    ASSERT_FINE(farsum_finalize());
  });
}

}  // namespace
}  // namespace farsum::test
