// The ranks of Farsum's C interface in a benchmark: begun and ended, and what ends them where a call fails.
#pragma once

#include <farsum.h>

#include <string>

#include "common/end_rank.hpp"

namespace bench {

inline void require(farsum_status status) {
  if (status != FARSUM_OK) end_rank(farsum_last_error());
}

class NativeRanks {
 public:
  NativeRanks() {
    require(farsum_init(nullptr));
    require(farsum_rank(farsum_world(), &rank_));
    require(farsum_size(farsum_world(), &size_));
  }
  NativeRanks(const NativeRanks&) = delete;
  NativeRanks& operator=(const NativeRanks&) = delete;
  ~NativeRanks() { static_cast<void>(farsum_finalize()); }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  static void barrier() { require(farsum_barrier(farsum_world())); }
  [[noreturn]] static void fail(const std::string& what) { end_rank(what); }

 private:
  int rank_ = 0;
  int size_ = 0;
};

}  // namespace bench
