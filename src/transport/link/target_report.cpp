#include "transport/link/target_report.hpp"

namespace farsum::link {

void TargetReport::greet(std::uint64_t stamp) {
  say(FrameKind::hello_ack, stamp);
  note_told();
}

void TargetReport::pump() {
  const bool controls_left = controls_.pump(told());
  if (replies_.pump(told()) || controls_left) note_told();
}

void TargetReport::tell() {
  replies_.let_go();
  pump();
  const bool is_known = told_received_ == requests_.next() && !credit_.is_worth_telling(told_allowed_);
  if (is_known && !letters_.is_asked()) return;
  if (controls_.say(FrameKind::replies, 0, 0, told())) note_told();
}

void TargetReport::note_told() {
  told_received_ = requests_.next();
  told_allowed_ = credit_.allowed();
  letters_.note_told();
}

}  // namespace farsum::link
