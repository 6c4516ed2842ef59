// The shared counter that hands out the tasks of a Fock build (paper 3, section 2).
#pragma once

#include "../common/any_counter.hpp"
#include "job.hpp"

namespace fock {

class TaskCounter {
 public:
  // Collective. `limit` is the number of tickets of a build.
  TaskCounter(Job& job, apps::CounterKind kind, std::uint64_t limit);
  ~TaskCounter();
  TaskCounter(const TaskCounter&) = delete;
  TaskCounter& operator=(const TaskCounter&) = delete;

  // The next ticket; values from `limit` on mean that the build is dealt out.
  [[nodiscard]] std::uint64_t next();
  // Collective: the next ticket is 0 again.
  void reset();
  [[nodiscard]] std::uint64_t limit() const { return limit_; }

 private:
  Job& job_;
  apps::AnyCounter counter_;
  std::uint64_t limit_;
};

}  // namespace fock
