// The path on memory that is mapped here: the caller moves or computes, row by row where layouts have rows.
#pragma once

#include <cstdint>

#include "memory/apply.hpp"
#include "memory/atomicity.hpp"
#include "ops/kernels.hpp"
#include "protocol/operation.hpp"
#include "window/region_tables.hpp"
#include "window/window_texts.hpp"

namespace farsum {

class MappedPath {
 public:
  // All outlive it; the agent is that of this process's threads.
  MappedPath(const ops::KernelSet& kernels, const LockAgent& agent, const WindowTexts& texts)
      : kernels_(kernels), agent_(agent), texts_(texts) {}

  // The operation has been checked and lies in the region as a whole. It is complete on return.
  Status run(const Operation& operation, std::uint32_t target, const Region& region) const;

 private:
  Status reduce(const Operation& operation, std::uint32_t target, const Region& region) const;

  const ops::KernelSet& kernels_;
  const LockAgent& agent_;
  const WindowTexts& texts_;
};

}  // namespace farsum
