// What each node does in a collective between nodes, as a list of steps: a pure function of the shape. It never asks
// what a link or an operator costs, so that one shape has one order of combining on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "base/function_ref.hpp"

namespace farsum::trees {

enum class Kind : std::uint8_t { reduce, broadcast, allreduce, barrier, allgather };

struct Shape {
  Kind kind = Kind::reduce;
  std::uint32_t nodes = 1;
  std::uint32_t root = 0;  // less than nodes, as the node of a list
  std::uint64_t elements = 0;
  std::uint32_t degree = 2;  // of the f-nomial tree, of an allreduce that of the reduce in it; or of the rounds
  std::uint32_t splits = 0;  // how often a reduce halves vector and nodes first
  std::uint32_t broadcast_degree = 0;  // of the broadcast in an allreduce; 0: as `degree`

  bool operator==(const Shape&) const = default;
};

// Each field brought to what can be done: degrees from 2 to `nodes`, no more splits than there are nodes and elements
// to halve, and in what the kind does not read always the same.
Shape normalised(Shape shape);

enum class Action : std::uint8_t {
  send,             // what is held of the elements, as a letter
  receive_combine,  // a letter, into what is held
  receive_copy,     // a letter, in place of what was held
};

// A letter needs no other name than its sender and how many of the sender's came before: what two nodes send each
// other in a collective is received in the order in which it was sent.
struct Step {
  Action action;
  // receive_combine: what is held is the left operand, since the first node in it comes before the first in the letter.
  bool mine_left;
  std::uint32_t peer;
  // Of the elements. Of an allgather they are blocks, one a node, and behind that of the last node comes that of 0.
  std::uint64_t first;
  std::uint64_t count;  // 0 in a barrier, whose letters are empty

  bool operator==(const Step&) const = default;
};

// In which order a node of a tree combines its children. Arrival, which is used: the smaller subtree first, of equals
// the nearer to the root by position; so they would come if a letter took one unit of time on its way and one to
// combine. Slot: phase by phase, as in the paper's appendix A, for comparing.
enum class ChildOrder : std::uint8_t { arrival, slot };

// Nothing where there is one node or no element.
std::vector<Step> steps_of(const Shape& shape, std::uint32_t node, ChildOrder order = ChildOrder::arrival);

// Those of a reduce, by stages that all nodes have: in one stage no node sends another two letters.
std::vector<std::vector<Step>> stages_of_reduce(const Shape& shape, std::uint32_t node);

// The same of a barrier or an allgather, and nothing is allocated.
void for_each_step_of_rounds(const Shape& shape, std::uint32_t node, FunctionRef<void(const Step&)> call);

// The same of a broadcast, and nothing is allocated where `steps` has room for as many as its root has.
void append_steps_of_broadcast(std::vector<Step>& steps, const Shape& shape, std::uint32_t node);

// Of the lists of all nodes: who has the same number combines in the same order.
std::uint64_t hash_of(const Shape& shape);
// The same of lists that are no shape's.
std::uint64_t hash_of(std::uint32_t nodes, FunctionRef<std::vector<Step>(std::uint32_t node)> list);

}  // namespace farsum::trees
