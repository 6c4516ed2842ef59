// What a target tells its origin with each frame: what it has received, and what it allows. It sends a frame for that
// alone where it is worth one.
#pragma once

#include <cstdint>

#include "transport/link/control_frames.hpp"
#include "transport/link/letter_intake.hpp"
#include "transport/link/outbox.hpp"
#include "transport/link/request_intake.hpp"
#include "transport/link/target_credit.hpp"

namespace farsum::link {

class TargetReport {
 public:
  TargetReport(const RequestIntake& requests, LetterIntake& letters, const TargetCredit& credit,
               ControlFrames& controls, Outbox& replies)
      : requests_(requests), letters_(letters), credit_(credit), controls_(controls), replies_(replies) {}

  void say(FrameKind kind, std::uint64_t stamp) { controls_.say(kind, 0, stamp, told()); }
  void greet(std::uint64_t stamp);  // answers a hello; what is said there need not be said again
  void pump();                      // sends what may be sent
  void tell();                      // at the end of a turn: the replies of it, or else what the origin ought to know

 private:
  Told told() const { return {requests_.next(), credit_.allowed(), letters_.next()}; }
  void note_told();

  const RequestIntake& requests_;
  LetterIntake& letters_;
  const TargetCredit& credit_;
  ControlFrames& controls_;
  Outbox& replies_;
  std::uint64_t told_received_ = 0, told_allowed_ = 0;
};

}  // namespace farsum::link
