// Which mutexes of a set this process holds, so that it neither waits for itself nor unlocks another's. It locks
// nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace farsum {

// Any thread may call. Relaxed throughout: only this process's threads write the states, and the locks themselves order
// what they guard.
class HeldMutexes {
 public:
  // Of a set, a rank of the group and a number among that rank's.
  struct Name {
    std::uint32_t rank = 0;
    std::uint32_t index = 0;
  };
  enum class State : std::uint8_t { free, changing, held };

  // `counts`: how many each rank of the group has.
  explicit HeldMutexes(std::vector<std::uint32_t> counts);

  const std::vector<std::uint32_t>& counts() const { return counts_; }
  // Begins to change one that is `from`; false where it is not.
  bool begin_change(Name name, State from) {
    return of(name).compare_exchange_strong(from, State::changing, std::memory_order_relaxed);
  }
  void end_change(Name name, State now) { of(name).store(now, std::memory_order_relaxed); }
  // The first that is held or about to be; none: this process has nothing to do with any.
  std::optional<Name> first_in_use() const;

 private:
  std::atomic<State>& of(Name name) { return states_[first_[name.rank] + name.index]; }

  std::vector<std::uint32_t> counts_;
  std::vector<std::uint64_t> first_;  // index in `states_` of each rank's first
  std::vector<std::atomic<State>> states_;
};

}  // namespace farsum
