// Operations on memory in very many pieces, on all sides: what they do is right, and what they cost grows as their
// pieces do, however many messages they are cut into. Counted in pieces that are looked at, on both sides together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <ostream>
#include <random>
#include <vector>

#include "ops/layout_steps.hpp"
#include "protocol_job.hpp"

namespace farsum {
namespace {

enum class PieceWay : std::uint8_t { pushed, pulled, leased };

struct Case {
  const char* name;
  PieceWay way;
  OperationKind kind;
  ops::Operator op;
};

void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }

ProtocolJobOptions options_for(PieceWay way, std::uint64_t pieces) {
  ProtocolJobOptions options;
  options.pull = way == PieceWay::pulled;
  options.window_bytes = pieces * 16;
  options.inline_bytes = 64;
  options.pull_bytes = 4'096;
  options.sim.transfers = way == PieceWay::pulled;
  options.sim.max_message_bytes = options.sim.max_reply_bytes = 1'024;
  // Little room, so that what was cut has to wait again and again.
  options.sim.pair_messages = 3;
  return options;
}

// Words all over the place, in an order of their own.
std::vector<ops::Piece> scattered_words(std::uint64_t count, unsigned seed) {
  std::vector<ops::Piece> pieces(count);
  for (std::uint64_t i = 0; i < count; ++i) pieces[i] = {static_cast<std::int64_t>(i * 16 + i % 2 * 8), 8};
  std::shuffle(pieces.begin(), pieces.end(), std::mt19937(seed));
  return pieces;
}

// The three sides of one operation of rank 1 on rank 0's memory.
class Sides {
 public:
  Sides(const Case& of, std::uint64_t count)
      : case_(of),
        target_(scattered_words(count, 1)),
        origin_(scattered_words(count, 2)),
        back_(scattered_words(count, 3)),
        operand_(count * 2),
        result_(count * 2) {
    std::iota(operand_.begin(), operand_.end(), std::uint64_t{1'000});
    operation_.kind = of.kind;
    operation_.type = is_atomic(of.kind) ? ops::ElementType::uint64 : ops::ElementType::byte;
    operation_.op = of.op;
    operation_.bytes = count * 8;
    operation_.operand = reinterpret_cast<const std::byte*>(operand_.data());
    operation_.result = reinterpret_cast<std::byte*>(result_.data());
    operation_.target_layout = ops::LayoutView::indexed(target_);
    operation_.operand_layout = ops::LayoutView::indexed(origin_);
    operation_.result_layout = ops::LayoutView::indexed(back_);
  }

  // Leased updates want the sides of the origin packed.
  void pack() {
    operation_.operand_layout = operation_.result_layout = ops::LayoutView::contiguous(operation_.bytes);
    for (std::uint64_t i = 0; i < target_.size(); ++i) origin_[i] = back_[i] = {static_cast<std::int64_t>(i * 8), 8};
  }

  const Operation& operation() const { return operation_; }

  static std::uint64_t before(std::uint64_t word) { return word * 3; }

  void expect_done(const ProtocolJob& job) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < target_.size(); ++i) {
      const auto at = static_cast<std::uint64_t>(target_[i].offset);
      const std::uint64_t old = before(at / 8), given = operand_[index(origin_[i])];
      const bool sums = is_atomic(case_.kind);
      const std::uint64_t expected = case_.kind == OperationKind::get ? old : sums ? old + given : given;
      wrong += job.word(0, at) != expected;
      if (returns_data(case_.kind)) wrong += result_[index(back_[i])] != old;
    }
    EXPECT_EQ(wrong, 0u);
  }

 private:
  static std::size_t index(const ops::Piece& piece) { return static_cast<std::size_t>(piece.offset) / 8; }

  const Case& case_;
  std::vector<ops::Piece> target_, origin_, back_;
  std::vector<std::uint64_t> operand_, result_;
  Operation operation_;
};

// How many pieces are looked at until all is done.
std::uint64_t looks(const Case& of, std::uint64_t count) {
  ProtocolJob job(1, 2, options_for(of.way, count));
  for (std::uint64_t word = 0; word < count * 2; ++word) {
    const std::uint64_t value = Sides::before(word);
    std::memcpy(job.memory(0).data() + word * 8, &value, sizeof value);
  }
  Sides sides(of, count);
  if (of.way == PieceWay::leased) sides.pack();
  ProtocolRank& self = job.rank(1);
  Code code = Code::system;
  const auto program = [&]() -> SimTask<> {
    if (of.way == PieceWay::leased)
      code = co_await self.run_leased(0, sides.operation());
    else
      code = co_await self.run(0, sides.operation());
  };
  self.program.start(program());
  const std::uint64_t before = ops::pieces_looked_at.load();
  EXPECT_TRUE(job.run());
  EXPECT_EQ(code, Code::ok);
  sides.expect_done(job);
  return ops::pieces_looked_at.load() - before;
}

class ManyPieces : public testing::TestWithParam<Case> {};

TEST_P(ManyPieces, cost_twice_as_much_where_they_are_twice_as_many) {
  constexpr std::uint64_t count = 1'500;
  // Of all sides, by who packs, cuts, encodes, decodes and applies; for want of room, or where it waits for a transfer,
  // a message is cut or decoded again. A walk of all for each message would be over fifty.
  constexpr std::uint64_t most_looks_at_each = 20;
  const std::uint64_t once = looks(GetParam(), count), twice = looks(GetParam(), 2 * count);
  EXPECT_GE(once, count - 1);
  EXPECT_LE(once, most_looks_at_each * count);
  EXPECT_LE(twice, most_looks_at_each * 2 * count);
}

constexpr ops::Operator adding = ops::Operator::sum, replacing = ops::Operator::replace;
INSTANTIATE_TEST_SUITE_P(
    Ways, ManyPieces,
    testing::Values(Case{"put_pushed", PieceWay::pushed, OperationKind::put, replacing},
                    Case{"get_pushed", PieceWay::pushed, OperationKind::get, replacing},
                    Case{"accumulate_pushed", PieceWay::pushed, OperationKind::accumulate, adding},
                    Case{"get_accumulate_pushed", PieceWay::pushed, OperationKind::get_accumulate, adding},
                    Case{"put_pulled", PieceWay::pulled, OperationKind::put, replacing},
                    Case{"get_pulled", PieceWay::pulled, OperationKind::get, replacing},
                    Case{"accumulate_pulled", PieceWay::pulled, OperationKind::accumulate, adding},
                    Case{"get_accumulate_pulled", PieceWay::pulled, OperationKind::get_accumulate, adding},
                    Case{"accumulate_leased", PieceWay::leased, OperationKind::accumulate, adding},
                    Case{"get_accumulate_leased", PieceWay::leased, OperationKind::get_accumulate, adding}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace farsum
