#include "transport/link/origin_report.hpp"

namespace farsum::link {

void OriginReport::pump() {
  const Told now = told();
  const bool letters_left = letters_.pump(now), controls_left = controls_.pump(now);
  if (requests_.pump(now) || controls_left || letters_left) replies_.note_told();
}

void OriginReport::tell_seen() {
  const OriginCredit::Question question = credit_.ask();
  controls_.say(FrameKind::seen, question.first, question.stamp, told());
  replies_.note_told();
}

void OriginReport::tell_seen_if_much() {
  if (replies_.untold_bytes() != 0 && credit_.is_much(replies_.untold_bytes())) tell_seen();
}

void OriginReport::ask_for_credit() {
  if (credit_.must_ask()) tell_seen();
}

}  // namespace farsum::link
