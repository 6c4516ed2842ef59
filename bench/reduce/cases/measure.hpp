// Checks and times the calls of a request, the same way whoever makes them. A Job is a set of ranks: rank, size,
// barrier, allreduce, reduce, reduce_scatter, broadcast of doubles, largest, fail.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "reduce/cases/call.hpp"
#include "reduce/cases/values.hpp"

namespace collectives {

template <class Job>
class Measurement {
 public:
  Measurement(const Job& job, const Call& call)
      : job_(job), call_(call), mine_(vector_length()), result_(vector_length()) {}

  void check() {
    for (int round = 0; round < checked_rounds; ++round) {
      for (std::size_t i = 0; i < mine_.size(); ++i) mine_[i] = brought(job_.rank(), i, round);
      std::fill(result_.begin(), result_.end(), -1);
      if (call_.kind == Kind::broadcast && job_.rank() == root) result_ = mine_;
      make();
      if (!is_right(round)) job_.fail(call_.name() + " gave a wrong answer");
    }
  }

  // The slowest rank's, many in a row.
  Figures time(double seconds) {
    for (int warm = 0; warm < warm_calls; ++warm) make();
    for (long calls = 10;; calls *= 2) {
      const double took = job_.largest(seconds_of(calls));
      // Twice as many are more than enough now; all ranks see the same number.
      if (took >= seconds / 2 || calls >= most_calls) return timed(took >= seconds ? calls : 2 * calls);
    }
  }

  // Once, with what is in the vectors.
  void make() {
    switch (call_.kind) {
      case Kind::allreduce:
        return job_.allreduce(mine_.data(), result_.data(), mine_.size());
      case Kind::reduce:
        return job_.reduce(mine_.data(), result_.data(), mine_.size(), root);
      case Kind::reduce_scatter:
        return job_.reduce_scatter(mine_.data(), result_.data(), block());
      case Kind::broadcast:
        return job_.broadcast(result_.data(), result_.size(), root);
      case Kind::barrier:
        return job_.barrier();
    }
  }

 private:
  static constexpr int root = 0;
  static constexpr int checked_rounds = 3;
  static constexpr int warm_calls = 10;
  static constexpr long most_calls = 1 << 22;

  using Clock = std::chrono::steady_clock;

  std::size_t block() const { return std::max<std::size_t>(call_.elements() / static_cast<unsigned>(job_.size()), 1); }
  std::size_t vector_length() const {
    return call_.kind == Kind::reduce_scatter ? block() * static_cast<unsigned>(job_.size()) : call_.elements();
  }

  bool is_right(int round) const {
    const bool has_result = call_.kind != Kind::reduce || job_.rank() == root;
    const bool scatters = call_.kind == Kind::reduce_scatter;
    const std::size_t first = scatters ? block() * static_cast<unsigned>(job_.rank()) : 0;
    const std::size_t count = !has_result ? 0 : scatters ? block() : result_.size();
    for (std::size_t i = 0; i < count; ++i) {
      const double right =
          call_.kind == Kind::broadcast ? brought(root, i, round) : sum_of(job_.size(), first + i, round);
      if (result_[i] != right) return false;
    }
    return true;
  }

  double seconds_of(long calls) {
    job_.barrier();
    const Clock::time_point start = Clock::now();
    for (long i = 0; i < calls; ++i) make();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  Figures timed(long calls) {
    const double took = job_.largest(seconds_of(calls));
    return {{"us", took * 1e6 / static_cast<double>(calls)}, {"calls", static_cast<double>(calls)}};
  }

  const Job& job_;
  const Call call_;
  std::vector<double> mine_;
  std::vector<double> result_;
};

}  // namespace collectives
