#include "trees/schedule.hpp"

#include <algorithm>
#include <bit>

#include "trees/fnomial.hpp"
#include "trees/reduce_list.hpp"

namespace farsum::trees {
namespace {

static_assert(sizeof(Step) == 24);

std::uint32_t possible_splits(const Shape& shape) {
  const auto halvings = [](std::uint64_t count) { return static_cast<std::uint32_t>(std::bit_width(count) - 1); };
  return std::min({shape.splits, halvings(shape.nodes), halvings(shape.elements)});
}

// A letter from the parent, then one to each child, the largest subtree first: it has the longest way to go.
void add_broadcast(std::vector<Step>& steps, const Shape& shape, std::uint32_t degree, std::uint32_t node) {
  const Fnomial tree(shape.nodes, degree, shape.root);
  if (const auto parent = tree.parent(node)) {
    steps.push_back({Action::receive_copy, false, *parent, 0, shape.elements});
  }
  const auto sends = static_cast<std::ptrdiff_t>(steps.size());
  const auto has_more = [&](std::uint32_t nodes, const Step& step) { return nodes > tree.subtree(step.peer); };
  tree.for_each_child(node, [&](const Fnomial::Child& child) {
    const auto place = std::upper_bound(steps.begin() + sends, steps.end(), child.subtree, has_more);
    steps.insert(place, {Action::send, false, child.node, 0, shape.elements});
  });
}

// Dissemination: in the first round each node hears of the degree - 1 nodes behind it, in the next of so many runs of
// nodes, each of which has heard by then of as many as itself; and so on, the last run cut off where the nodes end.
// With a degree of all nodes each tells each other in one round. Of an allgather the runs are what a letter holds.
void disseminate(const Shape& shape, std::uint32_t node, FunctionRef<void(const Step&)> call) {
  const std::uint32_t nodes = shape.nodes;
  const auto blocks = [&](std::uint64_t count) { return shape.kind == Kind::allgather ? count : 0; };
  const auto add_round = [&](std::uint64_t run, Action action) {
    std::uint64_t distance = run;
    for (std::uint32_t i = 1; i < shape.degree && distance < nodes; ++i, distance += run) {
      const bool sends = action == Action::send;
      const auto peer = static_cast<std::uint32_t>((node + (sends ? nodes - distance : distance)) % nodes);
      const std::uint64_t count = blocks(std::min(run, nodes - distance));
      call({action, false, peer, count == 0 ? 0 : sends ? node : peer, count});
    }
  };
  for (std::uint64_t run = 1; run < nodes; run *= shape.degree) {
    add_round(run, Action::send);
    add_round(run, Action::receive_copy);
  }
}

bool has_rounds(const Shape& shape) { return shape.kind == Kind::barrier || shape.kind == Kind::allgather; }

class Hash {
 public:
  // The finaliser of SplitMix64 over all that came before and `word`.
  void add(std::uint64_t word) {
    value_ += word + 0x9e3779b97f4a7c15;
    value_ = (value_ ^ value_ >> 30) * 0xbf58476d1ce4e5b9;
    value_ = (value_ ^ value_ >> 27) * 0x94d049bb133111eb;
    value_ ^= value_ >> 31;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace

Shape normalised(Shape shape) {
  shape.nodes = std::max(shape.nodes, 1U);
  const auto degree = [&](std::uint32_t asked) { return std::clamp(asked, 2U, std::max(2U, shape.nodes)); };
  if (shape.kind == Kind::barrier) return {.kind = shape.kind, .nodes = shape.nodes, .degree = degree(shape.degree)};
  if (shape.kind == Kind::allgather) {
    return {.kind = shape.kind, .nodes = shape.nodes, .elements = shape.nodes, .degree = degree(shape.degree)};
  }
  if (shape.nodes <= 1 || shape.elements == 0) return {.kind = shape.kind, .nodes = shape.nodes};
  if (shape.kind == Kind::allreduce) {
    shape.root = 0;
    shape.broadcast_degree = degree(shape.broadcast_degree == 0 ? shape.degree : shape.broadcast_degree);
  } else {
    shape.broadcast_degree = 0;
  }
  shape.degree = degree(shape.degree);
  shape.splits = shape.kind == Kind::broadcast ? 0 : possible_splits(shape);
  return shape;
}

std::vector<Step> steps_of(const Shape& asked, std::uint32_t node, ChildOrder order) {
  const Shape shape = normalised(asked);
  std::vector<Step> steps;
  if (has_rounds(shape)) {
    disseminate(shape, node, [&](const Step& step) { steps.push_back(step); });
    return steps;
  }
  if (shape.nodes == 1 || shape.elements == 0) return steps;
  if (shape.kind != Kind::broadcast) steps = ReduceList(shape, node, order).steps();
  if (shape.kind == Kind::broadcast) add_broadcast(steps, shape, shape.degree, node);
  if (shape.kind == Kind::allreduce) add_broadcast(steps, shape, shape.broadcast_degree, node);
  return steps;
}

std::vector<std::vector<Step>> stages_of_reduce(const Shape& asked, std::uint32_t node) {
  const Shape shape = normalised(asked);
  std::vector<std::vector<Step>> stages;
  if (shape.nodes == 1 || shape.elements == 0) return stages;
  ReduceList list(shape, node, ChildOrder::arrival);
  const std::vector<Step> steps = list.steps();
  std::size_t begin = 0;
  for (const std::size_t end : list.stage_ends()) {
    stages.emplace_back(steps.begin() + static_cast<std::ptrdiff_t>(begin),
                        steps.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
  return stages;
}

void for_each_step_of_rounds(const Shape& asked, std::uint32_t node, FunctionRef<void(const Step&)> call) {
  disseminate(normalised(asked), node, call);
}

void append_steps_of_broadcast(std::vector<Step>& steps, const Shape& asked, std::uint32_t node) {
  const Shape shape = normalised(asked);
  if (shape.nodes > 1 && shape.elements != 0) add_broadcast(steps, shape, shape.degree, node);
}

std::uint64_t hash_of(const Shape& asked) {
  const Shape shape = normalised(asked);
  return hash_of(shape.nodes, [&](std::uint32_t node) { return steps_of(shape, node); });
}

std::uint64_t hash_of(std::uint32_t nodes, FunctionRef<std::vector<Step>(std::uint32_t)> list) {
  Hash hash;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const std::vector<Step> steps = list(node);
    hash.add(steps.size());
    for (const Step& step : steps) {
      hash.add(std::uint64_t{step.peer} << 32 | static_cast<std::uint64_t>(step.action) << 1 |
               static_cast<std::uint64_t>(step.mine_left));
      hash.add(step.first);
      hash.add(step.count);
    }
  }
  return hash.value();
}

}  // namespace farsum::trees
