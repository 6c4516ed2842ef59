// Times by library, side and case, pair by pair, and who of the libraries alone is the fastest.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "common/lab.hpp"
#include "engine/harness.hpp"

namespace bench {

class Samples {
 public:
  void add(const std::string& library, Side side, const std::string& name, int pair, double value) {
    values_[{library, side, name}][pair] = value;
  }

  [[nodiscard]] bool has(const std::string& library, Side side, const std::string& name) const {
    return values_.contains({library, side, name});
  }

  // The library that does this fastest without Farsum.
  [[nodiscard]] std::optional<std::string> fastest(const std::vector<std::string>& libraries,
                                                   const std::string& name) const {
    std::optional<std::string> best;
    double least = 0;
    for (const std::string& library : libraries) {
      if (!has(library, Side::without, name)) continue;
      const double time = median(all(values_.at({library, Side::without, name})));
      if (!best.has_value() || time < least) {
        best = library;
        least = time;
      }
    }
    return best;
  }

  // With Farsum under one library beside another alone, for the pairs that both have; without a peer only ours.
  [[nodiscard]] Pairs pairs(const std::string& library, const std::optional<std::string>& peer,
                            const std::string& name) const {
    Pairs pairs;
    if (!has(library, Side::with, name)) return pairs;
    const auto& ours = values_.at({library, Side::with, name});
    if (!peer.has_value() || !has(*peer, Side::without, name)) return {.ours = all(ours), .limit = {}};
    const auto& limits = values_.at({*peer, Side::without, name});
    for (const auto& [pair, value] : ours) {
      const auto limit = limits.find(pair);
      if (limit == limits.end()) continue;
      pairs.ours.push_back(value);
      pairs.limit.push_back(limit->second);
    }
    return pairs;
  }

 private:
  using ByPair = std::map<int, double>;

  static std::vector<double> all(const ByPair& by_pair) {
    std::vector<double> values;
    for (const auto& [pair, value] : by_pair) values.push_back(value);
    return values;
  }

  std::map<std::tuple<std::string, Side, std::string>, ByPair> values_;
};

}  // namespace bench
