// How often a process has, or may have, heard what other ranks did.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.hpp"

namespace farsum {

// Every call that synchronises with other ranks counts before it returns: what was copied of others' memory before it
// answers no reads after it. Any thread may call.
class alignas(cache_line_bytes) Hearing {
 public:
  // seq_cst, here and below: a thread that was told by another of its process finds no copy from before either.
  void hear() { times_.fetch_add(1, std::memory_order_seq_cst); }
  std::uint64_t times() const { return times_.load(std::memory_order_seq_cst); }

 private:
  std::atomic<std::uint64_t> times_{1};
};

// What a process has changed, and of how much of it it has flushed and then heard: whoever tells others, and then looks
// what they tell, finds no copy from before. Any thread may call.
class UnheardChanges {
 public:
  // A change was handed on. Release pairs with made(): a flush that reads the number before it waits waits for the
  // change.
  void count() { made_.fetch_add(1, std::memory_order_release); }
  std::uint64_t made() const { return made_.load(std::memory_order_acquire); }
  // Whether so many were not heard of yet. Acquire pairs with note_heard: else the hearing has come before.
  bool are_unheard(std::uint64_t made) const { return heard_.load(std::memory_order_acquire) < made; }
  // So many changes, read by made() before they were flushed, have been heard of.
  void note_heard(std::uint64_t made) {
    std::uint64_t before = heard_.load(std::memory_order_relaxed);  // a first guess
    while (before < made &&
           !heard_.compare_exchange_weak(before, made, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

 private:
  std::atomic<std::uint64_t> made_{0};
  std::atomic<std::uint64_t> heard_{0};
};

}  // namespace farsum
