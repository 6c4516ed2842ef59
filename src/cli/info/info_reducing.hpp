// Reductions over nodes of this machine by C's interface, checked and timed: what `farsum info` measures the model of
// reductions by.
#pragma once

#include <farsum.h>

#include <array>
#include <cstdint>
#include <vector>

#include "cost/reduction_model.hpp"

namespace farsum::cli {

// What is reduced, as C's interface and the model have it. One that combines nothing has no elements.
struct TimedVector {
  farsum_type type;
  farsum_op op;
  cost::ReducedVector modelled;
};

// All of table 2 of paper 5.
[[nodiscard]] std::vector<TimedVector> timed_vectors();

// The first nodes of a job, each of which calls.
class SomeNodes {
 public:
  explicit SomeNodes(int nodes);
  ~SomeNodes();
  SomeNodes(const SomeNodes&) = delete;
  SomeNodes& operator=(const SomeNodes&) = delete;

  static constexpr int calls_a_round = 60;

  // Checks the answer and adds the times of the calls of a round, as they are at the root.
  void time(const TimedVector& vector, std::vector<double>& times_us);
  // The lower decile of a short letter there and one back, each with the call that it takes.
  [[nodiscard]] double round_trip_us() const;

 private:
  template <class Element>
  struct Buffers {
    std::array<Element, cost::listed_elements.back()> mine{}, result{};
  };
  template <class Element>
  void time_elements(const TimedVector& vector, Buffers<Element>& buffers, std::vector<double>& times_us);

  int nodes_;
  int rank_ = 0;
  farsum_group group_{};
  Buffers<std::int32_t> ints_;
  Buffers<double> doubles_;
};

}  // namespace farsum::cli
