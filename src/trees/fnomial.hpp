// An f-nomial tree (paper 5, section 5.2 and appendix A): nodes take a position each, counted from the root, and a
// position's digits to the base of the degree say who is whose parent. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/function_ref.hpp"

namespace farsum::trees {

class Fnomial {
 public:
  struct Child {
    std::uint32_t node;
    std::uint32_t phase;
    std::uint32_t subtree;  // nodes in its subtree, which take consecutive positions, itself first
  };

  // root < nodes and degree >= 2. With a degree of `nodes` and more, all are the root's children.
  Fnomial(std::uint32_t nodes, std::uint32_t degree, std::uint32_t root = 0)
      : nodes_(nodes), degree_(degree), root_(root) {}

  // None of the root.
  std::optional<std::uint32_t> parent(std::uint32_t node) const;
  // By slot: phase by phase, and in a phase by position.
  std::vector<Child> children(std::uint32_t node) const;
  // The same, and nothing is allocated.
  void for_each_child(std::uint32_t node, FunctionRef<void(const Child&)> call) const;
  // Which of its parent's children it is, counted from 0 over all phases; 0 of the root.
  std::uint32_t slot(std::uint32_t node) const;
  // Letters from the node to the root, one after the other.
  std::uint32_t depth(std::uint32_t node) const;
  std::uint32_t subtree(std::uint32_t node) const;

 private:
  // Where a position hangs: its last digit that is not 0.
  struct Place {
    std::uint64_t stride;
    std::uint32_t phase;
    std::uint32_t digit;
  };
  Place place(std::uint32_t position) const;
  std::uint32_t position(std::uint32_t node) const { return node < root_ ? node + (nodes_ - root_) : node - root_; }
  std::uint32_t node_at(std::uint32_t position) const {
    return position < nodes_ - root_ ? position + root_ : position - (nodes_ - root_);
  }

  std::uint32_t nodes_;
  std::uint32_t degree_;
  std::uint32_t root_;
};

}  // namespace farsum::trees
