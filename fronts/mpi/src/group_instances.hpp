// The engine's groups of one list of ranks, made in order, so that the n-th is the same on all of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "farsum.h"
#include "farsum_embed.h"

namespace farsum::mpi {

struct GroupInstance {
  farsum_group group{};
  bool made = false;  // guarded, as `group`, by the making of its list
  std::mutex in_use;
  // On the rank that chooses, with several threads: a communicator has it for its life.
  std::atomic<bool> is_taken{false};
};

// One run of the engine. Any thread may ask: relaxed, for communicators that are freed beside the engine's end.
class EngineRun {
 public:
  // The present one. `ended` counts those that are over, and outlives this.
  explicit EngineRun(const std::atomic<std::uint64_t>& ended)
      : ended_(ended), before_(ended.load(std::memory_order_relaxed)) {}
  bool is_over() const { return ended_.load(std::memory_order_relaxed) != before_; }

 private:
  const std::atomic<std::uint64_t>& ended_;
  const std::uint64_t before_;
};

// The engine's group of one communicator and its windows, where no list keeps it. Its last owner leaves it.
struct OwnGroup : GroupInstance {
  explicit OwnGroup(const EngineRun& engine_run) : engine_run_(engine_run) {}
  OwnGroup(const OwnGroup&) = delete;
  OwnGroup& operator=(const OwnGroup&) = delete;
  // Refused where a window was left open: then the group ends with the engine, as all groups do.
  ~OwnGroup() {
    if (made && !engine_run_.is_over()) static_cast<void>(farsum_group_leave(&group));
  }

 private:
  const EngineRun engine_run_;
};

// Any thread may call. Instances stay where they are.
class GroupInstances {
 public:
  struct Unused {
    GroupInstance* instance = nullptr;  // nullptr: there is no memory for another
    std::unique_lock<std::mutex> held;  // its use, for this thread
    std::size_t count = 1;              // of instances up to it
  };
  // One that no thread uses and no communicator has.
  Unused take_unused();
  // How many there are when there should be `count`.
  std::size_t grow(std::size_t count);
  // The one at `index`, which `grow` has made room for, and all before it. `make(index, &group)` makes a group
  // together with the other ranks of the list, and says whether it could; nullptr: it could not.
  template <class Make>
  GroupInstance* made(std::size_t index, Make&& make) {
    const std::lock_guard making(making_);
    for (std::size_t i = 0;; ++i) {
      GroupInstance* const instance = at(i);
      if (!instance->made && !make(i, &instance->group)) return nullptr;
      instance->made = true;
      if (i == index) return instance;
    }
  }

 private:
  GroupInstance* at(std::size_t index);
  bool add();  // listing_ is held

  std::mutex making_;                                      // held while ranks meet to make one
  std::mutex listing_;                                     // held for moments
  std::vector<std::unique_ptr<GroupInstance>> instances_;  // guarded by listing_
};

}  // namespace farsum::mpi
