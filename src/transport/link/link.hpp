// What both halves of a link share: the effects they ask for, what they count, and how they are told to fail in tests.
//
// A link carries requests and letters of one rank (the origin) to another (the target) and replies back. It has two
// objects: a LinkSender at the origin and a LinkReceiver at the target. Two ranks that both ask have two links. Neither
// object has a clock, a thread or a system call: events are called, effects go out through Wire. Calls on one object
// are serialised by its owner; no Wire call may call back into the object that made it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "transport/link/full_frames.hpp"
#include "transport/link/wire.hpp"

namespace farsum::link {

// Names a frame between Wire::send and on_sent; one object never has two of the same name out at once.
using FrameId = std::uint64_t;

inline constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();  // in nanoseconds

// What the glue (or a simulator) does for one object.
class Wire {
 public:
  virtual ~Wire() = default;
  // Sends one frame made of these pieces over the connection of `epoch`, after all that was sent over it before. The
  // bytes stay as they are until on_sent(id); the array of spans is valid during the call only. It is always taken:
  // no more than LinkOptions::frames_in_wire frames, letters_in_window letters and one of each kind of control frame
  // are out at once.
  virtual void send(FrameId id, std::uint32_t epoch, std::span<const std::span<const std::byte>> pieces) = 0;
  // Opens the connection of `epoch`. Nothing is answered: frames may be sent at once, and on_broken(epoch) says that it
  // failed. `address` is empty for a LinkSender; for a LinkReceiver it is what the origin's hello brought
  // (SenderOptions::address), valid during the call.
  virtual void connect(std::uint32_t epoch, std::span<const std::byte> address) = 0;
  // Closes the connection of `epoch` by force. The glue then answers on_sent(id, false) or on_sent(id, true) for each
  // frame of it that is still out, and after these on_disconnected(epoch), both from outside this call. Only then the
  // next connect() comes.
  virtual void disconnect(std::uint32_t epoch) = 0;
};

// Frames and bytes by kind (indexed by FrameKind), and what was refused.
struct LinkCounters {
  struct Traffic {
    std::uint64_t frames = 0;
    std::uint64_t bytes = 0;
  };
  std::array<Traffic, frame_kinds> sent;
  std::array<Traffic, frame_kinds> received;  // valid ones
  std::uint64_t malformed = 0;
  std::uint64_t stale = 0;         // of an epoch that is over
  std::uint64_t before_hello = 0;  // at the receiver: of an epoch not begun
  std::uint64_t doubles = 0;       // records and entries that had come before
  std::uint64_t replayed = 0;      // frames sent again over a new connection
  std::uint64_t connections = 0;

  void count_received(const Frame& frame) {
    Traffic& traffic = received[static_cast<std::size_t>(frame.header.kind)];
    ++traffic.frames;
    traffic.bytes += sizeof(FrameHeader) + frame.payload.size();
  }
};

// What a test leaves out to show that its checks would notice. Only tests set it.
enum class Omission : std::uint8_t {
  none,
  keep_until_received,         // a request is forgotten once its frame was sent
  keep_reply_until_seen,       // a reply is forgotten once its frame was sent
  bare_acks,                   // taken replies are told with requests only
  may_wait_share,              // requests that may wait take all of the credit
  epoch_check,                 // frames of old connections are obeyed
  hold_credit_of_replies,      // credit is whole again when a request was executed
  wait_for_sent,               // a reply is handed out while the wire still reads the body of its request
  doubles_check,               // a record that had come before is executed again
  keep_letter_until_received,  // a letter is forgotten once it was sent
  letter_doubles_check,        // a letter that had come before is handed over again
  letter_order,                // a letter that comes early is handed over at once
  asking_letters,              // no letter asks what was received
};

struct LinkOptions {
  Rank me = 0;
  Rank peer = 0;
  Secret secret{};
  std::size_t max_frame_bytes = 57344;  // header included; also bounds a reply's frame
  std::size_t frames_in_wire = 16;      // frames of requests or of replies out at once
  FullFrames* full_frames = nullptr;    // shared by links of the same frame size; null: none are kept
  Omission omission = Omission::none;
};

// The largest message, and the largest reply, that fit a frame.
constexpr std::size_t max_message_bytes(const LinkOptions& options) {
  return options.max_frame_bytes - sizeof(FrameHeader) - sizeof(RequestRecord);
}
constexpr std::size_t max_reply_bytes(const LinkOptions& options) {
  return options.max_frame_bytes - sizeof(FrameHeader) - sizeof(ReplyEntry);
}

}  // namespace farsum::link
