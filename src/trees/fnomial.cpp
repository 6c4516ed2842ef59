#include "trees/fnomial.hpp"

#include <algorithm>

namespace farsum::trees {

std::optional<std::uint32_t> Fnomial::parent(std::uint32_t node) const {
  const std::uint32_t here = position(node);
  if (here == 0) return std::nullopt;
  const std::uint64_t above = place(here).stride * degree_;
  return node_at(static_cast<std::uint32_t>(here / above * above));
}

std::vector<Fnomial::Child> Fnomial::children(std::uint32_t node) const {
  std::vector<Child> found;
  for_each_child(node, [&](const Child& child) { found.push_back(child); });
  return found;
}

void Fnomial::for_each_child(std::uint32_t node, FunctionRef<void(const Child&)> call) const {
  const std::uint32_t here = position(node);
  std::uint32_t phase = 0;
  // 64 bits, for a stride may pass the largest number of nodes.
  for (std::uint64_t stride = 1; stride < nodes_; stride *= degree_, ++phase) {
    if (here / stride % degree_ != 0) break;
    std::uint64_t child = here + stride;
    for (std::uint32_t i = 1; i < degree_ && child < nodes_; ++i, child += stride) {
      const auto subtree = static_cast<std::uint32_t>(std::min<std::uint64_t>(stride, nodes_ - child));
      call({node_at(static_cast<std::uint32_t>(child)), phase, subtree});
    }
  }
}

std::uint32_t Fnomial::slot(std::uint32_t node) const {
  const std::uint32_t here = position(node);
  if (here == 0) return 0;
  const Place hangs = place(here);
  return hangs.phase * (degree_ - 1) + hangs.digit - 1;
}

std::uint32_t Fnomial::depth(std::uint32_t node) const {
  std::uint32_t letters = 0;
  for (std::uint32_t rest = position(node); rest != 0; rest /= degree_) letters += rest % degree_ != 0 ? 1 : 0;
  return letters;
}

std::uint32_t Fnomial::subtree(std::uint32_t node) const {
  const std::uint32_t here = position(node);
  if (here == 0) return nodes_;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(place(here).stride, nodes_ - here));
}

Fnomial::Place Fnomial::place(std::uint32_t position) const {
  std::uint64_t stride = 1;
  std::uint32_t phase = 0;
  while (position / stride % degree_ == 0) {
    stride *= degree_;
    ++phase;
  }
  return {stride, phase, static_cast<std::uint32_t>(position / stride % degree_)};
}

}  // namespace farsum::trees
