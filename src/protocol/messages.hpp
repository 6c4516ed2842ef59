// Messages as they travel between an origin and an owner's agent. All fields are little-endian by the machines we run
// on; a decoder trusts nothing: lengths, kinds, types and extents are checked before anything is touched.
//
// A message is a MessageHeader, then the target layout (layout_bytes, absent when contiguous), then the operand where
// it rides along. A scatter message (elements all over the target) has a target offset of 8 bytes for each element and
// then the packed elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/units.hpp"
#include "memory/apply.hpp"
#include "ops/layout.hpp"

namespace farsum::wire {

inline constexpr std::uint8_t version = 4;

// All but operate and scatter are control messages.
enum class MessageKind : std::uint8_t {
  operate = 1,
  scatter = 2,
  // Lock `slot` of the window's part at the receiver; a grant that has to wait is the late reply.
  lock = 3,
  unlock = 4,
  post = 5,      // the sender has posted to the receiver
  complete = 6,  // the sender has completed its access epoch at the receiver
  team = 7,      // of a group's members to each other: `window` names the group, `offset` the round
  life = 8,      // the reply is four bytes: one more than a rank that is known to be dead, or 0
  // Caller-computes (paper 1). The reply is a lease's name, 8 bytes, and what is in the memory; Code::pending: no room.
  lease = 9,
  // New contents for what is open of the lease named by `offset`. The reply is empty where all was as it had been; else
  // 8 bytes that say how many elements are still open, for somebody has changed them meanwhile, a bit for each element
  // of the lease in words of 8 bytes, and (without flag_last) what is in the open ones now. Code::pending: there is no
  // such lease, and nothing was written.
  lease_put = 10,
};
// The length of one of a scatter message's offsets.
inline constexpr std::uint64_t place_bytes = 8;
// The length of a lease's name, and of the number of its elements that are still open.
inline constexpr std::uint64_t lease_word_bytes = 8;

enum MessageFlag : std::uint8_t {
  flag_pull = 1u << 0,       // the operand stays at operand_address in the origin; the agent pulls it
  flag_push = 1u << 1,       // the result goes to result_address in the origin instead of the reply
  flag_notify = 1u << 2,     // bump notification `slot` once the data is in place
  flag_exclusive = 1u << 3,  // lock, unlock
  flag_at_once = 1u << 4,    // lock: where it would have to wait the answer is Code::pending, and nothing has happened
  flag_last = 1u << 5,       // lease_put: the lease ends whatever is refused
  flag_more = 1u << 6,       // team: the sender's next message of the round goes on where this one ends
};

inline constexpr std::uint32_t alpha_bytes = 32;

struct MessageHeader {
  MessageKind kind = MessageKind::operate;
  std::uint8_t wire_version = version;
  OperationKind operation = OperationKind::put;
  ops::ElementType type = ops::ElementType::byte;
  ops::Operator op = ops::Operator::replace;
  std::uint8_t flags = 0;
  std::uint16_t reserved = 0;
  std::uint32_t layout_bytes = 0;
  std::uint32_t slot = 0;  // a notification of an operation; of lock and unlock the lock
  WindowId window = 0;
  std::uint64_t sequence = 0;  // per sender and receiver, from 1
  // Base of the target layout; of lock to complete the sender's rank in the window's group; of lease_put the lease.
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // payload: of the target layout, of the scattered elements, or of a team's message
  std::uint64_t operand_address = 0;
  std::uint64_t result_address = 0;
  std::byte alpha[alpha_bytes] = {};
};
static_assert(sizeof(MessageHeader) == 96, "the header is part of the wire format");

// A decoded message; views into the bytes it came from.
struct Message {
  MessageHeader header;
  ops::Layout layout;                  // of the target; contiguous when none travelled
  ops::Extent extent;                  // of that, where the message has one
  std::span<const std::byte> operand;  // inline operand, the scattered elements, or a team's message
  std::span<const std::byte> offsets;  // scatter: packed 8-byte offsets
};

// The sequence number in a message's header, sound or not; 0, which no sender uses, when it is too short to have one.
std::uint64_t sequence_of(std::span<const std::byte> bytes);

// Null for whatever does not hold together by itself; windows and ranges are the receiver's to check.
std::optional<Message> decode(std::span<const std::byte> bytes);

}  // namespace farsum::wire
