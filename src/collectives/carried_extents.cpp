#include "collectives/carried_extents.hpp"

#include <new>

namespace farsum {

// Of a broken group nobody knows who has fetched what. The first rank has the word by the time that the outcome of a
// call is there which another one has given up, for both come from the same walk.
void CarriedExtents::let_go(const CarriedRequest& request) {
  count_fetched_again();
  if (request.found.breaks_group() || (memory_.is_first() && memory_.broken().found())) {
    const MutexGuard lock(keeping_);
    return keep(kept_, request.own);
  }
  if (!memory_.is_first() && request.own.bytes != 0) help_.release(request.own);
  if (count_fetched(request.all)) return;
  const MutexGuard lock(keeping_);
  keep(uncounted_, request.all);
  // Relaxed: what it tells of is guarded.
  has_uncounted_.store(true, std::memory_order_relaxed);
}

// Where there is no memory to remember it, it stays allocated for good.
void CarriedExtents::keep(std::vector<CarriedExtent>& among, const CarriedExtent& extent) {
  if (extent.bytes == 0) return;
  try {
    among.push_back(extent);
  } catch (const std::bad_alloc&) {
  }
}

// False where its head cannot be mapped here now.
bool CarriedExtents::count_fetched(const CarriedExtent& all) {
  if (all.bytes == 0) return true;
  std::byte* const head = help_.reach({all.offset, sizeof(CarriedExtentHead)});
  if (head == nullptr) return false;
  // Acquire and release: the last comes after all have copied what they get.
  auto& fetched = reinterpret_cast<CarriedExtentHead*>(head)->fetched;
  if (fetched.fetch_add(1, std::memory_order_acq_rel) + 1 == memory_.ranks()) help_.release(all);
  return true;
}

void CarriedExtents::count_fetched_again() {
  if (!has_uncounted_.load(std::memory_order_relaxed)) return;
  const MutexGuard lock(keeping_);
  std::erase_if(uncounted_, [this](const CarriedExtent& all) { return count_fetched(all); });
  has_uncounted_.store(!uncounted_.empty(), std::memory_order_relaxed);
}

void CarriedExtents::give_back_kept() {
  count_fetched_again();
  const MutexGuard lock(keeping_);
  for (const CarriedExtent& extent : kept_) help_.release(extent);
  kept_.clear();
}

}  // namespace farsum
