// The frames of a link as bytes, and the only code that reads them: every decoder checks all that it is given,
// allocates nothing and answers with a Fault. docs/reference/wire.md describes the protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.hpp"
#include "base/units.hpp"

namespace farsum::link {

inline constexpr std::uint32_t magic = 0x4d535246;  // "FRSM"
inline constexpr std::uint8_t wire_version = 3;

// Kinds with bit 3 go back to the origin, the others to the target.
enum class FrameKind : std::uint8_t {
  hello = 1,      // opens an epoch; payload: where the target finds the origin
  requests = 2,   // payload: request records
  seen = 3,       // tells `seen` and credit that was given back, asks for credit
  ping = 4,       // asks for a pong
  bye = 5,        // the origin will ask for nothing more
  letters = 6,    // payload: one letter
  hello_ack = 9,  // answers a hello
  replies = 10,   // payload: reply entries; without any it only acknowledges
  pong = 11,      // answers a ping
  bye_ack = 12,   // answers a bye
  recall = 13,    // asks for unused credit back
  refused = 14,   // the target has declared the origin dead, for good
};
inline constexpr std::size_t frame_kinds = 15;
constexpr bool goes_to_origin(FrameKind kind) { return (static_cast<std::uint8_t>(kind) & 8) != 0; }

struct FrameHeader {
  std::uint32_t magic_word;
  std::uint32_t epoch;  // counts the connections of this link, from 1
  std::uint8_t version;
  FrameKind kind;
  std::uint16_t records;  // in the payload of requests and replies
  Rank from, to;
  std::uint32_t payload_bytes;
  std::uint64_t key;    // key_of(...): shows that the sender knows the job's secret
  std::uint64_t first;  // requests: ticket of the first record; replies: number of the first entry; letters: its
                        // number; seen: see `stamp`; otherwise to the origin: see received_letters()
  std::uint64_t seen;   // to the target: replies taken; to the origin: requests received; all smaller ones are
  // To the origin: bytes that it may spend in all; to the target: bytes of these given back unused.
  std::uint64_t credit;
  std::uint64_t stamp;  // hello, ping and their answers: a nonce; recall: bytes that the origin may keep unspent;
                        // seen: bytes in all that it needs to be allowed, 0 for none, where `first` is 1 at any price;
                        // letters: 1 asks for received_letters(); replies: see there
};
static_assert(sizeof(FrameHeader) == 64);

struct RequestRecord {
  std::uint32_t bytes;           // of the message that follows
  std::uint32_t reply_capacity;  // room that its reply needs
  std::uint32_t flags;           // may_wait_flag
  std::uint32_t reserved;        // 0
};
static_assert(sizeof(RequestRecord) == 16);
inline constexpr std::uint32_t may_wait_flag = 1;

struct ReplyEntry {
  std::uint64_t ticket;
  std::uint32_t count;  // tickets answered, from `ticket` on; more than 1: all are ok and without data
  std::uint32_t code;   // a farsum::Code
  std::uint32_t bytes;  // of data that follow
  std::uint32_t reserved;
};
static_assert(sizeof(ReplyEntry) == 24);

// A letter is one frame. The sender keeps as many as a window holds; a full one has two that ask what was received.
inline constexpr std::size_t max_letter_bytes = 4096;
inline constexpr std::uint64_t letters_in_window = 32;
// Of one link, at the target: a whole window but the one whose turn it is.
inline constexpr std::uint64_t most_early_letter_bytes = (letters_in_window - 1) * max_letter_bytes;
constexpr bool asks_what_was_received(std::uint64_t letter) {
  return letter % (letters_in_window / 2) == letters_in_window / 2 - 1;
}
// What a frame to the origin tells of letters: all smaller ones were received. Only grows.
inline std::uint64_t& received_letters(FrameHeader& header) {
  return header.records != 0 ? header.stamp : header.first;
}
inline std::uint64_t received_letters(const FrameHeader& header) {
  return header.records != 0 ? header.stamp : header.first;
}

enum class Fault : std::uint8_t {
  none,
  stranger,   // not Farsum's, another version, or without this job's secret
  malformed,  // of this job, but impossible
  stale,      // of an epoch that is over, or not begun
};

struct Secret {
  std::byte bytes[16];
};

// What a request costs of its sender's credit: room for its record and for its reply, each in a frame of its own.
constexpr std::uint64_t record_charge(std::uint64_t bytes) {
  return sizeof(FrameHeader) + sizeof(RequestRecord) + bytes;
}
constexpr std::uint64_t reply_charge(std::uint64_t bytes) { return sizeof(FrameHeader) + sizeof(ReplyEntry) + bytes; }
constexpr std::uint64_t charge(std::uint64_t bytes, std::uint64_t reply_capacity) {
  return record_charge(bytes) + reply_charge(reply_capacity);
}

// A frame that decode() let through. The payload points into the bytes that were decoded.
struct Frame {
  FrameHeader header;
  std::span<const std::byte> payload;
};

// SipHash-2-4 of who speaks to whom, in which epoch and direction, under the job's secret.
std::uint64_t key_of(const Secret& secret, Rank from, Rank to, std::uint32_t epoch, bool to_origin);
std::uint64_t siphash(const Secret& secret, std::span<const std::byte> text);

// Whether `bytes` are one whole frame to rank `me`, sent with the secret by header.from. `out` is written where they
// are.
Fault decode(std::span<const std::byte> bytes, const Secret& secret, Rank me, Frame& out);

// Cut the next record off the front of `payload`; false at its end, and where the rest makes no record.
bool next_record(std::span<const std::byte>& payload, RequestRecord& record, std::span<const std::byte>& message);
bool next_entry(std::span<const std::byte>& payload, ReplyEntry& entry, std::span<const std::byte>& data);
// Whether the payload is exactly header.records records, or entries.
bool holds_whole_records(const Frame& frame);
bool holds_whole_entries(const Frame& frame);

}  // namespace farsum::link
