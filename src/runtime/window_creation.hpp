// What the files that make a window's parts share: a rank's own wish, and how a part is described to the others.
// Private to the component.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/context.hpp"
#include "runtime/window_offer.hpp"

namespace farsum {

// A rank's own wish.
struct Context::Creation {
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

// What this rank's agent serves of a window.
inline std::shared_ptr<Exposure> make_exposure(const RankWindow& own, std::uint32_t notification_slots,
                                               const std::vector<Rank>& ranks, std::uint32_t promises,
                                               std::vector<ExposedRegion> regions) {
  auto exposure = std::make_shared<Exposure>();
  exposure->regions = std::move(regions);
  std::sort(exposure->regions.begin(), exposure->regions.end(),
            [](const ExposedRegion& a, const ExposedRegion& b) { return a.offset < b.offset; });
  exposure->notifications = own.notifications();
  exposure->notification_slots = notification_slots;
  exposure->own = own;
  exposure->ranks = ranks;
  exposure->has_holes = std::any_of(exposure->regions.begin(), exposure->regions.end(),
                                    [](const ExposedRegion& region) { return region.has_holes; });
  exposure->refuses_locks = (promises & promise_no_locks) != 0;
  return exposure;
}

inline void set_note(SharedRegion& region, const std::string& note) {
  std::strncpy(region.note, note.c_str(), sizeof region.note - 1);
}

}  // namespace farsum
