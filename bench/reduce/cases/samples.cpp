#include "reduce/cases/samples.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>

namespace collectives {
namespace {

constexpr double bins_to_ten = 20;
constexpr std::size_t one_dropped_of = 100;
constexpr double least_binned = 1e-3;

double mean_of(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

double deviation_of(std::span<const double> numbers) {
  const double mean = mean_of(numbers);
  double squares = 0;
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  return std::sqrt(squares / static_cast<double>(numbers.size()));
}

std::vector<Bin> bins_of(std::span<const double> sorted) {
  std::vector<Bin> bins;
  double last = 0;
  for (const double number : sorted) {
    const double index = std::floor(std::log10(std::max(number, least_binned)) * bins_to_ten);
    if (bins.empty() || index != last) bins.push_back({.from = std::pow(10.0, index / bins_to_ten), .count = 0});
    last = index;
    ++bins.back().count;
  }
  return bins;
}

}  // namespace

double quantile(std::vector<double> numbers, double part) {
  std::ranges::sort(numbers);
  const double place = part * static_cast<double>(numbers.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, numbers.size() - 1);
  return std::lerp(numbers[below], numbers[above], place - std::floor(place));
}

Distribution distribution_of(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  const std::span<const double> kept(numbers.data(), numbers.size() - numbers.size() / one_dropped_of);
  return {
      .mean = mean_of(numbers), .deviation = deviation_of(kept), .kept_mean = mean_of(kept), .bins = bins_of(numbers)};
}

}  // namespace collectives
