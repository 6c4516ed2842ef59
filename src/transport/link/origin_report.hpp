// What an origin tells its target with each frame: which replies it has taken, and what credit it gives back. It sends
// a frame for that alone, and to ask for credit.
#pragma once

#include <cstdint>
#include <span>

#include "transport/link/control_frames.hpp"
#include "transport/link/letter_box.hpp"
#include "transport/link/origin_credit.hpp"
#include "transport/link/outbox.hpp"
#include "transport/link/reply_inbox.hpp"

namespace farsum::link {

class OriginReport {
 public:
  OriginReport(OriginCredit& credit, ReplyInbox& replies, ControlFrames& controls, LetterBox& letters, Outbox& requests)
      : credit_(credit), replies_(replies), controls_(controls), letters_(letters), requests_(requests) {}

  void say(FrameKind kind, std::uint64_t stamp, std::span<const std::byte> payload = {}) {
    controls_.say(kind, 0, stamp, told(), payload);
  }
  void pump();       // sends what may be sent
  void tell_seen();  // and asks for the credit that is wanted
  // The target keeps the replies that it does not know to be here, out of the credit that this side waits for or soon
  // will.
  void tell_seen_if_much();
  void ask_for_credit();  // unless the target knows

 private:
  Told told() const { return {.seen = replies_.next(), .credit = credit_.returned()}; }

  OriginCredit& credit_;
  ReplyInbox& replies_;
  ControlFrames& controls_;
  LetterBox& letters_;
  Outbox& requests_;
};

}  // namespace farsum::link
