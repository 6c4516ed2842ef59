// What the models of the shared lock have in common.
#pragma once

#include <cstdint>

#include "lockfree/shared_lock.hpp"
#include "model_check.hpp"

namespace farsum::model {

// Ids are threads plus one.
struct ExplorerKnowsTheDead {
  bool operator()(std::uint32_t id) const { return Explorer::current->is_dead(id - 1); }
};

template <class Policy>
struct alignas(64) SlotOnItsLine {
  BasicLockSlot<Policy> slot;
};

// Plain data under the lock: a race is a writer beside anybody else.
template <class Policy>
void touch(std::uint32_t& data, LockMode mode) {
  if (mode == LockMode::exclusive) {
    Policy::writes(&data, sizeof data);
    ++data;
  } else {
    Policy::reads(&data, sizeof data);
  }
}

}  // namespace farsum::model
