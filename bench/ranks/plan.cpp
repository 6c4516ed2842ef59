#include <fnmatch.h>

#include <algorithm>

#include "session.hpp"

namespace bench {
namespace {

bool wants(const Options& options, const ranks::Row& row) {
  return options.rows.empty() || std::ranges::any_of(options.rows, [&](const std::string& pattern) {
           return fnmatch(pattern.c_str(), row.name, 0) == 0 || pattern == row.group;
         });
}

void add_points(const Options& options, const ranks::Row& row, Plan& plan) {
  for (const std::string& variant : options.full ? row.variants : row.usual_variants) {
    if (row.has_threads()) {
      for (const int threads : options.threads)
        plan.points.push_back({.row = &row, .variant = variant, .threads = threads});
    } else {
      plan.points.push_back({.row = &row, .variant = variant});
    }
  }
}

}  // namespace

std::vector<Plan> plans_of(const Options& options) {
  std::vector<Plan> plans;
  for (const int ranks : options.ranks) {
    for (const ranks::Row& row : ranks::all_rows()) {
      if (!wants(options, row) || (row.has_threads() && ranks != 2)) continue;
      if (plans.empty() || plans.back().group != row.group || plans.back().ranks != ranks)
        plans.push_back({.ranks = ranks, .group = row.group, .points = {}});
      add_points(options, row, plans.back());
    }
  }
  return plans;
}

}  // namespace bench
