// One half's control frames, at most one of a kind on its way: what is said meanwhile waits for it, and only the last
// word of a kind leaves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/link/connection.hpp"

namespace farsum::link {

class ControlFrames {
 public:
  explicit ControlFrames(Connection& connection) : connection_(connection) {}

  void start();  // a connection has opened: what was due over the last one is so no more
  // Sends a control frame now, or when the one of its kind that is out has been sent; true: now. The payload stays as
  // it is until then.
  bool say(FrameKind kind, std::uint64_t first, std::uint64_t stamp, const Told& told,
           std::span<const std::byte> payload = {});
  bool pump(const Told& told);  // sends what may be sent; whether that was anything
  void on_sent(FrameId id);
  bool is_quiet() const { return in_wire_ == 0; }

  static bool is_control(FrameId id) { return (id >> 63) != 0; }

 private:
  struct Control {
    FrameHeader header{};
    std::uint64_t first = 0, stamp = 0;
    std::span<const std::byte> payload;
    bool due = false, in_wire = false;
  };

  void send(FrameKind kind, const Told& told);

  Connection& connection_;
  std::array<Control, frame_kinds> controls_;
  std::size_t in_wire_ = 0;
};

}  // namespace farsum::link
