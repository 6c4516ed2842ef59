// What both halves of a rank's transport ask of a frame: whether it is of this job and to this rank, and which frames
// were not.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/units.hpp"
#include "transport/link/link.hpp"
#include "transport/link/wire.hpp"

namespace farsum {

// One such frame is answered, or what it answers handed over, before its half looks for more: somebody most likely
// waits. In a stream of longer ones, or of many, that would cost more than it gains.
inline constexpr std::size_t short_frame_bytes = 5120;

// Any thread may call.
class FrameGate {
 public:
  struct Terms {
    Rank rank = 0;
    std::uint32_t ranks = 1;  // of the job
    link::Secret secret{};
    std::size_t frame_bytes = 0;
  };
  explicit FrameGate(const Terms& terms) : terms_(terms) {}

  // Whether a frame is to be passed on; it is counted where it is not. `frame` is written where it is.
  bool let_through(std::span<const std::byte> bytes, link::Frame& frame);
  // Passes a frame on to the link that it is for, and counts what that finds wrong with it.
  template <class Link, class... Arguments>
  void pass_on(Link& link, const link::Frame& frame, Arguments&&... arguments) {
    const auto refused = [&] { return link.counters().malformed + link.counters().before_hello; };
    const std::uint64_t before = refused();
    link.on_frame(frame, std::forward<Arguments>(arguments)...);
    if (const std::uint64_t more = refused() - before; more != 0) refuse(more);
  }
  // Frames of this job that make no sense were found elsewhere. Relaxed: a count, of which nobody concludes anything.
  void refuse(std::uint64_t frames = 1) { refused_.fetch_add(frames, std::memory_order_relaxed); }

  // What a link to the peer and its other end agree on.
  link::LinkOptions link_options(Rank peer) const;
  Rank rank() const { return terms_.rank; }
  std::uint32_t ranks() const { return terms_.ranks; }

  // Frames that were not of this job, and those of it that made no sense. Relaxed: see refuse().
  std::uint64_t strangers() const { return strangers_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  const Terms terms_;
  std::atomic<std::uint64_t> strangers_{0};
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace farsum
