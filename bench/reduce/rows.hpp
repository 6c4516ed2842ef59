// Rows of the measurements of `farsum bench reduce`, as JSON lines and as a table.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/lab.hpp"
#include "contest.hpp"

namespace bench {

enum class Better : std::uint8_t { lower, higher };

// A number of ours beside another that it is to come close to, or to be better than.
struct Row {
  std::string name;
  std::optional<double> ours = {};
  std::optional<double> limit = {};
  std::optional<double> ratio = {};  // without: of the two
  Better better = Better::lower;
  std::optional<double> aim = {};  // of the ratio; without one it is shown and not judged
  std::string unit = "us";
  std::string peer = {};  // whose the limit is
};

[[nodiscard]] Json json_of(const Row& row);

// The name and the number of the best; nothing where there are none.
[[nodiscard]] std::optional<std::pair<std::string, double>> best_of(const std::map<std::string, double>& peers,
                                                                    Better better);
[[nodiscard]] Json json_of(const std::map<std::string, double>& peers);
// The row beside the best of them, and all of them.
[[nodiscard]] Json beside_best(Row row, const std::map<std::string, double>& peers);

[[nodiscard]] std::string lines_of(const std::vector<Json>& rows);
// The failures stand below it.
[[nodiscard]] std::string table_of(const std::vector<Json>& rows, const Failures& failures);

}  // namespace bench
