// The lists of all nodes of a collective in one piece, and for each letter where it is sent and where it is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trees/schedule.hpp"

namespace farsum::cluster {

class Lists {
 public:
  // As the library has them.
  explicit Lists(const trees::Shape& shape);
  // A reduce to node 0 over a complete tree, where node n has the children kn + 1 to kn + k: what the library of paper
  // 5 does for the host, with k = 4.
  static Lists of_complete_tree(std::uint32_t nodes, std::uint32_t children, std::uint64_t elements);

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(begins_.size() - 1); }
  std::span<const trees::Step> of(std::uint32_t node) const { return all().subspan(begins_[node], size(node)); }
  std::span<const trees::Step> all() const { return steps_; }
  std::size_t size(std::uint32_t node) const { return begins_[node + 1] - begins_[node]; }

  // A step's place among all, by which letters are named.
  std::uint32_t index(const trees::Step& step) const { return static_cast<std::uint32_t>(&step - steps_.data()); }
  std::uint32_t index(std::uint32_t node, std::size_t at) const {
    return static_cast<std::uint32_t>(begins_[node] + at);
  }
  // Of a step that sends: the step that takes its letter.
  std::uint32_t taker(std::uint32_t index) const { return takers_[index]; }
  std::size_t letters() const { return steps_.size() / 2; }

 private:
  Lists() : begins_{0} {}
  void add(const std::vector<trees::Step>& steps);
  void match_letters();

  std::vector<trees::Step> steps_;
  std::vector<std::size_t> begins_;    // by node, and the end of the last
  std::vector<std::uint32_t> takers_;  // by step; of a step that receives itself
};

}  // namespace farsum::cluster
