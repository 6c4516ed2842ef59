// Nodes that run their lists over values that say what was combined, in which order and in which round. What goes wrong
// is a sentence, so that a test can ask for it, too.
#pragma once

#include <bitset>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "trees/schedule.hpp"
#include "trees/walk.hpp"

namespace farsum::trees {

inline constexpr std::uint32_t most_nodes = 192;
using NodeSet = std::bitset<most_nodes>;

// One element.
struct Value {
  NodeSet nodes;                 // whose elements are in it
  std::uint32_t smallest = 0;    // of them
  std::uint64_t bracketing = 0;  // a hash
};

using Lists = std::vector<std::vector<Step>>;  // by node
Lists lists_of(const Shape& shape, ChildOrder order = ChildOrder::arrival);

class SymbolicCluster final : public Carrier {
 public:
  struct Options {
    std::uint32_t room = most_nodes;  // letters between two nodes that wait to be received
    std::uint32_t seed = 0;           // 0: nodes in turn; else at random, and each step is refused now and then
    bool texts = false;
    bool starve_root = false;  // it goes on only when nobody else can
  };

  SymbolicCluster(const Shape& shape, const Options& options);
  SymbolicCluster(const Shape& shape, const Options& options, const Lists& lists);

  // Another collective behind the first, of as many nodes and elements.
  void add_round(const Shape& shape);
  // `node` runs that round first.
  void begin_with(std::uint32_t node, std::uint32_t round);

  // Runs all rounds and returns what was wrong first; empty where all is as it should be.
  std::string run();

  // Of all elements at the node after the first round.
  std::vector<std::uint64_t> bracketing(std::uint32_t node) const;
  // The same of one element to read, such as ((0 1) 2), where texts are kept.
  std::string text(std::uint32_t node, std::uint64_t element) const;

  bool take(const Step& step) override;
  bool send(const Step& step) override;

 private:
  struct Letter {
    std::uint64_t first;
    std::vector<Value> values;
    NodeSet heard;
    std::uint32_t round;
  };
  struct Round {
    Shape shape;
    Lists lists;
    std::vector<std::vector<Value>> values;  // by node and element
    std::vector<NodeSet> heard;              // by node: of whose entry it knows

    Value& held(std::uint32_t node, std::uint64_t element) { return values[node][element % values[node].size()]; }
  };
  struct Node {
    std::deque<std::uint32_t> rounds;  // the one that it is in first
    std::size_t at = 0;
  };

  void add_round(const Shape& shape, const Lists& lists);
  std::uint32_t next_node();
  void walk(std::uint32_t node);
  bool refused();
  void wake(std::uint32_t node);
  std::vector<Letter>& letters(std::uint32_t from, std::uint32_t to) {
    return letters_[std::uint64_t{from} << 32 | to];
  }
  Round& round() { return rounds_[nodes_[here_].rounds.front()]; }
  void combine(Value& mine, const Value& theirs, bool mine_left);
  void complain(const std::string& what);
  void check_end();
  void check_gathered(const Round& round, std::uint32_t node);
  void check_whole(const Round& round, std::uint32_t node, const NodeSet& expected);

  Options options_;
  std::mt19937 random_;
  std::vector<Round> rounds_;
  std::vector<Node> nodes_;
  std::deque<std::uint32_t> ready_;                                 // nodes that may be able to go on
  std::unordered_map<std::uint64_t, std::vector<Letter>> letters_;  // by sender and receiver
  std::map<std::uint64_t, std::string> texts_;                      // by bracketing
  std::uint32_t here_ = 0;
  std::string complaint_;
};

}  // namespace farsum::trees
