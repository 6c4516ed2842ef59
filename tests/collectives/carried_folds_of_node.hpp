// A node whose ranks have left what they bring to calls, each with its folds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "carried_node.hpp"
#include "collectives/carried_folds.hpp"

namespace farsum {

struct RootAndOrder {
  std::uint32_t root = 0;
  ReduceOrder order = ReduceOrder::nodes;
};

class FoldsOfNode {
 public:
  FoldsOfNode(const std::vector<std::uint32_t>& node_of, std::uint32_t mine, Mailboxes& boxes,
              ReduceOrder order = ReduceOrder::nodes)
      : node(node_of, mine, boxes) {
    for (auto& member : node.members)
      folds.emplace_back(
          CarriedFolds::Parts{member.memory, member.bells, member.help, ops::kernels_for_this_machine(), order});
  }
  FoldsOfNode(const FoldsOfNode&) = delete;
  FoldsOfNode& operator=(const FoldsOfNode&) = delete;
  ~FoldsOfNode() {
    for (const auto& request : requests_) {
      if (request->own.bytes != 0) node.extents.give_back(request->own);
    }
  }

  // Each rank brings numbers from its rank on.
  CarriedCall leave(CarriedCall::Kind kind, std::size_t count, std::uint64_t number, const RootAndOrder& further = {}) {
    for (auto& member : node.members) {
      const WordsOfRank words(kind, count, member.rank);
      words.request->call.root = further.root;
      words.request->call.order = further.order;
      leave_one(member, words, number);
    }
    return requests_.back()->call;
  }
  void leave_one(CarriedNode::Member& member, const WordsOfRank& words, std::uint64_t number) {
    requests_.push_back(words.request);
    member.leave(words.request, number);
  }
  // The place has its next call.
  void close(std::uint64_t number) { node.members[0].bells.close(node.members[0].memory.place(number)); }
  const CarriedPlace& place(std::uint64_t number) { return node.members[0].memory.place(number); }
  bool is_over(std::uint64_t number) { return node.members[0].memory.has_outcome(number); }
  std::uint64_t answer(std::uint64_t number, const CarriedCall& call, std::size_t index) {
    return word_at(node.members[0].memory.answer_of(number, call), index);
  }

  CarriedNode node;
  std::deque<CarriedFolds> folds;  // by member

 private:
  std::vector<std::shared_ptr<CarriedRequest>> requests_;
};

}  // namespace farsum
