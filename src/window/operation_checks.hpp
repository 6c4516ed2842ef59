// What an operation must satisfy before anything is touched, whatever epoch is open, and the sentences that say so.
#pragma once

#include <cstdint>
#include <vector>

#include "protocol/operation.hpp"
#include "window/region_tables.hpp"
#include "window/window_texts.hpp"

namespace farsum {

enum WindowPromise : std::uint32_t {
  promise_single_element = 1u << 0,
  promise_no_ordering = 1u << 1,
  promise_no_locks = 1u << 2,
  promise_no_promotion = 1u << 3,
  promise_contiguous_parts = 1u << 4,
  promise_strict_epochs = 1u << 5,
  promise_network_only = 1u << 6,
};

class OperationChecks {
 public:
  // All references outlive it.
  struct Rules {
    const std::vector<std::uint64_t>& sizes;  // of the parts, one for each rank; 0 in a dynamic window
    std::uint32_t promises = 0;
    std::uint32_t notification_slots = 0;
    bool dynamic = false;
    RegionTables& regions;
    const WindowTexts& texts;
  };
  explicit OperationChecks(const Rules& rules) : rules_(rules) {}

  Status rank(const char* call, std::uint32_t target) const;
  // Of an operation at a rank of the window. `at` becomes the region where the target's bytes begin; none for an
  // operation without bytes.
  Status all(const Operation& operation, std::uint32_t target, RegionRef& at) const;

 private:
  Status elements(const Operation& operation, std::uint32_t target) const;
  // `extent` becomes that of the target's layout.
  Status layouts(const Operation& operation, std::uint32_t target, ops::Extent& extent) const;
  Status arguments(const Operation& operation, std::uint32_t target) const;
  Status range(const Operation& operation, std::uint32_t target, const ops::Extent& extent, RegionRef& at) const;

  Rules rules_;
};

}  // namespace farsum
