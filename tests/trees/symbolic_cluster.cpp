#include "symbolic_cluster.hpp"

#include <algorithm>

namespace farsum::trees {
namespace {

std::uint64_t mixed(std::uint64_t left, std::uint64_t right) {
  const std::uint64_t sum = left * 0x9e3779b97f4a7c15 + right + 0x632be59bd9b4e019;
  return (sum ^ sum >> 29) * 0xbf58476d1ce4e5b9;
}

NodeSet first_nodes(std::uint32_t count) {
  NodeSet all;
  for (std::uint32_t node = 0; node < count; ++node) all.set(node);
  return all;
}

}  // namespace

Lists lists_of(const Shape& shape, ChildOrder order) {
  Lists lists;
  for (std::uint32_t node = 0; node < shape.nodes; ++node) lists.push_back(steps_of(shape, node, order));
  return lists;
}

SymbolicCluster::SymbolicCluster(const Shape& shape, const Options& options)
    : SymbolicCluster(shape, options, lists_of(shape)) {}

SymbolicCluster::SymbolicCluster(const Shape& shape, const Options& options, const Lists& lists)
    : options_(options), random_(options.seed), nodes_(shape.nodes) {
  add_round(shape, lists);
}

void SymbolicCluster::add_round(const Shape& shape) { add_round(shape, lists_of(shape)); }

void SymbolicCluster::add_round(const Shape& shape, const Lists& lists) {
  const auto number = static_cast<std::uint32_t>(rounds_.size());
  Round round{normalised(shape), lists, {}, {}};
  const std::uint64_t elements = shape.kind == Kind::allgather ? shape.nodes : shape.elements;
  for (std::uint32_t node = 0; node < shape.nodes; ++node) {
    const Value own{NodeSet().set(node), node, mixed(node, node + 1)};
    if (options_.texts) texts_[own.bracketing] = std::to_string(node);
    round.values.emplace_back(elements, own);
    round.heard.push_back(own.nodes);
    nodes_[node].rounds.push_back(number);
  }
  rounds_.push_back(std::move(round));
}

void SymbolicCluster::begin_with(std::uint32_t node, std::uint32_t round) {
  std::deque<std::uint32_t>& rounds = nodes_[node].rounds;
  std::swap(rounds.front(), *std::find(rounds.begin(), rounds.end(), round));
}

std::string SymbolicCluster::run() {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) ready_.push_back(node);
  while (!ready_.empty() && complaint_.empty()) walk(next_node());
  if (complaint_.empty()) check_end();
  return complaint_;
}

std::uint32_t SymbolicCluster::next_node() {
  std::size_t choice = options_.seed == 0 ? 0 : random_() % ready_.size();
  if (options_.starve_root && ready_[choice] == rounds_[0].shape.root) {
    const auto other =
        std::find_if(ready_.begin(), ready_.end(), [&](std::uint32_t node) { return node != rounds_[0].shape.root; });
    if (other != ready_.end()) choice = static_cast<std::size_t>(other - ready_.begin());
  }
  const std::uint32_t node = ready_[choice];
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(choice));
  return node;
}

void SymbolicCluster::walk(std::uint32_t node) {
  here_ = node;
  while (!nodes_[node].rounds.empty()) {
    if (!advance(round().lists[node], nodes_[node].at, *this)) return;
    nodes_[node].rounds.pop_front();
    nodes_[node].at = 0;
  }
}

// Whether this step is put off for no reason, as by a thread that is preempted.
bool SymbolicCluster::refused() {
  if (options_.seed == 0 || random_() % 4 != 0) return false;
  ready_.push_back(here_);
  return true;
}

void SymbolicCluster::wake(std::uint32_t node) {
  if (!nodes_[node].rounds.empty()) ready_.push_back(node);
}

bool SymbolicCluster::take(const Step& step) {
  std::vector<Letter>& waiting = letters(step.peer, here_);
  if (waiting.empty() || refused()) return false;
  const Letter letter = std::move(waiting.front());
  waiting.erase(waiting.begin());
  wake(step.peer);
  if (letter.round != nodes_[here_].rounds.front()) complain("rounds are mixed");
  if (letter.first != step.first || letter.values.size() != step.count) complain("a letter has other elements");
  if (!complaint_.empty()) return false;
  round().heard[here_] |= letter.heard;
  for (std::uint64_t i = 0; i < step.count; ++i) {
    Value& mine = round().held(here_, step.first + i);
    if (step.action == Action::receive_combine) {
      combine(mine, letter.values[i], step.mine_left);
    } else {
      mine = letter.values[i];
    }
  }
  return true;
}

bool SymbolicCluster::send(const Step& step) {
  std::vector<Letter>& waiting = letters(here_, step.peer);
  if (waiting.size() >= options_.room || refused()) return false;
  std::vector<Value> values;
  for (std::uint64_t i = 0; i < step.count; ++i) values.push_back(round().held(here_, step.first + i));
  waiting.push_back({step.first, std::move(values), round().heard[here_], nodes_[here_].rounds.front()});
  wake(step.peer);
  return true;
}

void SymbolicCluster::combine(Value& mine, const Value& theirs, bool mine_left) {
  if ((mine.nodes & theirs.nodes).any()) complain("a node is counted twice");
  if (mine_left != (mine.smallest < theirs.smallest)) complain("operands are on the wrong sides");
  const Value& left = mine_left ? mine : theirs;
  const Value& right = mine_left ? theirs : mine;
  const std::uint64_t bracketing = mixed(left.bracketing, right.bracketing);
  if (options_.texts) texts_[bracketing] = "(" + texts_[left.bracketing] + " " + texts_[right.bracketing] + ")";
  mine = {left.nodes | right.nodes, std::min(left.smallest, right.smallest), bracketing};
}

void SymbolicCluster::complain(const std::string& what) {
  if (complaint_.empty()) complaint_ = what + ", at node " + std::to_string(here_);
}

void SymbolicCluster::check_end() {
  for (here_ = 0; here_ < nodes_.size(); ++here_) {
    if (!nodes_[here_].rounds.empty()) complain("a list has not ended");
  }
  for (const auto& [pair, waiting] : letters_) {
    here_ = static_cast<std::uint32_t>(pair);
    if (!waiting.empty()) complain("a letter is left over");
  }
  for (const Round& round : rounds_) {
    const NodeSet all = first_nodes(round.shape.nodes);
    for (here_ = 0; here_ < nodes_.size(); ++here_) {
      if (round.shape.kind == Kind::barrier && round.heard[here_] != all)
        complain("a barrier let a node through early");
      if (round.shape.kind == Kind::allgather) check_gathered(round, here_);
      if (round.shape.kind == Kind::broadcast) check_whole(round, here_, NodeSet().set(round.shape.root));
      if (round.shape.kind == Kind::allreduce) check_whole(round, here_, all);
      if (round.shape.kind == Kind::reduce && here_ == round.shape.root) check_whole(round, here_, all);
    }
  }
}

void SymbolicCluster::check_gathered(const Round& round, std::uint32_t node) {
  for (std::uint32_t block = 0; block < round.shape.nodes; ++block) {
    if (round.values[node][block].nodes != NodeSet().set(block)) complain("a block is another node's");
  }
}

void SymbolicCluster::check_whole(const Round& round, std::uint32_t node, const NodeSet& expected) {
  for (std::uint64_t i = 0; i < round.shape.elements; ++i) {
    const Value& value = round.values[node][i];
    if (value.nodes != expected) complain("an answer is not whole");
    if (value.bracketing != round.values[round.shape.root][i].bracketing) complain("answers differ");
  }
}

std::vector<std::uint64_t> SymbolicCluster::bracketing(std::uint32_t node) const {
  std::vector<std::uint64_t> all;
  for (const Value& value : rounds_[0].values[node]) all.push_back(value.bracketing);
  return all;
}

std::string SymbolicCluster::text(std::uint32_t node, std::uint64_t element) const {
  return texts_.at(rounds_[0].values[node][element].bracketing);
}

}  // namespace farsum::trees
