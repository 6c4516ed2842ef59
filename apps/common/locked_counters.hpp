// The counters that others built before there was fetch-and-add in MPI: several words at one rank, under an exclusive
// lock. They hand out every ticket once, as farsum_counter does, and are here to be compared with it.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "farsum.h"

namespace apps {

// The words of such a counter, at rank `home` of the world. Creating, resetting and freeing are collective; statuses
// are Farsum's. One thread of a rank draws at a time.
class LockedWords {
 public:
  farsum_status create(int home, std::uint64_t count) {
    home_ = home;
    farsum_status status = farsum_rank(farsum_world(), &rank_);
    if (status == FARSUM_OK) status = farsum_size(farsum_world(), &size_);
    if (status != FARSUM_OK) return status;
    bytes_ = rank_ == home ? count * sizeof(std::uint64_t) : 0;
    farsum_window_options options{};
    options.struct_bytes = sizeof options;
    options.name = "locked counter";
    return farsum_window_allocate(farsum_world(), bytes_, &options, &memory_, &window_);
  }

  farsum_status reset() {
    farsum_status status = farsum_barrier(farsum_world());
    if (status != FARSUM_OK) return status;
    if (bytes_ != 0) std::memset(memory_, 0, bytes_);
    return farsum_barrier(farsum_world());
  }

  farsum_status free() { return farsum_window_free(&window_); }

  // Calls draw() under the lock; what it gets is there afterwards.
  template <class Draw>
  farsum_status under_lock(Draw&& draw) {
    if (const farsum_status status = farsum_lock(window_, home_, FARSUM_LOCK_EXCLUSIVE); status != FARSUM_OK)
      return status;
    const farsum_status drawn = draw();
    const farsum_status unlocked = farsum_unlock(window_, home_);
    return drawn == FARSUM_OK ? unlocked : drawn;
  }

  farsum_status get(std::uint64_t first, std::uint64_t count, std::uint64_t* into) {
    if (count == 0) return FARSUM_OK;
    return farsum_get(window_, home_, first * sizeof *into, into, count * sizeof *into);
  }
  farsum_status put(std::uint64_t index, const std::uint64_t& word) {
    return farsum_put(window_, home_, index * sizeof word, &word, sizeof word);
  }
  farsum_status add(std::uint64_t index, const std::uint64_t& amount) {
    return farsum_accumulate(window_, home_, index * sizeof amount, &amount, 1, FARSUM_UINT64, FARSUM_SUM);
  }

  [[nodiscard]] std::uint64_t rank() const { return static_cast<std::uint64_t>(rank_); }
  [[nodiscard]] std::uint64_t size() const { return static_cast<std::uint64_t>(size_); }

 private:
  farsum_window window_{};
  void* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
  int home_ = 0;
  int rank_ = 0;
  int size_ = 1;
};

// What both have: their words, and how many tickets this rank has drawn since the last reset.
class LockedCounter {
 public:
  farsum_status reset() {
    taken_ = 0;
    return words_.reset();
  }
  farsum_status free() { return words_.free(); }

 protected:
  LockedWords words_;
  std::uint64_t taken_ = 0;
};

// A word for each rank, which it alone writes: it gets all others', puts its own one higher, and its ticket is the sum.
// (Van Dam and others, get_task.)
class PerRankCounter : public LockedCounter {
 public:
  farsum_status create(int home) {
    int size = 0;
    const farsum_status status = farsum_size(farsum_world(), &size);
    return status == FARSUM_OK ? words_.create(home, static_cast<std::uint64_t>(size)) : status;
  }

  farsum_status next(std::uint64_t* ticket) {
    const std::uint64_t me = words_.rank();
    const std::uint64_t mine = taken_ + 1;
    std::vector<std::uint64_t> words(words_.size(), 0);
    const farsum_status status = words_.under_lock([&] {
      farsum_status step = words_.get(0, me, words.data());
      if (step == FARSUM_OK) step = words_.get(me + 1, words.size() - me - 1, words.data() + me + 1);
      return step == FARSUM_OK ? words_.put(me, mine) : step;
    });
    if (status != FARSUM_OK) return status;
    *ticket = taken_;
    for (const std::uint64_t word : words) *ticket += word;
    taken_ = mine;
    return FARSUM_OK;
  }
};

// A binary tree whose every node holds the tickets drawn below it, the leaves being ranks; word 1 is the root. A rank
// adds one to the nodes on its way up and gets only their siblings, which with its own tickets make the total. (Gropp,
// Lusk, Thakur: Using MPI-2, fetchandadd_tree.)
class TreeCounter : public LockedCounter {
 public:
  farsum_status create(int home) {
    int size = 0;
    const farsum_status status = farsum_size(farsum_world(), &size);
    if (status != FARSUM_OK) return status;
    leaves_ = std::bit_ceil(static_cast<std::uint64_t>(size));
    return words_.create(home, 2 * leaves_);
  }

  farsum_status next(std::uint64_t* ticket) {
    const std::uint64_t one = 1;
    std::vector<std::uint64_t> siblings(static_cast<std::size_t>(std::countr_zero(leaves_)), 0);
    const farsum_status status = words_.under_lock([&] {
      std::size_t level = 0;
      farsum_status step = FARSUM_OK;
      for (std::uint64_t node = leaves_ + words_.rank(); node > 1 && step == FARSUM_OK; node /= 2) {
        step = words_.get(node ^ 1, 1, &siblings[level++]);
        if (step == FARSUM_OK) step = words_.add(node, one);
      }
      return step;
    });
    if (status != FARSUM_OK) return status;
    *ticket = taken_++;
    for (const std::uint64_t sibling : siblings) *ticket += sibling;
    return FARSUM_OK;
  }

 private:
  std::uint64_t leaves_ = 1;
};

}  // namespace apps
