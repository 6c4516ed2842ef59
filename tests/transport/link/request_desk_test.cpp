// Requests at the target from when they come until they are answered, and what it reports of them, without a receiver.
#include "transport/link/request_desk.hpp"

#include <gtest/gtest.h>

#include "made_frames.hpp"

namespace farsum::link {
namespace {

class IdleTaker final : public CreditTaker {
 public:
  bool take_credit() override { return false; }
  bool return_idle_credit() override { return false; }
};

class Desk : public testing::Test {
 protected:
  Desk() {
    credit.begin();
    connection.open(1, {});
    connection.let_data_go();
  }

  static LinkOptions options() {
    LinkOptions options;
    options.me = 1;
    options.secret = secret_of_tests();
    return options;
  }
  Fault ask(std::uint64_t first, const Bytes& payload, std::uint16_t records = 1) {
    Frame frame{header_of(FrameKind::requests, 0, 1), payload};
    frame.header.first = first;
    frame.header.records = records;
    return desk.on_requests(frame, handler);
  }
  void let_go() {
    wire.let_go([&](FrameId id) { ControlFrames::is_control(id) ? controls.on_sent(id) : replies.on_sent(id); });
  }
  ReplyEntry last_entry() const {
    std::span<const std::byte> rest = wire.sent.back().bytes, data;
    rest = rest.subspan(sizeof(FrameHeader));
    ReplyEntry entry{};
    EXPECT_TRUE(next_entry(rest, entry, data));
    return entry;
  }

  RecordingWire wire;
  LinkCounters counters{};
  CreditPool pool{1 << 20, 4};
  IdleTaker taker;
  Connection connection{options(), wire, counters, true};
  ControlFrames controls{connection};
  Outbox replies{options(), connection, counters, FrameKind::replies};
  RequestIntake intake{options(), counters};
  LetterIntake letters{options(), nullptr, counters};
  TargetCredit credit{pool, taker, 2 << 20};
  TargetReport report{intake, letters, credit, controls, replies};
  RequestDesk desk{options(), intake, credit, report, replies};
  CountingHandler handler;
};

TEST_F(Desk, serves_requests_in_order_also_those_that_came_early) {
  EXPECT_EQ(ask(1, record(8)), Fault::none);
  EXPECT_EQ(handler.served, 0u);
  EXPECT_EQ(ask(0, record(8)), Fault::none);
  EXPECT_EQ(handler.served, 2u);
  EXPECT_EQ(handler.last_ticket, 1u);
  EXPECT_EQ(ask(0, record(8)), Fault::none);
  EXPECT_EQ(handler.served, 2u) << "it has come before";
}

TEST_F(Desk, takes_nothing_without_credit) {
  EXPECT_EQ(ask(0, record(static_cast<std::uint32_t>(pool.base()))), Fault::malformed);
  EXPECT_EQ(ask(1, record(static_cast<std::uint32_t>(pool.base()))), Fault::malformed) << "early ones neither";
  EXPECT_EQ(handler.served, 0u);
}

TEST_F(Desk, answers_what_has_no_data_with_one_entry_whose_credit_is_back_but_for_that) {
  Bytes payload;
  for (int i = 0; i < 10; ++i) append(payload, RequestRecord{0, 0, 0, 0});
  ASSERT_EQ(ask(0, payload, 10), Fault::none);
  report.tell();
  ASSERT_EQ(wire.count(FrameKind::replies), 1u);
  EXPECT_EQ(last_entry().count, 10u);
  EXPECT_EQ(pool.base() - credit.granted(), 10 * charge(0, 0) - reply_charge(0));
}

TEST_F(Desk, holds_the_stream_back_behind_what_is_to_come_again) {
  handler.kind = Served::Kind::again;
  ask(0, record(8, 16));
  handler.kind = Served::Kind::done;
  ask(1, record(8));
  EXPECT_TRUE(desk.has_again());
  EXPECT_EQ(handler.served, 1u);
  EXPECT_EQ(desk.held_bytes(), 8u + 16u + 8u) << "the room that was written to is kept";
  EXPECT_EQ(desk.serve_parked(handler, 1), 1u);
  EXPECT_EQ(desk.serve_parked(handler, 5), 1u);
  EXPECT_FALSE(desk.has_again());
  EXPECT_EQ(desk.held_bytes(), 0u);
}

TEST_F(Desk, answers_later_what_was_put_off_and_that_once) {
  handler.kind = Served::Kind::later;
  ask(0, record(8, 16, may_wait_flag));
  handler.kind = Served::Kind::done;
  ask(1, record(8));
  EXPECT_EQ(handler.served, 2u) << "nothing is held back";
  const Bytes answer(16, std::byte{3});
  desk.complete(7, Code::ok, {});
  desk.complete(0, Code::ok, answer);
  desk.complete(0, Code::ok, {});
  EXPECT_EQ(desk.held_bytes(), 0u);
  report.tell();
  ASSERT_EQ(wire.count(FrameKind::replies), 1u);
  EXPECT_EQ(wire.sent.back().header.records, 2);
}

TEST_F(Desk, answers_with_an_error_what_is_longer_than_its_room) {
  handler.kind = Served::Kind::later;
  ask(0, record(8, 4, may_wait_flag));
  desk.complete(0, Code::ok, Bytes(5));
  report.tell();
  EXPECT_EQ(last_entry().code, static_cast<std::uint32_t>(Code::system));
  EXPECT_EQ(last_entry().bytes, 0u);
}

// As a handler does that frees a lock for which another request waits.
TEST_F(Desk, answers_what_a_handler_completes_behind_the_handlers_own_reply) {
  struct Releasing final : RequestHandler {
    explicit Releasing(RequestDesk& released) : desk(released) {}
    Served on_request(Rank, std::span<const std::byte>, std::span<std::byte>, ReplyToken token) override {
      if (token.ticket == 0) return {Served::Kind::later, Code::ok, 0};
      desk.complete(0, Code::no_memory, {});
      return {Served::Kind::done, Code::system, 0};
    }
    RequestDesk& desk;
  } releasing(desk);
  Bytes payload = record(0, 0, may_wait_flag);
  append(payload, RequestRecord{0, 0, 0, 0});
  Frame frame{header_of(FrameKind::requests, 0, 1), payload};
  frame.header.records = 2;
  ASSERT_EQ(desk.on_requests(frame, releasing), Fault::none);
  report.tell();
  EXPECT_EQ(last_entry().ticket, 1u);
  EXPECT_EQ(wire.sent.back().header.records, 2);
}

TEST_F(Desk, drops_all_that_waits) {
  handler.kind = Served::Kind::later;
  ask(0, record(8, 16, may_wait_flag));
  handler.kind = Served::Kind::again;
  ask(1, record(8));
  desk.drop_all();
  EXPECT_EQ(desk.held_bytes(), 0u);
  EXPECT_FALSE(desk.has_again());
  desk.complete(0, Code::ok, {});
  EXPECT_EQ(replies.gathered_records(), 0u);
}

TEST_F(Desk, reports_what_was_received_once_at_the_end_of_a_turn) {
  report.tell();
  ASSERT_EQ(wire.count(FrameKind::replies), 1u) << "nobody was told of the base";
  let_go();
  report.tell();
  EXPECT_EQ(wire.count(FrameKind::replies), 1u);
  handler.kind = Served::Kind::later;
  ask(0, record(8, 0, may_wait_flag));
  report.tell();
  ASSERT_EQ(wire.count(FrameKind::replies), 2u);
  EXPECT_EQ(wire.sent.back().header.records, 0);
  EXPECT_EQ(wire.sent.back().header.seen, 1u);
  let_go();
  report.tell();
  EXPECT_EQ(wire.count(FrameKind::replies), 2u);
}

TEST_F(Desk, need_not_report_again_what_the_greeting_has_told) {
  report.greet(5);
  EXPECT_EQ(wire.sent.back().header.kind, FrameKind::hello_ack);
  EXPECT_EQ(wire.sent.back().header.stamp, 5u);
  EXPECT_EQ(wire.sent.back().header.credit, pool.base());
  report.tell();
  EXPECT_EQ(wire.sent.size(), 1u);
}

}  // namespace
}  // namespace farsum::link
