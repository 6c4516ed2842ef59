// Turns the user's private memory into shared memory in place, and back: the whole pages of a window move into a shared
// file (an extent of the node's segment) that is then mapped over them, so the user's pointer stays valid and peers map
// the same file. The registry owns every promotion of a context. It decides nothing about windows and never talks to
// peers.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "os/memory_map.hpp"
#include "promotion/page_move.hpp"
#include "promotion/touched_pages.hpp"

namespace farsum::os {

struct PromotionRules {
  // A stretch is promoted if it has this many whole pages, or if it nearly fills its map. Each one may cost two more
  // maps.
  std::size_t least_pages = 64;
  double least_share_of_map = 0.875;
  // Threads that are parked while promote() runs: the agent.
  std::vector<pid_t> parked_threads;
  // Any other thread but the caller is held while memory moves, or is a reason to refuse.
  bool may_hold_threads = true;
  std::chrono::milliseconds hold_patience{1000};
  // Refuse when the process has used up this share of vm.max_map_count.
  double most_share_of_maps = 0.5;
  // What the kernel is asked of pages that were never touched.
  TouchedPages::Source touched_pages = TouchedPages::Source::scan;
};

// What could be done with a range. With `ok()`, [address, address + bytes) are its whole pages; the edges before and
// after stay as they are.
struct Examination {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  int huge_page_advice =
      0;  // MADV_HUGEPAGE or MADV_NOHUGEPAGE where the user has given it; given again when turned back
  bool may_be_huge = false;       // some of it is on huge pages, or the user has asked for them
  std::size_t touched_bytes = 0;  // of pages that hold something: only these move
  std::string refusal;            // a sentence saying why not, such as "the range has no whole page"

  [[nodiscard]] bool ok() const { return refusal.empty(); }
};

// Whether the whole pages of [address, address + bytes) may be promoted now. Changes nothing. Reads /proc/self/smaps,
// as special_flags() does.
[[nodiscard]] Examination examine(const void* address, std::size_t bytes, const PromotionRules& rules = {});

class PromotionRegistry;

// One window's share of a promoted stretch. Movable. Destroying it does not turn the memory back: release it at its
// registry.
class Promotion {
 public:
  Promotion() = default;
  Promotion(Promotion&& other) noexcept { swap(other); }
  Promotion& operator=(Promotion&& other) noexcept {
    swap(other);
    return *this;
  }
  Promotion(const Promotion&) = delete;
  Promotion& operator=(const Promotion&) = delete;
  ~Promotion() = default;

  [[nodiscard]] explicit operator bool() const { return bytes_ != 0; }
  // What of the window is promoted: its whole pages, or all of it where it lies inside another window's promotion.
  [[nodiscard]] std::uintptr_t address() const { return address_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // Where `address()` lies in the shared file.
  [[nodiscard]] std::uint64_t file_offset() const { return file_offset_; }

 private:
  friend class PromotionRegistry;
  void swap(Promotion& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    std::swap(file_offset_, other.file_offset_);
    std::swap(entry_, other.entry_);
  }

  std::uintptr_t address_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t file_offset_ = 0;
  std::uint64_t entry_ = 0;
};

struct PromotionOutcome {
  Promotion promotion;
  std::string refusal;

  [[nodiscard]] bool ok() const { return refusal.empty(); }
};

enum class Demotion : std::uint8_t {
  still_shared,  // another window uses the pages; nothing was done
  restored,  // private anonymous memory again at the same address, same contents; what the user had unmapped stays so
  kept,  // could not be turned back now: it stays promoted and its extent in use. A later window over it may share it
  left_to_parent,  // this is a forked child, whose copy is private already; the extent is the parent's
};

struct ReleaseOutcome {
  Demotion demotion = Demotion::restored;
  std::string reason;  // for kept
  // The extent of the whole stretch, as it was given to promote().
  std::uint64_t file_offset = 0;
  std::size_t bytes = 0;

  // True if the extent may be handed out again. Its contents are not cleared.
  [[nodiscard]] bool extent_is_free() const { return demotion == Demotion::restored; }
};

// All promotions of one context. Any thread may call; calls and fork() exclude each other.
//
// fork(): the child gets private copies of every promoted stretch at the same addresses before fork() returns in it,
// and the parent waits for that inside fork(), so that the child sees the memory as it was (peers may still write
// meanwhile). What its registry holds is its parent's. _Fork() runs no handlers, and is called by fork_bare()
// (promotion/forked_memory.hpp); a child made by a bare clone() shares the memory with its parent: not supported. The
// list of registries that the handlers go through, the report of the fork() under way and promoted_files() are mutable
// globals: pthread_atfork hands its handlers nothing.
class PromotionRegistry {
 public:
  explicit PromotionRegistry(const MapCalls& calls = library_map_calls());
  ~PromotionRegistry();  // leaves what is promoted as it is
  PromotionRegistry(const PromotionRegistry&) = delete;
  PromotionRegistry& operator=(const PromotionRegistry&) = delete;

  // Where this process maps whole files that are promoted into, offset 0 at the beginning: of that nobody gets copies.
  // Before the first promotion.
  void leave_out(const void* begin, std::size_t bytes);

  // As the free function, and says so when another window's promotion is in the way.
  [[nodiscard]] Examination examine(const void* address, std::size_t bytes, const PromotionRules& rules = {}) const;

  // A share in an existing promotion that covers the range's whole pages; an empty one if there is none. Ask before
  // examine().
  [[nodiscard]] Promotion share(const void* address, std::size_t bytes);

  // An offset congruent to the stretch's address modulo huge_page_bytes keeps memory on huge pages that was there,
  // where the kernel gives any to the file.
  //
  // Moves the stretch that examine() found into [file_offset, file_offset + bytes) of `fd` and maps that over it.
  // `file_offset` is a multiple of the page size and the file is long enough; it holds nothing there, or zeros. Pages
  // that were never touched stay so. On refusal the memory has not changed. The caller has parked its own threads and
  // no peer is copying from or to the stretch; other threads of the program may do what they like, they are held
  // meanwhile. The kernel needs room for at most 64 MiB more than the stretch takes already.
  [[nodiscard]] PromotionOutcome promote(const Examination& stretch, int fd, std::uint64_t file_offset,
                                         const PromotionRules& rules = {});

  // Gives a share back; the last one turns the memory back. Peers have stopped using the stretch, and the caller has
  // parked its own threads. Whatever comes out, `promotion` is empty afterwards.
  [[nodiscard]] ReleaseOutcome release(Promotion& promotion, const PromotionRules& rules = {});

  // Turns back what an earlier release had to keep. One outcome for each stretch tried.
  [[nodiscard]] std::vector<ReleaseOutcome> retry_releases(const PromotionRules& rules = {});

  // Until end_copies(), as many times, nothing is promoted or turned back, whose callers are told so: peers copy from
  // and to this process's memory, and know of no pages. False: some thread is about that just now.
  [[nodiscard]] bool begin_copies();
  void end_copies();

  [[nodiscard]] std::size_t promoted_bytes() const;

  // By which it looks.
  [[nodiscard]] const MapReader& maps() const { return maps_; }

 private:
  friend struct ForkHandlers;
  struct Entry;

  struct File {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
  };

  Entry* find(std::uint64_t id) const;
  bool announce(int fd, std::uint64_t device, std::uint64_t inode);
  ReleaseOutcome demote(Entry& entry, const PromotionRules& rules);
  std::string refuse_copies() const;  // empty: none is under way

  const MapReader maps_;
  mutable std::mutex mutex_;
  std::atomic<std::uint32_t> copies_under_way_{0};  // it grows under the mutex
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<File> files_;  // that promoted_files() knows from here
  Stretch left_out_;
  std::uint64_t next_id_ = 1;
  PromotionRegistry* next_registry_ = nullptr;  // guarded by the mutex of the list
};

}  // namespace farsum::os
