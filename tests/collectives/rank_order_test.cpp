// Reductions whose brackets the ranks alone decide: the same on whatever nodes they are, and in whatever form it goes.
#include "collectives/rank_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "collectives/reduction_lists.hpp"
#include "group_of_threads.hpp"
#include "odd_elements.hpp"
#include "sim/seeds.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;
using Kind = GroupReduction::Kind;
using Bytes = std::vector<std::byte>;

// Folds parts one by one as the order says: those of an aligned block of ranks, from its halves.
template <class Value>
Value in_brackets(const std::vector<Value>& parts, const std::function<Value(const Value&, const Value&)>& fold) {
  const auto ranks = static_cast<std::uint32_t>(parts.size());
  const std::function<Value(std::uint32_t, std::uint32_t)> whole = [&](std::uint32_t first, std::uint32_t length) {
    if (length == 1) return parts[first];
    const std::uint32_t half = length / 2;
    Value left = whole(first, half);
    return first + half < ranks ? fold(left, whole(first + half, half)) : left;
  };
  return whole(0, std::bit_ceil(ranks));
}

TEST(RankOrder, has_brackets_of_neighbours_first) {
  const auto text_of = [](std::uint32_t ranks) {
    std::vector<std::string> parts(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) parts[rank] = std::to_string(rank);
    return in_brackets<std::string>(parts, [](const auto& a, const auto& b) { return "(" + a + " " + b + ")"; });
  };
  EXPECT_EQ(text_of(1), "0");
  EXPECT_EQ(text_of(3), "((0 1) 2)");
  EXPECT_EQ(text_of(7), "(((0 1) (2 3)) ((4 5) 6))");
  EXPECT_EQ(text_of(9), "((((0 1) (2 3)) ((4 5) (6 7))) 8)");
}

// An element is a number that tells which elements were folded into it, in which brackets: no two give the same. What
// has been folded in short vectors is remembered in words.
class Symbols {
 public:
  static std::uint64_t of_rank(std::uint32_t rank, std::uint64_t element) {
    const std::uint64_t symbol = mixed(rank + 1, element + 1);
    if (element == 0) remember(symbol, std::to_string(rank));
    return symbol;
  }
  static std::uint64_t folded(std::uint64_t left, std::uint64_t right) { return mixed(left, right); }
  static std::string name_of(std::uint64_t symbol) {
    const std::lock_guard lock(mutex());
    const auto found = names().find(symbol);
    return found == names().end() ? "something else" : found->second;
  }
  static const ops::KernelSet& kernels() {
    static const ops::KernelSet set = [] {
      ops::KernelSet symbolic = ops::kernels(ops::Isa::baseline);
      symbolic.bulk_table[static_cast<std::size_t>(ElementType::uint64)][static_cast<std::size_t>(Operator::sum)] =
          fold;
      return symbolic;
    }();
    return set;
  }

 private:
  static std::uint64_t mixed(std::uint64_t left, std::uint64_t right) {
    std::uint64_t mix = left * 0x9e3779b97f4a7c15 + std::rotl(right, 29) * 0xbf58476d1ce4e5b9 + 0x94d049bb133111eb;
    mix = (mix ^ mix >> 31) * 0xd6e8feb86659fd93;
    return mix ^ mix >> 32;
  }
  static void fold(void* target, const void* operand, std::size_t count, const void*) {
    auto* const into = static_cast<std::byte*>(target);
    const auto* const from = static_cast<const std::byte*>(operand);
    for (std::size_t at = 0; at < 8 * count; at += 8) {
      std::uint64_t left = 0, right = 0;
      std::memcpy(&left, into + at, 8);
      std::memcpy(&right, from + at, 8);
      const std::uint64_t both = folded(left, right);
      if (count == 1) remember(both, "(" + name_of(left) + " " + name_of(right) + ")");
      std::memcpy(into + at, &both, 8);
    }
  }
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static std::map<std::uint64_t, std::string>& names() {
    static std::map<std::uint64_t, std::string> names;
    return names;
  }
  static void remember(std::uint64_t symbol, const std::string& name) {
    const std::lock_guard lock(mutex());
    names().try_emplace(symbol, name);
  }
};

// As many bits as a number of parts that has all of them set has, so many rows are there at once.
TEST(RankOrder, folds_any_number_of_parts) {
  constexpr std::uint32_t ranks = (1 << 18) - 1;
  std::vector<std::uint64_t> parts(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) parts[rank] = Symbols::of_rank(rank, 1);
  std::array<std::uint64_t, 2> result = {};
  std::array<std::uint64_t, 2> part = {};
  const Fold fold(Symbols::kernels(), ElementType::uint64, Operator::sum, ReduceOrder::ranks);
  fold.all(reinterpret_cast<std::byte*>(result.data()), sizeof result, ranks, [&](std::uint32_t rank) {
    part = {parts[rank], parts[rank]};
    return reinterpret_cast<const std::byte*>(part.data());
  });
  const std::uint64_t expected = in_brackets<std::uint64_t>(parts, Symbols::folded);
  EXPECT_EQ(result, (std::array<std::uint64_t, 2>{expected, expected}));
}

GroupOfThreads::Means by_ranks(const ops::KernelSet& kernels) {
  return {.kernels = kernels, .order = [](std::uint32_t) { return ReduceOrder::ranks; }};
}

// Letters have room for 128 bytes of elements.
GroupOfThreads::Means by_ranks_in_short_letters() {
  GroupOfThreads::Means means = by_ranks(ops::kernels_for_this_machine());
  means.letter_bytes = 192;
  return means;
}

// What a rank gets of elements from one on, where so many ranks take part.
std::vector<std::uint64_t> expected_symbols(std::uint32_t ranks, std::size_t from, std::size_t count) {
  std::vector<std::uint64_t> expected(count);
  std::vector<std::uint64_t> parts(ranks);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) parts[rank] = Symbols::of_rank(rank, from + i);
    expected[i] = in_brackets<std::uint64_t>(parts, Symbols::folded);
  }
  return expected;
}

struct Asked {
  Kind kind;
  std::size_t count;
  std::uint32_t root;
  bool in_place = false;
};

void reduce_symbols(Member member, std::uint32_t ranks, const Asked& asked) {
  const bool scatters = asked.kind == Kind::reduce_scatter_block;
  std::vector<std::uint64_t> mine(scatters ? asked.count * ranks : asked.count), apart(asked.count, 0);
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = Symbols::of_rank(member.rank, i);
  std::vector<std::uint64_t>& result = asked.in_place ? mine : apart;
  const bool gets_result = asked.kind != Kind::reduce || member.rank == asked.root;
  const Status status = member.run({.kind = asked.kind,
                                    .type = ElementType::uint64,
                                    .op = Operator::sum,
                                    .root = asked.root,
                                    .count = asked.count,
                                    .mine = reinterpret_cast<const std::byte*>(mine.data()),
                                    .result = gets_result ? reinterpret_cast<std::byte*>(result.data()) : nullptr});
  ASSERT_TRUE(status.is_ok()) << status.text();
  if (!gets_result) return;
  const auto expected = expected_symbols(ranks, scatters ? member.rank * asked.count : 0, asked.count);
  for (std::size_t i = 0; i < asked.count; ++i) {
    ASSERT_EQ(result[i], expected[i]) << "rank " << member.rank << ", element " << i << " of " << asked.count
                                      << ", kind " << static_cast<int>(asked.kind) << ": "
                                      << Symbols::name_of(result[i]);
  }
}

// Short, in lines and in slots; in pieces; by blocks; apart and in place.
void reduce_in_all_forms(const Nodes& node_of, bool is_crowded, std::uint32_t root, std::uint32_t degree) {
  const auto ranks = static_cast<std::uint32_t>(node_of.size());
  const std::size_t slot = NodeRoundsBlock::slot_bytes(ranks) / 8;
  const std::size_t piece = NodeRoundsBlock::piece_bytes(ranks) / 8;
  const std::vector<Asked> all = {{Kind::allreduce, 1, 0},
                                  {Kind::allreduce, slot, 0},
                                  {Kind::allreduce, piece + 3, 0},
                                  {Kind::reduce, 1, root},
                                  {Kind::reduce, slot + 1, root},
                                  {Kind::reduce_scatter_block, 1, 0},
                                  {Kind::reduce_scatter_block, slot / ranks + 9, 0},
                                  {Kind::allreduce, slot, 0, true},
                                  {Kind::reduce, slot, root, true},
                                  {Kind::reduce, slot + 1, root, true},
                                  {Kind::reduce_scatter_block, slot / ranks + 9, 0, true}};
  GroupOfThreads::Means means = by_ranks(Symbols::kernels());
  means.degree = degree;
  GroupOfThreads(node_of, is_crowded, means).run([&](Member member) {
    for (const Asked& asked : all) reduce_symbols(member, ranks, asked);
  });
}

std::string text_of(const Nodes& node_of) {
  std::string text = "ranks on nodes";
  for (const std::uint32_t node : node_of) text += " " + std::to_string(node);
  return text;
}

class RankOrderOf : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(ranks, RankOrderOf, testing::Range(1U, 41U));

// In make test-all (*/3?): the largest of its groups.
TEST_P(RankOrderOf, is_that_of_one_node_wherever_ranks_are_and_in_every_form) {
  const std::uint32_t ranks = GetParam();
  for (const std::uint64_t seed : seeds(3)) {
    std::mt19937_64 random(seed * 100 + ranks);
    const auto nodes = static_cast<std::uint32_t>(1 + random() % std::min(ranks, 20U));
    Nodes in_turn(ranks), in_a_row(ranks), at_random(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      in_turn[rank] = rank % nodes;
      in_a_row[rank] = rank * nodes / ranks;
      at_random[rank] = static_cast<std::uint32_t>(random() % nodes);
    }
    for (const Nodes& node_of : {Nodes(ranks, 0), in_turn, in_a_row, at_random}) {
      SCOPED_TRACE(text_of(node_of) + "; " + how_to_replay(seed));
      const auto degree = std::array{0U, 2U, 3U, 8U}[random() % 4];
      reduce_in_all_forms(node_of, random() % 2 == 0, static_cast<std::uint32_t>(random() % ranks), degree);
    }
  }
}

Nodes in_a_row(std::uint32_t nodes, std::uint32_t ranks_a_node) {
  Nodes node_of(std::size_t{nodes} * ranks_a_node);
  for (std::uint32_t rank = 0; rank < node_of.size(); ++rank) node_of[rank] = rank / ranks_a_node;
  return node_of;
}

const std::vector<Nodes>& some_placements() {
  static const std::vector<Nodes> placements = {Nodes(18, 0),
                                                {0, 1, 1, 0, 2, 2, 2, 0, 1, 3, 3, 3, 3, 3, 0, 0, 1, 2},
                                                {14, 0, 1, 13, 2, 3, 12, 4, 5, 11, 6, 6, 7, 10, 8, 9, 9, 13}};
  return placements;
}

// NaNs of both signs, zeros of both signs, subnormals: also of a thread that rounds up and flushes subnormals.
TEST(RankOrder, gives_the_same_bits_for_every_type_and_operator_whatever_a_thread_computes_with) {
  constexpr std::size_t count = 9;
  const std::vector<Foldable> pairs = pairs_that_can_be_folded();
  std::mt19937_64 random(5);
  std::vector<std::vector<Bytes>> brought(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (std::uint32_t rank = 0; rank < 18; ++rank) {
      brought[i].emplace_back(count * ops::size_of(pairs[i].type));
      fill_oddly(pairs[i].type, brought[i].back(), random);
    }
  }
  const auto expected_of = [&](std::size_t i) {
    const auto kernel = ops::kernels(ops::Isa::baseline).bulk(pairs[i].type, pairs[i].op);
    return in_brackets<Bytes>(brought[i], [&](const Bytes& left, const Bytes& right) {
      Bytes both = left;
      for (std::size_t at = 0; at < both.size(); at += ops::size_of(pairs[i].type))
        kernel(&both[at], &right[at], 1, nullptr);
      return both;
    });
  };
  for (const Nodes& node_of : some_placements()) {
    SCOPED_TRACE(text_of(node_of));
    GroupOfThreads(node_of, false, by_ranks(ops::kernels_for_this_machine())).run([&](Member member) {
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        Bytes result(brought[i][0].size());
        const Bytes expected = promised(pairs[i], expected_of(i));
        const GroupReduction reduction = {.type = pairs[i].type,
                                          .op = pairs[i].op,
                                          .count = count,
                                          .mine = brought[i][member.rank].data(),
                                          .result = result.data()};
        std::fenv_t before{};
        std::fegetenv(&before);
        if (member.rank % 2 == 0) std::fesetround(FE_UPWARD);
#ifdef __SSE2__
        if (member.rank % 3 == 0) _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
        const Status status = member.run(reduction);
        std::fesetenv(&before);
        ASSERT_TRUE(status.is_ok()) << status.text();
        ASSERT_EQ(promised(pairs[i], result), expected)
            << ops::name_of(pairs[i].type) << " by " << ops::name_of(pairs[i].op);
      }
    });
  }
}

// In each call, and in the next, but for those whose part a root has taken.
TEST(RankOrder, is_told_apart_from_that_of_nodes_as_another_operator_is_and_nobody_waits) {
  for (const Nodes& node_of : some_placements()) {
    for (const std::uint32_t odd_one : {0U, 1U, 17U}) {
      SCOPED_TRACE(text_of(node_of) + ", rank " + std::to_string(odd_one));
      const auto order = [&](std::uint32_t rank) { return rank == odd_one ? ReduceOrder::ranks : ReduceOrder::nodes; };
      GroupOfThreads(node_of, false, {.order = order}).run([&](Member member) {
        for (const std::size_t count : {1, 20'000}) {
          std::vector<std::uint64_t> mine(count, 1), result(count, 77);
          for (const Kind kind : {Kind::allreduce, Kind::reduce, Kind::allreduce}) {
            const Status status = member.run({.kind = kind,
                                              .type = ElementType::uint64,
                                              .op = Operator::sum,
                                              .count = count,
                                              .mine = reinterpret_cast<std::byte*>(mine.data()),
                                              .result = reinterpret_cast<std::byte*>(result.data())});
            const bool is_leaf = kind == Kind::reduce && member.rank != 0 && count == 1;
            // Over nodes a leaf that waits for others on their way to the root is told.
            if (is_leaf && (member.team.places().is_one_node() || status.is_ok())) {
              ASSERT_TRUE(status.is_ok()) << status.text();
            } else {
              ASSERT_EQ(status.code(), Code::argument);
              ASSERT_THAT(status.text(), HasSubstr("with FARSUM_REDUCE_ORDER=ranks"));
            }
            ASSERT_EQ(result, std::vector<std::uint64_t>(count, 77));
          }
        }
      });
    }
  }
}

// Where each rank's neighbours are on another node.
const std::vector<Nodes>& scattered_so_that_letters_hold_eight_elements() {
  static const std::vector<Nodes> placements = [] {
    Nodes by_two(16), by_many = in_a_row(16, 1);
    for (std::uint32_t rank = 0; rank < 16; ++rank) by_two[rank] = rank % 2;
    // The upper half of the tree has all odd ranks, one a node, of which no two are neighbours.
    for (std::uint32_t rank = 16; rank < 30; ++rank) by_many.push_back(rank % 2 * 8 + rank / 2 % 8);
    return std::vector<Nodes>{by_two, by_many};
  }();
  return placements;
}

struct Elements {
  ElementType type;
  std::size_t count;
};

// All bytes of which are 0.
Status reduce_zeros(Member member, Kind kind, const Elements& elements, Bytes& result) {
  const Bytes mine(elements.count * 16 * ops::size_of(elements.type) * 2);
  return member.run({.kind = kind,
                     .type = elements.type,
                     .op = Operator::sum,
                     .count = elements.count,
                     .mine = mine.data(),
                     .result = result.data()});
}

constexpr std::array<Kind, 3> all_kinds = {Kind::allreduce, Kind::reduce, Kind::reduce_scatter_block};

TEST(RankOrder, refuses_on_all_ranks_what_no_letter_has_room_for_and_goes_on) {
  for (const Nodes& node_of : scattered_so_that_letters_hold_eight_elements()) {
    SCOPED_TRACE(text_of(node_of));
    GroupOfThreads(node_of, true, by_ranks_in_short_letters()).run([&](Member member) {
      for (const Kind kind : all_kinds) {
        const bool gets_result = kind != Kind::reduce || member.rank == 0;
        Bytes result(64, std::byte{77});
        const Bytes untouched = result;
        const Status wide = reduce_zeros(member, kind, {ElementType::complex256, 2}, result);
        ASSERT_EQ(wide.code(), Code::unsupported);
        ASSERT_EQ(result, untouched);
        const Status narrow = reduce_zeros(member, kind, {ElementType::complex128, 4}, result);
        ASSERT_TRUE(narrow.is_ok()) << narrow.text();
        ASSERT_EQ(result == Bytes(64), gets_result);
      }
    });
  }
}

TEST(RankOrder, refuses_no_call_without_elements) {
  for (const Nodes& node_of : scattered_so_that_letters_hold_eight_elements()) {
    SCOPED_TRACE(text_of(node_of));
    GroupOfThreads(node_of, true, by_ranks_in_short_letters()).run([&](Member member) {
      for (const Kind kind : all_kinds) {
        Bytes result(8);
        const Status status = reduce_zeros(member, kind, {ElementType::complex256, 0}, result);
        ASSERT_TRUE(status.is_ok()) << status.text();
      }
    });
  }
}

TEST(RankOrder, tells_of_different_types_also_where_one_of_them_is_refused) {
  for (const Nodes& node_of : scattered_so_that_letters_hold_eight_elements()) {
    for (const std::uint32_t odd_one : {0U, 1U, 15U}) {
      SCOPED_TRACE(text_of(node_of) + ", rank " + std::to_string(odd_one));
      GroupOfThreads(node_of, true, by_ranks_in_short_letters()).run([&](Member member) {
        for (const bool is_odd_one_refused : {true, false}) {
          Bytes result(64, std::byte{77});
          const Bytes untouched = result;
          const bool is_refused = (member.rank == odd_one) == is_odd_one_refused;
          const ElementType type = is_refused ? ElementType::complex256 : ElementType::uint64;
          const Status status = reduce_zeros(member, Kind::allreduce, {type, 1}, result);
          ASSERT_EQ(status.code(), Code::argument);
          ASSERT_THAT(status.text(), HasSubstr("must be the same on all ranks"));
          ASSERT_EQ(result, untouched);
        }
        Bytes result(64, std::byte{77});
        ASSERT_TRUE(reduce_zeros(member, Kind::allreduce, {ElementType::uint64, 8}, result).is_ok());
        ASSERT_EQ(result, Bytes(64));
      });
    }
  }
}

// Who found none in the middle would leave the others waiting.
TEST(RankOrder, needs_no_memory_once_a_call_has_begun) {
  for (const Nodes& node_of : some_placements()) {
    SCOPED_TRACE(text_of(node_of));
    GroupOfThreads(node_of, true, by_ranks(ops::kernels_for_this_machine())).run([&](Member member) {
      std::vector<std::uint64_t> mine(3000 * node_of.size(), 1), result(3000);
      for (const std::size_t count : {0, 1, 3000}) {
        for (const Kind kind : all_kinds) {
          const FailingMemory none(0, FailingMemory::Fails::for_good);
          const Status status = member.run({.kind = kind,
                                            .type = ElementType::uint64,
                                            .op = Operator::sum,
                                            .count = count,
                                            .mine = reinterpret_cast<std::byte*>(mine.data()),
                                            .result = reinterpret_cast<std::byte*>(result.data())});
          const FailingMemory::Pause pause;
          ASSERT_TRUE(status.is_ok());
        }
      }
    });
  }
}

// As a node of that name has it.
RankOrder order_on(const Nodes& node_of, std::uint32_t node, const RankOrder::Limits& limits) {
  const GroupPlaces places = places_of(node_of, node);
  return {places, ReductionLists::degree_between(places.nodes(), 0), limits};
}

TEST(RankOrder, sends_one_vector_a_letter_where_nodes_have_ranks_in_a_row_by_powers_of_two) {
  const GroupPlaces places = places_of(in_a_row(2, 8), 1);
  const std::array<trees::Step, 2> list = {
      {{trees::Action::send, false, 0, 0, 1}, {trees::Action::receive_copy, false, 0, 0, 1}}};
  RankOrder order(places, 0, {.piece_bytes = 4096, .letter_bytes = 32000});
  EXPECT_EQ(order.piece_bytes(8), 4096U);
  order.plan(places, list);
  order.begin(8, [&](std::uint32_t) { return reinterpret_cast<const std::byte*>(&places); });
  EXPECT_EQ(order.letter_bytes(0), 8U);
  EXPECT_EQ(order.letter_bytes(1), 8U);
}

TEST(RankOrder, sends_pieces_as_long_as_those_of_nodes_where_nodes_have_ranks_in_a_row_by_powers_of_two) {
  for (const std::uint32_t nodes : {2U, 8U, 12U, 64U}) {
    const RankOrder::Limits limits = {.piece_bytes = 2048, .letter_bytes = 32000};
    EXPECT_EQ(order_on(in_a_row(nodes, 128), 1, limits).piece_bytes(8), 2048U) << nodes;
  }
}

TEST(RankOrder, has_pieces_of_one_length_on_all_nodes) {
  std::mt19937_64 random(3);
  for (const std::uint32_t nodes : {3U, 12U, 13U, 20U}) {
    Nodes node_of(2000);
    // Each node has another share of them.
    for (std::uint32_t& node : node_of) node = static_cast<std::uint32_t>(random() % (1 + random() % nodes));
    for (std::uint32_t node = 0; node < nodes; ++node) node_of[node] = node;
    const RankOrder::Limits limits = {.piece_bytes = 2048, .letter_bytes = 1 << 20};
    const std::size_t on_first = order_on(node_of, 0, limits).piece_bytes(8);
    EXPECT_LT(on_first, 2048U);
    for (std::uint32_t node = 1; node < nodes; ++node)
      EXPECT_EQ(order_on(node_of, node, limits).piece_bytes(8), on_first) << nodes << " nodes, on " << node;
  }
}

TEST(RankOrder, keeps_no_more_than_so_much_of_scattered_ranks_whatever_their_number) {
  for (const std::uint32_t ranks : {2U, 40U, 1000U, 60'000U}) {
    Nodes in_turn(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) in_turn[rank] = rank % 2;
    const RankOrder order = order_on(in_turn, 0, {.piece_bytes = 49152, .letter_bytes = 32 << 20});
    EXPECT_LE(order.piece_bytes(8) * ranks, std::max<std::size_t>(256 << 10, 64 * ranks));
    EXPECT_GE(order.piece_bytes(8), 64U);
  }
}

TEST(RankOrder, of_scattered_ranks_gives_a_letter_as_many_whole_elements_as_it_has_room_for) {
  Nodes in_turn(200);
  for (std::uint32_t rank = 0; rank < 200; ++rank) in_turn[rank] = rank % 2;
  const auto piece = [&](std::size_t letter_bytes, std::size_t element_bytes) {
    return order_on(in_turn, 0, {.piece_bytes = 1024, .letter_bytes = letter_bytes}).piece_bytes(element_bytes);
  };
  EXPECT_EQ(piece(100 * 1000, 8), 960U);
  EXPECT_EQ(piece(100 * 47, 16), 32U);
  EXPECT_EQ(piece(100 * 16, 16), 16U);
  EXPECT_EQ(piece(100 * 16 - 1, 16), 0U);
}

// Each of 16 nodes has a few ranks, and of 64 in the upper half of the tree no two are neighbours.
TEST(RankOrder, of_more_than_twelve_nodes_has_room_in_a_letter_for_those_of_several_nodes) {
  Nodes node_of = in_a_row(16, 1);
  for (std::uint32_t rank = 16; rank < 16 + 2 * 63; ++rank) node_of.push_back(rank % 2 * 8 + rank / 2 % 8);
  const auto piece = [&](std::size_t letter_bytes) {
    return order_on(node_of, 0, {.piece_bytes = 1024, .letter_bytes = letter_bytes}).piece_bytes(16);
  };
  EXPECT_EQ(piece(64 * 16), 16U);
  EXPECT_EQ(piece(64 * 16 - 1), 0U);
}

}  // namespace
}  // namespace farsum
