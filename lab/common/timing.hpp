// Clocks, work that takes a known time, and how several measurements become one line.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

namespace lab {

inline double now_ns() { return static_cast<double>(std::chrono::steady_clock::now().time_since_epoch().count()); }

// Runs for this long and makes no MPI call.
inline void compute_ns(double duration_ns) {
  const double end = now_ns() + duration_ns;
  while (now_ns() < end) {
  }
}

// Of several measurements: the middle one, the extremes and the mean.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
  double mean = 0;
};

inline Spread spread_of(std::vector<double> values) {
  if (values.empty()) {
    return {};
  }
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {
      .median = median, .low = values.front(), .high = values.back(), .mean = sum / static_cast<double>(values.size())};
}

// Floating-point work, counted in iterations rather than by the clock: a rank that loses its core still has it to do.
class BusyWork {
 public:
  // The quickest of several tries says how many iterations a microsecond takes.
  static BusyWork calibrated() {
    constexpr long tries = 7;
    constexpr long iterations = 200000;
    double best_ns = 1e18;
    for (long i = 0; i < tries; ++i) {
      const double start = now_ns();
      spin(iterations);
      best_ns = std::min(best_ns, now_ns() - start);
    }
    return BusyWork(iterations * 1000.0 / best_ns);
  }

  explicit BusyWork(double iterations_per_us) : iterations_per_us_(iterations_per_us) {}

  [[nodiscard]] double iterations_per_us() const { return iterations_per_us_; }
  void run_us(double microseconds) const { spin(static_cast<long>(microseconds * iterations_per_us_)); }

 private:
  static void spin(long iterations) {
    double sum = 0;
    for (long i = 0; i < iterations; ++i) {
      sum += 23.7 * static_cast<double>(i) - sum / 2.8;
    }
    volatile double sink = sum;  // the loop must not be optimised away
    static_cast<void>(sink);
  }

  double iterations_per_us_;
};

// Says on stderr how far a long run has come, at most every two seconds.
class Progress {
 public:
  explicit Progress(bool speaks) : speaks_(speaks), last_ns_(now_ns()) {}

  void tell(const std::string& what) {
    if (speaks_ && now_ns() - last_ns_ > 2e9) {
      std::fprintf(stderr, "... %s\n", what.c_str());
      last_ns_ = now_ns();
    }
  }

 private:
  bool speaks_;
  double last_ns_;
};

}  // namespace lab
