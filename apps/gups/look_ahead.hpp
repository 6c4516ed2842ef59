// Counts the updates that a process has generated and that are not yet complete at their target, over all targets. HPCC
// allows 1024.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace gups {

constexpr std::uint64_t hpcc_look_ahead = 1024;

class LookAhead {
 public:
  void generated(std::uint64_t updates) {
    pending_ += updates;
    if (pending_ > high_water_) high_water_ = pending_;
    if (pending_ > hpcc_look_ahead) throw std::logic_error("more than 1024 updates were looked ahead");
  }
  // Called once they have been flushed, or the epoch that held them is closed.
  void completed(std::uint64_t updates) { pending_ -= updates; }

  [[nodiscard]] std::uint64_t high_water() const { return high_water_; }

 private:
  std::uint64_t pending_ = 0;
  std::uint64_t high_water_ = 0;
};

}  // namespace gups
