#include "protocol/exposure.hpp"

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

namespace {

auto first_from(std::vector<ExposedRegion>& regions, std::uint64_t offset) {
  return std::lower_bound(regions.begin(), regions.end(), offset,
                          [](const ExposedRegion& region, std::uint64_t value) { return region.offset < value; });
}

}  // namespace

void ExposureTable::set(WindowId window, std::shared_ptr<Exposure> exposure) {
  const std::unique_lock lock(mutex_);
  windows_[window] = std::move(exposure);
}

void ExposureTable::erase(WindowId window) {
  const std::unique_lock lock(mutex_);
  windows_.erase(window);
}

void ExposureTable::add(WindowId window, std::span<const ExposedRegion> regions) {
  const std::unique_lock lock(mutex_);
  Exposure& exposure = *windows_.at(window);
  std::vector<ExposedRegion>& all = exposure.regions;
  // What may find no memory comes first.
  if (all.capacity() - all.size() < regions.size()) all.reserve(std::max(2 * all.size(), all.size() + regions.size()));
  for (const ExposedRegion& region : regions) {
    all.insert(first_from(all, region.offset), region);
    exposure.has_holes = exposure.has_holes || region.has_holes;
  }
}

void ExposureTable::remove(WindowId window, std::uint64_t begin, std::uint64_t end) {
  const std::unique_lock lock(mutex_);
  Exposure& exposure = *windows_.at(window);
  exposure.regions.erase(first_from(exposure.regions, begin), first_from(exposure.regions, end));
  if (!exposure.has_holes) return;
  exposure.has_holes = std::any_of(exposure.regions.begin(), exposure.regions.end(),
                                   [](const ExposedRegion& region) { return region.has_holes; });
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

const Exposure* ExposureTable::Reading::find(WindowId window) const {
  const auto found = table_.windows_.find(window);
  return found == table_.windows_.end() ? nullptr : found->second.get();
}

}  // namespace farsum
