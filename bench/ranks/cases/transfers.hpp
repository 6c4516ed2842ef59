// Puts and gets of much, each rank with the next.
#pragma once

#include "ranks/cases/case.hpp"

namespace ranks {

template <class Job>
class RingTransfers : public Case<Job> {
 public:
  enum class Way { put, get };

  RingTransfers(const Job& job, const std::string& variant, Way way, std::size_t bytes)
      : job_(job),
        way_(way),
        bytes_(bytes),
        next_((job.rank() + 1) % job.size()),
        table_(job, variant, bytes),
        buffer_(new_user_memory(bytes)) {}

  bool is_right(long operations) override {
    const int before = (job_.rank() + job_.size() - 1) % job_.size();
    fill(job_.rank());
    if (way_ == Way::get) {
      table_.window().put(job_.rank(), 0, buffer_.get(), bytes_);
      table_.window().flush(job_.rank());
    }
    job_.barrier();
    run(operations);
    job_.barrier();
    if (way_ == Way::put) table_.read_own(buffer_.get(), bytes_);
    return job_.all_agree(holds_pattern_of(way_ == Way::put ? before : next_));
  }
  double run(long operations) override {
    return timed(operations, [&](long) {
      if (way_ == Way::put)
        table_.window().put(next_, 0, buffer_.get(), bytes_);
      else
        table_.window().get(next_, 0, buffer_.get(), bytes_);
      table_.window().flush(next_);
    });
  }
  [[nodiscard]] long checked_operations() const override { return 5; }

 private:
  static std::int64_t pattern(int rank, std::size_t i) { return rank * 1'000'003LL + static_cast<std::int64_t>(i); }
  [[nodiscard]] std::int64_t* words() const { return reinterpret_cast<std::int64_t*>(buffer_.get()); }
  [[nodiscard]] std::size_t count() const { return bytes_ / sizeof(std::int64_t); }
  void fill(int rank) {
    for (std::size_t i = 0; i < count(); ++i) words()[i] = pattern(rank, i);
  }
  [[nodiscard]] bool holds_pattern_of(int rank) const {
    for (std::size_t i = 0; i < count(); ++i) {
      if (words()[i] != pattern(rank, i)) return false;
    }
    return true;
  }

  const Job& job_;
  Way way_;
  std::size_t bytes_;
  int next_;
  LockedTable<Job> table_;
  UserMemory buffer_;
};

}  // namespace ranks
