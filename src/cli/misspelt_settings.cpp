#include "cli/misspelt_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/settings.hpp"

namespace farsum::cli {

namespace {

constexpr std::string_view prefix = "FARSUM_";
// UCX reads names of its own under it.
constexpr std::string_view of_ucx = "FARSUM_NET_UCX_";
constexpr std::string_view of_mpi = "FARSUM_MPI_";

// Two slips make too many words of a short one.
std::size_t most_slips_in(std::string_view name) { return name.size() < prefix.size() + 8 ? 1 : 2; }

// The fewest letters to be put in, left out, changed or swapped with the next that make one word of the other.
std::size_t slips_between(std::string_view one, std::string_view other) {
  std::vector<std::vector<std::size_t>> slips(one.size() + 1, std::vector<std::size_t>(other.size() + 1));
  for (std::size_t i = 0; i <= one.size(); ++i) {
    for (std::size_t j = 0; j <= other.size(); ++j) {
      if (i == 0 || j == 0) {
        slips[i][j] = i + j;
        continue;
      }
      const std::size_t changed = one[i - 1] == other[j - 1] ? 0 : 1;
      slips[i][j] = std::min({slips[i - 1][j] + 1, slips[i][j - 1] + 1, slips[i - 1][j - 1] + changed});
      const bool swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (swapped) slips[i][j] = std::min(slips[i][j], slips[i - 2][j - 2] + 1);
    }
  }
  return slips[one.size()][other.size()];
}

// The setting with the nearest name, itself where it is one; empty where none is near.
std::string meant_by(std::string_view name, const std::vector<SettingRow>& settings) {
  const std::string with_mpi = std::string(of_mpi) + std::string(name.substr(prefix.size()));
  std::string nearest;
  std::size_t fewest = name.size();
  for (const SettingRow& row : settings) {
    const std::size_t slips = row.name == with_mpi ? 1 : slips_between(name, row.name);
    if (slips >= fewest || slips > most_slips_in(row.name)) continue;
    fewest = slips;
    nearest = row.name;
  }
  return nearest;
}

}  // namespace

std::vector<std::string> misspelt_settings(const char* const* environment) {
  const std::vector<SettingRow> settings = describe_settings({});
  std::vector<std::string> sentences;
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const std::string_view name = variable.substr(0, variable.find('='));
    if (!name.starts_with(prefix) || name.starts_with(of_ucx)) continue;
    if (const std::string meant = meant_by(name, settings); !meant.empty() && meant != name)
      sentences.push_back(
          fmt::format("{} is no setting and does nothing; {} is one (farsum info --settings lists all)", name, meant));
  }
  return sentences;
}

}  // namespace farsum::cli
