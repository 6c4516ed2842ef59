// The frames of a link: the bytes that another build would read.
#include <gtest/gtest.h>

#include "golden.hpp"
#include "made_frames.hpp"

namespace farsum::link {
namespace {

constexpr FrameKind kinds[] = {FrameKind::hello, FrameKind::requests, FrameKind::seen,      FrameKind::ping,
                               FrameKind::bye,   FrameKind::letters,  FrameKind::hello_ack, FrameKind::replies,
                               FrameKind::pong,  FrameKind::bye_ack,  FrameKind::recall,    FrameKind::refused};

Bytes payload_of(FrameKind kind) {
  if (kind == FrameKind::hello) return Bytes(24, std::byte{0xad});
  if (kind == FrameKind::letters) return Bytes(8, std::byte{0xad});
  Bytes payload;
  if (kind == FrameKind::requests) {
    append(payload, RequestRecord{.bytes = 4, .reply_capacity = 0x11, .flags = may_wait_flag, .reserved = 0});
  } else if (kind == FrameKind::replies) {
    append(payload, ReplyEntry{.ticket = 0x22, .count = 1, .code = 0, .bytes = 4, .reserved = 0});
  } else {
    return payload;
  }
  payload.resize(payload.size() + 4, std::byte{0xda});
  return payload;
}

TEST(GoldenFrames, of_each_kind_are_as_recorded_and_are_taken) {
  std::string text;
  for (const FrameKind kind : kinds) {
    const bool to_origin = goes_to_origin(kind);
    FrameHeader header = header_of(kind, to_origin ? 6 : 5, to_origin ? 5 : 6, 3);
    header.first = 0x0101;
    header.seen = 0x0202;
    header.credit = 0x0303;
    header.stamp = 0x0404;
    header.records = kind == FrameKind::requests || kind == FrameKind::replies ? 1 : 0;
    const Bytes bytes = bytes_of(header, payload_of(kind));
    Frame frame{};
    EXPECT_EQ(decode(bytes, secret_of_tests(), header.to, frame), Fault::none);
    text += fmt::format("# kind {}\n{}", static_cast<int>(kind), words_of(bytes));
  }
  expect_golden("link_frames", text);
}

}  // namespace
}  // namespace farsum::link
