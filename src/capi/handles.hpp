// Handles of the C interface: plain values that name a slot and its generation, so that a freed or made-up handle is
// recognised. The window slots are the hot ones: a handle leads to a window's views without a load.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "window/hot_window.hpp"

namespace farsum {
class Counter;
class Group;
struct WindowObject;
}  // namespace farsum

namespace farsum::capi {

inline constexpr std::uint64_t index_bits = 16;
inline constexpr std::uint64_t index_mask = (std::uint64_t{1} << index_bits) - 1;
inline constexpr std::size_t most_windows = std::size_t{1} << index_bits;
// A window's handle also says where in view_arena its views begin: the address of a target's view is then known without
// a load, which matters because no load passes a locked instruction, and the operations before and after are locked.
inline constexpr std::uint64_t view_bits = 18;
inline constexpr std::uint64_t view_mask = (std::uint64_t{1} << view_bits) - 1;
inline constexpr std::size_t most_views = std::size_t{1} << view_bits;

// One window handle. `bits` is what the program holds; 0 while the slot is free.
struct alignas(64) WindowSlot {
  std::atomic<std::uint64_t> bits{0};
  HotParts parts;  // the views' place is what the handle names
  WindowObject* object = nullptr;
  std::uint64_t generation = 0;
};
static_assert(sizeof(WindowSlot) == 64, "a handle leads to all that the hot path needs in one line");

// Hands out runs of view_arena. Threads: the caller's lock. The first run is never handed out: its views stay closed,
// so that a window for which there was no room takes the long way for every operation.
class ViewRuns {
 public:
  static constexpr std::uint64_t closed_views = 1024;

  // The first of `count` views in their initial state; 0 when there is no such run.
  std::uint64_t take(std::uint64_t count);
  void give_back(std::uint64_t first, std::uint64_t count);

 private:
  std::map<std::uint64_t, std::uint64_t> free_{
      {closed_views, most_views - closed_views}};  // first view to number of views
};

// Handles to objects that are not hot. Threads: its own lock.
template <class Object>
class HandleTable {
 public:
  std::uint64_t add(Object object) {
    const std::lock_guard lock(mutex_);
    if (vacant_.empty()) {
      // So that no slot is ever given back where there is no room to note it.
      if (vacant_.capacity() <= slots_.size()) vacant_.reserve(std::max<std::size_t>(64, 2 * slots_.size()));
      slots_.emplace_back();
      vacant_.push_back(slots_.size() - 1);
    }
    const std::size_t index = vacant_.back();
    vacant_.pop_back();
    Slot& slot = slots_[index];
    slot.object = std::move(object);
    slot.live = true;
    ++slot.generation;
    return slot.generation << slot_bits | index;
  }
  // Null when the handle does not live.
  Object* find(std::uint64_t bits) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t index = bits & slot_mask;
    if (index >= slots_.size() || !slots_[index].live || slots_[index].generation != bits >> slot_bits) return nullptr;
    return &slots_[index].object;
  }
  void remove(std::uint64_t bits) {
    const std::lock_guard lock(mutex_);
    vacate(bits & slot_mask);
  }
  // The slot of what several ranks make, taken before they meet, so that nothing of this rank's can fail once they
  // have. Given back where it is not made.
  class Reservation {
   public:
    explicit Reservation(HandleTable& table) : table_(table) {
      try {
        bits_ = table.add({});
      } catch (const std::bad_alloc&) {
        // The others are told when they meet.
      }
    }
    ~Reservation() {
      if (bits_ != 0) table_.remove(bits_);
    }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    bool lacks_memory() const { return bits_ == 0; }
    // The handle, whose slot is the object's from here on.
    std::uint64_t give_to(Object object) {
      *table_.find(bits_) = std::move(object);
      return std::exchange(bits_, 0);
    }

   private:
    HandleTable& table_;
    std::uint64_t bits_ = 0;
  };
  void clear() {
    const std::lock_guard lock(mutex_);
    for (std::size_t index = 0; index < slots_.size(); ++index) {
      if (slots_[index].live) vacate(index);
    }
  }

 private:
  struct Slot {
    Object object{};
    std::uint64_t generation = 0;
    bool live = false;
  };
  static constexpr unsigned slot_bits = 32;
  static constexpr std::uint64_t slot_mask = (std::uint64_t{1} << slot_bits) - 1;

  void vacate(std::size_t index) {
    slots_[index].live = false;
    slots_[index].object = Object{};
    vacant_.push_back(index);
  }

  std::mutex mutex_;
  // Slots stay where they are: find() hands out pointers into them.
  std::deque<Slot> slots_;
  std::vector<std::size_t> vacant_;
};

}  // namespace farsum::capi
