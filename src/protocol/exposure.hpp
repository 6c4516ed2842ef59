// What this process exposes to others: per window a sorted table of regions. The agent reads it while it serves; the
// application's threads change it when windows are made and freed and memory is attached and detached.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "memory/atomicity.hpp"
#include "protocol/window_shared.hpp"

namespace farsum {

struct ExposedRegion {
  std::uint64_t offset = 0;  // within the window (an address in a dynamic one)
  std::uint64_t bytes = 0;
  std::byte* memory = nullptr;
  AtomicDomain domain;
  // The user may free it at any time: it is touched through the kernel, which answers instead of faulting.
  bool guarded = false;
  bool read_only = false;
  bool for_cards = false;  // nothing else touches it: no request finds it
  bool has_holes = false;  // pages of it may not be there: looked for before any of a request is applied
};

struct Exposure {
  std::vector<ExposedRegion> regions;  // sorted by offset, disjoint
  std::atomic<std::uint64_t>* notifications = nullptr;
  std::uint32_t notification_slots = 0;
  // What ranks of other nodes reach by messages only, and who they may be: of the job, by rank of the window's group.
  RankWindow own;
  std::vector<Rank> ranks;
  bool refuses_locks = false;  // the window's promise
  bool has_holes = false;      // some region does

  // The region that holds [offset, offset + bytes) whole; null when none does.
  const ExposedRegion* find(std::uint64_t offset, std::uint64_t bytes) const;
  // The region that holds the byte at `offset`.
  const ExposedRegion* find_first(std::uint64_t offset) const;
};

class ExposureTable {
 public:
  // Replaces what `window` exposes. Waits for the request being served.
  void set(WindowId window, std::shared_ptr<Exposure> exposure);
  void erase(WindowId window);
  // Adds regions, which overlap none, to a window that is set: all or, where there is no memory for them, none. A
  // region above all others costs the same however many there are. Waits for the request being served.
  void add(WindowId window, std::span<const ExposedRegion> regions);
  // Removes the regions that begin in [begin, end).
  void remove(WindowId window, std::uint64_t begin, std::uint64_t end);
  // While the answer lives the agent serves nothing; waits for the request being served.
  std::unique_lock<std::shared_mutex> pause() { return std::unique_lock(mutex_); }
  // Whether any window exposes memory in [address, address + bytes). Called under pause().
  bool overlaps(std::uintptr_t address, std::uint64_t bytes) const;

  // Held while one request is served, so that memory is not withdrawn under it. It never waits: got() is false while a
  // change is under way.
  class Reading {
   public:
    explicit Reading(const ExposureTable& table) : table_(table), lock_(table.mutex_, std::try_to_lock) {}
    bool got() const { return lock_.owns_lock(); }
    const Exposure* find(WindowId window) const;

   private:
    const ExposureTable& table_;
    std::shared_lock<std::shared_mutex> lock_;
  };

 private:
  mutable std::shared_mutex mutex_;
  std::map<WindowId, std::shared_ptr<Exposure>> windows_;
};

}  // namespace farsum
