// What many times of one thing say together.
#pragma once

#include <utility>
#include <vector>

namespace collectives {

// `part` from 0 to 1, of at least one number: between two neighbours by a straight line.
[[nodiscard]] double quantile(std::vector<double> numbers, double part);
[[nodiscard]] inline double median(std::vector<double> numbers) { return quantile(std::move(numbers), 0.5); }

// How many lie from `from` on, and below the next bin.
struct Bin {
  double from = 0;
  long count = 0;
};

struct Distribution {
  double mean = 0;
  double deviation = 0;   // the standard one, without the hundredth that is longest
  double kept_mean = 0;   // the mean of these
  std::vector<Bin> bins;  // those that hold any; 20 to a power of ten
};

// Of at least one number.
[[nodiscard]] Distribution distribution_of(std::vector<double> numbers);

}  // namespace collectives
