// Which requests of one origin have come: each counts once and in order. Frames of those that come before their turn
// are kept, as far as their credit goes.
#pragma once

#include <cstdint>
#include <optional>

#include "transport/link/early_frames.hpp"
#include "transport/link/link.hpp"

namespace farsum::link {

class RequestIntake {
 public:
  // The counters are the half's.
  RequestIntake(const LinkOptions& options, LinkCounters& counters)
      : max_frame_bytes_(options.max_frame_bytes), max_reply_(max_reply_bytes(options)), counters_(counters) {}

  // Whether a frame that begins there is kept, which makes this one a double.
  bool knows_early(const Frame& frame);
  // The charges of the records that have not come before; nothing where the frame is no frame of requests.
  std::optional<std::uint64_t> charge_of_new(const Frame& frame) const;
  bool is_early(const Frame& frame) const { return frame.header.first > next_; }
  void keep(const Frame& frame, std::uint64_t charge) { early_.add(frame, charge); }
  // A frame that was kept and whose turn it is.
  std::optional<EarlyFrames::Early> take_early() { return early_.take(next_); }
  // Receives that one, whose turn it is; false: it had come before.
  bool receive(std::uint64_t ticket);
  void forget_early() { early_.clear(); }

  std::uint64_t next() const { return next_; }  // all smaller ones were received
  std::uint64_t early_charge() const { return early_.charge(); }
  std::uint64_t early_bytes() const { return early_.bytes(); }

 private:
  std::size_t max_frame_bytes_, max_reply_;
  LinkCounters& counters_;
  std::uint64_t next_ = 0;
  EarlyFrames early_;
};

}  // namespace farsum::link
