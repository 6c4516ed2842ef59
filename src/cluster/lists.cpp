#include "cluster/lists.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <tuple>

namespace farsum::cluster {
namespace {

using trees::Action;
using trees::Step;

// A letter by who sends it to whom and how many went there before it: the steps of each pair are in their order.
struct Letter {
  std::uint32_t sender;
  std::uint32_t receiver;
  std::uint32_t step;
};

bool is_before(const Letter& a, const Letter& b) {
  return std::tie(a.sender, a.receiver, a.step) < std::tie(b.sender, b.receiver, b.step);
}

std::vector<Step> steps_in_complete_tree(std::uint32_t nodes, std::uint32_t children, std::uint32_t node,
                                         std::uint64_t elements) {
  std::vector<Step> steps;
  const std::uint64_t first = std::uint64_t{node} * children + 1;
  for (std::uint64_t child = first; child < std::min<std::uint64_t>(first + children, nodes); ++child) {
    steps.push_back({Action::receive_combine, true, static_cast<std::uint32_t>(child), 0, elements});
  }
  if (node != 0) steps.push_back({Action::send, false, (node - 1) / children, 0, elements});
  return steps;
}

}  // namespace

Lists::Lists(const trees::Shape& shape) : Lists() {
  const std::uint32_t nodes = trees::normalised(shape).nodes;
  for (std::uint32_t node = 0; node < nodes; ++node) add(trees::steps_of(shape, node));
  match_letters();
}

Lists Lists::of_complete_tree(std::uint32_t nodes, std::uint32_t children, std::uint64_t elements) {
  Lists lists;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    lists.add(steps_in_complete_tree(nodes, children, node, elements));
  }
  lists.match_letters();
  return lists;
}

void Lists::add(const std::vector<Step>& steps) {
  steps_.insert(steps_.end(), steps.begin(), steps.end());
  begins_.push_back(steps_.size());
}

void Lists::match_letters() {
  std::vector<Letter> sent;
  std::vector<Letter> taken;
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    for (const Step& step : of(node)) {
      if (step.action == Action::send) {
        sent.push_back({node, step.peer, index(step)});
      } else {
        taken.push_back({step.peer, node, index(step)});
      }
    }
  }
  std::sort(sent.begin(), sent.end(), is_before);
  std::sort(taken.begin(), taken.end(), is_before);
  const auto same_pair = [](const Letter& a, const Letter& b) {
    return a.sender == b.sender && a.receiver == b.receiver;
  };
  if (!std::equal(sent.begin(), sent.end(), taken.begin(), taken.end(), same_pair)) {
    std::fputs("farsum simulator: a letter in these lists is sent and not taken, or the reverse\n", stderr);
    std::abort();
  }
  takers_.resize(steps_.size());
  std::iota(takers_.begin(), takers_.end(), 0);
  for (std::size_t i = 0; i < sent.size(); ++i) takers_[sent[i].step] = taken[i].step;
}

}  // namespace farsum::cluster
