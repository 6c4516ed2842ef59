// The words that say of each target which access epoch includes it (TargetView::open, see AccessEpoch): who may change
// one, and in which memory order. What an epoch asks of the window as a whole is in epoch_rules.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "window/hot_window.hpp"

namespace farsum {

class EpochWords {
 public:
  EpochWords(TargetView* views, std::uint32_t size) : views_(views), size_(size) {}

  std::uint32_t size() const { return size_; }
  // Relaxed: see HotWindow::find.
  std::int32_t of(std::uint32_t target) const { return views_[target].open.load(std::memory_order_relaxed); }
  bool includes(std::uint32_t target) const { return of(target) > no_epoch; }
  bool is_with_all(std::uint32_t target) const { return of(target) == locked_with_all; }
  // Locks that are held, or being taken or given back.
  std::uint32_t locks_held() const {
    // Relaxed: a lock that another thread takes meanwhile is refused or refuses by the word itself.
    return static_cast<std::uint32_t>(std::count_if(views_, views_ + size_, [](const TargetView& view) {
      const std::int32_t open = view.open.load(std::memory_order_relaxed);
      return open == epoch_changing || open >= passive_epoch;
    }));
  }

  // Begins an epoch without a lock; false where there is one. Acquire pairs with the release in close, whatever thread
  // that was on.
  bool open(std::uint32_t target, AccessEpoch epoch) { return swap(target, no_epoch, epoch); }
  // Changes the word to epoch_changing where no guard orders threads, or no other thread goes by the guard while it is
  // `from`; false where it is not. Acquire: see open.
  bool claim_by_swap(std::uint32_t target, std::int32_t from) { return swap(target, from, epoch_changing); }
  // The same under the guard of the target's lock, which orders it: plain loads and stores, as those of HotWindow::lock
  // and unlock.
  bool claim(std::uint32_t target, std::int32_t from) {
    if (of(target) != from) return false;
    set(target, epoch_changing);
    return true;
  }
  // By who owns the word. Relaxed: for this thread, or for one that the program orders after it.
  void set(std::uint32_t target, std::int32_t open) { views_[target].open.store(open, std::memory_order_relaxed); }
  void close(std::uint32_t target) { views_[target].open.store(no_epoch, std::memory_order_release); }

  // All words from no_epoch to locked_with_all, or none. No guard orders threads that lock the same target meanwhile:
  // one that has found the word free, and has yet to write it, overwrites what is written here. Both hold the target
  // shared then, each in its own way; the word is that of who has locked the target alone, and free once that is
  // unlocked.
  bool open_with_all() {
    for (std::uint32_t target = 0; target < size_; ++target) {
      if (swap(target, no_epoch, locked_with_all)) continue;
      close_with_all(target);
      return false;
    }
    return true;
  }
  // Of the targets before `end`; words of other epochs stay as they are. Release as in close.
  void close_with_all(std::uint32_t end) {
    for (std::uint32_t target = 0; target < end; ++target) {
      std::int32_t open = locked_with_all;
      views_[target].open.compare_exchange_strong(open, no_epoch, std::memory_order_release, std::memory_order_relaxed);
    }
  }

  // Whether the window as a whole allows locks now. Relaxed: see HotWindow::lock.
  void allow_locks(bool allowed) { views_[0].locks_allowed.store(allowed, std::memory_order_relaxed); }

 private:
  bool swap(std::uint32_t target, std::int32_t from, std::int32_t to) {
    return views_[target].open.compare_exchange_strong(from, to, std::memory_order_acquire, std::memory_order_relaxed);
  }

  TargetView* views_;
  std::uint32_t size_;
};

}  // namespace farsum
