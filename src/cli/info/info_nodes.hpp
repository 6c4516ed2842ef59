// Nodes of a job that are processes of this machine, forked from this one: Farsum takes them for different hosts by
// their names, so that what they tell each other goes over the network.
#pragma once

#include <pthread.h>

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace farsum::cli {

// One of them, in its process.
class NodeHere {
 public:
  // In memory that all of them see.
  struct Meeting {
    pthread_barrier_t barrier;
    int nodes;
    std::array<std::byte, 64 * 1024> gathered;
    std::size_t results;
    std::array<double, 256> result;
  };

  NodeHere(int node, Meeting& meeting) : node_(node), meeting_(meeting) {}

  [[nodiscard]] int node() const { return node_; }
  // farsum_init, with that FARSUM_REDUCE_DEGREE. Throws what Farsum says.
  void open(int degree);
  // All come, and sleep until the last does; Farsum has no part in it.
  void meet() { pthread_barrier_wait(&meeting_.barrier); }
  // The results, by one node.
  void tell(std::span<const double> results);

 private:
  int gather(const void* mine, void* all, std::size_t bytes);

  int node_;
  Meeting& meeting_;
};

// Runs `work` in so many processes, which end with it, and gives the results. Where one fails the others are ended, and
// there are none. There is neither a thread nor Farsum here yet.
[[nodiscard]] std::optional<std::vector<double>> run_nodes_here(int nodes, const std::function<void(NodeHere&)>& work);

}  // namespace farsum::cli
