// Frames made by hand, honest or not, and ends of a link that record what they are asked for.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

#include "failing_memory.hpp"
#include "transport/link/link.hpp"
#include "transport/transport.hpp"

namespace farsum::link {

inline Secret secret_of_tests() {
  Secret secret;
  for (int i = 0; i < 16; ++i) secret.bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return secret;
}

using Bytes = std::vector<std::byte>;

template <class Value>
void append(Bytes& bytes, const Value& value) {
  const auto raw = std::as_bytes(std::span(&value, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// A frame with the right magic, version, length and key.
inline FrameHeader header_of(FrameKind kind, Rank from, Rank to, std::uint32_t epoch = 1) {
  FrameHeader header{};
  header.magic_word = magic;
  header.epoch = epoch;
  header.version = wire_version;
  header.kind = kind;
  header.from = from;
  header.to = to;
  header.key = key_of(secret_of_tests(), from, to, epoch, goes_to_origin(kind));
  return header;
}

inline Bytes bytes_of(FrameHeader header, const Bytes& payload = {}) {
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  Bytes bytes;
  append(bytes, header);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

inline Bytes record(std::uint32_t bytes, std::uint32_t reply_capacity = 0, std::uint32_t flags = 0) {
  Bytes made;
  append(made, RequestRecord{bytes, reply_capacity, flags, 0});
  made.resize(made.size() + bytes);
  return made;
}

inline Bytes entry(std::uint64_t ticket, std::uint32_t count = 1, std::uint32_t code = 0, std::uint32_t bytes = 0) {
  Bytes made;
  append(made, ReplyEntry{ticket, count, code, bytes, 0});
  made.resize(made.size() + bytes);
  return made;
}

inline Frame frame_of(const Bytes& bytes) {
  Frame frame;
  std::memcpy(&frame.header, bytes.data(), sizeof frame.header);
  frame.payload = std::span(bytes).subspan(sizeof frame.header);
  return frame;
}

// Keeps what was sent, and lets go of nothing until told.
class RecordingWire : public Wire {
 public:
  struct Sent {
    FrameId id;
    std::uint32_t epoch;
    Bytes bytes;
    FrameHeader header;
  };

  void send(FrameId id, std::uint32_t epoch, std::span<const std::span<const std::byte>> pieces) override {
    Sent one{id, epoch, {}, {}};
    for (const auto& piece : pieces) one.bytes.insert(one.bytes.end(), piece.begin(), piece.end());
    std::memcpy(&one.header, one.bytes.data(), sizeof one.header);
    sent.push_back(std::move(one));
  }
  void connect(std::uint32_t epoch, std::span<const std::byte>) override { connected = epoch; }
  void disconnect(std::uint32_t epoch) override { disconnected = epoch; }

  std::size_t count(FrameKind kind) const {
    std::size_t found = 0;
    for (const Sent& one : sent) found += one.header.kind == kind ? 1 : 0;
    return found;
  }
  // Calls on_sent for all that is out.
  template <class OnSent>
  void let_go(OnSent&& on_sent) {
    while (let_go_ != sent.size()) on_sent(sent[let_go_++].id);
  }

  std::vector<Sent> sent;
  std::uint32_t connected = 0, disconnected = 0;

 private:
  std::size_t let_go_ = 0;
};

// Has memory for what it keeps where the one under test has none.
class SteadyWire final : public RecordingWire {
 public:
  void send(FrameId id, std::uint32_t epoch, std::span<const std::span<const std::byte>> pieces) override {
    const FailingMemory::Pause pause;
    RecordingWire::send(id, epoch, pieces);
  }
};

// Answers every request with as many bytes as it has room for.
class CountingHandler : public RequestHandler {
 public:
  Served on_request(Rank, std::span<const std::byte>, std::span<std::byte> room, ReplyToken token) override {
    ++served;
    last_ticket = token.ticket;
    return {kind, Code::ok, static_cast<std::uint32_t>(room.size())};
  }

  Served::Kind kind = Served::Kind::done;
  std::size_t served = 0;
  std::uint64_t last_ticket = 0;
};

}  // namespace farsum::link
