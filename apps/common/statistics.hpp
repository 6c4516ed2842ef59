// What Farsum did in a stretch of a program, so that a path is seen to be the path and a sleeping agent to sleep.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "farsum.h"
#include "job.hpp"

namespace apps {

constexpr std::array<const char*, 6> path_names = {"direct", "attach", "caller", "owner", "aggregated", "offload"};

inline farsum_statistics read_statistics() {
  farsum_statistics now{};
  now.struct_bytes = sizeof now;
  require(farsum_statistics_read(&now));
  return now;
}

inline farsum_statistics difference(const farsum_statistics& later, const farsum_statistics& earlier) {
  farsum_statistics change = later;
  for (std::size_t path = 0; path < path_names.size(); ++path) {
    change.operations[path] -= earlier.operations[path];
    change.bytes[path] -= earlier.bytes[path];
  }
  change.messages_sent -= earlier.messages_sent;
  change.messages_served -= earlier.messages_served;
  change.agent_wakeups -= earlier.agent_wakeups;
  change.doorbells_rung -= earlier.doorbells_rung;
  change.waits_slept -= earlier.waits_slept;
  change.stripe_contention -= earlier.stripe_contention;
  return change;
}

inline farsum_statistics total(const std::vector<farsum_statistics>& ranks) {
  farsum_statistics sum{};
  for (const farsum_statistics& rank : ranks) {
    for (std::size_t path = 0; path < path_names.size(); ++path) {
      sum.operations[path] += rank.operations[path];
      sum.bytes[path] += rank.bytes[path];
    }
    sum.messages_sent += rank.messages_sent;
    sum.messages_served += rank.messages_served;
    sum.agent_wakeups += rank.agent_wakeups;
    sum.doorbells_rung += rank.doorbells_rung;
    sum.waits_slept += rank.waits_slept;
    sum.stripe_contention += rank.stripe_contention;
  }
  return sum;
}

// Such as "direct 20, owner 3", or "none".
inline std::string operations_text(const farsum_statistics& statistics) {
  std::string text;
  for (std::size_t path = 0; path < path_names.size(); ++path) {
    if (statistics.operations[path] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", path_names[path], statistics.operations[path]);
  }
  return text.empty() ? "none" : text;
}

inline nlohmann::json statistics_json(const farsum_statistics& statistics) {
  nlohmann::json json;
  for (std::size_t path = 0; path < path_names.size(); ++path) {
    json["operations"][path_names[path]] = statistics.operations[path];
    json["bytes"][path_names[path]] = statistics.bytes[path];
  }
  json["messages_sent"] = statistics.messages_sent;
  json["messages_served"] = statistics.messages_served;
  json["agent_wakeups"] = statistics.agent_wakeups;
  json["doorbells_rung"] = statistics.doorbells_rung;
  json["waits_slept"] = statistics.waits_slept;
  json["stripe_contention"] = statistics.stripe_contention;
  return json;
}

}  // namespace apps
