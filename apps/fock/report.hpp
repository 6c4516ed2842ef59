// What the first rank prints: the header, the line of each iteration, the tables at the end, and the same as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job.hpp"
#include "reference.hpp"
#include "scf.hpp"

namespace fock {

struct RunDescription {
  std::string molecule;
  std::string basis;
  std::string angular;
  std::string path;  // how blocks of another rank are reached, as Farsum reports it
  int electrons = 0;
  int functions = 0;
  int shells = 0;
  int ranks = 0;
  std::uint64_t blocks = 0;
  std::uint64_t tickets_per_build = 0;
  std::uint64_t window_bytes = 0;  // of all ranks
  double seconds = 0;
};

void print_header(const RunDescription& run);
void print_iteration(const Iteration& iteration);
void print_progress(int iteration, double share);  // overwrites itself; nothing unless stderr is a terminal
void print_result(const RunDescription& run, const ScfResult& result, const std::vector<Activity>& ranks);
// Prints ours, NWChem's and the difference; whether they agree.
bool print_comparison(const ScfResult& result, const Reference& reference);

std::string to_json(const RunDescription& run, const ScfResult& result, const std::vector<Activity>& ranks,
                    const std::optional<Reference>& reference);

Activity total_of(const std::vector<Activity>& ranks);

}  // namespace fock
