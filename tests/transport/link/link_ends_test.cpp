// One half of a link at a time: what it refuses, what it says when nothing comes, how it ends.
#include <gtest/gtest.h>

#include <cstring>

#include "failing_operators.hpp"
#include "link_world.hpp"

namespace farsum::link {
namespace {

class Receiver : public testing::Test {
 protected:
  Receiver() { say(bytes_of(header_of(FrameKind::hello, 0, 1), Bytes(79))); }

  static ReceiverOptions options() {
    ReceiverOptions options;
    options.me = 1;
    options.secret = secret_of_tests();
    return options;
  }
  Fault say(const Bytes& bytes) { return receiver.on_frame(frame_of(bytes), handler); }
  static Bytes requests(std::uint64_t first, std::uint16_t count, const Bytes& payload, std::uint32_t epoch = 1) {
    FrameHeader header = header_of(FrameKind::requests, 0, 1, epoch);
    header.first = first;
    header.records = count;
    return bytes_of(header, payload);
  }

  CreditPool pool{1 << 20, 4};
  RecordingWire wire;
  CountingHandler handler;
  LinkReceiver receiver{options(), wire, pool};
};

TEST(FullFrames, are_used_again_as_many_as_are_kept) {
  FullFrames frames;
  std::vector<std::unique_ptr<std::byte[]>> out;
  for (std::size_t i = 0; i <= FullFrames::most; ++i) out.push_back(frames.take(1024));
  const std::byte* const first = out.front().get();
  for (auto& buffer : out) frames.give_back(std::move(buffer));
  EXPECT_EQ(frames.spare(), FullFrames::most);
  for (std::size_t i = 1; i < FullFrames::most; ++i) out.push_back(frames.take(1024));
  EXPECT_EQ(frames.take(1024).get(), first);
}

TEST_F(Receiver, obeys_nothing_that_is_impossible) {
  const auto is_malformed = [&](const Bytes& bytes) {
    const std::uint64_t before = receiver.counters().malformed;
    return say(bytes) == Fault::malformed && receiver.counters().malformed == before + 1;
  };
  FrameHeader header = header_of(FrameKind::seen, 0, 1);
  header.seen = 1;
  EXPECT_TRUE(is_malformed(bytes_of(header))) << "a reply that was never sent is seen";
  header = header_of(FrameKind::seen, 0, 1);
  header.credit = pool.base() + 1;
  EXPECT_TRUE(is_malformed(bytes_of(header))) << "more credit comes back than was given";
  header = header_of(FrameKind::seen, 0, 1);
  header.stamp = std::uint64_t{1} << 40;
  EXPECT_TRUE(is_malformed(bytes_of(header))) << "more credit is wanted than any request needs";
  EXPECT_TRUE(is_malformed(requests(0, 1, record(static_cast<std::uint32_t>(pool.base()))))) << "no credit for it";
  EXPECT_TRUE(is_malformed(requests(0, 1, record(0, 60000)))) << "a reply longer than a frame";
  EXPECT_TRUE(is_malformed(requests(0, 0, {})));
  EXPECT_TRUE(is_malformed(requests(0, 2, record(8))));
  EXPECT_TRUE(is_malformed(bytes_of(header_of(FrameKind::pong, 0, 1)))) << "the wrong way";
  EXPECT_TRUE(is_malformed(bytes_of(header_of(FrameKind::ping, 2, 1)))) << "another rank's";
  EXPECT_TRUE(is_malformed(bytes_of(header_of(FrameKind::hello, 0, 1, 2), Bytes(5000)))) << "an endless address";
  for (std::uint64_t first = 1; first < 100; ++first) say(requests(first, 1, record(1000)));
  EXPECT_LE(receiver.held_bytes(), pool.base()) << "requests that come early are kept within the credit only";
  EXPECT_EQ(handler.served, 0u);
}

// A peer that lies would have the owner keep more than it has allowed.
TEST_F(Receiver, takes_no_credit_back_that_is_used) {
  const auto returns = [](Bytes bytes, std::uint64_t credit) {
    FrameHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    header.credit = credit;
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  };
  const std::uint64_t cost = charge(1000, 0);
  EXPECT_EQ(say(returns(requests(1, 1, record(1000)), pool.base() - cost + 1)), Fault::malformed) << "by itself";
  EXPECT_EQ(say(requests(1, 1, record(1000))), Fault::none) << "comes early";
  const Bytes seen = bytes_of(header_of(FrameKind::seen, 0, 1));
  EXPECT_EQ(say(returns(seen, pool.base() - cost + 1)), Fault::malformed) << "by what came early";
  EXPECT_EQ(say(requests(0, 1, record(1000))), Fault::none);
  EXPECT_EQ(say(returns(seen, pool.base() - 2 * cost + 1)), Fault::malformed) << "by what was received";
  EXPECT_EQ(say(returns(seen, pool.base() - 2 * cost)), Fault::none);
}

TEST_F(Receiver, drops_frames_of_other_connections) {
  EXPECT_EQ(say(requests(0, 1, record(8), 2)), Fault::stale);
  EXPECT_EQ(receiver.counters().before_hello, 1u);
  say(bytes_of(header_of(FrameKind::hello, 0, 1, 2)));
  EXPECT_EQ(say(requests(0, 1, record(8), 1)), Fault::stale);
  EXPECT_EQ(say(bytes_of(header_of(FrameKind::hello, 0, 1, 1))), Fault::stale);
  EXPECT_EQ(receiver.counters().stale, 2u);
  EXPECT_EQ(handler.served, 0u);
}

TEST_F(Receiver, answers_a_hello_that_comes_twice_and_a_new_one_over_a_new_connection) {
  wire.let_go([&](FrameId id) { receiver.on_sent(id, true); });
  say(bytes_of(header_of(FrameKind::hello, 0, 1)));
  EXPECT_EQ(wire.count(FrameKind::hello_ack), 2u);
  say(bytes_of(header_of(FrameKind::hello, 0, 1, 2)));
  EXPECT_EQ(wire.disconnected, 1u);
  EXPECT_EQ(wire.connected, 1u) << "the old connection is not closed yet";
  wire.let_go([&](FrameId id) { receiver.on_sent(id, false); });
  receiver.on_disconnected(1);
  EXPECT_EQ(wire.connected, 2u);
  EXPECT_EQ(wire.sent.back().epoch, 2u);
  EXPECT_EQ(wire.sent.back().header.kind, FrameKind::hello_ack);
}

TEST_F(Receiver, joins_answers_without_data_in_one_entry_and_acknowledges_a_turn_with_one_frame) {
  Bytes payload;
  for (int i = 0; i < 10; ++i) append(payload, RequestRecord{0, 0, 0, 0});
  say(requests(0, 10, payload));
  receiver.end_turn();
  ASSERT_EQ(wire.count(FrameKind::replies), 1u);
  const Frame frame = frame_of(wire.sent.back().bytes);
  EXPECT_EQ(frame.header.records, 1);
  EXPECT_EQ(frame.header.seen, 10u);
  std::span<const std::byte> rest = frame.payload, data;
  ReplyEntry first;
  ASSERT_TRUE(next_entry(rest, first, data));
  EXPECT_EQ(first.count, 10u);
  receiver.end_turn();
  EXPECT_EQ(wire.count(FrameKind::replies), 1u);
}

TEST_F(Receiver, sends_replies_that_fill_a_frame_while_it_serves_the_next_requests) {
  struct LookingHandler final : RequestHandler {
    explicit LookingHandler(const RecordingWire& looked_at) : wire(looked_at) {}
    Served on_request(Rank, std::span<const std::byte>, std::span<std::byte> room, ReplyToken) override {
      had_left.push_back(wire.count(FrameKind::replies));
      return {Served::Kind::done, Code::ok, static_cast<std::uint32_t>(room.size())};
    }
    const RecordingWire& wire;
    std::vector<std::size_t> had_left;
  };
  ReceiverOptions short_frames = options();
  short_frames.max_frame_bytes = 1024;
  LinkReceiver replies(short_frames, wire, pool);
  const auto capacity = static_cast<std::uint32_t>(max_reply_bytes(short_frames));
  Bytes payload;
  for (int i = 0; i < 4; ++i) append(payload, RequestRecord{0, capacity, 0, 0});
  LookingHandler looking(wire);
  replies.on_frame(frame_of(bytes_of(header_of(FrameKind::hello, 0, 1), Bytes(79))), looking);
  ASSERT_EQ(replies.on_frame(frame_of(requests(0, 4, payload)), looking), Fault::none);
  EXPECT_EQ(looking.had_left, (std::vector<std::size_t>{0, 1, 2, 3}));
  replies.end_turn();
  EXPECT_EQ(wire.count(FrameKind::replies), 4u);
}

// Room for a reply is long, and most of a turn's budget of requests for data would else be spent on clearing it.
TEST_F(Receiver, keeps_no_room_for_the_replies_of_what_was_put_off) {
  struct PuttingOff final : RequestHandler {
    Served on_request(Rank, std::span<const std::byte>, std::span<std::byte> room, ReplyToken token) override {
      if (left == 0) return {.kind = Served::Kind::again, .is_untouched = true};
      --left;
      std::ranges::fill(room, static_cast<std::byte>(token.ticket));
      return {Served::Kind::done, Code::ok, static_cast<std::uint32_t>(room.size())};
    }
    std::size_t left = 1;
  };
  constexpr std::uint32_t capacity = 1000;
  Bytes payload;
  for (int i = 0; i < 4; ++i) append(payload, RequestRecord{0, capacity, 0, 0});
  PuttingOff putting_off;
  ASSERT_EQ(receiver.on_frame(frame_of(requests(0, 4, payload)), putting_off), Fault::none);
  receiver.end_turn();
  EXPECT_TRUE(receiver.has_again());
  EXPECT_LT(receiver.held_bytes(), 2 * capacity) << "the reply that was sent, and no other";
  putting_off.left = 2;
  EXPECT_EQ(receiver.serve_parked(putting_off, 64), 2u);
  receiver.end_turn();
  putting_off.left = 2;
  EXPECT_EQ(receiver.serve_parked(putting_off, 64), 1u);
  receiver.end_turn();
  EXPECT_FALSE(receiver.has_again());
  wire.let_go([&](FrameId id) { receiver.on_sent(id, true); });
  std::uint64_t next = 0;
  for (const auto& sent : wire.sent) {
    if (sent.header.kind != FrameKind::replies) continue;
    const Frame frame = frame_of(sent.bytes);
    std::span<const std::byte> rest = frame.payload, data;
    for (ReplyEntry entry; next_entry(rest, entry, data); ++next) {
      EXPECT_EQ(entry.ticket, next);
      EXPECT_EQ(Bytes(data.begin(), data.end()), Bytes(capacity, static_cast<std::byte>(next)));
    }
  }
  EXPECT_EQ(next, 4u);
}

TEST_F(Receiver, has_one_acknowledgement_on_its_way_whatever_comes) {
  handler.kind = Served::Kind::again;
  for (std::uint64_t ticket = 0; ticket < 10; ++ticket) {
    say(requests(ticket, 1, record(8)));
    receiver.end_turn();
  }
  EXPECT_EQ(wire.count(FrameKind::replies), 1u);
  wire.let_go([&](FrameId id) { receiver.on_sent(id, true); });
  EXPECT_EQ(wire.count(FrameKind::replies), 2u);
  EXPECT_EQ(wire.sent.back().header.seen, 10u);
}

// Else it would hear of it with the answer to its next ping, seconds later.
TEST_F(Receiver, tells_who_wants_it_of_credit_that_it_has_granted_without_a_word) {
  say(requests(0, 1, record(0, 1000)));
  receiver.end_turn();
  wire.let_go([&](FrameId id) { receiver.on_sent(id, true); });
  const std::uint64_t told = wire.sent.back().header.credit;
  FrameHeader seen = header_of(FrameKind::seen, 0, 1);
  seen.seen = 1;
  say(bytes_of(seen));
  receiver.end_turn();
  ASSERT_EQ(wire.sent.back().header.credit, told) << "it is too little to be told";
  const std::size_t sent_before = wire.sent.size();
  FrameHeader want = header_of(FrameKind::seen, 0, 1);
  want.seen = 1;
  want.stamp = told + 500;
  say(bytes_of(want));
  receiver.end_turn();
  ASSERT_EQ(wire.sent.size(), sent_before + 1);
  EXPECT_GE(wire.sent.back().header.credit, want.stamp);
}

// Else the origin of a stream that is spent within one turn waits for its end.
TEST_F(Receiver, has_much_to_grant_when_half_of_a_long_window_is_spent) {
  constexpr std::uint64_t mib = 1 << 20;
  CreditPool large_pool(64 * mib, 2);
  LinkReceiver streamed(options(), wire, large_pool);
  const auto told = [&](const Bytes& bytes) { ASSERT_EQ(streamed.on_frame(frame_of(bytes), handler), Fault::none); };
  const auto granted = [&] { return wire.sent.back().header.credit; };
  told(bytes_of(header_of(FrameKind::hello, 0, 1), Bytes(79)));
  // What is asked for again and again makes the window as long as it gets.
  for (int i = 0; i < 100 && granted() < 2 * mib; ++i) {
    FrameHeader want = header_of(FrameKind::seen, 0, 1);
    want.stamp = std::min(granted() + 60'000, 2 * mib);
    told(bytes_of(want));
    streamed.end_turn();
    large_pool.hand_out();
    wire.let_go([&](FrameId id) { streamed.on_sent(id, true); });
  }
  ASSERT_EQ(granted(), 2 * mib);
  const std::uint64_t before = granted();
  std::uint64_t ticket = 0, spent = 0;
  while (!streamed.has_much_to_grant()) {
    told(requests(ticket++, 1, record(50'000)));
    spent += 50'000;
    ASSERT_LT(spent, 2 * mib);
  }
  EXPECT_GE(spent, mib - 100'000);
  EXPECT_EQ(granted(), before) << "nothing is said before";
  streamed.end_turn();
  EXPECT_GE(granted(), before + mib - 100'000);
  EXPECT_FALSE(streamed.has_much_to_grant());
  EXPECT_FALSE(receiver.has_much_to_grant()) << "which has a short window";
}

TEST_F(Receiver, refuses_the_dead_for_ever) {
  handler.kind = Served::Kind::again;
  say(requests(0, 1, record(8)));
  receiver.forget_peer();
  EXPECT_EQ(receiver.held_bytes(), 0u);
  EXPECT_EQ(pool.used(), 0u);
  EXPECT_EQ(wire.disconnected, 1u);
  EXPECT_EQ(say(requests(1, 1, record(8))), Fault::stale);
  say(bytes_of(header_of(FrameKind::hello, 0, 1, 2)));
  wire.let_go([&](FrameId id) { receiver.on_sent(id, true); });
  receiver.on_disconnected(1);
  EXPECT_EQ(wire.sent.back().header.kind, FrameKind::refused);
  EXPECT_EQ(say(requests(1, 1, record(8), 2)), Fault::stale);
  EXPECT_EQ(handler.served, 1u);
}

class Sender : public testing::Test {
 protected:
  static SenderOptions options() {
    SenderOptions options;
    options.peer = 1;
    options.secret = secret_of_tests();
    return options;
  }
  Fault hear(FrameHeader header, std::uint64_t now, const Bytes& payload = {}) {
    return sender.on_frame(frame_of(bytes_of(header, payload)), now);
  }
  void open() {
    sender.open(0);
    FrameHeader header = header_of(FrameKind::hello_ack, 1, 0);
    header.stamp = wire.sent.back().header.stamp;
    header.credit = 1 << 20;
    ASSERT_EQ(hear(header, 0), Fault::none);
    ASSERT_EQ(sender.state(), LinkState::open);
  }
  // Replies to the next tickets, as `count` entries.
  Fault reply(std::uint64_t first, const Bytes& payload, std::uint16_t count = 1) {
    FrameHeader header = header_of(FrameKind::replies, 1, 0);
    header.first = first;
    header.records = count;
    return hear(header, 0, payload);
  }
  std::vector<Code> taken() {
    std::vector<Code> codes;
    sender.take_replies([&](std::uint64_t, Code code, std::span<const std::byte>) { codes.push_back(code); });
    return codes;
  }

  RecordingWire wire;
  LinkSender sender{options(), wire};
};

// Each allocation of a post fails once: the post throws, and what leaves at last is what was taken.
TEST_F(Sender, has_done_nothing_where_there_is_no_memory) {
  std::size_t failures = 0;
  bool has_failed = true;
  for (std::size_t after = 0; has_failed; ++after) {
    SteadyWire fresh_wire;
    FullFrames full_frames;
    SenderOptions with_full_frames = options();
    with_full_frames.full_frames = &full_frames;
    LinkSender fresh(with_full_frames, fresh_wire);
    fresh.open(0);
    FrameHeader header = header_of(FrameKind::hello_ack, 1, 0);
    header.stamp = fresh_wire.sent.back().header.stamp;
    header.credit = 1 << 24;
    ASSERT_EQ(fresh.on_frame(frame_of(bytes_of(header)), 0), Fault::none);
    std::vector<std::byte> expected;
    {
      const std::vector<std::byte> body(3000);
      std::byte marked[300] = {};
      expected.reserve(100);
      const FailingMemory memory(after);
      for (int i = 0; i < 40; ++i) {
        marked[0] = static_cast<std::byte>(i);
        try {
          const auto ticket = fresh.post({.head = marked, .body = body, .may_hold = true}, 0);
          ASSERT_EQ(ticket, expected.size());
          expected.push_back(marked[0]);
        } catch (const std::bad_alloc&) {
          ++failures;
        }
      }
      has_failed = FailingMemory::has_failed();
    }
    // As the transport does.
    if (fresh.holds_back()) fresh.flush(0);
    std::vector<std::byte> left;
    for (const RecordingWire::Sent& sent : fresh_wire.sent) {
      if (sent.header.kind != FrameKind::requests) continue;
      ASSERT_TRUE(holds_whole_records(frame_of(sent.bytes)));
      std::span<const std::byte> rest = frame_of(sent.bytes).payload, message;
      RequestRecord one;
      while (next_record(rest, one, message)) left.push_back(message.front());
    }
    ASSERT_EQ(left, expected) << "allocation " << after;
  }
  EXPECT_GT(failures, 5u);
}

TEST_F(Sender, takes_nothing_before_the_target_allowed_it) {
  EXPECT_FALSE(sender.post({}, 0).has_value());
  EXPECT_EQ(wire.count(FrameKind::hello), 1u);
  EXPECT_TRUE(sender.wants_credit());
}

TEST_F(Sender, asks_again_where_more_is_wanted_or_at_any_price) {
  open();
  const auto let_go = [this] { wire.let_go([this](FrameId id) { sender.on_sent(id, true, 0); }); };
  const std::size_t too_much = 1 << 20;
  EXPECT_FALSE(sender.post({.reply_capacity = too_much, .may_wait = true}, 0).has_value());
  ASSERT_EQ(wire.count(FrameKind::seen), 1u);
  const FrameHeader first = wire.sent.back().header;
  EXPECT_EQ(first.first, 0u);
  let_go();
  EXPECT_FALSE(sender.post({.reply_capacity = too_much, .may_wait = true}, 0).has_value());
  EXPECT_EQ(wire.count(FrameKind::seen), 1u) << "the target knows it";
  EXPECT_FALSE(sender.post({.reply_capacity = too_much}, 0).has_value());
  ASSERT_EQ(wire.count(FrameKind::seen), 2u) << "it does not know that others are not to be waited for";
  EXPECT_EQ(wire.sent.back().header.first, 1u);
  let_go();
  EXPECT_FALSE(sender.post({.reply_capacity = 2 * too_much}, 0).has_value());
  ASSERT_EQ(wire.count(FrameKind::seen), 3u);
  EXPECT_GT(wire.sent.back().header.stamp, first.stamp);
}

TEST_F(Sender, obeys_nothing_that_is_impossible) {
  open();
  const Bytes message(8);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(sender.post({.head = message, .reply_capacity = 8}, 0).has_value());
  EXPECT_EQ(reply(0, entry(3)), Fault::malformed) << "a ticket that was not posted";
  EXPECT_EQ(reply(0, entry(2, 2)), Fault::malformed);
  EXPECT_EQ(reply(0, entry(0, 1, 0, 9)), Fault::malformed) << "more than there is room for";
  FrameHeader header = header_of(FrameKind::replies, 1, 0);
  header.seen = 4;
  EXPECT_EQ(hear(header, 0), Fault::malformed) << "a request that was never sent is received";
  header.seen = 0;
  header.credit = ~std::uint64_t{0};
  EXPECT_EQ(hear(header, 0), Fault::malformed);
  EXPECT_EQ(hear(header_of(FrameKind::replies, 1, 0, 2), 0), Fault::stale);
  EXPECT_EQ(hear(header_of(FrameKind::ping, 1, 0), 0), Fault::malformed) << "the wrong way";
  for (std::uint64_t first = 1; first < 50; ++first) reply(first, entry(0, 1, 0, 8));
  EXPECT_FALSE(sender.has_replies());
  EXPECT_EQ(reply(0, entry(0, 3)), Fault::none);
  EXPECT_EQ(taken().size(), 3u);
  Bytes twice = entry(0);
  EXPECT_EQ(reply(1, twice), Fault::malformed) << "a request that was answered";
}

TEST_F(Sender, writes_a_reply_to_its_place_but_not_when_it_was_given_up) {
  open();
  Bytes place(8, std::byte{1});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(sender.post({.reply_capacity = 8, .reply_into = place}, 0).has_value());
  ASSERT_EQ(reply(0, entry(0, 1, 0, 8)), Fault::none);
  const std::byte* at = nullptr;
  sender.take_replies([&](std::uint64_t, Code, std::span<const std::byte> data) { at = data.data(); });
  EXPECT_EQ(at, place.data());
  EXPECT_EQ(place, Bytes(8));
  place.assign(8, std::byte{1});
  sender.give_up(Code::peer_failed);
  EXPECT_EQ(reply(1, entry(1, 1, 0, 8)), Fault::stale);
  EXPECT_EQ(place, Bytes(8, std::byte{1}));
}

TEST_F(Sender, hands_out_a_reply_when_the_wire_has_let_go_of_its_borrowed_body) {
  open();
  wire.let_go([&](FrameId id) { sender.on_sent(id, true, 0); });
  const Bytes body(20000);
  ASSERT_TRUE(sender.post({.body = body, .borrow_body = true}, 0).has_value());
  FrameHeader header = header_of(FrameKind::replies, 1, 0);
  header.records = 1;
  header.seen = 1;
  ASSERT_EQ(hear(header, 0, entry(0)), Fault::none);
  EXPECT_TRUE(taken().empty());
  wire.let_go([&](FrameId id) { sender.on_sent(id, true, 0); });
  EXPECT_EQ(taken().size(), 1u);
}

TEST_F(Sender, pings_a_silent_target_and_does_not_fail_while_it_answers) {
  open();
  ASSERT_TRUE(sender.post({.may_wait = true}, 0).has_value());
  for (std::uint64_t now = 5 * s; now <= 100 * s; now += 5 * s) {
    EXPECT_EQ(sender.next_deadline_ns(), now);
    wire.let_go([&](FrameId id) { sender.on_sent(id, true, now); });
    sender.tick(now);
    hear(header_of(FrameKind::pong, 1, 0), now);
  }
  EXPECT_EQ(wire.count(FrameKind::ping), 20u);
  EXPECT_EQ(sender.state(), LinkState::open);
}

TEST_F(Sender, does_not_fail_a_target_that_was_stopped_for_ten_seconds) {
  open();
  ASSERT_TRUE(sender.post({}, 0).has_value());
  for (std::uint64_t now = 0; now < 10 * s; now += 100 * ms) sender.tick(now);
  EXPECT_EQ(hear(header_of(FrameKind::pong, 1, 0), 10 * s), Fault::none);
  EXPECT_EQ(sender.state(), LinkState::open);
}

TEST_F(Sender, answers_all_with_peer_failed_when_the_target_is_silent_for_too_long) {
  open();
  Bytes place(8);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(sender.post({.reply_capacity = 8, .reply_into = place}, 0).has_value());
  std::uint64_t now = 0;
  for (std::size_t steps = 0; sender.next_deadline_ns() != LinkSender::never && steps < 1000; ++steps) {
    now = sender.next_deadline_ns();
    sender.tick(now);
    wire.let_go([&](FrameId id) { sender.on_sent(id, false, now); });
    sender.on_disconnected(wire.disconnected, now);
  }
  EXPECT_EQ(sender.state(), LinkState::failed);
  EXPECT_EQ(now, options().timeout_ns);
  EXPECT_EQ(taken(), std::vector<Code>(3, Code::peer_failed));
  EXPECT_TRUE(sender.is_quiet());
  ASSERT_EQ(sender.post({}, now), 3u);
  EXPECT_EQ(taken(), std::vector<Code>{Code::peer_failed});
  EXPECT_EQ(reply(0, entry(0, 1, 0, 8)), Fault::stale);
}

TEST_F(Sender, holds_requests_however_long_and_counts_the_silence_from_when_they_leave) {
  open();
  ASSERT_TRUE(sender.post({.may_hold = true}, 0).has_value());
  EXPECT_EQ(sender.next_deadline_ns(), LinkSender::never);
  const std::uint64_t later = 10 * options().timeout_ns;
  sender.tick(later);
  EXPECT_EQ(sender.state(), LinkState::open);
  sender.flush(later);
  sender.tick(later);
  EXPECT_EQ(sender.state(), LinkState::open);
  EXPECT_GT(sender.next_deadline_ns(), later);
  EXPECT_LE(sender.next_deadline_ns(), later + options().timeout_ns);
}

TEST_F(Sender, connects_anew_for_what_it_held_when_the_connection_broke) {
  open();
  ASSERT_TRUE(sender.post({.may_hold = true}, 0).has_value());
  sender.on_broken(1, 0);
  sender.on_disconnected(1, 0);
  EXPECT_EQ(sender.state(), LinkState::idle);
  sender.flush(5);
  EXPECT_EQ(sender.state(), LinkState::connecting);
}

TEST_F(Sender, fails_at_once_when_it_is_refused) {
  open();
  ASSERT_TRUE(sender.post({}, 0).has_value());
  hear(header_of(FrameKind::refused, 1, 0), 1);
  EXPECT_EQ(sender.state(), LinkState::failed);
  EXPECT_EQ(taken(), std::vector<Code>{Code::peer_failed});
}

TEST_F(Sender, counts_frames_and_bytes_by_kind) {
  open();
  const Bytes message(100);
  sender.post({.head = message}, 0);
  sender.post({.head = message, .may_hold = true}, 0);
  sender.post({.head = message}, 0);
  const auto& sent = sender.counters().sent[static_cast<std::size_t>(FrameKind::requests)];
  EXPECT_EQ(sent.frames, 2u);
  EXPECT_EQ(sent.bytes, 2 * 64u + 3 * (16 + 100));
  EXPECT_EQ(sender.counters().received[static_cast<std::size_t>(FrameKind::hello_ack)].frames, 1u);
}

std::uint64_t frames_sent(const LinkSender& sender) {
  return sender.counters().sent[static_cast<std::size_t>(FrameKind::requests)].frames;
}

TEST_F(Sender, holds_what_may_be_held_until_it_is_flushed) {
  open();
  for (int i = 0; i < 10; ++i) sender.post({.may_hold = true}, 0);
  EXPECT_EQ(frames_sent(sender), 0u);
  EXPECT_TRUE(sender.holds_back());
  sender.flush(0);
  EXPECT_EQ(frames_sent(sender), 1u);
  EXPECT_FALSE(sender.holds_back());
}

TEST_F(Sender, sends_what_is_held_with_what_may_not_be) {
  open();
  for (int i = 0; i < 10; ++i) sender.post({.may_hold = true}, 0);
  sender.post({}, 0);
  EXPECT_EQ(frames_sent(sender), 1u);
  EXPECT_FALSE(sender.holds_back());
}

TEST_F(Sender, does_not_hold_what_waits_for_the_wire_already) {
  open();
  const std::size_t most = options().frames_in_wire;
  for (std::size_t i = 0; i < most + 1; ++i) sender.post({}, 0);
  EXPECT_EQ(frames_sent(sender), most);
  sender.post({.may_hold = true}, 0);
  EXPECT_FALSE(sender.holds_back());
  wire.let_go([&](FrameId id) { sender.on_sent(id, true, 0); });
  EXPECT_EQ(frames_sent(sender), most + 1);
}

TEST_F(Sender, needs_a_link_for_held_requests_that_have_left_in_a_full_frame) {
  open();
  const Bytes message(4'000);
  for (int i = 0; i < 15; ++i) sender.post({.head = message, .may_hold = true}, 0);
  ASSERT_EQ(frames_sent(sender), 1u);
  FrameHeader seen = header_of(FrameKind::pong, 1, 0);
  seen.seen = 14;
  ASSERT_EQ(hear(seen, 1), Fault::none);
  EXPECT_FALSE(sender.dues().holds_all_back()) << "the peer has requests that it has not answered";
}

TEST_F(Sender, sends_a_frame_that_is_full_though_all_in_it_may_be_held) {
  open();
  const Bytes message(4'000);
  for (int i = 0; i < 15; ++i) sender.post({.head = message, .may_hold = true}, 0);
  EXPECT_EQ(frames_sent(sender), 1u);
  EXPECT_TRUE(sender.holds_back());
}

// A cut for good: all waiting ends within the timeout, and what comes through when the network is back is refused.
TEST(DeadLink, ends_all_that_waits_and_applies_nothing_afterwards) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    WorldOptions options;
    options.seed = seed;
    options.timeout_ns = 3 * s;
    options.links = {{.from = 0, .to = 1, .requests = 2000, .waits = 20}};
    LinkWorld world(options);
    SimLink& link = *world.links[0];
    world.at(300 * us, [&] {
      world.down_until = 20 * s;
      link.to_target.cut();
      link.to_origin.cut();
    });
    world.run_until(10 * s);
    EXPECT_EQ(link.sender.state(), LinkState::failed);
    EXPECT_FALSE(link.sender.dues().has_unanswered());
    EXPECT_TRUE(link.sender.is_quiet());
    EXPECT_GT(link.failed, 0u);
    link.declare_dead();
    world.run_until(60 * s);
    EXPECT_EQ(world.failure(), "");
    EXPECT_EQ(link.receiver.held_bytes(), 0u);
    EXPECT_EQ(world.pools[1]->used(), 0u);
  }
}

}  // namespace
}  // namespace farsum::link
