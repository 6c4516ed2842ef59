// Collectives that nobody waits for, between processes: of all kinds and lengths, on one node and on two, in any order,
// what is refused, and what a death does to them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <fstream>
#include <functional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "capi/global.hpp"
#include "collective_of.hpp"
#include "farsum_embed.h"
#include "rank_processes.hpp"
#include "several_nodes.hpp"

namespace farsum::test {
namespace {

using testing::HasSubstr;
using CollectedWords = std::vector<std::uint64_t>;

std::uint64_t word_of(int rank, std::size_t i) { return (std::uint64_t{1} << (4 * rank)) + (i << 40); }

CollectedWords words_of(int rank, std::size_t count) {
  CollectedWords words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = word_of(rank, i);
  return words;
}

std::uint64_t summed(int ranks, std::size_t i) {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += word_of(rank, i);
  return sum;
}

constexpr std::array<farsum_collective_kind, 6> all_kinds = {
    FARSUM_COLLECT_BARRIER,   FARSUM_COLLECT_BROADCAST, FARSUM_COLLECT_ALLGATHER,
    FARSUM_COLLECT_ALLREDUCE, FARSUM_COLLECT_REDUCE,    FARSUM_COLLECT_REDUCE_SCATTER_BLOCK};

// One call, begun, and what it is to end with.
struct Collected {
  farsum_collective_kind kind;
  std::size_t count;
  int root;
  bool is_in_place;
  CollectedWords mine{}, result{};
  farsum_request request{};

  void begin(farsum_group group, int rank, int ranks) {
    const std::size_t all = count * static_cast<std::size_t>(ranks);
    mine = words_of(rank, kind == FARSUM_COLLECT_REDUCE_SCATTER_BLOCK ? all : count);
    result.assign(kind == FARSUM_COLLECT_ALLGATHER ? all : count, 7);
    farsum_collective collective = collective_of(kind, count, root);
    if (is_in_place) std::copy_n(mine.begin(), std::min(mine.size(), result.size()), result.begin());
    const bool fits = mine.size() <= result.size();
    collective.mine = is_in_place && fits ? result.data() : mine.data();
    collective.result = is_in_place && !fits ? mine.data() : result.data();
    ASSERT_FINE(farsum_collect(group, &collective, &request));
    if (collective.mine == mine.data() && collective.result != mine.data()) std::fill(mine.begin(), mine.end(), 1);
  }
  void check(int rank, int ranks) {
    if (is_in_place && mine.size() > result.size()) std::copy_n(mine.begin(), result.size(), result.begin());
    const bool gets = kind != FARSUM_COLLECT_BARRIER && (kind != FARSUM_COLLECT_REDUCE || rank == root) &&
                      (kind != FARSUM_COLLECT_BROADCAST || rank != root);
    for (std::size_t i = 0; i < result.size() && gets; ++i) {
      const std::size_t from = kind == FARSUM_COLLECT_REDUCE_SCATTER_BLOCK ? static_cast<std::size_t>(rank) * count : 0;
      const std::uint64_t expected = kind == FARSUM_COLLECT_BROADCAST ? word_of(root, i)
                                     : kind == FARSUM_COLLECT_ALLGATHER
                                         ? word_of(static_cast<int>(i / count), i % count)
                                         : summed(ranks, from + i);
      ASSERT_EQ(result[i], expected) << "element " << i << " of kind " << kind << ", " << count;
    }
    if (!gets && !is_in_place) {
      EXPECT_EQ(result, CollectedWords(result.size(), 7));
    }
  }
};

// As rank `rank` of a job on two nodes, to which at its end no letter has come that nobody sends.
void on_two_nodes(const std::function<void(int)>& body, const std::vector<Variables>& of_rank = two_nodes) {
  run_embedded(of_rank, [&](int rank, Gathering& everybody) {
    Caller caller{&everybody, rank};
    const farsum_init_options options = options_of(caller);
    ASSERT_FINE(farsum_init(&options));
    ASSERT_NO_FATAL_FAILURE(body(rank));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    const LetterDesk& desk = capi::live_context()->letter_desk();
    EXPECT_EQ(desk.unknown() + desk.refused(), 0);
    ASSERT_FINE(farsum_finalize());
  });
}

void collect_all_kinds(farsum_group group, int rank, int ranks) {
  for (const std::size_t count : {0, 1, 5, 64, 129, 1'000, 100'000}) {
    for (const bool is_in_place : {false, true}) {
      std::vector<Collected> all;
      for (const farsum_collective_kind kind : all_kinds) all.push_back({kind, count, (kind + 1) % ranks, is_in_place});
      for (Collected& one : all) ASSERT_NO_FATAL_FAILURE(one.begin(group, rank, ranks));
      for (std::size_t i = all.size(); i-- > 0;) {
        ASSERT_FINE(farsum_wait(&all[i].request));
        EXPECT_EQ(all[i].request.bits, 0);
        ASSERT_NO_FATAL_FAILURE(all[i].check(rank, ranks));
      }
    }
  }
}

TEST(Collect, of_one_node_gives_what_is_to_be_had_of_any_length) {
  for (const int ranks : {1, 2, 4})
    run_ranks(ranks, [ranks](int rank) { collect_all_kinds(farsum_world(), rank, ranks); });
}

TEST(Collect, of_two_nodes_gives_what_is_to_be_had_of_any_length) {
  on_two_nodes([](int rank) { collect_all_kinds(farsum_world(), rank, most_ranks); });
}

void collect_over_overlapping_groups(int rank) {
  constexpr std::array<int, 3> first = {0, 1, 2}, second = {3, 2, 1};
  farsum_group one{}, other{};
  if (rank != 3) {
    ASSERT_FINE(farsum_group_create(farsum_world(), first.data(), 3, &one));
  }
  if (rank != 0) {
    ASSERT_FINE(farsum_group_create(farsum_world(), second.data(), 3, &other));
  }
  for (int round = 0; round < 30; ++round) {
    const std::uint64_t mine = word_of(rank, 0);
    std::array<std::uint64_t, 12> sums{};
    std::vector<farsum_request> requests;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      farsum_collective collective = collective_of(FARSUM_COLLECT_ALLREDUCE, 1);
      collective.mine = &mine;
      collective.result = &sums[i];
      if (i % 2 == 0 ? rank == 3 : rank == 0) continue;
      ASSERT_FINE(farsum_collect(i % 2 == 0 ? one : other, &collective, &requests.emplace_back()));
    }
    for (std::size_t i = requests.size(); i-- > 0;) ASSERT_FINE(farsum_wait(&requests[i]));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::uint64_t expected = i % 2 == 0 ? summed(3, 0) : word_of(1, 0) + word_of(2, 0) + word_of(3, 0);
      if (i % 2 == 0 ? rank != 3 : rank != 0) {
        EXPECT_EQ(sums[i], expected);
      }
    }
  }
  if (rank != 3) {
    EXPECT_FINE(farsum_group_free(&one));
  }
  if (rank != 0) {
    EXPECT_FINE(farsum_group_free(&other));
  }
}

// Blocking calls between those that are not waited for, which ranks wait for at different times.
void collect_among_blocking_calls(int rank, int ranks) {
  const farsum_group world = farsum_world();
  for (int round = 0; round < 40; ++round) {
    const std::size_t count = round % 8 == 0 ? 20'000 : 3;
    std::array<Collected, 3> all = {Collected{FARSUM_COLLECT_ALLREDUCE, count, 0, false},
                                    Collected{FARSUM_COLLECT_ALLGATHER, count, 0, false},
                                    Collected{FARSUM_COLLECT_BARRIER, 0, 0, false}};
    const bool waits_early = (rank + round) % 2 == 0;
    const auto end = [&](Collected& one) {
      ASSERT_FINE(farsum_wait(&one.request));
      ASSERT_NO_FATAL_FAILURE(one.check(rank, ranks));
    };
    ASSERT_NO_FATAL_FAILURE(all[0].begin(world, rank, ranks));
    ASSERT_FINE(farsum_barrier(world));
    ASSERT_NO_FATAL_FAILURE(all[1].begin(world, rank, ranks));
    if (waits_early) {
      ASSERT_NO_FATAL_FAILURE(end(all[0]));
    }
    const CollectedWords mine = words_of(rank, count);
    CollectedWords sums(count);
    ASSERT_FINE(farsum_allreduce(world, mine.data(), sums.data(), count, FARSUM_UINT64, FARSUM_SUM));
    EXPECT_EQ(sums[count - 1], summed(ranks, count - 1));
    ASSERT_NO_FATAL_FAILURE(all[2].begin(world, rank, ranks));
    if (waits_early) {
      ASSERT_NO_FATAL_FAILURE(end(all[2]));
    }
    std::uint64_t word = word_of(rank, 1);
    ASSERT_FINE(farsum_broadcast(world, &word, sizeof word, round % ranks));
    EXPECT_EQ(word, word_of(round % ranks, 1));
    if (!waits_early) {
      ASSERT_NO_FATAL_FAILURE(end(all[2]));
    }
    ASSERT_NO_FATAL_FAILURE(end(all[1]));
    if (!waits_early) {
      ASSERT_NO_FATAL_FAILURE(end(all[0]));
    }
  }
}

TEST(Collect, goes_on_beside_blocking_calls_that_lie_between) {
  run_ranks(4, [](int rank) { collect_among_blocking_calls(rank, 4); });
  on_two_nodes([](int rank) { collect_among_blocking_calls(rank, most_ranks); });
}

TEST(Collect, tells_ranks_that_have_mixed_it_otherwise_with_blocking_calls) {
  const auto mix = [](int rank) {
    const farsum_group world = farsum_world();
    farsum_collective collective = collective_of(FARSUM_COLLECT_BARRIER, 0);
    farsum_request request{};
    if (rank == 0) {
      ASSERT_FINE(farsum_barrier(world));
    }
    ASSERT_FINE(farsum_collect(world, &collective, &request));
    if (rank != 0) {
      ASSERT_FINE(farsum_barrier(world));
    }
    EXPECT_REFUSED(farsum_wait(&request), FARSUM_ERR_ARGUMENT, HasSubstr("different numbers of blocking calls"));
    ASSERT_FINE(farsum_collect(world, &collective, &request));
    ASSERT_FINE(farsum_wait(&request));
  };
  run_ranks(4, mix);
  on_two_nodes(mix);
}

// One thread begins, another ends what it began; and a third makes the calls of another group.
void collect_by_several_threads(int rank) {
  constexpr std::array<int, most_ranks> all = {0, 1, 2, 3};
  farsum_group other{};
  ASSERT_FINE(farsum_group_create(farsum_world(), all.data(), most_ranks, &other));
  constexpr std::size_t rounds = 60;
  std::vector<Collected> calls(rounds, Collected{FARSUM_COLLECT_ALLREDUCE, 3, 0, false});
  calls[7].count = calls[30].count = 40'000;
  std::counting_semaphore<> begun(0);
  std::thread begins([&] {
    for (Collected& one : calls) {
      ASSERT_NO_FATAL_FAILURE(one.begin(farsum_world(), rank, most_ranks));
      begun.release();
    }
  });
  std::thread ends([&] {
    for (Collected& one : calls) {
      begun.acquire();
      ASSERT_FINE(farsum_wait(&one.request));
      ASSERT_NO_FATAL_FAILURE(one.check(rank, most_ranks));
    }
  });
  for (std::size_t round = 0; round < rounds; ++round) {
    Collected one{FARSUM_COLLECT_ALLGATHER, 5, 0, false};
    ASSERT_NO_FATAL_FAILURE(one.begin(other, rank, most_ranks));
    ASSERT_FINE(farsum_wait(&one.request));
    ASSERT_NO_FATAL_FAILURE(one.check(rank, most_ranks));
  }
  begins.join();
  ends.join();
  ASSERT_FINE(farsum_group_free(&other));
}

TEST(Collect, is_begun_by_one_thread_and_ended_by_another_over_nodes) { on_two_nodes(collect_by_several_threads); }

// A thread of each first rank serves in its agent's stead, and neither tests nor waits until another rank has.
TEST(Collect, goes_on_where_a_thread_attends) {
  on_two_nodes([](int rank) {
    const bool attends = rank < 2;
    for (int round = 0; round < 20; ++round) {
      Collected one{FARSUM_COLLECT_ALLREDUCE, round % 5 == 0 ? 40'000u : 3u, 0, false};
      ASSERT_NO_FATAL_FAILURE(one.begin(farsum_world(), rank, most_ranks));
      int done = 0;
      for (int looks = 0; attends && looks < 1'000; ++looks) {
        if (farsum_attend() == 0) (void)farsum_attend_begin();
      }
      while (done == 0) {
        if (attends && farsum_attend() == 0) (void)farsum_attend_begin();
        ASSERT_FINE(farsum_test(&one.request, &done));
      }
      ASSERT_NO_FATAL_FAILURE(one.check(rank, most_ranks));
    }
    if (attends) (void)farsum_attend_end();
  });
}

struct MeetsAtItsEnd {
  Gathering& others;
  ~MeetsAtItsEnd() { others.meet(); }
};

// Those who live leave together: UCX before 1.14 ends a process whose peer goes while the two connect
// (docs/notes/ucx.md).
// In make test-all: a death on another node is known by its silence.
TEST(Collect, fails_over_nodes_in_all_waits_when_a_rank_dies) {
  std::vector<Variables> soon_asked = two_nodes;
  for (Variables& of_rank : soon_asked) of_rank["FARSUM_NET_TIMEOUT"] = "2";
  constexpr std::array<int, 2> victims = {1, 3};
  run_jobs_at_once(victims.size(), [&](int job) {
    const int dies = victims[static_cast<std::size_t>(job)];
    SCOPED_TRACE("rank " + std::to_string(dies) + " dies");
    const SharedWithRanks<Gathering> survivors;
    survivors->open(most_ranks - 1);
    run_embedded(soon_asked, [dies, &survivors](int rank, Gathering& everybody) {
      Caller caller{&everybody, rank};
      const farsum_init_options options = options_of(caller);
      ASSERT_FINE(farsum_init(&options));
      Collected early{FARSUM_COLLECT_ALLREDUCE, 3, 0, false}, late = early, queued = early;
      ASSERT_NO_FATAL_FAILURE(early.begin(farsum_world(), rank, most_ranks));
      ASSERT_FINE(farsum_wait(&early.request));
      if (rank == dies) _exit(0);
      const MeetsAtItsEnd leaves{*survivors};
      ASSERT_NO_FATAL_FAILURE(late.begin(farsum_world(), rank, most_ranks));
      for (int i = 0; i < 5; ++i) ASSERT_NO_FATAL_FAILURE(queued.begin(farsum_world(), rank, most_ranks));
      EXPECT_REFUSED(farsum_wait(&queued.request), FARSUM_ERR_PEER_FAILED, HasSubstr("rank"));
      EXPECT_REFUSED(farsum_wait(&late.request), FARSUM_ERR_PEER_FAILED, HasSubstr("rank"));
    });
  });
}

TEST(Collect, goes_on_in_groups_that_overlap) {
  run_ranks(4, collect_over_overlapping_groups);
  on_two_nodes(collect_over_overlapping_groups);
}

TEST(Collect, is_made_by_several_threads_in_several_groups) {
  run_ranks(2, [](int rank) {
    constexpr std::array<int, 2> both = {0, 1};
    std::array<farsum_group, 3> groups{};
    for (farsum_group& group : groups) ASSERT_FINE(farsum_group_create(farsum_world(), both.data(), 2, &group));
    std::vector<std::thread> threads;
    for (const farsum_group group : groups) {
      threads.emplace_back([group, rank] {
        for (int round = 0; round < 200; ++round) {
          Collected one{FARSUM_COLLECT_ALLREDUCE, round % 50 == 0 ? 40'000u : 3u, 0, false};
          ASSERT_NO_FATAL_FAILURE(one.begin(group, rank, 2));
          int done = 0;
          while (done == 0) ASSERT_FINE(farsum_test(&one.request, &done));
          ASSERT_NO_FATAL_FAILURE(one.check(rank, 2));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (farsum_group& group : groups) EXPECT_FINE(farsum_group_free(&group));
  });
}

TEST(Collect, refuses_what_one_rank_can_see_to_be_wrong) {
  run_ranks(2, [](int rank) {
    const farsum_group world = farsum_world();
    farsum_request request{};
    std::array<std::uint64_t, 8> words{};
    farsum_collective right = collective_of(FARSUM_COLLECT_ALLREDUCE, 4);
    right.mine = words.data();
    right.result = words.data() + 4;
    const auto refused = [&](auto change) {
      farsum_collective wrong = right;
      change(wrong);
      return farsum_collect(world, &wrong, &request);
    };
    EXPECT_EQ(farsum_collect({77}, &right, &request), FARSUM_ERR_HANDLE);
    EXPECT_EQ(farsum_collect(world, nullptr, &request), FARSUM_ERR_ARGUMENT);
    EXPECT_EQ(farsum_collect(world, &right, nullptr), FARSUM_ERR_ARGUMENT);
    EXPECT_EQ(refused([](auto& wrong) { wrong.struct_bytes = 8; }), FARSUM_ERR_ARGUMENT);
    for (const int kind : {-1, 6, INT_MIN, INT_MAX}) {
      EXPECT_EQ(refused([kind](auto& wrong) { wrong.kind = kind; }), FARSUM_ERR_UNSUPPORTED) << kind;
    }
    if (enumerators_may_be_unknown) {
      EXPECT_EQ(refused([](auto& wrong) { wrong.type = unknown<farsum_type>(99); }), FARSUM_ERR_TYPE);
    }
    EXPECT_EQ(refused([](auto& wrong) { wrong.op = FARSUM_REPLACE; }), FARSUM_ERR_TYPE);
    EXPECT_THAT(farsum_last_error(), HasSubstr(": replace, no_op and scaled_sum are for windows alone; use sum, prod"));
    EXPECT_EQ(refused([](auto& wrong) { wrong.mine = nullptr; }), FARSUM_ERR_ARGUMENT);
    EXPECT_EQ(refused([](auto& wrong) { wrong.result = nullptr; }), FARSUM_ERR_ARGUMENT);
    EXPECT_EQ(refused([&](auto& wrong) { wrong.result = words.data() + 1; }), FARSUM_ERR_ARGUMENT);
    EXPECT_EQ(refused([](auto& wrong) { wrong.count = SIZE_MAX / 4; }), FARSUM_ERR_RANGE);
    const auto with_root = [](farsum_collective& wrong) {
      wrong.kind = FARSUM_COLLECT_REDUCE;
      wrong.root = 2;
    };
    EXPECT_EQ(refused(with_root), FARSUM_ERR_RANK);
    // The others have not heard of any of these.
    words = {};
    words[0] = word_of(rank, 0);
    ASSERT_FINE(farsum_collect(world, &right, &request));
    farsum_request copy = request;
    ASSERT_FINE(farsum_wait(&request));
    EXPECT_EQ(words[4], summed(2, 0));
    EXPECT_REFUSED(farsum_wait(&copy), FARSUM_ERR_HANDLE, HasSubstr("does not live"));
  });
}

TEST(Collect, tells_who_has_begun_another_one_and_goes_on) {
  run_ranks(3, [](int rank) {
    std::uint64_t mine = word_of(rank, 0), sum = 9;
    farsum_request request{};
    farsum_collective collective = collective_of(rank == 1 ? FARSUM_COLLECT_REDUCE : FARSUM_COLLECT_ALLREDUCE, 1);
    collective.mine = &mine;
    collective.result = &sum;
    ASSERT_FINE(farsum_collect(farsum_world(), &collective, &request));
    EXPECT_REFUSED(
        farsum_wait(&request), FARSUM_ERR_ARGUMENT,
        HasSubstr(rank == 1 ? "rank 0 of the group has called allreduce" : "rank 1 of the group has called reduce"));
    EXPECT_EQ(sum, 9);
    collective.kind = FARSUM_COLLECT_ALLREDUCE;
    ASSERT_FINE(farsum_collect(farsum_world(), &collective, &request));
    ASSERT_FINE(farsum_wait(&request));
    EXPECT_EQ(sum, summed(3, 0));
  });
}

TEST(Collect, keeps_its_group_and_the_job_until_it_is_waited_for) {
  run_ranks(2, [](int rank) {
    constexpr std::array<int, 2> both = {0, 1};
    farsum_group group{};
    ASSERT_FINE(farsum_group_create(farsum_world(), both.data(), 2, &group));
    farsum_request request{};
    const farsum_collective collective = collective_of(FARSUM_COLLECT_BARRIER, 0);
    ASSERT_FINE(farsum_collect(group, &collective, &request));
    EXPECT_REFUSED(farsum_group_free(&group), FARSUM_ERR_PENDING, HasSubstr("farsum_collect"));
    if (rank == 0) {
      EXPECT_REFUSED(farsum_finalize(), FARSUM_ERR_PENDING, HasSubstr("farsum_collect"));
      ASSERT_FINE(farsum_wait(&request));
    } else {
      ASSERT_FINE(farsum_wait(&request));
      EXPECT_REFUSED(farsum_finalize(), FARSUM_ERR_PENDING, HasSubstr("rank 0"));
    }
    EXPECT_FINE(farsum_group_free(&group));
  });
}

TEST(Collect, is_given_up_where_the_job_is_ended_by_force) {
  Job job;
  job.starts = false;
  run_ranks(job, [](int) {
    ASSERT_FINE(farsum_init(nullptr));
    CollectedWords mine(40'000), result(40'000);
    std::array<farsum_request, 7> requests{};
    farsum_collective collective = collective_of(FARSUM_COLLECT_ALLREDUCE, mine.size());
    collective.mine = mine.data();
    collective.result = result.data();
    for (farsum_request& request : requests) ASSERT_FINE(farsum_collect(farsum_world(), &collective, &request));
    ASSERT_FINE(farsum_finalize_forced());
    ASSERT_FINE(farsum_init(nullptr));
    ASSERT_FINE(farsum_finalize());
  });
}

// Takes seconds: each wait of each call has a job of its own.
TEST(Collect, fails_in_all_waits_when_a_rank_dies) {
  for (const std::size_t count : {1, 100'000}) {
    Job job;
    job.ranks = 3;
    job.starts = false;
    run_ranks(job, [count](int rank) {
      ASSERT_FINE(farsum_init(nullptr));
      CollectedWords mine(count), result(count);
      farsum_collective collective = collective_of(FARSUM_COLLECT_ALLREDUCE, count);
      collective.mine = mine.data();
      collective.result = result.data();
      farsum_request early{}, late{}, queued{};
      ASSERT_FINE(farsum_collect(farsum_world(), &collective, &early));
      ASSERT_FINE(farsum_wait(&early));
      if (rank == 1) _exit(0);
      ASSERT_FINE(farsum_collect(farsum_world(), &collective, &late));
      for (int i = 0; i < 6; ++i) ASSERT_FINE(farsum_collect(farsum_world(), &collective, &queued));
      EXPECT_REFUSED(farsum_wait(&late), FARSUM_ERR_PEER_FAILED, HasSubstr("rank 1"));
      EXPECT_REFUSED(farsum_wait(&queued), FARSUM_ERR_PEER_FAILED, HasSubstr("rank 1"));
      int done = 0;
      farsum_status tested = FARSUM_OK;
      while (tested == FARSUM_OK) tested = farsum_test(&late, &done);
      EXPECT_EQ(tested, FARSUM_ERR_PEER_FAILED);
    });
  }
}

// None is told of where what was freed is kept, lest somebody uses it.
std::size_t resident_pages() {
  [[maybe_unused]] std::size_t all = 0;
  std::size_t resident = 0;
#if !defined(__SANITIZE_ADDRESS__)
  std::ifstream("/proc/self/statm") >> all >> resident;
#endif
  return resident;
}

// Takes seconds: memory is looked at after thousands of calls.
TEST(Collect, keeps_no_memory_of_what_was_waited_for) {
  run_ranks(2, [](int rank) {
    const auto collect_often = [rank](int times) {
      for (int i = 0; i < times; ++i) {
        Collected one{FARSUM_COLLECT_ALLREDUCE, i % 1'000 == 0 ? 5'000u : 2u, 0, false};
        ASSERT_NO_FATAL_FAILURE(one.begin(farsum_world(), rank, 2));
        ASSERT_FINE(farsum_wait(&one.request));
      }
    };
    collect_often(5'000);
    NodeSegment& segment = capi::live_context()->segment();
    const auto allocated = [&] {
      // No rank allocates before all have looked, and all have given back what the last call needed.
      EXPECT_FINE(farsum_barrier(farsum_world()));
      const std::uint64_t bytes = segment.heap().allocated_bytes();
      EXPECT_FINE(farsum_barrier(farsum_world()));
      return bytes;
    };
    const std::size_t before = resident_pages(), allocated_before = allocated();
    collect_often(100'000);
    EXPECT_LT(resident_pages(), before + 100);
    EXPECT_EQ(allocated(), allocated_before);
  });
}

// More groups than the node's table has room for meetings.
TEST(Collect, lets_a_rank_be_late_in_any_number_of_groups) {
  run_ranks(2, [](int rank) {
    constexpr std::array<int, 2> both = {0, 1};
    std::vector<farsum_group> groups(300);
    std::vector<farsum_request> requests(groups.size());
    for (farsum_group& group : groups) ASSERT_FINE(farsum_group_create(farsum_world(), both.data(), 2, &group));
    const farsum_collective collective = collective_of(FARSUM_COLLECT_BARRIER, 0);
    const auto collect_in_all = [&] {
      for (std::size_t i = 0; i < groups.size(); ++i) ASSERT_FINE(farsum_collect(groups[i], &collective, &requests[i]));
    };
    if (rank == 0) collect_in_all();
    ASSERT_FINE(farsum_barrier(farsum_world()));
    if (rank == 1) collect_in_all();
    for (farsum_request& request : requests) ASSERT_FINE(farsum_wait(&request));
    for (farsum_group& group : groups) ASSERT_FINE(farsum_group_free(&group));
  });
}

// In half of the groups one rank alone has asked for the block: its call has found no memory for what it brings.
TEST(Collect, leaves_nothing_in_the_segment_of_a_group_that_is_freed) {
  run_ranks(2, [](int rank) {
    static constexpr std::array<int, 2> both = {0, 1};
    const auto collect_once = [rank](bool fails) {
      farsum_group group{};
      ASSERT_FINE(farsum_group_create(farsum_world(), both.data(), 2, &group));
      if (fails && rank == 0) {
        farsum_collective collective = collective_of(FARSUM_COLLECT_ALLREDUCE, std::size_t{1} << 55);
        std::uint64_t word = 0;
        collective.mine = &word;
        collective.result = &word;
        farsum_request request{};
        EXPECT_EQ(farsum_collect(group, &collective, &request), FARSUM_ERR_NO_MEMORY);
      }
      if (!fails) {
        Collected one{FARSUM_COLLECT_ALLREDUCE, 5'000, 0, false};
        ASSERT_NO_FATAL_FAILURE(one.begin(group, rank, 2));
        ASSERT_FINE(farsum_wait(&one.request));
      }
      ASSERT_FINE(farsum_group_free(&group));
      ASSERT_FINE(farsum_barrier(farsum_world()));
    };
    NodeSegment& segment = capi::live_context()->segment();
    const std::uint64_t before = segment.heap().allocated_bytes();
    ASSERT_FINE(farsum_barrier(farsum_world()));  // No rank allocates before all have looked.
    for (int i = 0; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(collect_once(i % 2 == 0));
    EXPECT_EQ(segment.heap().allocated_bytes(), before);
  });
}

}  // namespace
}  // namespace farsum::test
