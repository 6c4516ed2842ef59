// Collectives that nobody waits for: what they give, and what ranks that have begun different ones are told.
#include "collectives/carry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "carrying_threads.hpp"
#include "collectives/fold.hpp"
#include "collectives/reductions.hpp"

namespace farsum {
namespace {

const std::vector<NodeOfRank>& layouts_to_carry() {
  static const std::vector<NodeOfRank> layouts = [] {
    std::vector<NodeOfRank> all = {{0}, {0, 0}, {0, 0, 0, 0, 0}, {0, 1}, {0, 1, 1, 0, 2, 0}, {3, 2, 1, 0, 3}};
    NodeOfRank many(15);
    std::iota(many.begin(), many.end(), 0u);
    many.push_back(2);
    all.push_back(many);
    return all;
  }();
  return layouts;
}
// What the blocking call gives this rank.
CarriedBytes blocking_answer(CarryingMember& member, const CarriedCall& call, CarriedBytes mine) {
  const std::uint32_t size = member.team.size();
  CarriedBytes result(call.share_of(member.rank, size).bytes);
  using Kind = CarriedCall::Kind;
  Status status;
  if (call.kind == Kind::barrier) {
    status = member.team.barrier("barrier");
  } else if (call.kind == Kind::allgather) {
    status = member.team.allgather(mine, result, "allgather");
  } else if (call.kind == Kind::broadcast) {
    mine.resize(call.bytes());
    status = member.team.broadcast(mine, call.root, "broadcast");
    if (member.rank != call.root) result = mine;
  } else {
    const auto kind =
        static_cast<GroupReduction::Kind>(static_cast<int>(call.kind) - static_cast<int>(Kind::allreduce));
    status = member.reductions.run(
        {kind, call.type, call.op, call.root, call.count, mine.data(), result.empty() ? nullptr : result.data()},
        "run");
  }
  EXPECT_TRUE(status.is_ok()) << status.text();
  return result;
}
class Carrying : public testing::TestWithParam<std::tuple<std::size_t, CarriedBy>> {
 protected:
  const NodeOfRank& layout() const { return layouts_to_carry()[std::get<0>(GetParam())]; }
  CarryingOptions options() const { return {.by = std::get<1>(GetParam())}; }
};

void carry_and_compare(CarryingMember member, const std::vector<std::size_t>& counts) {
  const std::uint32_t size = member.team.size();
  std::uint64_t seed = 0;
  for (const std::size_t count : counts) {
    for (std::uint64_t kind = 0; kind < CarriedCall::kinds; ++kind) {
      const CarriedCall call = carried_call_of(kind, count, static_cast<std::uint32_t>(++seed % size));
      const std::size_t elements = call.part_bytes(member.rank, size) / sizeof(double);
      const CarriedBytes mine = doubles_of(member.rank, elements, seed);
      CarriedBytes result(call.share_of(member.rank, size).bytes);
      const auto request = member.begin(call, mine.data(), result.data());
      ASSERT_TRUE(member.wait(*request).is_ok());
      ASSERT_EQ(result, blocking_answer(member, call, mine)) << "kind " << kind << " of " << count;
    }
  }
}

// In make test-all (*/(6,*): the largest of its groups.
TEST_P(Carrying, gives_each_rank_the_bits_of_the_blocking_call) {
  CarryingThreads threads(layout(), options());
  threads.run([](CarryingMember member) { carry_and_compare(member, {0, 1, 16, 31, 33, 129, 5'000, 70'001}); });
  EXPECT_EQ(threads.open_extents(), 0);
}

// Takes seconds: trees of every degree.
TEST(Carry, gives_the_bits_of_the_blocking_call_in_a_tree_of_any_degree) {
  for (const std::uint32_t degree : {2U, 3U, 4U, 8U}) {
    for (const std::uint32_t nodes : {2U, 7U, 13U}) {
      NodeOfRank node_of(nodes);
      std::iota(node_of.begin(), node_of.end(), 0u);
      node_of.push_back(nodes / 2);
      CarryingThreads threads(node_of,
                              {.by = degree == 3 ? CarriedBy::mailboxes : CarriedBy::letters, .degree = degree});
      threads.run([](CarryingMember member) { carry_and_compare(member, {0, 1, 33, 5'000}); });
      EXPECT_EQ(threads.open_extents(), 0);
    }
  }
}

// In make test-all (*/(6,*): the largest of its groups.
TEST_P(Carrying, goes_on_with_more_calls_than_places_that_are_waited_for_from_the_last) {
  CarryingThreads threads(layout(), options());
  threads.run([](CarryingMember member) {
    const std::uint32_t size = member.team.size();
    struct Begun {
      CarriedCall call;
      CarriedBytes mine, result;
      std::shared_ptr<CarriedRequest> request;
    };
    for (std::uint64_t round = 0; round < 4; ++round) {
      std::vector<Begun> all(CarriedPlace::most_under_way + 5);
      for (std::uint64_t i = 0; i < all.size(); ++i) {
        Begun& one = all[i];
        one.call = carried_call_of((i + round) % CarriedCall::kinds, i % 3 == 0 ? 40'000 : i,
                                   static_cast<std::uint32_t>(i % size));
        one.mine = doubles_of(member.rank, one.call.part_bytes(member.rank, size) / sizeof(double), i);
        CarriedBytes lent = one.mine;
        one.result.resize(one.call.share_of(member.rank, size).bytes);
        one.request = member.begin(one.call, lent.data(), one.result.data());
        std::fill(lent.begin(), lent.end(), std::byte{0xff});  // it may be reused
      }
      for (std::size_t i = all.size(); i-- > 0;) {
        EXPECT_TRUE(member.wait(*all[i].request).is_ok());
      }
      for (Begun& one : all) ASSERT_EQ(one.result, blocking_answer(member, one.call, one.mine));
    }
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

// All but the last rank's program do nothing from when they have begun.
TEST_P(Carrying, needs_the_program_of_no_rank_that_has_begun) {
  CarryingThreads threads(layout(), options());
  threads.run([](CarryingMember member) {
    const std::uint32_t size = member.team.size();
    std::vector<std::shared_ptr<CarriedRequest>> requests;
    std::vector<CarriedBytes> results;
    const std::size_t count = 40'000;
    const CarriedBytes mine = doubles_of(member.rank, count, 1);
    for (std::uint64_t i = 0; i < 2 * CarriedPlace::most_under_way + 3; ++i) {
      results.emplace_back(count * sizeof(double));
      const CarriedCall call = carried_call_of(3, i % 2 == 0 ? 3 : count, 0);
      requests.push_back(member.begin(call, mine.data(), results.back().data()));
    }
    if (member.rank + 1 == size) {
      EXPECT_TRUE(member.wait(*requests.back()).is_ok());
    }
    member.meeting.arrive_and_wait();
    for (auto& request : requests) {
      bool is_over = member.rank + 1 == size && request == requests.back();
      if (!is_over) {
        EXPECT_TRUE(member.carry.wait(*request, is_over, "wait").is_ok());
      }
    }
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

TEST_P(Carrying, tells_all_ranks_what_differs_and_goes_on) {
  if (layout().size() == 1) GTEST_SKIP() << "there is nobody who could differ";
  CarryingThreads threads(layout(), options());
  threads.run([](CarryingMember member) {
    const std::uint32_t size = member.team.size();
    const std::uint32_t last = size - 1;
    const auto run = [&](CarriedCall call, std::uint64_t before) {
      const CarriedBytes mine = doubles_of(member.rank, 100'000, 3);
      CarriedBytes result(call.share_of(member.rank, size).bytes, std::byte{7});
      const CarriedBytes untouched = result;
      CarryingMember caller = member;
      caller.calls_before = before;
      Status status = caller.wait(*caller.begin(call, mine.data(), result.data()));
      if (!status.is_ok()) {
        EXPECT_EQ(result, untouched);
      }
      return status;
    };
    const bool differs = member.rank == last;
    for (const std::size_t count : {1, 20'000}) {
      const Status other_count = run(carried_call_of(3, count + differs, 0), 0);
      EXPECT_EQ(other_count.code(), Code::argument);
      EXPECT_THAT(std::string(other_count.text()), testing::HasSubstr("allreduce of"));
      EXPECT_EQ(run(carried_call_of(differs ? 2 : 0, count, 0), 0).code(), Code::argument);
      EXPECT_EQ(run(carried_call_of(1, count, differs ? last : 0), 0).code(), Code::argument);
      EXPECT_EQ(run(carried_call_of(4, count, differs ? last : 0), 0).code(), Code::argument);
      const Status out_of_step = run(carried_call_of(3, count, 0), differs);
      EXPECT_THAT(std::string(out_of_step.text()), testing::HasSubstr("different numbers of blocking calls"));
      EXPECT_TRUE(run(carried_call_of(3, count, 0), 1).is_ok());
    }
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

// Of one node nothing goes by either.
INSTANTIATE_TEST_SUITE_P(, Carrying,
                         testing::Combine(testing::Range<std::size_t>(0, 7), testing::Values(CarriedBy::mailboxes)));
INSTANTIATE_TEST_SUITE_P(ByLetters, Carrying,
                         testing::Combine(testing::Range<std::size_t>(3, 7), testing::Values(CarriedBy::letters)));

// Each of few nodes tells all others in one letter, whatever the call.
TEST(Carry, sends_letters_alone_of_what_is_short_and_looks_for_no_answer) {
  CarryingThreads threads({0, 1, 0, 2}, {.by = CarriedBy::letters});
  threads.run([](CarryingMember member) {
    carry_and_compare(member, {0, 1, 16});
    EXPECT_EQ(member.help.handed_over, 0);
  });
  EXPECT_EQ(threads.letters(), 3 * CarriedCall::kinds * 3 * 2);
  EXPECT_EQ(threads.boxes().sent(), 0u);
}

TEST(Carry, has_somebody_look_for_the_answers_to_what_is_longer_than_a_letter) {
  CarryingThreads threads({0, 1}, {.by = CarriedBy::letters});
  threads.run([](CarryingMember member) {
    carry_and_compare(member, {5'000});
    EXPECT_GT(member.help.handed_over, 0);
  });
  EXPECT_GT(threads.boxes().sent(), 0u);
}

TEST(Carry, needs_no_other_post_for_what_is_short_among_nodes_that_are_neighbours_of_some_only) {
  NodeOfRank node_of(21);
  std::iota(node_of.begin(), node_of.end(), 0u);
  for (const std::uint32_t degree : {0U, 4U}) {
    CarryingThreads threads(node_of, {.by = CarriedBy::letters, .degree = degree});
    threads.run([](CarryingMember member) { carry_and_compare(member, {0, 1, 1, 1}); });
    EXPECT_EQ(threads.boxes().sent(), 0u);
  }
}

TEST(Carry, goes_on_over_roads_that_refuse_letters_and_find_no_memory_now_and_then) {
  for (const NodeOfRank& node_of : {NodeOfRank{0, 1}, NodeOfRank{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}) {
    CarryingThreads threads(node_of, {.by = CarriedBy::letters, .letters_on_a_road = 1, .lacks_memory_once_in = 3});
    threads.run([](CarryingMember member) { carry_and_compare(member, {1, 2, 3, 4, 5'000}); });
  }
}

TEST(Carry, has_a_call_that_all_have_begun_on_one_node_over_at_the_first_look) {
  CarryingThreads threads({0, 0, 0});
  threads.run([](CarryingMember member) {
    for (std::uint64_t kind = 0; kind < CarriedCall::kinds; ++kind) {
      const CarriedCall call = carried_call_of(kind, 3, 0);
      const CarriedBytes mine = doubles_of(member.rank, 9, kind);
      CarriedBytes result(call.share_of(member.rank, 3).bytes);
      const auto request = member.begin(call, mine.data(), result.data());
      member.meeting.arrive_and_wait();
      bool is_over = false;
      EXPECT_TRUE(member.carry.test(*request, is_over, "test").is_ok());
      EXPECT_TRUE(is_over);
    }
  });
}

TEST(Carry, reduces_on_one_node_by_ranks_where_all_say_so) {
  CarryingThreads threads({0, 0, 0, 0, 0});
  threads.run([](CarryingMember member) {
    for (const std::size_t count : {3, 40'000}) {
      const CarriedBytes mine = doubles_of(member.rank, count, 1);
      std::vector<CarriedBytes> parts;
      for (std::uint32_t rank = 0; rank < 5; ++rank) parts.push_back(doubles_of(rank, count, 1));
      CarriedBytes wanted(mine.size()), result(mine.size());
      CarriedCall call = carried_call_of(3, count, 0);
      call.order = ReduceOrder::ranks;
      Fold(ops::kernels_for_this_machine(), call.type, call.op, call.order)
          .all(wanted.data(), wanted.size(), 5, [&](std::uint32_t part) { return parts[part].data(); });
      EXPECT_TRUE(member.wait(*member.begin(call, mine.data(), result.data())).is_ok());
      EXPECT_EQ(result, wanted);
      if (member.rank == 4) call.order = ReduceOrder::nodes;
      const Status differs = member.wait(*member.begin(call, mine.data(), result.data()));
      EXPECT_EQ(differs.code(), Code::argument);
      EXPECT_THAT(std::string(differs.text()), testing::HasSubstr("with FARSUM_REDUCE_ORDER=ranks"));
    }
  });
}

// Where ranks lie beside their neighbours, or are dealt out to the nodes in turn, or are where chance has them.
std::vector<NodeOfRank> layouts_by_ranks() {
  std::vector<NodeOfRank> layouts;
  std::mt19937 random(3);
  for (const std::uint32_t nodes : {2U, 3U, 5U, 8U, 12U, 13U}) {
    NodeOfRank in_turn(2 * nodes + 1);
    for (std::uint32_t rank = 0; rank < in_turn.size(); ++rank) in_turn[rank] = rank % nodes;
    NodeOfRank mixed = in_turn;
    std::shuffle(mixed.begin(), mixed.end(), random);
    layouts.insert(layouts.end(), {in_turn, mixed});
  }
  layouts.push_back({0, 0, 0, 1, 1, 1, 1, 2});
  return layouts;
}

// All parts of an allreduce as one rank would fold them.
CarriedBytes folded_by_ranks(const CarriedCall& call, std::uint32_t ranks, std::uint64_t seed) {
  std::vector<CarriedBytes> parts;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) parts.push_back(doubles_of(rank, call.count, seed));
  CarriedBytes wanted(call.bytes());
  Fold(ops::kernels_for_this_machine(), call.type, call.op, ReduceOrder::ranks)
      .all(wanted.data(), wanted.size(), ranks, [&](std::uint32_t part) { return parts[part].data(); });
  return wanted;
}

void reduce_by_ranks_and_compare(CarryingMember member, const std::vector<std::size_t>& counts) {
  const std::uint32_t size = member.team.size();
  std::uint64_t seed = 0;
  for (const std::size_t count : counts) {
    for (const std::uint64_t kind : {3, 4, 5}) {
      CarriedCall call = carried_call_of(kind, count, static_cast<std::uint32_t>(++seed % size));
      call.order = ReduceOrder::ranks;
      const CarriedBytes mine = doubles_of(member.rank, call.part_bytes(member.rank, size) / sizeof(double), seed);
      CarriedBytes result(call.share_of(member.rank, size).bytes);
      ASSERT_TRUE(member.wait(*member.begin(call, mine.data(), result.data())).is_ok());
      ASSERT_EQ(result, blocking_answer(member, call, mine)) << "kind " << kind << " of " << count;
      if (kind == 3) {
        ASSERT_EQ(result, folded_by_ranks(call, size, seed)) << count;
      }
    }
  }
}

// In make test-all: many layouts of ranks.
TEST(Carry, reduces_by_ranks_to_the_bits_of_the_blocking_call_and_of_one_rank_in_any_places) {
  for (const NodeOfRank& layout : layouts_by_ranks()) {
    CarryingThreads threads(layout, {.by = CarriedBy::letters, .order = ReduceOrder::ranks});
    threads.run([](CarryingMember member) { reduce_by_ranks_and_compare(member, {1, 3, 4'099}); });
    EXPECT_EQ(threads.open_extents(), 0);
  }
}

TEST(Carry, reduces_by_ranks_in_a_tree_of_any_degree) {
  for (const std::uint32_t degree : {2U, 3U, 8U}) {
    NodeOfRank node_of(17);
    for (std::uint32_t rank = 0; rank < node_of.size(); ++rank) node_of[rank] = 3 * rank % 7;
    CarryingThreads threads(node_of, {.by = CarriedBy::letters, .degree = degree, .order = ReduceOrder::ranks});
    threads.run([](CarryingMember member) { reduce_by_ranks_and_compare(member, {1, 33, 6'000}); });
  }
}

// Longer than a slice, several under way at once, and other calls between them.
TEST(Carry, reduces_by_ranks_what_is_long_beside_other_calls) {
  CarryingThreads threads({0, 1, 0, 1, 1, 2}, {.order = ReduceOrder::ranks});
  threads.run([](CarryingMember member) {
    constexpr std::size_t count = 70'001;
    CarriedCall call = carried_call_of(3, count, 0);
    call.order = ReduceOrder::ranks;
    std::vector<CarriedBytes> mine, results(3, CarriedBytes(call.bytes()));
    std::vector<std::shared_ptr<CarriedRequest>> requests;
    for (std::uint64_t seed = 0; seed < results.size(); ++seed) {
      mine.push_back(doubles_of(member.rank, count, seed));
      requests.push_back(member.begin(call, mine.back().data(), results[seed].data()));
      requests.push_back(member.begin(carried_call_of(0, 0, 0), nullptr, nullptr));
    }
    for (auto& request : requests) EXPECT_TRUE(member.wait(*request).is_ok());
    for (std::uint64_t seed = 0; seed < results.size(); ++seed)
      ASSERT_EQ(results[seed], folded_by_ranks(call, 6, seed));
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

TEST(Carry, tells_ranks_of_several_nodes_that_one_folds_in_another_order) {
  CarryingThreads threads({0, 1, 0, 1}, {.order = ReduceOrder::ranks});
  threads.run([](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    CarriedBytes result(mine.size());
    CarriedCall call = carried_call_of(3, 3, 0);
    call.order = member.rank == 3 ? ReduceOrder::nodes : ReduceOrder::ranks;
    const Status differs = member.wait(*member.begin(call, mine.data(), result.data()));
    EXPECT_EQ(differs.code(), Code::argument);
    EXPECT_THAT(std::string(differs.text()), testing::HasSubstr("with FARSUM_REDUCE_ORDER=ranks"));
    call.order = ReduceOrder::ranks;
    EXPECT_TRUE(member.wait(*member.begin(call, mine.data(), result.data())).is_ok());
    EXPECT_EQ(result, folded_by_ranks(call, 4, 1));
  });
}

}  // namespace
}  // namespace farsum
