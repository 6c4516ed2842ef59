#include "transport/link/wire.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace farsum::link {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian as they lie in memory");

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void take(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

std::uint64_t word_at(const std::byte* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

bool is_known(FrameKind kind) {
  switch (kind) {
    case FrameKind::hello:
    case FrameKind::requests:
    case FrameKind::seen:
    case FrameKind::ping:
    case FrameKind::bye:
    case FrameKind::letters:
    case FrameKind::hello_ack:
    case FrameKind::replies:
    case FrameKind::pong:
    case FrameKind::bye_ack:
    case FrameKind::recall:
    case FrameKind::refused:
      return true;
  }
  return false;
}

bool may_have_payload(FrameKind kind) {
  return kind == FrameKind::hello || kind == FrameKind::requests || kind == FrameKind::replies ||
         kind == FrameKind::letters;
}

bool may_have_records(FrameKind kind) { return kind == FrameKind::requests || kind == FrameKind::replies; }

// Takes a Head and the bytes that its `bytes` counts off the front of `payload`.
template <class Head>
bool next(std::span<const std::byte>& payload, Head& head, std::span<const std::byte>& data) {
  if (payload.size() < sizeof head) return false;
  std::memcpy(&head, payload.data(), sizeof head);
  if (head.bytes > payload.size() - sizeof head) return false;
  data = payload.subspan(sizeof head, head.bytes);
  payload = payload.subspan(sizeof head + head.bytes);
  return true;
}

}  // namespace

std::uint64_t siphash(const Secret& secret, std::span<const std::byte> text) {
  const std::uint64_t k0 = word_at(secret.bytes), k1 = word_at(secret.bytes + 8);
  SipState state{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573};
  const std::size_t whole = text.size() / 8 * 8;
  for (std::size_t at = 0; at < whole; at += 8) state.take(word_at(text.data() + at));
  std::array<std::byte, 8> last{};
  if (text.size() != whole) std::memcpy(last.data(), text.data() + whole, text.size() - whole);
  last[7] = static_cast<std::byte>(text.size());
  state.take(word_at(last.data()));
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

std::uint64_t key_of(const Secret& secret, Rank from, Rank to, std::uint32_t epoch, bool to_origin) {
  const std::array<std::uint32_t, 4> who = {from, to, epoch, to_origin ? 1u : 0u};
  return siphash(secret, std::as_bytes(std::span(who)));
}

Fault decode(std::span<const std::byte> bytes, const Secret& secret, Rank me, Frame& out) {
  FrameHeader header;
  if (bytes.size() < sizeof header) return Fault::stranger;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic_word != magic || header.version != wire_version || header.to != me) return Fault::stranger;
  if (!is_known(header.kind)) return Fault::stranger;
  if (header.key != key_of(secret, header.from, header.to, header.epoch, goes_to_origin(header.kind))) {
    return Fault::stranger;
  }
  if (header.epoch == 0 || header.payload_bytes != bytes.size() - sizeof header) return Fault::malformed;
  if (header.payload_bytes != 0 && !may_have_payload(header.kind)) return Fault::malformed;
  if (header.records != 0 && !may_have_records(header.kind)) return Fault::malformed;
  out = {header, bytes.subspan(sizeof header)};
  return Fault::none;
}

bool next_record(std::span<const std::byte>& payload, RequestRecord& record, std::span<const std::byte>& message) {
  std::span<const std::byte> rest = payload;
  if (!next(rest, record, message)) return false;
  if ((record.flags & ~may_wait_flag) != 0 || record.reserved != 0) return false;
  payload = rest;
  return true;
}

bool next_entry(std::span<const std::byte>& payload, ReplyEntry& entry, std::span<const std::byte>& data) {
  std::span<const std::byte> rest = payload;
  if (!next(rest, entry, data)) return false;
  if (entry.code > static_cast<std::uint32_t>(Code::system) || entry.reserved != 0 || entry.count == 0) return false;
  if (entry.count > 1 && (entry.code != 0 || entry.bytes != 0)) return false;
  if (entry.ticket + entry.count < entry.ticket) return false;
  payload = rest;
  return true;
}

bool holds_whole_records(const Frame& frame) {
  std::span<const std::byte> rest = frame.payload, message;
  RequestRecord record;
  for (std::uint32_t i = 0; i < frame.header.records; ++i) {
    if (!next_record(rest, record, message)) return false;
  }
  return rest.empty() && frame.header.first + frame.header.records >= frame.header.first;
}

bool holds_whole_entries(const Frame& frame) {
  std::span<const std::byte> rest = frame.payload, data;
  ReplyEntry entry;
  for (std::uint32_t i = 0; i < frame.header.records; ++i) {
    if (!next_entry(rest, entry, data)) return false;
  }
  return rest.empty() && frame.header.first + frame.header.records >= frame.header.first;
}

}  // namespace farsum::link
