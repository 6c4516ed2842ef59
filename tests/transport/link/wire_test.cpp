// The decoders of frames: honest ones pass, everything else is refused.
#include "transport/link/wire.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "made_frames.hpp"

namespace farsum::link {
namespace {

Fault decoded(const Bytes& bytes, Rank me = 1) {
  Frame frame;
  return decode(bytes, secret_of_tests(), me, frame);
}

TEST(SipHash, gives_the_values_of_its_authors) {
  Secret secret;
  for (int i = 0; i < 16; ++i) secret.bytes[i] = static_cast<std::byte>(i);
  Bytes text(15);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::byte>(i);
  EXPECT_EQ(siphash(secret, text), 0xa129ca6149be45e5u);
  EXPECT_EQ(siphash(secret, {}), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(siphash(secret, std::span(text).first(8)), 0x93f5f5799a932462u);
}

TEST(FrameDecoder, lets_an_honest_frame_through) {
  const Bytes bytes = bytes_of(header_of(FrameKind::hello, 0, 1), Bytes(79));
  Frame frame;
  ASSERT_EQ(decode(bytes, secret_of_tests(), 1, frame), Fault::none);
  EXPECT_EQ(frame.header.from, 0u);
  EXPECT_EQ(frame.payload.size(), 79u);
}

TEST(FrameDecoder, calls_what_is_not_of_this_job_a_stranger) {
  const FrameHeader honest = header_of(FrameKind::ping, 0, 1);
  EXPECT_EQ(decoded({}), Fault::stranger);
  EXPECT_EQ(decoded(Bytes(63)), Fault::stranger);
  EXPECT_EQ(decoded(Bytes(64)), Fault::stranger);
  EXPECT_EQ(decoded(bytes_of(honest), 2), Fault::stranger);
  FrameHeader header = honest;
  header.magic_word ^= 1;
  EXPECT_EQ(decoded(bytes_of(header)), Fault::stranger);
  header = honest;
  ++header.version;
  EXPECT_EQ(decoded(bytes_of(header)), Fault::stranger);
  header = honest;
  header.key ^= std::uint64_t{1} << 63;
  EXPECT_EQ(decoded(bytes_of(header)), Fault::stranger);
  header = honest;
  ++header.epoch;
  EXPECT_EQ(decoded(bytes_of(header)), Fault::stranger) << "the key holds for one epoch";
  header = honest;
  header.kind = FrameKind::pong;
  EXPECT_EQ(decoded(bytes_of(header)), Fault::stranger) << "the key holds for one direction";
  header = honest;
  header.kind = static_cast<FrameKind>(7);
  EXPECT_EQ(decoded(bytes_of(header)), Fault::stranger);
}

TEST(FrameDecoder, calls_wrong_lengths_malformed) {
  Bytes bytes = bytes_of(header_of(FrameKind::requests, 0, 1), record(10));
  bytes.pop_back();
  EXPECT_EQ(decoded(bytes), Fault::malformed);
  bytes.resize(bytes.size() + 2);
  EXPECT_EQ(decoded(bytes), Fault::malformed);
  EXPECT_EQ(decoded(bytes_of(header_of(FrameKind::ping, 0, 1), Bytes(1))), Fault::malformed);
  EXPECT_EQ(decoded(bytes_of(header_of(FrameKind::ping, 0, 1, 0))), Fault::malformed) << "epochs begin with 1";
  FrameHeader header = header_of(FrameKind::bye, 0, 1);
  header.records = 1;
  EXPECT_EQ(decoded(bytes_of(header)), Fault::malformed);
}

bool are_records(const Bytes& payload, std::uint16_t count, std::uint64_t first = 0) {
  FrameHeader header = header_of(FrameKind::requests, 0, 1);
  header.records = count;
  header.first = first;
  return holds_whole_records(frame_of(bytes_of(header, payload)));
}

TEST(RecordDecoder, takes_whole_records_only) {
  Bytes two = record(5);
  const Bytes second = record(0, 100, may_wait_flag);
  two.insert(two.end(), second.begin(), second.end());
  EXPECT_TRUE(are_records(two, 2));
  EXPECT_FALSE(are_records(two, 1));
  EXPECT_FALSE(are_records(two, 3));
  EXPECT_FALSE(are_records(record(0, 0, 2), 1)) << "an unknown flag";
  EXPECT_FALSE(are_records(two, 2, ~std::uint64_t{0})) << "tickets beyond the last number";
  Bytes longer = record(0);
  longer[0] = std::byte{0xff};
  longer[3] = std::byte{0xff};
  EXPECT_FALSE(are_records(longer, 1));
}

bool are_entries(const Bytes& payload, std::uint16_t count) {
  FrameHeader header = header_of(FrameKind::replies, 1, 0);
  header.records = count;
  return holds_whole_entries(frame_of(bytes_of(header, payload)));
}

TEST(EntryDecoder, takes_whole_entries_only) {
  EXPECT_TRUE(are_entries(entry(0, 1, 0, 8), 1));
  EXPECT_TRUE(are_entries(entry(7, 1000), 1));
  EXPECT_TRUE(are_entries(entry(0, 1, static_cast<std::uint32_t>(Code::system)), 1));
  EXPECT_FALSE(are_entries(entry(0, 1, static_cast<std::uint32_t>(Code::system) + 1), 1));
  EXPECT_FALSE(are_entries(entry(0, 0), 1));
  EXPECT_FALSE(are_entries(entry(0, 2, 0, 8), 1)) << "data for more than one";
  EXPECT_FALSE(are_entries(entry(0, 2, 1), 1)) << "a code for more than one";
  EXPECT_FALSE(are_entries(entry(~std::uint64_t{0}, 2), 1));
  EXPECT_FALSE(are_entries(entry(0, 1, 0, 8), 2));
}

}  // namespace
}  // namespace farsum::link
