// Frames that came before their turn, kept by the number of their first record. What may come early is bounded by the
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
  struct Kept {
    FrameHeader header{};
    std::vector<std::byte> payload;
    std::uint64_t charge = 0;

    Frame frame() const { return {header, payload}; }
  };

  // `charge` is what the caller bounds. None that begins there is kept yet.
  void add(const Frame& frame, std::uint64_t frame_charge) {
    Kept kept{frame.header, {frame.payload.begin(), frame.payload.end()}, frame_charge};
    kept_.emplace(frame.header.first, std::move(kept));
    charge_ += frame_charge;
    bytes_ += frame.payload.size();
  }
  bool has(std::uint64_t first) const { return kept_.contains(first); }
  // The frame whose turn it is when `next` is expected, if it is here.
  std::optional<Kept> take(std::uint64_t next) {
    if (kept_.empty() || kept_.begin()->first > next) return std::nullopt;
    Kept kept = std::move(kept_.begin()->second);
    kept_.erase(kept_.begin());
    charge_ -= kept.charge;
    bytes_ -= kept.payload.size();
    return kept;
  }
  void clear() {
    kept_.clear();
    charge_ = bytes_ = 0;
  }
  std::uint64_t charge() const { return charge_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::map<std::uint64_t, Kept> kept_;
  std::uint64_t charge_ = 0, bytes_ = 0;
};

}  // namespace farsum::link
