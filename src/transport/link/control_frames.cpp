#include "transport/link/control_frames.hpp"

namespace farsum::link {
namespace {

constexpr FrameId control_bit = FrameId{1} << 63;

std::size_t index_of(FrameKind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

void ControlFrames::start() {
  for (Control& control : controls_) control.due = false;
}

bool ControlFrames::say(FrameKind kind, std::uint64_t first, std::uint64_t stamp, const Told& told,
                        std::span<const std::byte> payload) {
  Control& control = controls_[index_of(kind)];
  control.first = first;
  control.stamp = stamp;
  control.payload = payload;
  control.due = true;
  if (!connection_.is_up() || control.in_wire) return false;
  send(kind, told);
  return true;
}

void ControlFrames::send(FrameKind kind, const Told& told) {
  Control& control = controls_[index_of(kind)];
  control.header = connection_.header_of_control(kind, control.payload.size(), control.first, control.stamp, told);
  control.due = false;
  control.in_wire = true;
  ++in_wire_;
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(&control.header, 1)), control.payload};
  connection_.send(control_bit | index_of(kind), kind, std::span(pieces, control.payload.empty() ? 1 : 2));
}

bool ControlFrames::pump(const Told& told) {
  if (!connection_.is_up()) return false;
  bool any = false;
  for (std::size_t kind = 0; kind < frame_kinds; ++kind) {
    if (!controls_[kind].due || controls_[kind].in_wire) continue;
    send(static_cast<FrameKind>(kind), told);
    any = true;
  }
  return any;
}

void ControlFrames::on_sent(FrameId id) {
  controls_[id & ~control_bit].in_wire = false;
  --in_wire_;
}

}  // namespace farsum::link
