#include "trees/reduce_list.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "trees/fnomial.hpp"

namespace farsum::trees {
namespace {

constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

}  // namespace

ReduceList::ReduceList(const Shape& shape, std::uint32_t node, ChildOrder order)
    : shape_(shape),
      order_(order),
      member_(node < shape.root ? node + (shape.nodes - shape.root) : node - shape.root),
      smallest_held_(node),
      group_{0, shape.nodes, 0, shape.elements} {}

std::vector<Step> ReduceList::steps() {
  const auto end_stage = [&] { stage_ends_.push_back(steps_.size()); };
  for (std::uint32_t i = 0; i < shape_.splits; ++i) {
    split();
    end_stage();
  }
  reduce_in_group();
  end_stage();
  gather();
  end_stage();
  return std::move(steps_);
}

// Each sends the half that is not its group's to its partner in the opposite group and combines what the partner sends.
// Where the lower group has one more, that one has no partner: its other half goes to the last of the upper group.
void ReduceList::split() {
  const Group lower = group_.lower();
  const Group upper = group_.upper();
  const bool in_upper = member_ >= lower.size;
  const Group& others = in_upper ? lower : upper;
  const std::uint32_t in_half = in_upper ? member_ - lower.size : member_;
  const bool alone = !in_upper && in_half == upper.size;
  const std::uint32_t partner = others.start - group_.start + (alone ? in_half - 1 : in_half);
  const bool has_left_over = in_upper && in_half + 1 == upper.size && lower.size > upper.size;

  const std::uint32_t start = group_.start;
  // Before the halves are taken, for they hold what the members of the whole group do now.
  const std::uint32_t smallest_of_partner = alone ? 0 : smallest_node(partner, partner + 1);
  const std::uint32_t smallest_of_left_over = has_left_over ? smallest_node(upper.size, upper.size + 1) : 0;
  steps_.push_back({Action::send, false, node_at(start + partner), others.first, others.count});
  halved_.push_back({group_, in_upper});
  group_ = in_upper ? upper : lower;
  member_ = in_half;
  if (!alone) receive_combine(start + partner, smallest_of_partner);
  if (has_left_over) receive_combine(start + upper.size, smallest_of_left_over);
}

void ReduceList::reduce_in_group() {
  const Fnomial tree(group_.size, shape_.degree);
  std::vector<Fnomial::Child> children = tree.children(member_);
  if (order_ == ChildOrder::arrival) {
    std::stable_sort(children.begin(), children.end(),
                     [](const Fnomial::Child& a, const Fnomial::Child& b) { return a.subtree < b.subtree; });
  }
  for (const Fnomial::Child& child : children) {
    receive_combine(group_.start + child.node, smallest_node(child.node, child.node + child.subtree));
  }
  if (const auto parent = tree.parent(member_)) {
    steps_.push_back({Action::send, false, node_at(group_.start + *parent), group_.first, group_.count});
  }
}

void ReduceList::gather() {
  if (member_ != 0) return;
  if (group_.start != 0) {
    steps_.push_back({Action::send, false, shape_.root, group_.first, group_.count});
    return;
  }
  for (std::uint32_t number = 1; number < 1U << shape_.splits; ++number) {
    const Group other = group_of(number);
    steps_.push_back({Action::receive_copy, false, node_at(other.start), other.first, other.count});
  }
}

void ReduceList::receive_combine(std::uint32_t position, std::uint32_t smallest_node) {
  steps_.push_back(
      {Action::receive_combine, smallest_held_ < smallest_node, node_at(position), group_.first, group_.count});
  smallest_held_ = std::min(smallest_held_, smallest_node);
}

std::uint32_t ReduceList::node_at(std::uint32_t position) const {
  const std::uint32_t before_wrap = shape_.nodes - shape_.root;
  return position < before_wrap ? position + shape_.root : position - before_wrap;
}

Group ReduceList::group_of(std::uint32_t number) const {
  Group group{0, shape_.nodes, 0, shape_.elements};
  for (std::uint32_t bit = shape_.splits; bit-- > 0;) group = (number >> bit & 1) != 0 ? group.upper() : group.lower();
  return group;
}

// Nodes are numbered by position up to the last, and from there on from 0: the first after that wrap is the smallest.
std::uint32_t ReduceList::smallest_node(std::uint32_t begin, std::uint32_t end) const {
  if (shape_.root != 0) {
    const std::uint64_t wrapped = smallest_position(halved_.size(), begin, end, shape_.nodes - shape_.root);
    if (wrapped != none) return node_at(static_cast<std::uint32_t>(wrapped));
  }
  return node_at(static_cast<std::uint32_t>(smallest_position(halved_.size(), begin, end, 0)));
}

// Undoes the last split: what the members of a half hold is what they and their partners held in the whole group. These
// are two runs of its members, one in each half; the last of the upper half has two partners where one is left over.
std::uint64_t ReduceList::smallest_position(std::size_t level, std::uint32_t begin, std::uint32_t end,
                                            std::uint32_t least) const {
  if (begin >= end) return none;
  // In the lower run `begin` stays where it is, and all others are greater.
  if (begin >= least) return begin;
  if (level == 0) return end > least ? least : none;
  const Halved& halved = halved_[level - 1];
  const std::uint32_t lower_size = halved.group.lower().size;
  const std::uint32_t upper_size = halved.group.upper().size;
  const std::uint32_t end_in_lower = halved.upper && end == upper_size ? lower_size : end;
  const std::uint32_t end_in_upper = std::min(end, upper_size);
  return std::min(smallest_position(level - 1, begin, end_in_lower, least),
                  smallest_position(level - 1, begin + lower_size, end_in_upper + lower_size, least));
}

}  // namespace farsum::trees
