// Locks, alone and contended, and fences.
#pragma once

#include "ranks/cases/case.hpp"

namespace ranks {

// Exclusive lock, put of 8 bytes, unlock; on rank 0 or on random ranks; with work between or without.
template <class Job>
class ExclusiveLocks : public Case<Job> {
 public:
  enum class Target { first, random };
  struct Shape {
    Target target = Target::first;
    double work_s = 0;
  };

  ExclusiveLocks(const Job& job, const std::string& variant, Shape shape)
      : job_(job), shape_(shape), table_(job, variant, 2 * line_bytes), random_(job.rank()) {}

  // Nothing but the lock keeps the ranks' updates apart.
  bool is_right(long operations) override {
    for (long i = 0; i < operations; ++i) {
      const int target = next_target();
      std::int64_t count = 0;
      window().lock_exclusive(target);
      window().get(target, 0, &count, sizeof count);
      window().flush(target);
      ++count;
      window().put(target, 0, &count, sizeof count);
      window().unlock(target);
    }
    done_ += operations;
    job_.barrier();
    return job_.sum(table_.own_word(0)) == done_ * job_.size();
  }

  double run(long operations) override {
    const std::int64_t value = job_.rank();
    return timed(operations, [&](long) {
      const int target = next_target();
      window().lock_exclusive(target);
      window().put(target, line_bytes, &value, sizeof value);
      window().unlock(target);
      if (shape_.work_s > 0) compute_s(shape_.work_s);
    });
  }

 private:
  int next_target() { return shape_.target == Target::random ? random_.below(job_.size()) : 0; }
  typename Job::Window& window() { return table_.window(); }

  const Job& job_;
  Shape shape_;
  Table<Job> table_;
  Random random_;
  std::int64_t done_ = 0;
};

// Each rank has a line of its own in every part.
template <class Job>
class SlotTable {
 public:
  explicit SlotTable(const Job& job)
      : job_(job), table_(job, allocated, line_bytes * static_cast<std::size_t>(job.size())) {}

  typename Job::Window& window() { return table_.window(); }
  void write(int target, std::int64_t& value) { window().put(target, offset_of(job_.rank()), &value, sizeof value); }
  // Whether all slots of this rank's part hold this value.
  bool is_full_of(std::int64_t value) {
    for (int rank = 0; rank < job_.size(); ++rank) {
      if (table_.own_word(offset_of(rank)) != value) return false;
    }
    return true;
  }

 private:
  static std::size_t offset_of(int rank) { return line_bytes * static_cast<std::size_t>(rank); }

  const Job& job_;
  Table<Job> table_;
};

// Shared lock, put of 8 bytes, unlock, all on rank 0.
template <class Job>
class SharedLocks : public Case<Job> {
 public:
  explicit SharedLocks(const Job& job) : job_(job), slots_(job) {}

  bool is_right(long operations) override {
    for (std::int64_t i = 1; i <= operations; ++i) write(i);
    job_.barrier();
    return job_.all_agree(job_.rank() != 0 || slots_.is_full_of(operations));
  }
  double run(long operations) override {
    return timed(operations, [&](long i) {
      std::int64_t value = i;
      write(value);
    });
  }

 private:
  void write(std::int64_t& value) {
    slots_.window().lock_shared(0);
    slots_.write(0, value);
    slots_.window().unlock(0);
  }

  const Job& job_;
  SlotTable<Job> slots_;
};

// lock_all and unlock_all, with nothing between.
template <class Job>
class LockAll : public Case<Job> {
 public:
  explicit LockAll(const Job& job) : job_(job), slots_(job) {}

  bool is_right(long operations) override {
    for (std::int64_t i = 1; i <= operations; ++i) {
      slots_.window().lock_all();
      for (int target = 0; target < job_.size(); ++target) slots_.write(target, i);
      slots_.window().unlock_all();
    }
    job_.barrier();
    return job_.all_agree(slots_.is_full_of(operations));
  }
  double run(long operations) override {
    return timed(operations, [&](long) {
      slots_.window().lock_all();
      slots_.window().unlock_all();
    });
  }
  [[nodiscard]] long checked_operations() const override { return 100; }

 private:
  const Job& job_;
  SlotTable<Job> slots_;
};

template <class Job>
class Fences : public Case<Job> {
 public:
  explicit Fences(const Job& job) : job_(job), table_(job, allocated, line_bytes) { table_.window().fence(); }
  ~Fences() override { table_.window().last_fence(); }

  // What the rank before has put is there after a fence.
  bool is_right(long operations) override {
    const int next = (job_.rank() + 1) % job_.size();
    const int before = (job_.rank() + job_.size() - 1) % job_.size();
    bool is_right = true;
    for (long i = 0; i < operations; ++i) {
      const std::int64_t value = i * job_.size() + job_.rank();
      std::int64_t seen = 0;
      table_.window().put(next, 0, &value, sizeof value);
      table_.window().fence();
      table_.window().get(job_.rank(), 0, &seen, sizeof seen);
      table_.window().fence();
      is_right = is_right && seen == i * job_.size() + before;
    }
    return job_.all_agree(is_right);
  }
  double run(long operations) override {
    return timed(operations, [&](long) { table_.window().fence(); });
  }

 private:
  const Job& job_;
  Table<Job> table_;
};

}  // namespace ranks
