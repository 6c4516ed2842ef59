// Many single elements of one target in one call, on memory that is mapped here: paper 4's batched atomics. They are
// checked in one pass and applied in a second that asks for the cache lines ahead, so that misses overlap where one
// update after the other would wait for each.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.hpp"
#include "memory/apply.hpp"
#include "memory/atomicity.hpp"
#include "ops/kernels.hpp"
#include "window/hot_window.hpp"
#include "window/window_texts.hpp"

namespace farsum {

// Any thread may call.
class MappedScatter {
 public:
  // All outlive it; the agent is that of this process's threads.
  MappedScatter(const ops::KernelSet& kernels, const LockAgent& agent, const WindowTexts& texts)
      : kernels_(kernels), agent_(agent), texts_(texts) {}

  // Accumulates single elements, packed in `elements`, at `offset` plus each of `offsets`.
  struct List {
    std::uint64_t offset = 0;
    std::span<const std::int64_t> offsets;
    const void* elements = nullptr;
    ops::ElementType type = ops::ElementType::byte;
    ops::Operator op = ops::Operator::replace;
  };
  // Where the part is mapped here and the list plain; it is complete on return. False: nothing was done, take the long
  // way, which finds out what is wrong; else `status` says how it went.
  bool run(TargetView& view, std::uint32_t target, const List& list, Status& status) const;

 private:
  static bool is_plain(const TargetView& view, const List& list);
  Status run_under_locks(const TargetView& view, std::uint32_t target, const List& list) const;

  const ops::KernelSet& kernels_;
  const LockAgent& agent_;
  const WindowTexts& texts_;
};

}  // namespace farsum
