// Ranks and windows of Farsum's C interface, as the cases want them.
#pragma once

#include <farsum.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "common/native_ranks.hpp"

namespace bench {

class NativeWindow;

class NativeJob : public NativeRanks {
 public:
  using Window = NativeWindow;

  [[nodiscard]] double largest(double mine) const { return std::ranges::max(all_of(mine)); }
  [[nodiscard]] double smallest(double mine) const { return std::ranges::min(all_of(mine)); }
  [[nodiscard]] std::int64_t sum(std::int64_t mine) const {
    const std::vector<std::int64_t> all = all_of(mine);
    return std::accumulate(all.begin(), all.end(), std::int64_t{0});
  }
  [[nodiscard]] bool all_agree(bool mine) const { return sum(mine ? 1 : 0) == size(); }

 private:
  template <class Value>
  std::vector<Value> all_of(Value mine) const {
    std::vector<Value> all(static_cast<std::size_t>(size()));
    require(farsum_allgather(farsum_world(), &mine, all.data(), sizeof mine));
    return all;
  }
};

// Offsets are bytes. What starts or ends a window is collective.
class NativeWindow {
 public:
  NativeWindow(const NativeJob&, std::byte* user, std::size_t bytes) {
    void* memory = nullptr;
    require(user == nullptr ? farsum_window_allocate(farsum_world(), bytes, nullptr, &memory, &window_)
                            : farsum_window_adopt(farsum_world(), user, bytes, nullptr, &window_));
  }
  NativeWindow(const NativeWindow&) = delete;
  NativeWindow& operator=(const NativeWindow&) = delete;
  ~NativeWindow() { static_cast<void>(farsum_window_free(&window_)); }

  void lock_exclusive(int target) const { require(farsum_lock(window_, target, FARSUM_LOCK_EXCLUSIVE)); }
  void lock_shared(int target) const { require(farsum_lock(window_, target, FARSUM_LOCK_SHARED)); }
  void unlock(int target) const { require(farsum_unlock(window_, target)); }
  void lock_all() const { require(farsum_lock_all(window_)); }
  void unlock_all() const { require(farsum_unlock_all(window_)); }
  void flush(int target) const { require(farsum_flush(window_, target)); }
  void flush_all() const { require(farsum_flush(window_, FARSUM_ALL_RANKS)); }
  void fence() const { require(farsum_fence(window_, 0)); }
  void last_fence() const { require(farsum_fence(window_, FARSUM_FENCE_NO_SUCCEED)); }

  void put(int target, std::size_t offset, const void* from, std::size_t bytes) const {
    require(farsum_put(window_, target, offset, from, bytes));
  }
  void get(int target, std::size_t offset, void* to, std::size_t bytes) const {
    require(farsum_get(window_, target, offset, to, bytes));
  }
  [[nodiscard]] std::int64_t fetch_add(int target, std::size_t offset, std::int64_t value) const {
    std::int64_t old = 0;
    require(farsum_fetch_op(window_, target, offset, &value, &old, FARSUM_INT64, FARSUM_SUM));
    return old;
  }
  void add_one(int target, std::size_t offset) const {
    static const std::int64_t one = 1;
    require(farsum_accumulate(window_, target, offset, &one, 1, FARSUM_INT64, FARSUM_SUM));
  }
  void add_doubles(int target, const double* from, std::size_t count) const {
    require(farsum_accumulate(window_, target, 0, from, count, FARSUM_DOUBLE, FARSUM_SUM));
  }

 private:
  farsum_window window_ = {};
};

}  // namespace bench
