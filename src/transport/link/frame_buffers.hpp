// Buffers for one half's frames. Those of lone small records are kept for the next ones; full ones go to FullFrames.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "transport/link/link.hpp"

namespace farsum::link {

class FrameBuffers {
 public:
  struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t capacity = 0;
  };

  explicit FrameBuffers(const LinkOptions& options);

  // One that was kept and holds so many bytes; without any where there is none.
  Buffer take_kept(std::size_t bytes);
  // Makes room for so many bytes behind those used, which stay. Where there is no memory, nothing has changed.
  void make_room(Buffer& buffer, std::size_t used, std::size_t bytes);
  // Gives back what a frame that is done leaves unused: no credit pays for it.
  void trim(Buffer& buffer, std::size_t used);
  void discard(Buffer& buffer);  // asks for no memory

 private:
  bool is_full_frame(std::size_t capacity) const;

  std::size_t max_frame_bytes_;
  FullFrames* full_frames_;
  std::vector<Buffer> kept_;
};

}  // namespace farsum::link
