// The life of a window: made over the library's memory or the program's, and freed.
#pragma once

#include <optional>

#include "ranks/cases/case.hpp"

namespace ranks {

template <class Job>
class WindowLife : public Case<Job> {
 public:
  enum class Part { making, freeing };
  struct Shape {
    std::size_t bytes = 0;
    bool is_over_user_memory = false;
    Part timed_part = Part::making;
  };

  WindowLife(const Job& job, Shape shape)
      : job_(job),
        shape_(shape),
        user_(shape.is_over_user_memory ? static_cast<std::byte*>(std::calloc(1, shape.bytes)) : nullptr) {}

  // Each rank finds in its part what the rank before has put there.
  bool is_right(long operations) override {
    const int next = (job_.rank() + 1) % job_.size();
    const int before = (job_.rank() + job_.size() - 1) % job_.size();
    bool is_right = true;
    for (long i = 0; i < operations; ++i) {
      typename Job::Window window(job_, user_.get(), shape_.bytes);
      const std::int64_t value = i * job_.size() + job_.rank();
      std::int64_t seen = 0;
      window.lock_exclusive(next);
      window.put(next, shape_.bytes / 2, &value, sizeof value);
      window.unlock(next);
      job_.barrier();
      window.lock_shared(job_.rank());
      window.get(job_.rank(), shape_.bytes / 2, &seen, sizeof seen);
      window.unlock(job_.rank());
      is_right = is_right && seen == i * job_.size() + before;
    }
    return job_.all_agree(is_right);
  }

  double run(long operations) override {
    double making_s = 0;
    double freeing_s = 0;
    for (long i = 0; i < operations; ++i) {
      const double start = now_s();
      std::optional<typename Job::Window> window(std::in_place, job_, user_.get(), shape_.bytes);
      const double made = now_s();
      window.reset();
      making_s += made - start;
      freeing_s += now_s() - made;
    }
    return shape_.timed_part == Part::making ? making_s : freeing_s;
  }
  [[nodiscard]] long checked_operations() const override { return 5; }

 private:
  const Job& job_;
  Shape shape_;
  UserMemory user_;
};

}  // namespace ranks
