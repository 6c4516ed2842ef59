#include "collectives/rank_order.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/units.hpp"
#include "trees/fnomial.hpp"

namespace farsum {
namespace {

// What the first rank of a node keeps of all ranks' pieces.
constexpr std::size_t room_bytes = std::size_t{256} << 10;

std::vector<std::uint32_t> firsts_of(const RankStretches& stretches) {
  std::vector<std::uint32_t> firsts;
  for (const RankStretch& stretch : stretches.all()) firsts.push_back(stretch.first);
  return firsts;
}

constexpr auto nothing = [](std::uint32_t, std::uint32_t) {};

}  // namespace

// By node.
class RankOrder::Members {
 public:
  explicit Members(const GroupPlaces& places) : places_(places), my_node_(places.my_node()) {}

  std::uint32_t nodes() const { return places_.nodes(); }
  std::uint32_t my_node() const { return my_node_; }
  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return node == my_node_ ? std::span(places_.here) : std::span(places_.node(node, my_node_).members);
  }
  std::uint32_t ranks() const {
    std::size_t ranks = 0;
    for (std::uint32_t node = 0; node < nodes(); ++node) ranks += of(node).size();
    return static_cast<std::uint32_t>(ranks);
  }
  // Those of `count` nodes from one on.
  void for_each(std::uint32_t first_node, std::uint32_t count, FunctionRef<void(std::uint32_t member)> call) const {
    for (std::uint32_t node = first_node; node < first_node + count; ++node)
      for (const std::uint32_t member : of(node)) call(member);
  }
  RankStretches stretches(std::uint32_t first_node, std::uint32_t count) const {
    RankStretches stretches(ranks());
    for_each(first_node, count, [&](std::uint32_t member) { stretches.add({member, 0}, nothing); });
    return stretches;
  }

 private:
  const GroupPlaces& places_;
  std::uint32_t my_node_;
};

void RankStretches::add(RankStretch stretch, FunctionRef<void(std::uint32_t, std::uint32_t)> join) {
  const auto ranks = static_cast<std::uint64_t>(level_at_.size());
  while (stretch.first != 0 || std::uint64_t{1} << stretch.level < ranks) {
    const std::uint64_t length = std::uint64_t{1} << stretch.level;
    const bool is_right = (stretch.first & length) != 0;
    const std::uint64_t sibling = is_right ? stretch.first - length : stretch.first + length;
    if (sibling < ranks) {
      if (level_at_[sibling] != stretch.level) break;
      forget(static_cast<std::uint32_t>(sibling));
      const auto other = static_cast<std::uint32_t>(sibling);
      join(std::min(stretch.first, other), std::max(stretch.first, other));
      stretch.first = std::min(stretch.first, other);
    }
    ++stretch.level;
  }
  level_at_[stretch.first] = static_cast<std::uint8_t>(stretch.level);
  ++count_;
}

void RankStretches::forget(std::uint32_t first) {
  if (std::exchange(level_at_[first], none) != none) --count_;
}

std::vector<RankStretch> RankStretches::all() const {
  std::vector<RankStretch> stretches;
  for (std::uint32_t first = 0; first < level_at_.size(); ++first)
    if (level_at_[first] != none) stretches.push_back({first, level_at_[first]});
  return stretches;
}

RankOrder::RankOrder(const GroupPlaces& places, std::span<const trees::Step> list, bool is_flat, const Limits& limits)
    : letter_room_(limits.letter_bytes) {
  const Members members(places);
  ranks_ = members.ranks();
  const std::size_t share = std::min(limits.piece_bytes, room_bytes / ranks_);
  stride_ = std::max<std::size_t>(share / cache_line_bytes, 1) * cache_line_bytes;
  const trees::Fnomial tree(members.nodes(), 2);
  RankStretches sent(ranks_);
  for (std::uint32_t node = 0; node < members.nodes(); ++node) {
    const std::uint32_t below = is_flat ? 1 : tree.subtree(node);
    if (below == members.nodes()) continue;
    members.for_each(node, below, [&](std::uint32_t member) { sent.add({member, 0}, nothing); });
    most_in_a_letter_ = std::max(most_in_a_letter_, sent.count());
    members.for_each(node, below, [&](std::uint32_t member) { sent.forget(member); });
  }
  plan_here(members);
  plan_steps(members, list, is_flat);
}

void RankOrder::plan_here(const Members& members) {
  RankStretches here(ranks_);
  const auto join = [&](std::uint32_t left, std::uint32_t right) { joins_here_.push_back({left, right}); };
  for (const std::uint32_t member : members.of(members.my_node())) here.add({member, 0}, join);
  stretches_here_ = firsts_of(here);
}

void RankOrder::plan_steps(const Members& members, std::span<const trees::Step> list, bool is_flat) {
  const trees::Fnomial tree(members.nodes(), 2);
  RankStretches held = members.stretches(members.my_node(), 1);
  for (const trees::Step& step : list) {
    AtStep& at_step = at_step_.emplace_back();
    if (step.action == trees::Action::send) {
      at_step.stretches = firsts_of(held);
    } else if (step.action == trees::Action::receive_copy && !is_flat) {
      held = RankStretches(ranks_);
      held.add({0, static_cast<std::uint32_t>(std::bit_width(ranks_ - 1))}, nothing);
      at_step.stretches = {0};
    } else {
      const RankStretches theirs = members.stretches(step.peer, is_flat ? 1 : tree.subtree(step.peer));
      at_step.stretches = firsts_of(theirs);
      const auto join = [&](std::uint32_t left, std::uint32_t right) { at_step.joins.push_back({left, right}); };
      for (const RankStretch& stretch : theirs.all()) held.add(stretch, join);
    }
  }
}

void RankOrder::make_room() { room_ = std::make_unique_for_overwrite<std::byte[]>(ranks_ * stride_); }

std::size_t RankOrder::piece_bytes(std::size_t element_bytes) const {
  const std::size_t bytes = std::min(stride_, letter_room_ / most_in_a_letter_);
  const std::size_t unit = bytes < cache_line_bytes ? element_bytes : cache_line_bytes;
  return bytes / unit * unit;
}

void RankOrder::begin(std::size_t bytes, FunctionRef<const std::byte*(std::uint32_t)> part) {
  bytes_ = bytes;
  if (bytes == 0) return;
  for (const std::uint32_t first : stretches_here_) std::memcpy(of_rank(first), part(first), bytes);
}

void RankOrder::pack(std::size_t step, std::byte* letter) const {
  if (bytes_ == 0) return;
  for (const std::uint32_t first : at_step_[step].stretches) {
    std::memcpy(letter, of_rank(first), bytes_);
    letter += bytes_;
  }
}

void RankOrder::take(std::size_t step, const std::byte* letter, const Fold& fold) {
  if (bytes_ == 0) return;
  for (const std::uint32_t first : at_step_[step].stretches) {
    std::memcpy(of_rank(first), letter, bytes_);
    letter += bytes_;
  }
  for (const Join& join : at_step_[step].joins) fold.one_more(of_rank(join.left), of_rank(join.right), bytes_);
}

}  // namespace farsum
