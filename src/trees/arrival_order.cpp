#include "trees/arrival_order.hpp"

#include <algorithm>
#include <utility>

namespace farsum::trees {
namespace {

// When the root of a subtree of so many nodes has combined all of it. Only the last child of each phase can have less
// than a full subtree, and that one alone of them all.
class UnitTimes {
 public:
  UnitTimes(std::uint32_t degree, std::uint32_t phases) : degree_(degree) {
    std::uint64_t stride = 1;
    for (std::uint32_t phase = 0; phase < phases; ++phase, stride *= degree) full_.push_back(of(stride));
  }

  std::uint64_t of(std::uint64_t subtree) const {
    std::vector<std::uint64_t> arrivals;
    std::uint64_t stride = 1;
    for (std::size_t phase = 0; stride < subtree; ++phase, stride *= degree_) {
      for (std::uint64_t digit = 1; digit < degree_ && digit * stride < subtree; ++digit) {
        const std::uint64_t rest = subtree - digit * stride;
        arrivals.push_back(rest >= stride ? full_[phase] + 1 : of(rest) + 1);
      }
    }
    std::sort(arrivals.begin(), arrivals.end());
    std::uint64_t now = 0;
    for (const std::uint64_t arrival : arrivals) now = std::max(now, arrival) + 1;
    return now;
  }

 private:
  std::uint32_t degree_;
  std::vector<std::uint64_t> full_;  // of the full subtrees, by phase
};

}  // namespace

void sort_by_arrival(std::vector<Fnomial::Child>& children, std::uint32_t degree) {
  if (children.size() < 2) return;
  const UnitTimes times(degree, children.back().phase + 1);
  std::vector<std::pair<std::uint64_t, Fnomial::Child>> timed;
  timed.reserve(children.size());
  for (const Fnomial::Child& child : children) timed.emplace_back(times.of(child.subtree), child);
  std::stable_sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < timed.size(); ++i) children[i] = timed[i].second;
}

}  // namespace farsum::trees
