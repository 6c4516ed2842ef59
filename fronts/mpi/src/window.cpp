#include "window.hpp"

namespace farsum::mpi {

void WindowTable::add(Window* window) {
  const std::uintptr_t key = key_of(window->handle);
  const std::lock_guard lock(mutex_);
  Entry* entry = &buckets_[bucket_of(key)];
  // Relaxed: only writers change entries, and they hold the mutex.
  while (entry->key.load(std::memory_order_relaxed) != 0) {
    Entry* next = entry->next.load(std::memory_order_relaxed);
    if (next == nullptr) {
      next = new Entry;
      // Release: an empty entry is whole before a reader steps on it; pairs with the acquire in find.
      entry->next.store(next, std::memory_order_release);
    }
    entry = next;
  }
  entry->window.store(window, std::memory_order_relaxed);
  // Release: window and all that it holds; pairs with the acquire in find.
  entry->key.store(key, std::memory_order_release);
}

void WindowTable::remove(const Window* window) {
  const std::lock_guard lock(mutex_);
  for (Entry* entry = &buckets_[bucket_of(key_of(window->handle))]; entry != nullptr;
       entry = entry->next.load(std::memory_order_relaxed)) {
    if (entry->window.load(std::memory_order_relaxed) != window) continue;
    entry->key.store(0, std::memory_order_relaxed);
    entry->window.store(nullptr, std::memory_order_relaxed);
  }
}

std::vector<Window*> WindowTable::all() const {
  std::vector<Window*> windows;
  const std::lock_guard lock(mutex_);
  for (const Entry& bucket : buckets_) {
    for (const Entry* entry = &bucket; entry != nullptr; entry = entry->next.load(std::memory_order_relaxed)) {
      if (Window* window = entry->window.load(std::memory_order_relaxed)) windows.push_back(window);
    }
  }
  return windows;
}

}  // namespace farsum::mpi
