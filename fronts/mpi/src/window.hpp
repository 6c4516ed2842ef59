// A window of the front, and the way from its MPI handle to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "farsum.h"
#include "group_instances.hpp"
#include "library.hpp"

namespace farsum::mpi {

// Made by creation, freed by MPI_Win_free; read by any thread meanwhile.
struct Window {
  farsum_window engine{};
  std::vector<std::uint64_t> units;  // displacement unit of each rank, in bytes
  MPI_Win handle = MPI_WIN_NULL;     // of the backing window, which carries name, attributes and error handler
  int size = 0;
  int rank = 0;
  MPI_Group group = MPI_GROUP_NULL;
  std::shared_ptr<OwnGroup> own_group;  // of the engine, which the window keeps; null: a list of ranks keeps it
  // What the attributes point at.
  void* base = nullptr;
  MPI_Aint bytes = 0;
  int disp_unit = 1;
  int flavor = 0;
  bool has_contiguous_parts = false;  // one behind the other, without a gap
  int model = MPI_WIN_UNIFIED;
  bool may_be_freed = false;  // MPI_Win_free has met the other ranks
  // The program has set a name, an attribute or an error handler on the handle. Relaxed: its free comes after that.
  std::atomic<bool> carries_something{false};

  // That the library supports, in a program of sessions, whose communicators differ.
  std::optional<std::string> memory_kinds;

  std::mutex info_mutex;
  std::map<std::string, std::string> info;
};

// From handle to window. Look-ups take no lock and run beside creations and frees of other windows.
class WindowTable {
 public:
  // nullptr: not a window of the front's.
  Window* find(MPI_Win handle) const {
    const std::uintptr_t key = key_of(handle);
    // Acquire pairs with the release in add: the window is whole.
    for (const Entry* entry = &buckets_[bucket_of(key)]; entry != nullptr;
         entry = entry->next.load(std::memory_order_acquire)) {
      if (entry->key.load(std::memory_order_acquire) == key) return entry->window.load(std::memory_order_relaxed);
    }
    return nullptr;
  }

  void add(Window* window);
  void remove(const Window* window);
  std::vector<Window*> all() const;

 private:
  // Entries are used again, never freed: a reader may stand on any of them.
  struct Entry {
    std::atomic<std::uintptr_t> key{0};  // 0: free; no library uses the zero handle for a window
    std::atomic<Window*> window{nullptr};
    std::atomic<Entry*> next{nullptr};
  };
  static constexpr unsigned bucket_bits = 12;

  static std::uintptr_t key_of(MPI_Win handle) {
    if constexpr (sizeof(MPI_Win) == sizeof(int)) {
      return static_cast<std::uintptr_t>(static_cast<unsigned>((std::intptr_t)handle));
    } else {
      return (std::uintptr_t)handle;
    }
  }
  static std::size_t bucket_of(std::uintptr_t key) {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15u) >> (64 - bucket_bits));
  }

  mutable std::mutex mutex_;  // of writers
  Entry buckets_[std::size_t{1} << bucket_bits];
};

}  // namespace farsum::mpi
