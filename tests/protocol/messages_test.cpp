// What a message has to say of itself before anything else in it is read.
#include "protocol/messages.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace farsum {
namespace {

TEST(WireMessage, of_another_version_is_none) {
  for (unsigned version = 0; version < 256; ++version) {
    wire::MessageHeader header;
    header.kind = wire::MessageKind::lock;
    header.wire_version = static_cast<std::uint8_t>(version);
    std::array<std::byte, sizeof header> bytes;
    std::memcpy(bytes.data(), &header, sizeof header);
    EXPECT_EQ(wire::decode(bytes).has_value(), version == wire::version) << version;
  }
}

TEST(WireMessage, shorter_than_its_header_is_none) {
  wire::MessageHeader header;
  header.kind = wire::MessageKind::lock;
  std::array<std::byte, sizeof header> bytes;
  std::memcpy(bytes.data(), &header, sizeof header);
  for (std::size_t size = 0; size <= bytes.size(); ++size)
    EXPECT_EQ(wire::decode(std::span(bytes).first(size)).has_value(), size == sizeof header) << size;
}

}  // namespace
}  // namespace farsum
