// Small atomic updates: on one word, on random ranks, of 512 bytes, and from an owner that computes.
#pragma once

#include <array>

#include "ranks/cases/case.hpp"

namespace ranks {

// n numbers that begin at `first` and are all there, each once, have this sum.
inline std::int64_t sum_of_numbers(std::int64_t first, std::int64_t n) { return n * first + n * (n - 1) / 2; }

// fetch-op and flush on a word of rank 0, or of a random rank each time.
template <class Job>
class FetchOps : public Case<Job> {
 public:
  enum class Target { first, random };

  FetchOps(const Job& job, const std::string& variant, Target target)
      : job_(job), target_(target), table_(job, variant, line_bytes), random_(job.rank()) {}

  // On one word every number comes once.
  bool is_right(long operations) override {
    const std::int64_t before = done_ * job_.size();
    std::int64_t numbers = 0;
    for (long i = 0; i < operations; ++i) numbers += table_.window().fetch_add(next_target(), 0, 1);
    done_ += operations;
    const std::int64_t all = job_.sum(numbers);
    const bool are_once = target_ == Target::random || all == sum_of_numbers(before, operations * job_.size());
    return is_still_right() && are_once;
  }
  double run(long operations) override {
    done_ += operations;
    return timed(operations, [&](long) { static_cast<void>(table_.window().fetch_add(next_target(), 0, 1)); });
  }
  bool is_still_right() override {
    job_.barrier();
    const std::int64_t total = job_.sum(table_.own_word(0));
    job_.barrier();
    return total == done_ * job_.size();
  }

 private:
  int next_target() { return target_ == Target::random ? random_.below(job_.size()) : 0; }

  const Job& job_;
  Target target_;
  LockedTable<Job> table_;
  Random random_;
  std::int64_t done_ = 0;
};

// Sums of 8 bytes into random words of random ranks, complete after every 64.
template <class Job>
class RandomSums : public Case<Job> {
 public:
  RandomSums(const Job& job, const std::string& variant)
      : job_(job), table_(job, variant, words * sizeof(std::int64_t)), random_(job.rank()) {}

  bool is_right(long operations) override {
    run(operations);
    return is_still_right();
  }
  double run(long operations) override {
    done_ += operations;
    const double seconds = timed(operations, [&](long i) {
      const std::uint64_t place = random_.next() >> 20;
      const int target = random_.below(job_.size());
      table_.window().add_one(target, place % words * sizeof(std::int64_t));
      if (i % burst == burst - 1) table_.window().flush_all();
    });
    table_.window().flush_all();
    return seconds;
  }
  bool is_still_right() override {
    job_.barrier();
    const UserMemory own = new_user_memory(words * sizeof(std::int64_t));
    table_.read_own(own.get(), words * sizeof(std::int64_t));
    std::int64_t total = 0;
    for (std::size_t i = 0; i < words; ++i) total += reinterpret_cast<const std::int64_t*>(own.get())[i];
    total = job_.sum(total);
    job_.barrier();
    return total == done_ * job_.size();
  }

 private:
  static constexpr std::size_t words = 1 << 17;
  static constexpr long burst = 64;

  const Job& job_;
  LockedTable<Job> table_;
  Random random_;
  std::int64_t done_ = 0;
};

// A number from rank 0, which computes and calls the library once in 40 ms. The others draw.
template <class Job>
class CounterOfBusyOwner : public Case<Job> {
 public:
  CounterOfBusyOwner(const Job& job, const std::string& variant) : job_(job), table_(job, variant, 2 * line_bytes) {}

  bool is_right(long operations) override {
    const std::int64_t before = drawn_;
    run(operations);
    return job_.sum(numbers_) == sum_of_numbers(before, operations * (job_.size() - 1));
  }
  double run(long operations) override {
    numbers_ = 0;
    const bool is_owner = job_.rank() == 0;
    const double seconds = is_owner ? own() : draw(operations);
    drawn_ += operations * (job_.size() - 1);
    return seconds;
  }
  [[nodiscard]] long checked_operations() const override { return 5; }

 private:
  double draw(long operations) {
    const double seconds = timed(operations, [&](long) { numbers_ += table_.window().fetch_add(0, 0, 1); });
    static_cast<void>(table_.window().fetch_add(0, line_bytes, 1));
    return seconds;
  }
  double own() {
    ++runs_;
    do compute_s(slice_s);
    while (table_.window().fetch_add(0, line_bytes, 0) < runs_ * (job_.size() - 1));
    return not_timed;
  }

  static constexpr double slice_s = 0.04;

  const Job& job_;
  LockedTable<Job> table_;
  std::int64_t numbers_ = 0;  // the sum of those drawn in the last run
  std::int64_t drawn_ = 0;    // by all ranks
  std::int64_t runs_ = 0;
};

// Sums of doubles and a flush, on rank 0 or on the next rank.
template <class Job>
class Accumulates : public Case<Job> {
 public:
  enum class Target { first, next };

  Accumulates(const Job& job, const std::string& variant, Target target, std::size_t bytes)
      : job_(job),
        target_(target == Target::first ? 0 : (job.rank() + 1) % job.size()),
        summands_(target == Target::first ? job.size() : 1),
        is_summed_into_(target == Target::next || job.rank() == 0),
        bytes_(bytes),
        table_(job, variant, bytes),
        ones_(new_user_memory(bytes)) {
    for (std::size_t i = 0; i < count(); ++i) reinterpret_cast<double*>(ones_.get())[i] = 1;
  }

  bool is_right(long operations) override {
    run(operations);
    return is_still_right();
  }
  double run(long operations) override {
    done_ += operations;
    const auto* ones = reinterpret_cast<const double*>(ones_.get());
    return timed(operations, [&](long) {
      table_.window().add_doubles(target_, ones, count());
      table_.window().flush(target_);
    });
  }
  bool is_still_right() override {
    job_.barrier();
    const UserMemory own = new_user_memory(bytes_);
    table_.read_own(own.get(), bytes_);
    const double expected = is_summed_into_ ? static_cast<double>(done_ * summands_) : 0;
    bool is_right = true;
    for (std::size_t i = 0; i < count(); ++i)
      is_right = is_right && reinterpret_cast<const double*>(own.get())[i] == expected;
    return job_.all_agree(is_right);
  }
  [[nodiscard]] long checked_operations() const override { return bytes_ > page_bytes ? 5 : 300; }

 private:
  [[nodiscard]] std::size_t count() const { return bytes_ / sizeof(double); }

  const Job& job_;
  int target_;
  int summands_;  // ranks that sum into a part
  bool is_summed_into_;
  std::size_t bytes_;
  LockedTable<Job> table_;
  UserMemory ones_;
  std::int64_t done_ = 0;
};

}  // namespace ranks
