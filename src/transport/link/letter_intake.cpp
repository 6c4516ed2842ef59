#include "transport/link/letter_intake.hpp"

#include <algorithm>

namespace farsum::link {

// A letter comes before its turn only where the connection turns frames round, and a sender has no more than a window
// of them.
Fault LetterIntake::on_letter(const Frame& frame) {
  const std::uint64_t number = frame.header.first;
  if (handler_ == nullptr || frame.payload.size() > max_letter_bytes || frame.header.stamp > 1 ||
      (number > next_ && number - next_ >= letters_in_window)) {
    return Fault::malformed;
  }
  if (number > next_ && omission_ != Omission::letter_order) {
    if (!early_.has(number)) early_.add(frame, 0);
    return Fault::none;
  }
  hand_over(frame);
  while (const std::optional<EarlyFrames::Early> early = early_.take(next_)) hand_over(early->frame());
  return Fault::none;
}

void LetterIntake::hand_over(const Frame& frame) {
  const std::uint64_t number = frame.header.first;
  // Of one that came before, too: the answer may have been lost.
  if (frame.header.stamp == 1) is_asked_ = true;
  if (number < next_) {
    ++counters_.doubles;
    if (omission_ != Omission::letter_doubles_check) return;
  }
  next_ = std::max(next_, number + 1);
  handler_->on_letter(peer_, frame.payload);
}

}  // namespace farsum::link
