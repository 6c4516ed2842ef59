// Buffers of frames that are full, or nearly, kept for the next ones. Given back to the system they would come again as
// pages that it clears first, which costs more than to fill them.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace farsum::link {

// It serves links that one thread at a time calls, all of one frame size.
class FullFrames {
 public:
  FullFrames() { spare_.reserve(most); }

  std::unique_ptr<std::byte[]> take(std::size_t frame_bytes) {
    if (spare_.empty()) return std::make_unique_for_overwrite<std::byte[]>(frame_bytes);
    std::unique_ptr<std::byte[]> taken = std::move(spare_.back());
    spare_.pop_back();
    return taken;
  }
  void give_back(std::unique_ptr<std::byte[]> buffer) {
    if (spare_.size() < most) spare_.push_back(std::move(buffer));
  }
  std::size_t spare() const { return spare_.size(); }

  static constexpr std::size_t most = 32;

 private:
  std::vector<std::unique_ptr<std::byte[]>> spare_;
};

}  // namespace farsum::link
