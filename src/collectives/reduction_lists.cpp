#include "collectives/reduction_lists.hpp"

#include <utility>

#include "cost/meeting_model.hpp"
#include "trees/fnomial.hpp"

namespace farsum {

ReductionLists::ReductionLists(std::uint32_t nodes, std::uint32_t mine, std::uint32_t degree)
    : nodes_(nodes), mine_(mine), degree_(degree), list_(list_of(nodes, mine, degree)) {
  const auto is_of_second_half = [](const trees::Step& step) { return step.action == trees::Action::receive_copy; };
  const auto first_down = std::find_if(list_.begin(), list_.end(), is_of_second_half);
  up_steps_ = static_cast<std::size_t>(first_down - list_.begin());
  // Node 0 of a tree copies nothing: what it sends goes down.
  if (!is_flat() && mine_ == 0) up_steps_ = list_.size() / 2;
}

void ReductionLists::choose_piece_trees(const cost::TreeRule& rule, std::size_t bytes) {
  cost::PieceTrees choices(rule, nodes_, bytes);
  const auto is_usual = [&](std::uint32_t wanted) { return degree_between(nodes_, wanted) == degree_; };
  if (std::ranges::all_of(choices.degrees(), is_usual)) return;
  for (const std::uint32_t wanted : choices.degrees()) {
    const std::uint32_t degree = degree_between(nodes_, wanted);
    piece_trees_.push_back({.degree = degree, .list = list_of(nodes_, mine_, degree)});
  }
  piece_choices_ = std::move(choices);
}

std::uint32_t ReductionLists::degree_between(std::uint32_t nodes, std::uint32_t wanted) {
  if (wanted != 0) return wanted;
  return cost::meet_at_once(nodes) ? 0 : 2;
}

std::vector<trees::Step> ReductionLists::list_of(std::uint32_t nodes, std::uint32_t mine, std::uint32_t degree) {
  if (degree != 0)
    return trees::steps_of({.kind = trees::Kind::allreduce, .nodes = nodes, .elements = 1, .degree = degree}, mine);
  std::vector<trees::Step> list;
  for (const auto step : {letter_to, letter_from}) {
    for (std::uint32_t node = 0; node < nodes; ++node) {
      if (node != mine) list.push_back(step(node));
    }
  }
  return list;
}

const ReductionLists::PieceTree* ReductionLists::tree_of_further_piece(ops::Operator op, ops::ElementType type) const {
  return piece_choices_ ? &piece_trees_[piece_choices_->number_of(op, type)] : nullptr;
}

std::optional<std::uint32_t> ReductionLists::parent_of(std::uint32_t node) const {
  return trees::Fnomial(nodes_, degree_).parent(node);
}

bool ReductionLists::is_behind(std::uint32_t node) const {
  return std::ranges::any_of(up(), [&](const trees::Step& step) {
    return step.action == trees::Action::receive_combine && step.peer == node;
  });
}

bool ReductionLists::sends_to(std::uint32_t node) const {
  return std::ranges::any_of(
      list_, [&](const trees::Step& step) { return step.action == trees::Action::send && step.peer == node; });
}

}  // namespace farsum
