#include "runtime/window_registry.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace farsum {

void WindowRegistry::keep_place() {
  const MutexGuard lock(mutex_);
  const std::size_t needed = living_.size() + being_made_ + 1;
  if (living_.capacity() < needed) living_.reserve(std::max(needed, 2 * living_.capacity()));
  ++being_made_;
}

void WindowRegistry::give_place_back() {
  const MutexGuard lock(mutex_);
  --being_made_;
}

WindowObject* WindowRegistry::add(std::unique_ptr<WindowObject> object) {
  const MutexGuard lock(mutex_);
  living_.push_back(std::move(object));
  return living_.back().get();
}

std::unique_ptr<WindowObject> WindowRegistry::take(const WindowObject* object) {
  const MutexGuard lock(mutex_);
  retired_ += object->window->hot_traffic();
  const auto place =
      std::find_if(living_.begin(), living_.end(), [object](const auto& other) { return other.get() == object; });
  std::unique_ptr<WindowObject> taken = std::move(*place);
  std::swap(*place, living_.back());
  living_.pop_back();
  return taken;
}

void WindowRegistry::keep_left(std::unique_ptr<WindowObject> object) {
  const MutexGuard lock(mutex_);
  left_.push_back(std::move(object));
}

std::vector<std::unique_ptr<WindowObject>> WindowRegistry::take_ended() {
  std::vector<std::unique_ptr<WindowObject>> ended;
  const MutexGuard lock(mutex_);
  const auto rest = std::stable_partition(left_.begin(), left_.end(),
                                          [](const auto& object) { return !object->teardown->all_ended_access(); });
  std::move(rest, left_.end(), std::back_inserter(ended));
  left_.erase(rest, left_.end());
  return ended;
}

Traffic WindowRegistry::hot_traffic() {
  const MutexGuard lock(mutex_);
  Traffic hot = retired_;
  for (const std::unique_ptr<WindowObject>& object : living_) hot += object->window->hot_traffic();
  return hot;
}

}  // namespace farsum
