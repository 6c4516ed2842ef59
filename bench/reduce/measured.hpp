// Times the collective calls of Farsum's C interface and of MPI libraries on this node, all in turn.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/lab.hpp"
#include "reduce/cases/call.hpp"

namespace bench {

struct MeasureOptions {
  std::vector<std::string> rows;       // as the shell's patterns of call names; empty: all
  std::vector<int> ranks;              // empty: 2, 4 and 8
  std::vector<std::string> libraries;  // the peers; empty: all that are here
  int pairs = 3;
  double seconds = 0.1;  // of each call and turn
  int cap_s = 120;
  bool by_ranks = false;  // Farsum once more in each turn, in the order of ranks
};

// Of one call on so many ranks.
struct MeasuredRow {
  collectives::Call call;
  int ranks = 2;
  std::optional<double> ours_us;  // the median of the turns
  std::optional<double> by_ranks_us;
  std::map<std::string, double> peers_us;
  std::optional<double> hand_over_us;  // of a line of memory between two processors
};

struct MeasuredReductions {
  std::vector<MeasuredRow> rows;
  std::map<std::string, std::string> failures;  // by who it was
  bool is_wrong = false;                        // Farsum's run ended badly
};

// What cannot be, in a sentence; empty where all can.
[[nodiscard]] std::string why_not(const MeasureOptions& options, const Lab& lab);
[[nodiscard]] MeasuredReductions measure(const MeasureOptions& options, const Lab& lab);

// An object a line: ours, and as `limit` the best peer's; then the order of ranks beside ours; then what of the first
// row is in hand-overs of a line.
[[nodiscard]] std::string lines_of(const MeasuredReductions& measured);
[[nodiscard]] std::string table_of(const MeasuredReductions& measured);

}  // namespace bench
