// A connection and its control frames, without a half of a link.
#include "transport/link/connection.hpp"

#include <gtest/gtest.h>

#include "made_frames.hpp"
#include "transport/link/control_frames.hpp"

namespace farsum::link {
namespace {

class Connected : public testing::Test {
 protected:
  Connected() { connection.open(1, {}); }

  static LinkOptions options(Omission omission = Omission::none) {
    LinkOptions options;
    options.me = 1;
    options.secret = secret_of_tests();
    options.omission = omission;
    return options;
  }
  bool pong(std::uint64_t stamp, const Told& told = {}) { return controls.say(FrameKind::pong, 0, stamp, told); }
  void let_go() {
    wire.let_go([&](FrameId id) { controls.on_sent(id); });
  }

  RecordingWire wire;
  LinkCounters counters{};
  Connection connection{options(), wire, counters, true};
  ControlFrames controls{connection};
};

TEST_F(Connected, takes_data_once_the_halves_have_greeted_each_other) {
  EXPECT_TRUE(connection.is_up());
  EXPECT_FALSE(connection.takes_data());
  connection.let_data_go();
  EXPECT_TRUE(connection.takes_data());
  connection.close();
  EXPECT_FALSE(connection.takes_data());
}

TEST_F(Connected, is_there_until_the_wire_has_closed_it) {
  EXPECT_FALSE(connection.on_disconnected(1)) << "nobody has closed it";
  connection.close();
  EXPECT_EQ(wire.disconnected, 1u);
  EXPECT_FALSE(connection.is_up());
  EXPECT_TRUE(connection.is_there());
  EXPECT_FALSE(connection.on_disconnected(2)) << "another one";
  EXPECT_TRUE(connection.on_disconnected(1));
  EXPECT_FALSE(connection.is_there());
  EXPECT_FALSE(connection.on_disconnected(1)) << "it is gone";
}

TEST_F(Connected, is_closed_once) {
  connection.close();
  wire.disconnected = 0;
  connection.close();
  EXPECT_EQ(wire.disconnected, 0u);
}

TEST_F(Connected, takes_no_data_again_before_the_next_greeting) {
  connection.let_data_go();
  connection.close();
  ASSERT_TRUE(connection.on_disconnected(1));
  connection.open(2, {});
  EXPECT_EQ(wire.connected, 2u);
  EXPECT_TRUE(connection.is_up());
  EXPECT_FALSE(connection.takes_data());
  EXPECT_EQ(counters.connections, 2u);
}

TEST_F(Connected, makes_headers_that_the_peer_lets_through) {
  const Told told{.seen = 5, .credit = 6, .letters = 7};
  for (const FrameHeader& header : {connection.header_of_control(FrameKind::pong, 0, 0, 8, told),
                                    connection.header_of_records(FrameKind::replies, 0, 2, 3, told)}) {
    Frame frame;
    EXPECT_EQ(decode(bytes_of(header), secret_of_tests(), 0, frame), Fault::none);
    EXPECT_EQ(frame.header.seen, 5u);
    EXPECT_EQ(frame.header.credit, 6u);
    EXPECT_EQ(received_letters(frame.header), 7u);
  }
}

TEST_F(Connected, counts_what_it_sends_by_kind) {
  const FrameHeader header = connection.header_of(FrameKind::replies, 8, {});
  const Bytes payload(8);
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(&header, 1)), payload};
  connection.send(3, FrameKind::replies, pieces);
  const LinkCounters::Traffic& traffic = counters.sent[static_cast<std::size_t>(FrameKind::replies)];
  EXPECT_EQ(traffic.frames, 1u);
  EXPECT_EQ(traffic.bytes, sizeof header + 8);
  EXPECT_EQ(wire.sent.back().id, 3u);
}

TEST_F(Connected, sends_one_control_frame_of_a_kind_at_a_time_and_then_the_last_word) {
  EXPECT_TRUE(pong(1));
  EXPECT_FALSE(pong(2)) << "the first is out";
  EXPECT_FALSE(pong(3));
  EXPECT_TRUE(controls.say(FrameKind::recall, 0, 0, {})) << "another kind";
  EXPECT_FALSE(controls.pump({}));
  EXPECT_FALSE(controls.is_quiet());
  let_go();
  EXPECT_TRUE(controls.is_quiet());
  EXPECT_TRUE(controls.pump({.seen = 4}));
  EXPECT_EQ(wire.count(FrameKind::pong), 2u);
  EXPECT_EQ(wire.sent.back().header.stamp, 3u);
  EXPECT_EQ(wire.sent.back().header.seen, 4u) << "as it is when the frame leaves";
  let_go();
  EXPECT_FALSE(controls.pump({})) << "nothing is due";
}

TEST_F(Connected, forgets_what_was_to_be_said_over_the_last_connection) {
  ASSERT_TRUE(pong(1));
  EXPECT_FALSE(pong(2));
  connection.close();
  EXPECT_FALSE(controls.say(FrameKind::recall, 0, 0, {}));
  let_go();
  ASSERT_TRUE(connection.on_disconnected(1));
  connection.open(2, {});
  controls.start();
  EXPECT_FALSE(controls.pump({}));
  EXPECT_EQ(wire.sent.size(), 1u);
}

TEST_F(Connected, tells_what_was_taken_with_records_only_where_a_test_leaves_the_rest_out) {
  Connection silent(options(Omission::bare_acks), wire, counters, true);
  silent.open(1, {});
  EXPECT_EQ(silent.header_of_control(FrameKind::replies, 0, 0, 0, {.seen = 9}).seen, 0u);
  EXPECT_EQ(silent.header_of_records(FrameKind::replies, 0, 1, 0, {.seen = 9}).seen, 9u);
  EXPECT_EQ(silent.header_of_control(FrameKind::replies, 0, 0, 0, {.seen = 11}).seen, 9u);
}

}  // namespace
}  // namespace farsum::link
