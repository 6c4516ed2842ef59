// Ranks of a group reduce what they have.
#include "collectives/reductions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "failing_memory.hpp"
#include "group_of_threads.hpp"
#include "odd_elements.hpp"
#include "sim/seeds.hpp"
#include "sums_of_one.hpp"
#include "test_length.hpp"
#include "trees/fnomial.hpp"

namespace farsum {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using Kind = GroupReduction::Kind;

using Bytes = std::vector<std::byte>;

// What a rank brings to a call: no two ranks and no two calls bring the same.
Bytes brought_by(std::uint32_t rank, std::uint64_t call, const Foldable& pair, std::size_t elements) {
  std::mt19937_64 random(call * 1000 + rank);
  Bytes bytes(elements * ops::size_of(pair.type));
  fill_oddly(pair.type, bytes, random);
  return bytes;
}

// Of a tree of so many nodes, where `degree` is as of ReductionMeans; few that tell each other fold as a root does to
// which all send.
std::uint32_t tree_degree(std::uint32_t nodes, std::uint32_t degree) {
  if (degree != 0) return degree;
  return nodes <= most_nodes_at_once ? nodes : 2;
}

// One element after the other by the plainest kernel: the ranks of each node, then the nodes.
Bytes expected_of(const Nodes& node_of, std::uint32_t degree, const std::vector<Bytes>& brought, const Foldable& pair) {
  const auto kernel = ops::kernels(ops::Isa::baseline).bulk(pair.type, pair.op);
  const std::size_t element = ops::size_of(pair.type);
  const auto combine = [&](Bytes& into, const Bytes& other) {
    for (std::size_t at = 0; at < into.size(); at += element) kernel(&into[at], &other[at], 1, nullptr);
  };
  std::vector<std::uint32_t> order;
  std::map<std::uint32_t, Bytes> of_node;
  for (std::uint32_t rank = 0; rank < node_of.size(); ++rank) {
    const auto [entry, is_first] = of_node.try_emplace(node_of[rank], brought[rank]);
    if (is_first)
      order.push_back(node_of[rank]);
    else
      combine(entry->second, brought[rank]);
  }
  const auto nodes = static_cast<std::uint32_t>(order.size());
  const trees::Fnomial tree(nodes, tree_degree(nodes, degree));
  const std::function<Bytes(std::uint32_t)> whole = [&](std::uint32_t node) {
    std::vector<trees::Fnomial::Child> children = tree.children(node);
    std::stable_sort(children.begin(), children.end(),
                     [](const auto& a, const auto& b) { return a.subtree < b.subtree; });
    Bytes all = of_node.at(order[node]);
    for (const trees::Fnomial::Child& child : children) combine(all, whole(child.node));
    return all;
  };
  return whole(0);
}

struct Wish {
  Kind kind = Kind::allreduce;
  Foldable pair{ElementType::float64, Operator::sum};
  std::uint32_t root = 0;
  std::size_t count = 1;
  bool in_place = false;
};

// What the ranks bring to each call, and should get, worked out by the first that asks.
class Oracle {
 public:
  struct Answer {
    std::vector<Bytes> brought;
    Bytes expected;
    std::size_t asked = 0;
  };

  explicit Oracle(Nodes node_of, std::uint32_t degree = 0) : node_of_(std::move(node_of)), degree_(degree) {}
  std::uint32_t size() const { return static_cast<std::uint32_t>(node_of_.size()); }
  // Of a call, its rank's bytes and those of the whole.
  std::pair<Bytes, Bytes> ask(std::uint32_t rank, std::uint64_t call, const Foldable& pair, std::size_t elements) {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = answers_.try_emplace(call);
    Answer& answer = entry->second;
    for (std::uint32_t each = 0; is_new && each < size(); ++each)
      answer.brought.push_back(brought_by(each, call, pair, elements));
    if (is_new) answer.expected = expected_of(node_of_, degree_, answer.brought, pair);
    std::pair<Bytes, Bytes> told{answer.brought[rank], answer.expected};
    if (++answer.asked == size()) answers_.erase(entry);
    return told;
  }

 private:
  Nodes node_of_;
  std::uint32_t degree_;
  std::mutex mutex_;
  std::map<std::uint64_t, Answer> answers_;
};

// A rank's part in a call, compared with what it should get.
void reduce_and_compare(Member member, Oracle& oracle, std::uint64_t call, const Wish& wish) {
  const bool scatters = wish.kind == Kind::reduce_scatter_block;
  const std::size_t elements = scatters ? wish.count * oracle.size() : wish.count;
  auto [mine, expected] = oracle.ask(member.rank, call, wish.pair, elements);
  const std::size_t bytes = wish.count * ops::size_of(wish.pair.type);
  Bytes apart(bytes);
  std::byte* const result = wish.in_place ? mine.data() : apart.data();
  const bool gets_result = wish.kind != Kind::reduce || wish.root == member.rank;
  const Status status = member.run({.kind = wish.kind,
                                    .type = wish.pair.type,
                                    .op = wish.pair.op,
                                    .root = wish.root,
                                    .count = wish.count,
                                    .mine = mine.data(),
                                    .result = gets_result ? result : nullptr});
  ASSERT_TRUE(status.is_ok()) << status.text();
  if (!gets_result) return;
  const std::size_t from = scatters ? member.rank * bytes : 0;
  expected = Bytes(expected.begin() + static_cast<std::ptrdiff_t>(from),
                   expected.begin() + static_cast<std::ptrdiff_t>(from + bytes));
  ASSERT_EQ(promised(wish.pair, Bytes(result, result + bytes)), promised(wish.pair, expected))
      << "call " << call << ", kind " << static_cast<int>(wish.kind) << ", " << wish.count << " elements of "
      << ops::name_of(wish.pair.type) << " by " << ops::name_of(wish.pair.op) << ", in place: " << wish.in_place;
}

struct Layout {
  const char* name;
  Nodes node_of;
  std::uint32_t degree = 0;
};

class ReductionsOn : public testing::TestWithParam<std::tuple<Layout, bool>> {
 protected:
  std::uint32_t size() const { return oracle_.size(); }
  void run(const std::function<void(Member)>& body) {
    const auto& [layout, is_crowded] = GetParam();
    GroupOfThreads(layout.node_of, is_crowded, {.degree = layout.degree}).run(body);
  }
  // All three kinds, apart and in place, one after the other.
  void run_all_kinds(const std::vector<Foldable>& pairs, const std::vector<std::size_t>& counts) {
    run([&](Member member) {
      std::uint64_t call = 0;
      for (const Foldable& pair : pairs) {
        for (const std::size_t count : counts) {
          for (const bool in_place : {false, true}) {
            const auto root = static_cast<std::uint32_t>(call % size());
            for (const Kind kind : {Kind::allreduce, Kind::reduce, Kind::reduce_scatter_block})
              reduce_and_compare(member, oracle_, call++, {kind, pair, root, count, in_place});
          }
        }
      }
    });
  }

  Oracle oracle_{std::get<0>(GetParam()).node_of, std::get<0>(GetParam()).degree};
};

std::string name_of_case(const testing::TestParamInfo<ReductionsOn::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) + (std::get<1>(info.param) ? "_crowded" : "");
}

INSTANTIATE_TEST_SUITE_P(
    Nodes, ReductionsOn,
    testing::Combine(
        testing::Values(Layout{"one", {0}}, Layout{"two", {0, 0}}, Layout{"three", {0, 0, 0}},
                        Layout{"eight", {0, 0, 0, 0, 0, 0, 0, 0}}, Layout{"nine", {0, 0, 0, 0, 0, 0, 0, 0, 0}},
                        Layout{"two_apart", {0, 1}}, Layout{"two_nodes_mixed", {0, 1, 1, 0}},
                        Layout{"three_nodes", {2, 0, 2, 1, 0, 0}},
                        Layout{"fifteen_nodes", {14, 0, 1, 13, 2, 3, 12, 4, 5, 11, 6, 6, 7, 10, 8, 9, 9, 13}},
                        Layout{"seven_nodes_degree_3", {0, 1, 2, 3, 4, 5, 6, 4}, 3},
                        Layout{"six_nodes_degree_8", {5, 4, 3, 2, 1, 0, 0}, 8},
                        Layout{"fourteen_nodes_degree_4", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 13}, 4}),
        testing::Bool()),
    name_of_case);

// Takes seconds (*/*teen_nodes*): fifteen nodes of threads.
TEST_P(ReductionsOn, give_what_one_after_the_other_gives_for_every_type_and_operator) {
  run_all_kinds(pairs_that_can_be_folded(), {1, 9});
}

// Five doubles go over in a line, so many in a slot, and more in pieces; the rest is what remains of a piece.
TEST_P(ReductionsOn, take_any_number_of_elements) {
  const std::size_t slot = NodeRoundsBlock::slot_bytes(size()) / 8;
  const std::size_t piece = NodeRoundsBlock::piece_bytes(size()) / 8;
  run_all_kinds({{ElementType::float64, Operator::sum}},
                {0, 1, 5, 6, slot / size(), slot / size() + 1, slot, slot + 1, piece, piece + 1, 2 * piece + 7});
}

// Takes seconds (*/*teen_nodes*): fifteen nodes of threads.
TEST_P(ReductionsOn, follow_one_another_without_mixing) {
  run([&](Member member) {
    for (std::uint64_t call = 0; call < 300; ++call) {
      const auto root = static_cast<std::uint32_t>(call * 7 % size());
      const Kind kind = std::array{Kind::allreduce, Kind::reduce, Kind::reduce_scatter_block}[call % 5 % 3];
      const std::size_t count = std::array<std::size_t, 4>{1, 40, 0, 700}[call % 4];
      reduce_and_compare(member, oracle_, call, {kind, {ElementType::uint64, Operator::sum}, root, count});
      if (call % 11 == 0) {
        ASSERT_TRUE(member.team.barrier("barrier").is_ok());
      }
    }
  });
}

// What an odd rank may call where the others call `right`, and be told alone with who sees it.
std::vector<GroupReduction> other_than(const GroupReduction& right) {
  std::vector<GroupReduction> wrong(5, right);
  wrong[0].type = ElementType::int64;
  wrong[1].op = Operator::max;
  wrong[2].count = 13;
  wrong[3].count = 2000;  // more than goes over in one step
  if (right.kind == Kind::reduce)
    wrong[4].root = 0;
  else
    wrong[4].kind = Kind::reduce_scatter_block;
  return wrong;
}

// Of a reduce a root sees what the others have left for it, and who has much hears of it. Over nodes a leaf that has
// others behind it may see it, too.
bool sees_the_odd_one(const GroupReduction& called, std::uint32_t rank) {
  return called.kind != Kind::reduce || called.root == rank || called.count == 2000;
}

// Each rank differs in one point in turn; nobody's result is touched, and the next call is as any other.
TEST_P(ReductionsOn, of_different_kinds_name_the_rank_and_harm_no_other_call) {
  if (size() == 1) return;
  run([&](Member member) {
    std::vector<std::uint64_t> mine(size() * 1000, 1), result(1000, 77);
    std::uint64_t call = 0;
    const auto call_and_compare = [&](const GroupReduction& called, std::uint32_t odd_one) {
      const Status status = member.run(called);
      ASSERT_EQ(result, std::vector<std::uint64_t>(1000, 77));
      if (!sees_the_odd_one(called, member.rank)) {
        ASSERT_TRUE(status.is_ok() || !member.team.places().is_one_node()) << status.text();
        if (status.is_ok()) return;
      }
      ASSERT_EQ(status.code(), Code::argument);
      // The odd one is told of any of the others.
      const std::string of_odd_one = "reduction: rank " + std::to_string(odd_one) + " of the group has called";
      ASSERT_EQ(status.text().find(of_odd_one) != std::string::npos, member.rank != odd_one) << status.text();
      ASSERT_THAT(status.text(), AllOf(HasSubstr(" of the group has called "), HasSubstr("same on all ranks")));
    };
    for (const Kind kind : {Kind::allreduce, Kind::reduce}) {
      const GroupReduction right = {.kind = kind,
                                    .type = ElementType::int32,
                                    .op = Operator::sum,
                                    .root = kind == Kind::reduce ? 1U : 0U,
                                    .count = 12,
                                    .mine = reinterpret_cast<std::byte*>(mine.data()),
                                    .result = reinterpret_cast<std::byte*>(result.data())};
      for (std::uint32_t odd_one = 0; odd_one < size(); ++odd_one) {
        for (const GroupReduction& other : other_than(right))
          call_and_compare(member.rank == odd_one ? other : right, odd_one);
        for (const Kind next : {Kind::reduce, Kind::allreduce, Kind::reduce}) {
          const Wish wish = {.kind = next, .root = odd_one, .count = call % 2 == 0 ? 3U : 2000U};
          reduce_and_compare(member, oracle_, call++, next == Kind::allreduce ? Wish{.count = 3} : wish);
        }
      }
    }
  });
}

// Each piece of one is as long as the other's, so that only what was said tells them apart.
TEST_P(ReductionsOn, of_different_lengths_in_pieces_are_told_apart) {
  if (size() == 1) return;
  run([&](Member member) {
    const std::size_t count = (member.rank == 1 ? 300'000 : 200'000);
    std::vector<std::uint32_t> mine(count * size(), 1), result(count, 77);
    for (const Kind kind : {Kind::allreduce, Kind::reduce_scatter_block}) {
      const Status status = member.run({.kind = kind,
                                        .type = ElementType::uint32,
                                        .op = Operator::sum,
                                        .count = count,
                                        .mine = reinterpret_cast<std::byte*>(mine.data()),
                                        .result = reinterpret_cast<std::byte*>(result.data())});
      ASSERT_EQ(status.code(), Code::argument);
      ASSERT_EQ(result, std::vector<std::uint32_t>(count, 77));
      reduce_and_compare(member, oracle_, 9, {.count = 3});
    }
  });
}

// Whatever lies between them, and whoever is ahead.
// In full in make test-all: three seeds of 200 calls.
// Takes seconds (*/fifteen_nodes*): fifteen nodes of threads.
TEST_P(ReductionsOn, mix_at_random_with_all_other_calls_of_a_group) {
  const std::uint64_t calls = test::in_full_or(200, 40);
  for (const std::uint64_t seed : seeds(3)) {
    SCOPED_TRACE(how_to_replay(seed));
    run([&](Member member) {
      std::mt19937_64 random(seed);
      for (std::uint64_t call = 0; call < calls; ++call) {
        const std::uint64_t what = random() % 8;
        const auto root = static_cast<std::uint32_t>(random() % size());
        const std::size_t count = std::array<std::size_t, 5>{0, 1, 5, 60, 2000}[random() % 5];
        std::uint64_t told = member.rank == root ? call : 0;
        const auto told_bytes = std::as_writable_bytes(std::span(&told, 1));
        if (what == 0) {
          ASSERT_TRUE(member.team.barrier("barrier").is_ok());
        } else if (what == 1) {
          ASSERT_TRUE(member.reductions.broadcast(told_bytes, root, "broadcast").is_ok());
          ASSERT_EQ(told, call);
        } else if (what == 7) {
          broadcast_and_compare(member, root, call, count * 8);
        } else {
          const Kind kind =
              std::array{Kind::allreduce, Kind::reduce_scatter_block, Kind::reduce}[what < 4 ? what - 2 : 2];
          reduce_and_compare(member, oracle_, call, {kind, {ElementType::uint64, Operator::sum}, root, count});
        }
      }
    });
  }
}

// One thread is both ranks.
TEST(Reductions, let_a_leaf_go_two_calls_ahead_of_its_root_and_no_further) {
  GroupOfThreads({0, 0}).be_one_after_the_other<DisappointedWaiter>([](Member leaf, Member root) {
    const std::array<std::uint64_t, 4> mine = {1, 2, 4, 8};
    std::uint64_t result = 0;
    EXPECT_TRUE(leaf.run(one_sum_to(0, mine[0], result)).is_ok());
    EXPECT_TRUE(leaf.run(one_sum_to(0, mine[1], result)).is_ok());
    for (const std::uint64_t& brought : {mine[0], mine[1]}) {
      EXPECT_TRUE(root.run(one_sum_to(0, 16, result)).is_ok());
      EXPECT_EQ(result, 16 + brought);
    }
    for (const std::uint64_t& brought : {mine[2], mine[3]})
      EXPECT_TRUE(leaf.run(one_sum_to(0, brought, result)).is_ok());
    for (int call = 0; call < 2; ++call) EXPECT_EQ(leaf.run(one_sum_to(0, mine[0], result)).code(), Code::peer_failed);
  });
}

TEST(Reductions, fail_at_a_root_whose_leaf_is_dead_and_in_whatever_comes_then) {
  GroupOfThreads({0, 0}).be_one_after_the_other<DisappointedWaiter>([](Member, Member root) {
    const std::uint64_t mine = 1;
    std::uint64_t result = 77;
    EXPECT_EQ(root.run(one_sum_to(0, mine, result)).code(), Code::peer_failed);
    EXPECT_EQ(root.run(one_sum_to(1, mine, result)).code(), Code::peer_failed);
    EXPECT_EQ(root.run(one_sum(mine, result)).code(), Code::peer_failed);
    EXPECT_EQ(result, 77);
  });
}

// In full in make test-all: a hundred thousand calls, twice.
TEST(Reductions, of_a_slow_root_are_right_a_hundred_thousand_times) {
  for (const bool is_crowded : {false, true})
    expect_lead(
        GroupOfThreads({0, 0}, is_crowded),
        {.calls = test::in_full_or<std::uint64_t>(100'000, 10'000), .each = 1000, .phase = 1, .least = 1, .most = 2});
}

// Nobody takes for its own what others bring to another call. Whoever sees it first wakes the others, also where a
// third would wake them.
TEST(Reductions, see_on_a_node_who_makes_another_call_than_a_reduce) {
  for (const auto& [root, is_crowded] : {std::pair(0U, false), {1U, false}, {2U, false}, {0U, true}, {2U, true}}) {
    SCOPED_TRACE("root " + std::to_string(root));
    GroupOfThreads(Nodes(3, 0), is_crowded).run([&, root = root](Member member) {
      const std::uint64_t mine = 5;
      std::uint64_t result = 0;
      for (int call = 0; call < 3; ++call) {
        ASSERT_TRUE(member.run(one_sum_to(root, mine, result)).is_ok());
        ASSERT_TRUE(member.run(one_sum(mine, result)).is_ok());
      }
      result = 77;
      // A leaf has gone on before it is seen.
      Status status = member.run(member.rank == 1 ? one_sum(mine, result) : one_sum_to(root, mine, result));
      if (status.is_ok()) status = member.run(one_sum(mine, result));
      EXPECT_EQ(status.code(), Code::argument);
      EXPECT_THAT(status.text(), AnyOf(HasSubstr("the same calls in the same order"), HasSubstr("has failed")));
      EXPECT_FALSE(member.run(one_sum_to(root, mine, result)).is_ok());
      EXPECT_FALSE(member.run(one_sum(mine, result)).is_ok());
      EXPECT_EQ(result, 77);
    });
  }
}

// The root would fold what its leaf has left for the call before the barrier.
TEST(Reductions, see_who_comes_to_a_barrier_and_a_reduce_in_another_order) {
  for (const std::size_t count : {1, 2000}) {
    GroupOfThreads(Nodes(3, 0)).run([&](Member member) {
      const std::vector<std::uint64_t> mine(2000, 5);
      std::vector<std::uint64_t> result(2000, 77);
      if (member.rank == 0) {
        EXPECT_TRUE(member.run(one_sum_to(1, mine[0], result[0])).is_ok());
      }
      // It fails where others have met, gone on and given up before this one looks.
      (void)member.team.barrier("barrier");
      GroupReduction reduction = one_sum_to(1, mine[0], result[0]);
      reduction.count = count;
      const Status status = member.run(reduction);
      if (member.rank == 1) {
        // The leaves may see it first, in their next call.
        EXPECT_THAT(status.text(),
                    AnyOf(HasSubstr("rank 0 of the group has made other calls than rank 1"), HasSubstr("has failed")));
      }
      EXPECT_FALSE(member.run(one_sum(mine[0], result[0])).is_ok());
      EXPECT_EQ(result, std::vector<std::uint64_t>(2000, 77));
    });
  }
}

// Of the other two one has said something else, which alone would harm no other call.
TEST(Reductions, see_who_is_out_of_step_before_who_says_something_else) {
  GroupOfThreads(Nodes(3, 0)).run([&](Member member) {
    const std::uint64_t mine = 5;
    std::uint64_t result = 77;
    if (member.rank == 2) {
      EXPECT_TRUE(member.run(one_sum_to(0, mine, result)).is_ok());
    }
    GroupReduction reduction = one_sum(mine, result);
    if (member.rank == 1) reduction.op = Operator::max;
    const Status status = member.run(reduction);
    EXPECT_THAT(status.text(), AnyOf(HasSubstr("has made other calls"), HasSubstr("has failed")));
    EXPECT_FALSE(member.run(one_sum(mine, result)).is_ok());
    EXPECT_EQ(result, 77);
  });
}

// Rank 0 takes itself for the root, and looks when rank 1 has written over what it left for rank 2.
TEST(Reductions, tell_who_takes_itself_for_the_root_that_a_rank_has_gone_on) {
  HeldWaiter held;
  const auto body = [&](Member member) {
    const std::uint64_t mine = 5;
    std::uint64_t result = 77;
    for (int call = 0; call < 3; ++call) {
      const bool is_wrong = member.rank == 0 && call == 0;
      const Status status = member.run(one_sum_to(is_wrong ? 0 : 2, mine, result));
      EXPECT_EQ(status.is_ok(), call > 0 || member.rank == 1) << status.text();
      if (is_wrong) {
        EXPECT_THAT(status.text(),
                    HasSubstr("rank 1 of the group has called another farsum_reduce or farsum_broadcast, and has"));
      }
    }
    if (member.rank == 1) held.let_go();
    EXPECT_EQ(result, member.rank == 2 ? 15 : 77);
    EXPECT_TRUE(member.run(one_sum(mine, result)).is_ok());
    EXPECT_EQ(result, 15);
  };
  GroupOfThreads(Nodes(3, 0), true).run(body, &held);
}

// What the one that meets for a barrier has said in an earlier call is the very same.
TEST(Reductions, see_who_meets_for_something_else_on_the_node_instead) {
  GroupOfThreads(Nodes(3, 0), true).run([&](Member member) {
    const std::uint64_t mine = 5;
    std::uint64_t result = 0;
    for (int call = 0; call < 4; ++call) {
      ASSERT_TRUE(member.run(one_sum(mine, result)).is_ok());
    }
    result = 77;
    if (member.rank == 1) {
      (void)member.team.barrier("barrier");
      EXPECT_FALSE(member.run(one_sum(mine, result)).is_ok());
    } else {
      const Status status = member.run(one_sum(mine, result));
      EXPECT_EQ(status.code(), Code::argument);
      // Who was the last to come is not known, and the other of these two may have seen it first.
      EXPECT_THAT(status.text(), AnyOf(HasSubstr(" made a call that is no reduction"), HasSubstr("has failed")));
      EXPECT_FALSE(member.run(one_sum(mine, result)).is_ok());
    }
    EXPECT_EQ(result, 77);
  });
}

TEST(Reductions, leave_the_block_of_a_usual_group_short_enough_to_be_kept) {
  for (std::uint32_t ranks = 1; ranks <= 16; ++ranks) {
    EXPECT_LE(GroupBlock::footprint(ranks), std::size_t{256} << 10) << ranks;
  }
}

// Who found none in the middle would leave the others waiting.
TEST_P(ReductionsOn, need_no_memory_once_they_have_begun) {
  run([&](Member member) {
    std::vector<std::uint64_t> mine(30'000 * size(), member.rank), result(30'000);
    for (const std::size_t count : {1, 100, 30'000}) {
      for (const Kind kind : {Kind::allreduce, Kind::reduce, Kind::reduce_scatter_block}) {
        const FailingMemory none(0, FailingMemory::Fails::for_good);
        const Status status = member.run({.kind = kind,
                                          .type = ElementType::uint64,
                                          .op = Operator::sum,
                                          .count = count,
                                          .mine = reinterpret_cast<std::byte*>(mine.data()),
                                          .result = reinterpret_cast<std::byte*>(result.data())});
        const FailingMemory::Pause pause;
        ASSERT_TRUE(status.is_ok());
        if (kind != Kind::reduce || member.rank == 0) {
          ASSERT_EQ(result[count - 1], size() * (size() - 1) / 2);
        }
      }
    }
  });
}

TEST(Reductions, of_as_many_ranks_as_scatter_and_more_give_each_its_block) {
  for (const std::uint32_t ranks : {32, 33, 64, 70}) {
    Oracle oracle(Nodes(ranks, 0));
    GroupOfThreads(Nodes(ranks, 0)).run([&](Member member) {
      const Foldable sum{ElementType::uint32, Operator::sum};
      reduce_and_compare(member, oracle, 1, {Kind::reduce_scatter_block, sum, 0, 1, true});
      reduce_and_compare(member, oracle, 2, {Kind::reduce_scatter_block, sum, 0, 40, true});
      reduce_and_compare(member, oracle, 3, {Kind::allreduce, sum, 0, 1200});
    });
  }
}

// By an allreduce of a value of each rank, which all get alike.
double sum_of_all(const std::vector<double>& values, const Nodes& node_of, bool is_crowded) {
  std::vector<double> sums(values.size());
  GroupOfThreads(node_of, is_crowded).run([&](Member member) {
    ASSERT_TRUE(member
                    .run({.type = ElementType::float64,
                          .op = Operator::sum,
                          .count = 1,
                          .mine = reinterpret_cast<const std::byte*>(&values[member.rank]),
                          .result = reinterpret_cast<std::byte*>(&sums[member.rank])})
                    .is_ok());
  });
  for (const double sum : sums) EXPECT_EQ(sum, sums[0]);
  return sums[0];
}

// Sums of reals depend on their order: it is that of the ranks of a node, then that of the nodes.
TEST(Reductions, combine_the_ranks_of_a_node_before_nodes_and_what_is_lower_on_the_left) {
  const std::vector<double> values = {1, 0x1p-53, 0x1p-53, 0x1p-53};
  const auto sum_on = [&](const Nodes& node_of, bool is_crowded) { return sum_of_all(values, node_of, is_crowded); };
  for (const bool is_crowded : {false, true}) {
    EXPECT_EQ(sum_on({0, 0, 0, 0}, is_crowded), 1);
    EXPECT_EQ(sum_on({0, 1, 1, 0}, is_crowded), 1 + 0x1p-52);
    EXPECT_EQ(sum_on({5, 1, 3, 1}, is_crowded), 1 + 0x1p-51);
    EXPECT_EQ(sum_on({0, 0, 1, 2}, is_crowded), 1);
  }
}

// Of 13 nodes 2 and 3 meet before they meet 0, and so do 4 to 7; 12 are folded from the lowest on.
TEST(Reductions, combine_many_nodes_by_a_binomial_tree) {
  const auto sum_of = [](const std::vector<double>& values) {
    Nodes node_of(values.size());
    std::iota(node_of.begin(), node_of.end(), 0u);
    return sum_of_all(values, node_of, false);
  };
  const double half = 0x1p-53;  // lost where it is added to 1, unless another comes with it
  std::vector<double> values(13, 0);
  values[0] = 1;
  values[1] = values[2] = half;
  EXPECT_EQ(sum_of(values), 1);
  values[1] = 0;
  values[3] = half;
  EXPECT_EQ(sum_of(values), 1 + 2 * half);
  values = std::vector<double>(13, 0);
  values[0] = 1;
  values[4] = values[7] = half;
  EXPECT_EQ(sum_of(values), 1 + 2 * half);
  values = std::vector<double>(12, 0);
  values[0] = 1;
  values[4] = values[7] = half;
  EXPECT_EQ(sum_of(values), 1);
}

}  // namespace
}  // namespace farsum
