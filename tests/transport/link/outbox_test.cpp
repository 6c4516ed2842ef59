// What one half keeps until the peer has it, records in frames and letters, and their buffers, without a half of a
// link.
#include "transport/link/outbox.hpp"

#include <gtest/gtest.h>

#include "made_frames.hpp"
#include "transport/link/frame_buffers.hpp"
#include "transport/link/letter_box.hpp"

namespace farsum::link {
namespace {

constexpr std::size_t frame_bytes = 4096;

class Boxes : public testing::Test {
 protected:
  Boxes() { open(1); }

  LinkOptions options() {
    LinkOptions options;
    options.secret = secret_of_tests();
    options.max_frame_bytes = frame_bytes;
    options.frames_in_wire = 2;
    options.full_frames = &full_frames;
    return options;
  }
  void open(std::uint32_t epoch) {
    connection.open(epoch, {});
    connection.let_data_go();
    outbox.start();
    letters.start();
  }
  void reopen(std::uint32_t epoch) {
    connection.close();
    let_go();
    ASSERT_TRUE(connection.on_disconnected(epoch - 1));
    open(epoch);
  }
  std::uint64_t gather(std::size_t bytes, std::uint64_t charge = 0) {
    outbox.reserve(bytes);
    return outbox.commit(bytes, charge);
  }
  void let_go() {
    wire.let_go([&](FrameId id) { LetterBox::is_letter(id) ? letters.on_sent(id) : outbox.on_sent(id); });
  }

  FullFrames full_frames;
  RecordingWire wire;
  LinkCounters counters{};
  Connection connection{options(), wire, counters, false};
  Outbox outbox{options(), connection, counters, FrameKind::requests};
  LetterBox letters{options(), connection, counters};
  const Bytes text = Bytes(24);
};

TEST_F(Boxes, gather_records_into_a_frame_while_they_are_held) {
  outbox.hold();
  for (int i = 0; i < 3; ++i) gather(16);
  EXPECT_FALSE(outbox.pump({}));
  EXPECT_TRUE(outbox.holds_back());
  EXPECT_EQ(outbox.gathered_records(), 3u);
  EXPECT_EQ(outbox.frames_out(), 0u);
  outbox.let_go();
  EXPECT_TRUE(outbox.pump({.seen = 4}));
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.sent[0].header.records, 3);
  EXPECT_EQ(wire.sent[0].header.seen, 4u);
  EXPECT_EQ(outbox.frames_out(), 1u);
}

TEST_F(Boxes, send_frames_that_are_full_though_they_are_held) {
  outbox.hold();
  for (int i = 0; i < 3; ++i) gather(frame_bytes / 2);
  EXPECT_TRUE(outbox.holds_full());
  EXPECT_TRUE(outbox.pump({}));
  EXPECT_EQ(wire.sent.size(), 2u);
  EXPECT_FALSE(outbox.holds_full());
  EXPECT_TRUE(outbox.holds_back());
}

TEST_F(Boxes, have_no_more_frames_in_the_wire_than_are_allowed) {
  for (int i = 0; i < 3; ++i) {
    gather(8);
    outbox.pump({});
  }
  EXPECT_EQ(wire.sent.size(), 2u);
  let_go();
  outbox.pump({});
  EXPECT_EQ(wire.sent.size(), 3u);
}

TEST_F(Boxes, keep_a_frame_until_the_peer_has_it_and_the_wire_has_let_go) {
  const std::uint64_t frame = gather(8, 100);
  outbox.pump({});
  EXPECT_EQ(outbox.sent_upto(), 1u);
  EXPECT_TRUE(outbox.is_in_wire(frame));
  outbox.acknowledge(1);
  EXPECT_TRUE(outbox.holds_frames());
  EXPECT_EQ(outbox.take_freed_charge(), 0u);
  let_go();
  EXPECT_FALSE(outbox.holds_frames());
  EXPECT_EQ(outbox.held_bytes(), 0u);
  EXPECT_EQ(outbox.take_freed_charge(), 100u);
  EXPECT_EQ(outbox.take_freed_charge(), 0u);
}

TEST_F(Boxes, send_again_over_a_new_connection_what_the_peer_does_not_have) {
  for (int i = 0; i < 2; ++i) {
    gather(8);
    outbox.pump({});
    letters.post(text, text);
    letters.pump({});
  }
  outbox.acknowledge(1);
  letters.acknowledge(1);
  const std::size_t before = wire.sent.size();
  reopen(2);
  outbox.pump({});
  letters.pump({});
  ASSERT_EQ(wire.sent.size(), before + 2);
  EXPECT_EQ(wire.sent[before].header.first, 1u);
  EXPECT_EQ(wire.sent[before].epoch, 2u);
  EXPECT_EQ(wire.sent[before + 1].header.first, 1u);
  EXPECT_EQ(counters.replayed, 2u);
}

TEST_F(Boxes, send_nothing_before_the_greeting) {
  connection.close();
  ASSERT_TRUE(connection.on_disconnected(1));
  connection.open(2, {});
  gather(8);
  letters.post(text, {});
  EXPECT_FALSE(outbox.pump({}));
  EXPECT_FALSE(letters.pump({}));
  connection.let_data_go();
  EXPECT_TRUE(outbox.pump({}));
  EXPECT_TRUE(letters.pump({}));
}

TEST_F(Boxes, end_a_frame_with_a_body_that_is_borrowed) {
  const Bytes body(100, std::byte{7});
  outbox.hold();
  outbox.reserve(16, body.size());
  outbox.commit(16, 0);
  outbox.append_borrowed(body);
  EXPECT_FALSE(outbox.has_gathered());
  outbox.pump({});
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.sent[0].header.payload_bytes, 116u);
  EXPECT_EQ(wire.sent[0].bytes.back(), std::byte{7});
}

TEST_F(Boxes, show_the_last_record_of_the_frame_that_is_gathered) {
  EXPECT_TRUE(outbox.last_record().empty());
  gather(8);
  gather(24);
  EXPECT_EQ(outbox.last_record().size(), 24u);
  outbox.reserve(frame_bytes - sizeof(FrameHeader));
  EXPECT_TRUE(outbox.gathers_first_record());
  EXPECT_TRUE(outbox.last_record().empty());
}

TEST_F(Boxes, drop_what_the_wire_does_not_hold) {
  gather(8);
  outbox.pump({});
  gather(8);
  letters.post(text, {});
  outbox.drop_all();
  letters.drop_all();
  EXPECT_TRUE(letters.is_empty());
  EXPECT_TRUE(outbox.holds_frames());
  EXPECT_FALSE(outbox.pump({}));
  let_go();
  EXPECT_FALSE(outbox.holds_frames());
}

TEST_F(Boxes, ask_with_every_sixteenth_letter_what_was_received) {
  for (std::uint64_t i = 0; i != letters_in_window; ++i) letters.post(text, {});
  EXPECT_TRUE(letters.is_full());
  letters.pump({});
  ASSERT_EQ(wire.sent.size(), letters_in_window);
  std::size_t asking = 0;
  for (const RecordingWire::Sent& sent : wire.sent) asking += sent.header.stamp;
  EXPECT_EQ(asking, 2u);
  EXPECT_EQ(letters.sent_upto(), letters_in_window);
}

TEST(FrameBuffers, keep_small_ones_for_the_next_frames) {
  FrameBuffers buffers((LinkOptions()));
  FrameBuffers::Buffer buffer;
  buffers.make_room(buffer, 0, 100);
  const std::byte* const at = buffer.bytes.get();
  buffers.discard(buffer);
  EXPECT_EQ(buffers.take_kept(101).bytes, nullptr) << "it is too short";
  EXPECT_EQ(buffers.take_kept(100).bytes.get(), at);
  EXPECT_EQ(buffers.take_kept(100).bytes, nullptr);
}

TEST(FrameBuffers, grow_with_what_is_in_them) {
  FrameBuffers buffers((LinkOptions()));
  FrameBuffers::Buffer buffer;
  buffers.make_room(buffer, 0, 64);
  buffer.bytes[63] = std::byte{9};
  buffers.make_room(buffer, 64, 8);
  EXPECT_EQ(buffer.capacity, 128u);
  EXPECT_EQ(buffer.bytes[63], std::byte{9});
}

TEST(FrameBuffers, hand_full_ones_on_and_trim_what_is_left_unused) {
  FullFrames full_frames;
  LinkOptions options;
  options.max_frame_bytes = frame_bytes;
  options.full_frames = &full_frames;
  FrameBuffers buffers(options);
  FrameBuffers::Buffer buffer;
  buffers.make_room(buffer, 0, frame_bytes - 10);
  EXPECT_EQ(buffer.capacity, frame_bytes);
  buffers.trim(buffer, frame_bytes - 1024);
  EXPECT_EQ(buffer.capacity, frame_bytes) << "it is used well enough";
  buffers.trim(buffer, 200);
  EXPECT_EQ(buffer.capacity, 200u);
  EXPECT_EQ(full_frames.spare(), 1u);
}

}  // namespace
}  // namespace farsum::link
