#include "core/exposure.hpp"

#include <algorithm>
#include <mutex>

namespace farsum {

const ExposedRegion* Exposure::find_first(std::uint64_t offset) const {
  auto after = std::upper_bound(regions.begin(), regions.end(), offset,
                                [](std::uint64_t value, const ExposedRegion& region) { return value < region.offset; });
  if (after == regions.begin()) return nullptr;
  const ExposedRegion& region = *std::prev(after);
  return offset - region.offset < region.bytes && !region.for_cards ? &region : nullptr;
}

const ExposedRegion* Exposure::find(std::uint64_t offset, std::uint64_t bytes) const {
  const ExposedRegion* region = find_first(offset);
  return region != nullptr && bytes <= region->bytes - (offset - region->offset) ? region : nullptr;
}

bool Exposure::covers(std::uint64_t offset, std::uint64_t bytes) const {
  while (bytes != 0) {
    const ExposedRegion* region = find_first(offset);
    if (region == nullptr) return false;
    const std::uint64_t here = std::min(bytes, region->bytes - (offset - region->offset));
    offset += here;
    bytes -= here;
  }
  return true;
}

void ExposureTable::set(WindowId window, std::shared_ptr<const Exposure> exposure) {
  const std::unique_lock lock(mutex_);
  windows_[window] = std::move(exposure);
}

void ExposureTable::erase(WindowId window) {
  const std::unique_lock lock(mutex_);
  windows_.erase(window);
}

bool ExposureTable::overlaps(std::uintptr_t address, std::uint64_t bytes) const {
  for (const auto& [window, exposure] : windows_) {
    for (const ExposedRegion& region : exposure->regions) {
      const auto begin = reinterpret_cast<std::uintptr_t>(region.memory);
      if (begin < address + bytes && address < begin + region.bytes) return true;
    }
  }
  return false;
}

std::vector<ExposedRegion> ExposureTable::regions(WindowId window) const {
  const std::shared_lock lock(mutex_);
  const auto found = windows_.find(window);
  return found == windows_.end() ? std::vector<ExposedRegion>() : found->second->regions;
}

const Exposure* ExposureTable::Reading::find(WindowId window) const {
  const auto found = table_.windows_.find(window);
  return found == table_.windows_.end() ? nullptr : found->second.get();
}

}  // namespace farsum
