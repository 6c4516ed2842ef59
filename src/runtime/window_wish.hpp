// What a rank wishes of a window that is to be made, or of memory that is to be attached to one: its own part, as it
// found it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "runtime/window_offer.hpp"

namespace farsum {

struct WindowWish {
  Flavour flavour = Flavour::allocated;
  std::byte* memory = nullptr;  // adopted
  std::uint64_t bytes = 0;
  bool read_only = false;
  bool unsure = false;  // memory that need not be mapped, such as the whole address space
  // The parts of memory some of which is not there, or may not be touched, now: all of it, in order. Empty where all is
  // there.
  struct Part {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    bool is_there = false;
  };
  std::vector<Part> parts;
  Status refusal;  // what this rank finds wrong with its own part
};

}  // namespace farsum
