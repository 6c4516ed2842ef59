// The links by which a rank asks, and what both halves ask of a frame, over wires that record: without UCX.
#include "transport/ucx/asking_links.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "transport/link/credit_pool.hpp"
#include "transport/link/made_frames.hpp"
#include "transport/link/receiver.hpp"
#include "transport/ucx/frame_gate.hpp"

namespace farsum {
namespace {

using link::FrameKind, link::RecordingWire;

class AskingLinksTest : public testing::Test {
 protected:
  static constexpr std::uint32_t ranks = 4;
  static constexpr std::uint64_t s = 1'000'000'000;

  AskingLink& add(Rank peer) {
    link::SenderOptions options;
    options.peer = peer;
    options.secret = link::secret_of_tests();
    return links.add(options, wires[peer]);
  }
  // The peer has answered the link's hello, and grants it a megabyte.
  static void answer(AskingLink& asking, const RecordingWire& wire) {
    link::FrameHeader header = link::header_of(FrameKind::hello_ack, asking.peer, 0, wire.connected);
    header.stamp = wire.sent.front().header.stamp;
    header.credit = 1 << 20;
    const link::Bytes bytes = link::bytes_of(header);
    ASSERT_EQ(asking.link.on_frame(link::frame_of(bytes), 1), link::Fault::none);
  }

  RecordingWire wires[ranks];
  AskingLinks links{ranks};
};

TEST_F(AskingLinksTest, are_found_by_rank_and_not_where_there_is_none) {
  const AskingLink& made = add(2);
  EXPECT_EQ(links.find(2), &made);
  EXPECT_EQ(links.find(1), nullptr);
  EXPECT_EQ(links.find(ranks), nullptr);
}

TEST_F(AskingLinksTest, are_due_while_they_have_a_deadline_and_cost_nothing_else) {
  AskingLink& asking = add(1);
  EXPECT_FALSE(links.note(asking));
  EXPECT_EQ(links.next_deadline_ns(), link::LinkSender::never);
  asking.link.open(1);
  links.note(asking);
  links.note(asking);
  const std::uint64_t due = links.next_deadline_ns();
  ASSERT_NE(due, link::LinkSender::never);
  std::vector<Rank> looked_at;
  const auto look = [&](AskingLink& one) { looked_at.push_back(one.peer); };
  EXPECT_FALSE(links.look_at_due(due - 1, look));
  EXPECT_TRUE(links.look_at_due(due, look));
  EXPECT_EQ(looked_at, std::vector<Rank>{1}) << "once, though it was noted twice";
}

TEST_F(AskingLinksTest, are_busy_no_more_when_nothing_is_due) {
  AskingLink& asking = add(1);
  asking.link.open(1);
  links.note(asking);
  EXPECT_EQ(links.under_way(), link::ReplyCare::UnderWay::something);
  answer(asking, wires[1]);
  links.drop_idle();
  EXPECT_FALSE(asking.is_busy);
  EXPECT_EQ(links.under_way(), link::ReplyCare::UnderWay::nothing);
  EXPECT_EQ(links.next_deadline_ns(), link::LinkSender::never);
}

TEST_F(AskingLinksTest, tell_of_one_that_has_failed_once) {
  AskingLink& asking = add(1);
  asking.link.give_up(Code::peer_failed);
  EXPECT_TRUE(links.note(asking));
  EXPECT_FALSE(links.note(asking));
}

TEST_F(AskingLinksTest, send_what_they_hold_once) {
  AskingLink& asking = add(1);
  asking.link.open(1);
  answer(asking, wires[1]);
  wires[1].let_go([&](link::FrameId id) { asking.link.on_sent(id, true, 1); });
  const std::byte word[8] = {};
  ASSERT_TRUE(asking.link.post({.head = word, .may_hold = true}, 1));
  links.note(asking);
  links.note(asking);
  int flushed = 0;
  const auto flush = [&](AskingLink& one) {
    one.link.flush(1);
    ++flushed;
  };
  links.send_held(flush);
  links.send_held(flush);
  EXPECT_EQ(flushed, 1);
  EXPECT_EQ(wires[1].count(FrameKind::requests), 1u);
}

TEST_F(AskingLinksTest, have_letters_to_send_until_these_leave) {
  AskingLink& asking = add(1);
  const std::byte letter[8] = {};
  EXPECT_TRUE(asking.link.post_letter(letter, {}, 1));
  links.note(asking);
  EXPECT_TRUE(links.has_letters_to_send());
  answer(asking, wires[1]);
  wires[1].let_go([&](link::FrameId id) { asking.link.on_sent(id, true, 1); });
  EXPECT_FALSE(links.has_letters_to_send());
}

TEST(FrameGate, lets_frames_of_the_job_through_and_counts_the_others) {
  FrameGate gate({.rank = 1, .ranks = 3, .secret = link::secret_of_tests(), .frame_bytes = 4096});
  link::Frame frame;
  EXPECT_TRUE(gate.let_through(link::bytes_of(link::header_of(FrameKind::ping, 2, 1)), frame));
  EXPECT_EQ(frame.header.from, 2u);
  EXPECT_EQ(gate.strangers() + gate.refused(), 0u);
  EXPECT_FALSE(gate.let_through(link::bytes_of(link::header_of(FrameKind::ping, 3, 1)), frame));
  EXPECT_EQ(gate.refused(), 1u) << "there is no rank 3";
  link::FrameHeader stranger = link::header_of(FrameKind::ping, 2, 1);
  ++stranger.key;
  EXPECT_FALSE(gate.let_through(link::bytes_of(stranger), frame));
  EXPECT_FALSE(gate.let_through({}, frame));
  EXPECT_EQ(gate.strangers(), 2u);
  EXPECT_EQ(gate.refused(), 1u);
}

TEST(FrameGate, counts_what_a_link_finds_wrong) {
  FrameGate gate({.rank = 1, .ranks = 3, .secret = link::secret_of_tests(), .frame_bytes = 4096});
  EXPECT_EQ(gate.link_options(2).peer, 2u);
  EXPECT_EQ(gate.link_options(2).max_frame_bytes, 4096u);
  RecordingWire wire;
  link::CreditPool pool(1 << 20, 3);
  link::ReceiverOptions options;
  static_cast<link::LinkOptions&>(options) = gate.link_options(2);
  link::LinkReceiver receiver(options, wire, pool);
  link::CountingHandler handler;
  const link::Bytes early = link::bytes_of(link::header_of(FrameKind::ping, 2, 1, 7));
  gate.pass_on(receiver, link::frame_of(early), handler);
  EXPECT_EQ(gate.refused(), 1u) << "of a connection that was never begun";
  const link::Bytes hello = link::bytes_of(link::header_of(FrameKind::hello, 2, 1), link::Bytes(8));
  gate.pass_on(receiver, link::frame_of(hello), handler);
  EXPECT_EQ(gate.refused(), 1u);
}

}  // namespace
}  // namespace farsum
