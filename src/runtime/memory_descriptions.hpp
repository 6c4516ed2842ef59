// How memory of this rank that a window exposes is found and described: to the others (SharedRegion), and to the agent
// that serves it (ExposedRegion).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "memory/atomicity.hpp"
#include "os/memory_map.hpp"
#include "promotion/promotion.hpp"
#include "protocol/exposure.hpp"
#include "protocol/window_shared.hpp"
#include "runtime/own_node.hpp"
#include "runtime/window_wish.hpp"

namespace farsum {

// The same memory, once for each.
struct DescribedMemory {
  std::vector<SharedRegion> shared;
  std::vector<ExposedRegion> exposed;
};

void set_note(SharedRegion& region, const std::string& note);

// Any thread may call.
class MemoryDescriptions {
 public:
  MemoryDescriptions(OwnNode& node, const os::MapReader& maps) : node_(node), maps_(maps) {}

  // Under what locks memory of this process is that no promise sets apart.
  AtomicDomain domain_of(const void* memory) const;
  // Finds out what is there of memory that a program exposes. It refuses only what nobody could read a byte of:
  // libraries take any range, and programs make pages accessible when they need them.
  Status look_at(WindowWish& wish, const char* call) const;
  // Describes all of the memory. What is there now is as other memory; what is not, nobody touches but through the
  // kernel.
  void describe(const WindowWish& wish, const std::string& note, DescribedMemory& all) const;
  // The same where some of it is promoted.
  void describe_promoted(const WindowWish& wish, const os::Promotion& promotion, DescribedMemory& all) const;

 private:
  // [from, to) of the wish's memory, and what is told of it.
  struct Stretch {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    const std::string& note;
    bool atomics_only = false;
  };
  void describe_adopted(const WindowWish& wish, const Stretch& stretch, DescribedMemory& all) const;
  void describe_stretch(const WindowWish& wish, const Stretch& stretch, DescribedMemory& all) const;

  OwnNode& node_;
  const os::MapReader& maps_;
};

}  // namespace farsum
