// Operands that are longer than a message, where the owner cannot reach the origin's memory: paper 1's demand that the
// owner computes on one piece while the next travels, under flow control.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "protocol_job.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t message_bytes = 4'096;
constexpr std::uint64_t operand_elements = 60'000;
constexpr std::size_t credit_messages = 36;  // as between hosts: 2 MiB in pieces of 56 KiB

ProtocolJobOptions pushing_options() {
  ProtocolJobOptions options;
  options.pull = false;
  options.window_bytes = operand_elements * 8;
  options.sim.transfers = false;
  options.sim.message_latency = {1'000, 3'000};
  options.sim.long_delay_one_in = 0;
  options.sim.service = {400, 400};
  options.sim.wake_up = options.sim.origin_wake = {0, 0};
  options.sim.max_message_bytes = message_bytes;
  options.sim.pair_messages = credit_messages;
  options.sim.pair_bytes = credit_messages * message_bytes;
  return options;
}

// How many words from the front on have been summed into.
std::uint64_t applied(const ProtocolJob& job) {
  std::uint64_t first = 0, last = operand_elements;
  while (first != last) {
    const std::uint64_t middle = (first + last) / 2;
    job.word(0, middle * 8) != 0 ? first = middle + 1 : last = middle;
  }
  return first;
}

TEST(LongOperands, are_summed_piece_by_piece_while_the_next_pieces_travel) {
  ProtocolJob job(1, 2, pushing_options());
  ProtocolRank& self = job.rank(1);
  const std::vector<std::uint64_t> ones(operand_elements, 1);
  Code code = Code::system;
  const auto program = [&]() -> SimTask<> {
    code =
        co_await self.accumulate(0, 0, ops::ElementType::uint64, ops::Operator::sum, ones.data(), operand_elements * 8);
  };
  self.program.start(program());
  const std::uint64_t piece = (message_bytes - sizeof(wire::MessageHeader)) / 8;
  std::uint64_t pieces_served = 0, with_the_next_under_way = 0, most_under_way = 0;
  while (job.world().step()) {
    const std::uint64_t served = applied(job) / piece;
    const std::uint64_t sent = self.engine.messages_sent();
    most_under_way = std::max(most_under_way, sent - served);
    if (served == pieces_served) continue;
    ASSERT_EQ(served, ++pieces_served);
    with_the_next_under_way += sent > served;
  }
  EXPECT_EQ(code, Code::ok);
  EXPECT_EQ(applied(job), operand_elements);
  EXPECT_EQ(pieces_served, operand_elements / piece);
  EXPECT_GT(with_the_next_under_way, pieces_served * 9 / 10) << "the owner had nothing to go on with";
  EXPECT_LE(most_under_way, credit_messages) << "more than the owner has allowed";
}

}  // namespace
}  // namespace farsum
