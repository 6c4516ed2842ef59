// Figures 1, 11, 12 and 13 and table 3 of paper 5 from the simulated cluster, a row a point, beside what the paper
// states. The barrier is fitted on one number and the load of the noise on another; the host's crossing of the bus was
// chosen for a third (paper_cluster.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace farsum::cluster {

// Where a number comes from. Predicted: with the noise's length and a hand-over within the node taken as given.
// Assumed: it rests on another cost that neither table 2 nor a fit gives.
enum class Basis : std::uint8_t { fitted, predicted, assumed };

struct PaperRow {
  std::string figure;  // "figure 1" to "table 3"
  std::string curve;
  std::string quantity;
  std::string unit;
  std::uint32_t nodes = 0;
  std::uint32_t ranks = 0;
  std::string vector;  // "int32 sum"; empty in a barrier
  std::uint64_t elements = 1;
  std::uint32_t degree = 0;  // 0: the host's tree, or none
  std::uint32_t splits = 0;
  double noise_length_us = 0;     // 0: without noise
  std::optional<double> from_us;  // of a bin of times: where it begins
  std::optional<double> paper;
  double ours = 0;
  Basis basis = Basis::predicted;
  std::string includes;  // besides the reduce, as section 6.1 says
  std::size_t calls = 1;
};

struct PaperRowOptions {
  std::size_t calls = 100'000;  // as in section 6.1; agents, most of whose calls are walked, have a tenth of it
  std::uint64_t seed = 1;
  bool is_short = false;  // few numbers of nodes, and noise of one length
};

std::vector<PaperRow> paper_rows(const PaperRowOptions& options);

}  // namespace farsum::cluster
