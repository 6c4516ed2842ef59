// All ranks' mutexes: further locks of a window without memory.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "runtime/held_mutexes.hpp"

namespace farsum {

struct WindowObject;

class Mutexes {
 public:
  // `object` is the window whose locks they are. `counts`: how many each rank of its group has.
  Mutexes(WindowObject& object, std::vector<std::uint32_t> counts) : object_(object), held_(std::move(counts)) {}

  WindowObject& object() const { return object_; }
  const std::vector<std::uint32_t>& counts() const { return held_.counts(); }
  Status lock(std::uint32_t rank, std::uint32_t index);
  Status unlock(std::uint32_t rank, std::uint32_t index);
  // Whether this process holds or waits for one.
  bool are_in_use() const { return held_.first_in_use().has_value(); }
  // pending, with its name, where this process holds one at the end.
  Status find_held() const;
  void unlock_all();

 private:
  WindowObject& object_;
  HeldMutexes held_;
};

}  // namespace farsum
