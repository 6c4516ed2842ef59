// The files that memory of this process has been promoted into, in plain words: whoever may take no lock and allocate
// nothing, a child of _Fork() or an allocator inside madvise(), tells promoted memory by them from all other. It owns
// no file, and knows nothing of windows.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "os/map_question.hpp"
#include "promotion/page_move.hpp"

namespace farsum::os {

struct PromotedFile {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  int fd = -1;  // the registry's
  // Where the process maps the file itself, its offset 0 at the beginning: what lies there so is nobody's own memory.
  Stretch own_map;

  // -1 where it is another file's now: the program may have closed all that it did not know.
  [[nodiscard]] int descriptor() const;
};

// One for a process, see promoted_files(). add() and remove() are called by one thread at a time, all else by anybody.
// A file stays while memory may be promoted into it again; whether any is now, empty() says. What a reader finds is
// whole: a slot is not used again while its file may be mapped as promoted memory.
class PromotedFiles {
 public:
  // Counts how often a file was added. False if there is no slot left.
  [[nodiscard]] bool add(const PromotedFile& file);
  // The last of whoever added it.
  void remove(std::uint64_t device, std::uint64_t inode);

  // A stretch of memory is about to be promoted into one of them, or is its process's own again. Any thread.
  void note_stretch() { stretches_.fetch_add(1, std::memory_order_release); }
  void forget_stretch() { stretches_.fetch_sub(1, std::memory_order_release); }

  // Whether nothing is promoted now. Acquire: a stretch that is there belongs to a file that is.
  [[nodiscard]] bool empty() const { return stretches_.load(std::memory_order_acquire) == 0; }
  // The file that this map has promoted memory of; none for all other maps.
  [[nodiscard]] std::optional<PromotedFile> file_of(const BareMap& map) const;

 private:
  static constexpr std::size_t most_files = 16;
  // Written by add() and remove(). The inode, which is never 0, is stored last (release) and read first (acquire).
  struct Slot {
    std::atomic<std::uint64_t> inode{0};
    std::atomic<std::uint64_t> device{0};
    std::atomic<int> fd{-1};
    std::atomic<std::uintptr_t> own_begin{0};
    std::atomic<std::uintptr_t> own_end{0};
    std::size_t users = 0;
  };

  Slot* find(std::uint64_t device, std::uint64_t inode);

  std::array<Slot, most_files> slots_{};
  std::atomic<std::size_t> stretches_{0};
};

[[nodiscard]] PromotedFiles& promoted_files();

}  // namespace farsum::os
