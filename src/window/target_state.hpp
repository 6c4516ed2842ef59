// What a window keeps of one target for the operations that go there, beside what the hot path reads (hot_window.hpp):
// all that a short operation at a rank of another node asks, in one line of memory. Each field is written by the one
// part that its comment names; the others read it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.hpp"
#include "protocol/origin/hearing.hpp"
#include "window/region_tables.hpp"

namespace farsum {

struct alignas(cache_line_bytes) TargetState {
  // The bytes of the part, where Window::update_remote has nothing more to ask of its regions; else 0. Set with the hot
  // views.
  std::uint64_t remote_bytes = 0;
  // The region where Window::may_update_by_copy has nothing more to ask of the part; else null. Set with the hot views.
  const Region* copied = nullptr;
  // PostEpochs: an epoch of start includes the target, whose post has not been seen.
  std::atomic<bool> awaits_post{false};
  // RemoteLocks: nobody has looked for the answer since the lock was asked for.
  std::atomic<bool> lock_is_unsure{false};
  // OrderMarks: farsum_order was called since the last flush.
  std::atomic<bool> ordered{false};
  // Window, and whoever finishes an operation without it: what this process has changed there.
  UnheardChanges changes;
};
static_assert(sizeof(TargetState) == cache_line_bytes);

// Which targets farsum_order was called for since their last flush. Relaxed throughout: a thread's own calls count.
class OrderMarks {
 public:
  OrderMarks(TargetState* states, std::uint32_t size) : states_(states), size_(size) {}

  void mark_all() {
    for (std::uint32_t target = 0; target < size_; ++target)
      states_[target].ordered.store(true, std::memory_order_relaxed);
  }
  bool is_marked(std::uint32_t target) const { return states_[target].ordered.load(std::memory_order_relaxed); }
  // Whether it was marked; it is not any more.
  bool take(std::uint32_t target) {
    return is_marked(target) && states_[target].ordered.exchange(false, std::memory_order_relaxed);
  }
  void clear(std::uint32_t target) { states_[target].ordered.store(false, std::memory_order_relaxed); }

 private:
  TargetState* states_;
  std::uint32_t size_;
};

}  // namespace farsum
