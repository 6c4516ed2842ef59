#include "transport/ucx/frame_gate.hpp"

namespace farsum {

bool FrameGate::let_through(std::span<const std::byte> bytes, link::Frame& frame) {
  const link::Fault fault = link::decode(bytes, terms_.secret, terms_.rank, frame);
  if (fault == link::Fault::none && frame.header.from < terms_.ranks) return true;
  const bool knows_the_secret = fault == link::Fault::none || fault == link::Fault::malformed;
  // Relaxed: see refuse().
  (knows_the_secret ? refused_ : strangers_).fetch_add(1, std::memory_order_relaxed);
  return false;
}

link::LinkOptions FrameGate::link_options(Rank peer) const {
  link::LinkOptions options;
  options.me = terms_.rank;
  options.peer = peer;
  options.secret = terms_.secret;
  options.max_frame_bytes = terms_.frame_bytes;
  return options;
}

}  // namespace farsum
