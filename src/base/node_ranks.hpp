// Which ranks of a job are on this node, and which place each has there. Shared memory counts places, all else counts
// ranks of the job.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace farsum {

class NodeRanks {
 public:
  NodeRanks() = default;
  // By place; each rank once.
  explicit NodeRanks(std::vector<Rank> here) : here_(std::move(here)) {
    if (!here_.empty()) place_of_.resize(*std::max_element(here_.begin(), here_.end()) + std::size_t{1}, remote);
    for (std::uint32_t place = 0; place < here_.size(); ++place) place_of_[here_[place]] = place;
  }
  // Of a job whose ranks are all here.
  static NodeRanks of_all(std::uint32_t ranks) {
    std::vector<Rank> here(ranks);
    std::iota(here.begin(), here.end(), Rank{0});
    return NodeRanks(std::move(here));
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(here_.size()); }
  bool is_here(Rank rank) const { return rank < place_of_.size() && place_of_[rank] != remote; }
  // Of a rank that is here.
  std::uint32_t place_of(Rank rank) const { return place_of_[rank]; }
  Rank rank_at(std::uint32_t place) const { return here_[place]; }
  const std::vector<Rank>& ranks() const { return here_; }

 private:
  static constexpr std::uint32_t remote = ~std::uint32_t{0};

  std::vector<Rank> here_;
  std::vector<std::uint32_t> place_of_;  // by rank of the job
};

}  // namespace farsum
