// Frames that came before their turn, held by the number of their first record. What may come early is bounded by the
// caller, who knows what the peer is allowed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "transport/link/wire.hpp"

namespace farsum::link {

class EarlyFrames {
 public:
  struct Early {
    FrameHeader header{};
    std::vector<std::byte> payload;
    std::uint64_t charge = 0;

    Frame frame() const { return {header, payload}; }
  };

  // `charge` is what the caller bounds. None that begins there is here yet.
  void add(const Frame& frame, std::uint64_t frame_charge) {
    Early early{frame.header, {frame.payload.begin(), frame.payload.end()}, frame_charge};
    frames_.emplace(frame.header.first, std::move(early));
    charge_ += frame_charge;
    bytes_ += frame.payload.size();
  }
  bool has(std::uint64_t first) const { return frames_.contains(first); }
  // The frame whose turn it is when `next` is expected, if it is here.
  std::optional<Early> take(std::uint64_t next) {
    if (frames_.empty() || frames_.begin()->first > next) return std::nullopt;
    Early early = std::move(frames_.begin()->second);
    frames_.erase(frames_.begin());
    charge_ -= early.charge;
    bytes_ -= early.payload.size();
    return early;
  }
  void clear() {
    frames_.clear();
    charge_ = bytes_ = 0;
  }
  std::uint64_t charge() const { return charge_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::map<std::uint64_t, Early> frames_;
  std::uint64_t charge_ = 0, bytes_ = 0;
};

}  // namespace farsum::link
