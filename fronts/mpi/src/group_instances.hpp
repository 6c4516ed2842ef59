// The engine's groups of one list of ranks, made in order, so that the n-th is the same on all of them.
#pragma once

#include <atomic>
#include <cstddef>
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

// Of one communicator and the windows made over it, and of no list: the last of them to go leaves the engine's group.
struct OwnGroup : GroupInstance {
  OwnGroup() = default;
  OwnGroup(const OwnGroup&) = delete;
  OwnGroup& operator=(const OwnGroup&) = delete;
  // Refused where a window was left open: then the group ends with the engine.
  ~OwnGroup() {
    if (made) static_cast<void>(farsum_group_leave(&group));
  }
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
