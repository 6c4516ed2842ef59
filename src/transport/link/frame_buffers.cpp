#include "transport/link/frame_buffers.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace farsum::link {
namespace {

// Larger ones would hold memory that no credit pays for.
constexpr std::size_t kept_most = 4, kept_bytes = 1024;

}  // namespace

FrameBuffers::FrameBuffers(const LinkOptions& options)
    : max_frame_bytes_(options.max_frame_bytes), full_frames_(options.full_frames) {
  kept_.reserve(kept_most);
}

bool FrameBuffers::is_full_frame(std::size_t capacity) const {
  return full_frames_ != nullptr && capacity + kept_bytes > max_frame_bytes_;
}

FrameBuffers::Buffer FrameBuffers::take_kept(std::size_t bytes) {
  if (kept_.empty() || kept_.back().capacity < bytes) return {};
  Buffer buffer = std::move(kept_.back());
  kept_.pop_back();
  return buffer;
}

void FrameBuffers::make_room(Buffer& buffer, std::size_t used, std::size_t bytes) {
  if (buffer.capacity >= used + bytes) return;
  const std::size_t doubled = std::min(2 * buffer.capacity, max_frame_bytes_);
  std::size_t capacity = std::max(used + bytes, doubled);
  if (is_full_frame(capacity)) capacity = max_frame_bytes_;
  auto larger =
      is_full_frame(capacity) ? full_frames_->take(capacity) : std::make_unique_for_overwrite<std::byte[]>(capacity);
  if (used != 0) std::memcpy(larger.get(), buffer.bytes.get(), used);
  discard(buffer);
  buffer.bytes = std::move(larger);
  buffer.capacity = capacity;
}

void FrameBuffers::trim(Buffer& buffer, std::size_t used) {
  if (buffer.capacity <= used + kept_bytes) return;
  std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[used]);
  if (bytes == nullptr) return;
  std::memcpy(bytes.get(), buffer.bytes.get(), used);
  discard(buffer);
  buffer.bytes = std::move(bytes);
  buffer.capacity = used;
}

void FrameBuffers::discard(Buffer& buffer) {
  if (is_full_frame(buffer.capacity)) {
    full_frames_->give_back(std::move(buffer.bytes));
  } else if (kept_.size() < kept_most && buffer.capacity <= kept_bytes && buffer.capacity != 0) {
    kept_.push_back(std::move(buffer));
  }
}

}  // namespace farsum::link
