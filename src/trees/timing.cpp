#include "trees/timing.hpp"

#include <algorithm>
#include <map>

#include "trees/walk.hpp"

namespace farsum::trees {
namespace {

// All nodes of one collective, each as far in its list as the letters that it has allow. Times do not depend on who is
// walked first, for a letter is taken by its sender and never by its arrival.
class Cluster final : public Carrier {
 public:
  Cluster(const Shape& shape, const Costs& costs, ChildOrder order) : costs_(costs), nodes_(shape.nodes) {
    for (std::uint32_t node = 0; node < shape.nodes; ++node) {
      nodes_[node].steps = steps_of(shape, node, order);
      nodes_[node].now_ns = nodes_[node].free_ns = costs.overhead_ns;
      ready_.push_back(node);
    }
  }

  void run() {
    while (!ready_.empty()) {
      here_ = ready_.back();
      ready_.pop_back();
      advance(nodes_[here_].steps, nodes_[here_].at, *this);
    }
  }

  std::int64_t finish_ns(std::uint32_t node) const { return std::max(nodes_[node].now_ns, nodes_[node].left_ns); }

  bool take(const Step& step) override {
    Node& node = nodes_[here_];
    const auto letter = node.letters.lower_bound(step.peer);
    if (letter == node.letters.end() || letter->first != step.peer) return false;
    node.now_ns = std::max(node.now_ns, letter->second) + costs_.receive_ns(step.count);
    if (step.action == Action::receive_combine) node.now_ns += costs_.combine_ns(step.count);
    node.letters.erase(letter);
    return true;
  }

  bool send(const Step& step) override {
    Node& node = nodes_[here_];
    node.left_ns = std::max(node.now_ns, node.free_ns);
    node.free_ns = node.left_ns + costs_.send_gap_ns;
    nodes_[step.peer].letters.emplace(here_, node.left_ns + costs_.latency_ns);
    ready_.push_back(step.peer);
    return true;
  }

 private:
  struct Node {
    std::vector<Step> steps;
    std::size_t at = 0;
    std::int64_t now_ns = 0;
    std::int64_t left_ns = 0;                            // its last letter
    std::int64_t free_ns = 0;                            // from then on the next may leave
    std::multimap<std::uint32_t, std::int64_t> letters;  // arrivals by sender, of one in the order of sending
  };

  const Costs& costs_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> ready_;
  std::uint32_t here_ = 0;
};

}  // namespace

Times event_times(const Shape& asked, const Costs& costs, ChildOrder order) {
  const Shape shape = normalised(asked);
  Cluster cluster(shape, costs, order);
  cluster.run();
  Times times;
  for (std::uint32_t node = 0; node < shape.nodes; ++node) times.finish_ns.push_back(cluster.finish_ns(node));
  times.root_ns = times.finish_ns[shape.root];
  times.last_ns = *std::max_element(times.finish_ns.begin(), times.finish_ns.end());
  return times;
}

}  // namespace farsum::trees
