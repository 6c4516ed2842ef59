// Requests that wait for their replies, the replies, and what an origin reports and owes, without a sender.
#include "transport/link/reply_inbox.hpp"

#include <gtest/gtest.h>

#include <string>

#include "made_frames.hpp"
#include "transport/link/origin_dues.hpp"
#include "transport/link/origin_report.hpp"

namespace farsum::link {
namespace {

TEST(OpenRequests, know_what_their_replies_may_take_until_they_are_answered) {
  OpenRequests requests;
  EXPECT_EQ(requests.add({.charge = 100, .reply_capacity = 16}), 0u);
  EXPECT_EQ(requests.add({.charge = 200, .reply_capacity = 8, .may_wait = true}), 1u);
  EXPECT_EQ(requests.add({.answered = true}), 2u);
  EXPECT_EQ(requests.unanswered(), 2u);
  EXPECT_EQ(requests.reply_room(), reply_charge(16) + reply_charge(8));
  EXPECT_EQ(requests.may_wait_charge(), 200u);
  EXPECT_TRUE(requests.await(0, 2, 8));
  EXPECT_FALSE(requests.await(0, 2, 9)) << "the second has no room for it";
  EXPECT_FALSE(requests.await(0, 3, 0)) << "the third is answered";
  EXPECT_FALSE(requests.await(3, 1, 0));
  requests.note_answered(1);
  EXPECT_EQ(requests.unanswered(), 1u);
  EXPECT_EQ(requests.reply_room(), reply_charge(16));
  EXPECT_EQ(requests.may_wait_charge(), 0u);
}

TEST(OpenRequests, leave_in_front_once_their_replies_were_taken) {
  OpenRequests requests;
  for (int i = 0; i < 3; ++i) requests.add({});
  requests.note_taken(1);
  requests.drop_taken();
  EXPECT_EQ(requests.begin(), 0u);
  requests.note_taken(0);
  requests.drop_taken();
  EXPECT_EQ(requests.begin(), 2u);
}

class Origin : public testing::Test {
 protected:
  Origin() {
    connection.open(1, {});
    connection.let_data_go();
    credit.allow(10'000);
  }

  static LinkOptions options() {
    LinkOptions options;
    options.peer = 1;
    options.secret = secret_of_tests();
    return options;
  }
  // A request that is sent at once.
  std::uint64_t ask(OpenRequests::Request request = {}) {
    outbox.reserve(8);
    request.frame = outbox.commit(8, 0);
    const std::uint64_t ticket = requests.add(request);
    report.pump();
    return ticket;
  }
  Fault hear(std::uint64_t first, const Bytes& payload, std::uint16_t records = 1) {
    Frame frame{header_of(FrameKind::replies, 1, 0), payload};
    frame.header.first = first;
    frame.header.records = records;
    return replies.on_replies(frame);
  }
  // The tickets that are handed out.
  std::vector<std::uint64_t> take() {
    std::vector<std::uint64_t> taken;
    replies.take_replies([&](std::uint64_t ticket, Code code, std::span<const std::byte> data) {
      taken.push_back(ticket);
      last_code = code;
      last_bytes = data.size();
    });
    return taken;
  }
  void let_go() {
    wire.let_go([&](FrameId id) { ControlFrames::is_control(id) ? controls.on_sent(id) : outbox.on_sent(id); });
  }
  using Tickets = std::vector<std::uint64_t>;

  RecordingWire wire;
  LinkCounters counters{};
  Connection connection{options(), wire, counters, false};
  ControlFrames controls{connection};
  Outbox outbox{options(), connection, counters, FrameKind::requests};
  LetterBox letters{options(), connection, counters};
  OpenRequests requests;
  ReplyInbox replies{options(), requests, outbox, counters};
  OriginCredit credit{1'000'000};
  OriginReport report{credit, replies, controls, letters, outbox};
  OriginDues dues{requests, outbox, letters, credit};
  Code last_code = Code::ok;
  std::size_t last_bytes = 0;
};

TEST_F(Origin, hands_out_each_reply_once_in_the_order_in_which_they_came) {
  for (int i = 0; i < 4; ++i) ask();
  EXPECT_EQ(hear(0, entry(3)), Fault::none);
  EXPECT_EQ(hear(1, entry(0, 2)), Fault::none);
  EXPECT_EQ(hear(0, entry(3)), Fault::none) << "it comes twice";
  EXPECT_EQ(counters.doubles, 1u);
  EXPECT_EQ(take(), (Tickets{3, 0, 1}));
  EXPECT_TRUE(take().empty());
  EXPECT_EQ(requests.unanswered(), 1u);
}

TEST_F(Origin, keeps_replies_that_come_early_within_the_room_that_was_asked_for) {
  ask({.reply_capacity = 16});
  ask();
  EXPECT_EQ(hear(1, entry(1)), Fault::none);
  EXPECT_TRUE(replies.is_empty());
  EXPECT_EQ(hear(2, entry(1, 1, 0, 200)), Fault::malformed) << "more than both may bring";
  EXPECT_EQ(hear(0, entry(0)), Fault::none);
  EXPECT_EQ(take(), (Tickets{0, 1}));
}

TEST_F(Origin, takes_no_reply_to_what_it_has_not_asked) {
  ask({.reply_capacity = 8});
  EXPECT_EQ(hear(0, entry(1)), Fault::malformed);
  EXPECT_EQ(hear(0, entry(0, 2)), Fault::malformed);
  EXPECT_EQ(hear(0, entry(0, 1, 0, 9)), Fault::malformed) << "too long";
  EXPECT_EQ(hear(0, entry(0), 2), Fault::malformed) << "not whole";
  EXPECT_TRUE(replies.is_empty());
  EXPECT_EQ(replies.next(), 0u);
}

TEST_F(Origin, writes_data_where_the_request_wants_them_or_keeps_them) {
  Bytes place(8);
  ask({.reply_capacity = 8, .reply_into = place});
  ask({.reply_capacity = 8});
  Bytes payload = entry(0, 1, 0, 8);
  payload.back() = std::byte{5};
  hear(0, payload);
  EXPECT_EQ(place.back(), std::byte{5});
  hear(1, entry(1, 1, 0, 8));
  EXPECT_EQ(take(), (Tickets{0, 1}));
  EXPECT_EQ(last_bytes, 8u);
}

TEST_F(Origin, hands_out_no_reply_while_the_wire_reads_the_body_of_its_request) {
  ask({.borrowed = true});
  ask();
  hear(0, entry(1));
  hear(1, entry(0));
  EXPECT_EQ(take(), Tickets{1});
  hear(2, entry(0));
  EXPECT_TRUE(take().empty());
  let_go();
  EXPECT_EQ(take(), Tickets{0});
}

TEST_F(Origin, answers_what_is_open_with_what_went_wrong) {
  for (int i = 0; i < 3; ++i) ask();
  hear(0, entry(1));
  replies.make_room(requests.unanswered());
  replies.answer_all(Code::peer_failed);
  EXPECT_EQ(take(), (Tickets{1, 0, 2}));
  EXPECT_EQ(last_code, Code::peer_failed);
  EXPECT_EQ(requests.unanswered(), 0u);
}

TEST_F(Origin, reports_the_replies_that_it_took_with_the_next_request_or_alone_where_they_are_much) {
  for (int i = 0; i < 2; ++i) ask();
  hear(0, entry(0));
  EXPECT_NE(replies.untold_bytes(), 0u);
  report.tell_seen_if_much();
  EXPECT_EQ(wire.count(FrameKind::seen), 0u);
  ask();
  EXPECT_EQ(wire.sent.back().header.seen, 1u);
  EXPECT_EQ(replies.untold_bytes(), 0u);
  hear(1, entry(1));
  credit.spend(9'900, false);
  report.tell_seen_if_much();
  ASSERT_EQ(wire.count(FrameKind::seen), 1u);
  EXPECT_EQ(wire.sent.back().header.seen, 2u);
  let_go();
  report.tell_seen_if_much();
  EXPECT_EQ(wire.count(FrameKind::seen), 1u) << "the target knows";
}

TEST_F(Origin, asks_for_credit_once_and_tells_what_it_gives_back) {
  report.ask_for_credit();
  EXPECT_EQ(wire.count(FrameKind::seen), 0u);
  credit.want(10'001, false);
  for (int i = 0; i < 2; ++i) report.ask_for_credit();
  ASSERT_EQ(wire.count(FrameKind::seen), 1u);
  EXPECT_EQ(wire.sent.back().header.stamp, 10'001u);
  EXPECT_EQ(wire.sent.back().header.first, 1u) << "at any price";
  let_go();
  credit.on_recall(4'000, 0);
  credit.give_back();
  report.tell_seen();
  EXPECT_EQ(wire.sent.back().header.credit, 6'000u);
  EXPECT_EQ(wire.sent.back().header.stamp, 16'001u);
}

TEST_F(Origin, needs_no_link_for_requests_that_are_held_alone) {
  EXPECT_FALSE(dues.needs_link(LinkState::idle));
  EXPECT_TRUE(dues.needs_link(LinkState::connecting));
  outbox.hold();
  ask();
  EXPECT_TRUE(dues.has_unanswered());
  EXPECT_TRUE(dues.has_unreceived());
  EXPECT_TRUE(dues.holds_all_back());
  EXPECT_FALSE(dues.needs_link(LinkState::open));
  letters.post(Bytes(8), {});
  EXPECT_FALSE(dues.holds_all_back());
  EXPECT_TRUE(dues.is_receipts_only(LinkState::open));
  EXPECT_TRUE(dues.needs_link(LinkState::open));
  outbox.let_go();
  report.pump();
  EXPECT_FALSE(dues.is_receipts_only(LinkState::open)) << "a request is to be answered";
}

TEST_F(Origin, owes_more_than_receipts_while_it_wants_credit_and_nothing_once_it_says_goodbye) {
  letters.post(Bytes(8), {});
  EXPECT_FALSE(dues.is_receipts_only(LinkState::closing));
  credit.want(10'001, false);
  EXPECT_FALSE(dues.is_receipts_only(LinkState::open));
  EXPECT_TRUE(dues.needs_link(LinkState::open));
}

}  // namespace
}  // namespace farsum::link
