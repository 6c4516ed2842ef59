// One rank's share of the updates, generated a batch at a time. The bound on looking ahead is kept and measured here,
// and progress is shown here.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <span>

#include "look_ahead.hpp"
#include "random_stream.hpp"
#include "split.hpp"

namespace gups {

class Progress {
 public:
  // Shows nothing where `label` is null.
  Progress(const char* label, std::uint64_t total) : label_(label), total_(total) {}
  void reached(std::uint64_t done) {
    if (label_ != nullptr && std::chrono::steady_clock::now() >= next_) show(done);
  }
  // Takes the line away.
  void finish();

 private:
  void show(std::uint64_t done);

  static constexpr std::chrono::seconds gap{1};
  const char* label_;
  std::uint64_t total_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + gap;
  bool shown_ = false;
};

class Updates {
 public:
  Updates(std::uint64_t total, int rank, int ranks, Progress progress)
      : count_(Split(total, ranks).count(rank)),
        state_(random_at(Split(total, ranks).first(rank))),
        progress_(progress) {}

  // Calls apply(batch) for all updates in order, `limit` at a time. The apply returns once they are complete at their
  // targets.
  template <class Apply>
  void for_each_batch(std::uint64_t limit, Apply&& apply) {
    for (std::uint64_t done = 0; done < count_;) {
      const std::uint64_t size = std::min(limit, count_ - done);
      look_ahead_.generated(size);
      for (std::uint64_t n = 0; n < size; ++n) batch_[n] = state_ = next_random(state_);
      apply(std::span<const std::uint64_t>(batch_.data(), size));
      look_ahead_.completed(size);
      done += size;
      progress_.reached(done);
    }
    progress_.finish();
  }

  [[nodiscard]] std::uint64_t high_water() const { return look_ahead_.high_water(); }

 private:
  std::uint64_t count_;
  std::uint64_t state_;
  std::array<std::uint64_t, hpcc_look_ahead> batch_{};
  LookAhead look_ahead_;
  Progress progress_;
};

}  // namespace gups
