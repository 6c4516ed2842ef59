// What the ranks of a node cut from its segment, in tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/units.hpp"
#include "collectives/carry_help.hpp"

namespace farsum {

// Extents that all members see; how many are not given back.
class ExtentsOfTest {
 public:
  CarriedExtent cut(std::uint64_t bytes) {
    const std::uint64_t whole = round_up(bytes, 64);
    void* const memory = ::operator new (whole, std::align_val_t{64});
    std::memset(memory, 0, whole);
    ++open_;
    return {reinterpret_cast<std::uintptr_t>(memory), whole};
  }
  void give_back(CarriedExtent extent) {
    ::operator delete (reinterpret_cast<void*>(extent.offset), std::align_val_t{64});
    --open_;
  }
  int open() const { return open_; }

 private:
  std::atomic<int> open_{0};
};

}  // namespace farsum
