#include "group_instances.hpp"

#include <new>

namespace farsum::mpi {

GroupInstances::Unused GroupInstances::take_unused() {
  Unused found;
  const std::lock_guard lock(listing_);
  for (found.count = 1; found.count <= instances_.size(); ++found.count) {
    GroupInstance& instance = *instances_[found.count - 1];
    std::unique_lock use(instance.in_use, std::try_to_lock);
    // Acquire pairs with the release in CommunicatorBindings::unbind.
    if (!use.owns_lock() || instance.is_taken.load(std::memory_order_acquire)) continue;
    found.instance = &instance;
    found.held = std::move(use);
    return found;
  }
  if (!add()) return found;
  found.instance = instances_.back().get();
  // It is free, for nobody has seen it yet. ThreadSanitizer takes a plain lock for the wrong order: who holds an
  // instance may want `listing_`.
  found.held = std::unique_lock(found.instance->in_use, std::try_to_lock);
  return found;
}

std::size_t GroupInstances::grow(std::size_t count) {
  const std::lock_guard lock(listing_);
  while (instances_.size() < count && add()) {
  }
  return instances_.size();
}

bool GroupInstances::add() {
  try {
    instances_.push_back(std::make_unique<GroupInstance>());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

GroupInstance* GroupInstances::at(std::size_t index) {
  const std::lock_guard lock(listing_);
  return instances_[index].get();
}

}  // namespace farsum::mpi
