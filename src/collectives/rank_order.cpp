#include "collectives/rank_order.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/units.hpp"
#include "trees/fnomial.hpp"

namespace farsum {
namespace {

// What the first rank of a node keeps at once.
constexpr std::size_t room_bytes = std::size_t{256} << 10;

std::vector<std::uint32_t> firsts_of(const AlignedBlocks& blocks) {
  std::vector<std::uint32_t> firsts;
  for (const AlignedBlock& block : blocks.all()) firsts.push_back(block.first);
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
  AlignedBlocks blocks(std::uint32_t first_node, std::uint32_t count) const {
    AlignedBlocks blocks(ranks());
    for_each(first_node, count, [&](std::uint32_t member) { blocks.add({member, 0}, nothing); });
    return blocks;
  }

 private:
  const GroupPlaces& places_;
  std::uint32_t my_node_;
};

void AlignedBlocks::add(AlignedBlock block, FunctionRef<void(std::uint32_t, std::uint32_t)> join) {
  const auto ranks = static_cast<std::uint64_t>(level_at_.size());
  while (block.first != 0 || std::uint64_t{1} << block.level < ranks) {
    const std::uint64_t length = std::uint64_t{1} << block.level;
    const bool is_right = (block.first & length) != 0;
    const std::uint64_t sibling = is_right ? block.first - length : block.first + length;
    if (sibling < ranks) {
      if (level_at_[sibling] != block.level) break;
      forget(static_cast<std::uint32_t>(sibling));
      const auto other = static_cast<std::uint32_t>(sibling);
      join(std::min(block.first, other), std::max(block.first, other));
      block.first = std::min(block.first, other);
    }
    ++block.level;
  }
  level_at_[block.first] = static_cast<std::uint8_t>(block.level);
  ++count_;
}

void AlignedBlocks::forget(std::uint32_t first) {
  if (std::exchange(level_at_[first], none) != none) --count_;
}

std::vector<AlignedBlock> AlignedBlocks::all() const {
  std::vector<AlignedBlock> blocks;
  for (std::uint32_t first = 0; first < level_at_.size(); ++first)
    if (level_at_[first] != none) blocks.push_back({first, level_at_[first]});
  return blocks;
}

RankOrder::RankOrder(const GroupPlaces& places, std::uint32_t degree, const Limits& limits)
    : degree_(degree), letter_room_(limits.letter_bytes) {
  const Members members(places);
  ranks_ = members.ranks();
  plan_here(members);
  count_on_all_nodes(members);
  const std::size_t share = std::min(limits.piece_bytes, room_bytes / most_rows_);
  stride_ = std::max<std::size_t>(share / cache_line_bytes, 1) * cache_line_bytes;
}

void RankOrder::plan_here(const Members& members) {
  AlignedBlocks here(ranks_);
  const auto join = [&](std::uint32_t left, std::uint32_t right) { joins_here_.push_back({left, right}); };
  for (const std::uint32_t member : members.of(members.my_node())) here.add({member, 0}, join);
  blocks_here_ = firsts_of(here);
}

// A node has rows for its own blocks and for those of all letters that it takes, of which no two begin with one rank.
void RankOrder::count_on_all_nodes(const Members& members) {
  AlignedBlocks blocks(ranks_);
  const auto count = [&](std::uint32_t first_node, std::uint32_t nodes) {
    members.for_each(first_node, nodes, [&](std::uint32_t member) { blocks.add({member, 0}, nothing); });
    const std::size_t counted = blocks.count();
    members.for_each(first_node, nodes, [&](std::uint32_t member) { blocks.forget(member); });
    return counted;
  };
  const trees::Fnomial tree(members.nodes(), tree_degree());
  for (std::uint32_t node = 0; node < members.nodes(); ++node) {
    std::size_t rows = count(node, 1);
    if (is_flat()) {
      most_in_a_letter_ = std::max(most_in_a_letter_, rows);
      most_rows_ += rows;
      continue;
    }
    if (node != 0) ++rows;  // the answer's
    tree.for_each_child(node, [&](const trees::Fnomial::Child& child) {
      const std::size_t in_letter = count(child.node, child.subtree);
      most_in_a_letter_ = std::max(most_in_a_letter_, in_letter);
      rows += in_letter;
    });
    most_rows_ = std::max(most_rows_, rows);
  }
}

void RankOrder::plan(const GroupPlaces& places, std::span<const trees::Step> list) {
  plan_steps(Members(places), list);
  number_rows();
  room_ = std::make_unique_for_overwrite<std::byte[]>(most_rows_ * stride_);
}

// A row is called by the first rank of what lies there, for now.
void RankOrder::plan_steps(const Members& members, std::span<const trees::Step> list) {
  const trees::Fnomial tree(members.nodes(), tree_degree());
  AlignedBlocks held = members.blocks(members.my_node(), 1);
  for (const trees::Step& step : list) {
    AtStep& at_step = at_step_.emplace_back();
    if (step.action == trees::Action::send) {
      at_step.rows = firsts_of(held);
    } else if (step.action == trees::Action::receive_copy && !is_flat()) {
      held = AlignedBlocks(ranks_);
      held.add({0, static_cast<std::uint32_t>(std::bit_width(ranks_ - 1))}, nothing);
      at_step.rows = {0};
    } else {
      const AlignedBlocks theirs = members.blocks(step.peer, is_flat() ? 1 : tree.subtree(step.peer));
      at_step.rows = firsts_of(theirs);
      const auto join = [&](std::uint32_t left, std::uint32_t right) { at_step.joins.push_back({left, right}); };
      for (const AlignedBlock& block : theirs.all()) held.add(block, join);
    }
  }
}

void RankOrder::number_rows() {
  std::vector<std::uint32_t> firsts = blocks_here_;
  firsts.push_back(0);
  for (const AtStep& at_step : at_step_) firsts.insert(firsts.end(), at_step.rows.begin(), at_step.rows.end());
  std::sort(firsts.begin(), firsts.end());
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  const auto number = [&](std::uint32_t& first) {
    first = static_cast<std::uint32_t>(std::lower_bound(firsts.begin(), firsts.end(), first) - firsts.begin());
  };
  rows_here_ = blocks_here_;
  for (std::uint32_t& row : rows_here_) number(row);
  for (AtStep& at_step : at_step_) {
    for (std::uint32_t& row : at_step.rows) number(row);
    for (Join& join : at_step.joins) {
      number(join.left);
      number(join.right);
    }
  }
}

std::size_t RankOrder::piece_bytes(std::size_t element_bytes) const {
  const std::size_t bytes = std::min(stride_, letter_room_ / most_in_a_letter_);
  const std::size_t unit = bytes < cache_line_bytes ? element_bytes : cache_line_bytes;
  return bytes / unit * unit;
}

void RankOrder::begin(std::size_t bytes, FunctionRef<const std::byte*(std::uint32_t)> part) {
  bytes_ = bytes;
  if (bytes == 0) return;
  for (std::size_t i = 0; i < blocks_here_.size(); ++i) std::memcpy(row(rows_here_[i]), part(blocks_here_[i]), bytes);
}

void RankOrder::pack(std::size_t step, std::byte* letter) const {
  if (bytes_ == 0) return;
  for (const std::uint32_t number : at_step_[step].rows) {
    std::memcpy(letter, row(number), bytes_);
    letter += bytes_;
  }
}

void RankOrder::take(std::size_t step, const std::byte* letter, const Fold& fold) {
  if (bytes_ == 0) return;
  for (const std::uint32_t number : at_step_[step].rows) {
    std::memcpy(row(number), letter, bytes_);
    letter += bytes_;
  }
  for (const Join& join : at_step_[step].joins) fold.one_more(row(join.left), row(join.right), bytes_);
}

}  // namespace farsum
