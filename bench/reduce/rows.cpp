#include "rows.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bench {
namespace {

Json or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

std::optional<double> ratio_of(const Row& row) {
  if (row.ratio) return row.ratio;
  if (!row.ours || !row.limit || *row.limit == 0) return std::nullopt;
  return *row.ours / *row.limit;
}

Json is_met(const Row& row, const std::optional<double>& ratio) {
  if (!ratio || !row.aim) return {};
  return row.better == Better::lower ? *ratio <= *row.aim : *ratio >= *row.aim;
}

std::string number_text(const Json& value) {
  return value.is_number() ? fmt::format("{:.4g}", value.get<double>()) : "-";
}

std::string met_text(const Json& met) { return !met.is_boolean() ? "" : met.get<bool>() ? "met" : "MISSED"; }

}  // namespace

Json json_of(const Row& row) {
  const std::optional<double> ratio = ratio_of(row);
  return {{"bench", "reduce"},         {"case", row.name},
          {"ours", or_null(row.ours)}, {"limit", or_null(row.limit)},
          {"ratio", or_null(ratio)},   {"better", row.better == Better::lower ? "lower" : "higher"},
          {"aim", or_null(row.aim)},   {"met", is_met(row, ratio)},
          {"unit", row.unit},          {"peer", row.peer.empty() ? Json() : Json(row.peer)}};
}

std::optional<std::pair<std::string, double>> best_of(const std::map<std::string, double>& peers, Better better) {
  const auto of_number = [](const auto& one) { return one.second; };
  const auto best = better == Better::lower ? std::ranges::min_element(peers, {}, of_number)
                                            : std::ranges::max_element(peers, {}, of_number);
  if (best == peers.end()) return std::nullopt;
  return *best;
}

Json json_of(const std::map<std::string, double>& peers) {
  Json object = Json::object();
  for (const auto& [name, number] : peers) object[name] = number;
  return object;
}

Json beside_best(Row row, const std::map<std::string, double>& peers) {
  if (const auto best = best_of(peers, row.better)) {
    row.limit = best->second;
    row.peer = best->first;
  }
  Json object = json_of(row);
  object["peers"] = json_of(peers);
  return object;
}

std::string lines_of(const std::vector<Json>& rows) {
  std::string lines;
  for (const Json& row : rows) lines += row.dump() + "\n";
  return lines;
}

std::string table_of(const std::vector<Json>& rows, const Failures& failures) {
  constexpr const char* layout = "{:<{}} {:>10} {:>10} {:<5} {:>8} {:>6} {:<7} {}\n";
  std::size_t width = 0;
  for (const Json& row : rows) width = std::max(width, row.at("case").get<std::string>().size());
  std::string table = fmt::format(layout, "case", width, "ours", "best", "", "ratio", "aim", "", "best is");
  for (const Json& row : rows) {
    table += fmt::format(layout, row.at("case").get<std::string>(), width, number_text(row.at("ours")),
                         number_text(row.at("limit")), row.at("unit").get<std::string>(), number_text(row.at("ratio")),
                         number_text(row.at("aim")), met_text(row.at("met")),
                         row.at("peer").is_string() ? row.at("peer").get<std::string>() : "");
  }
  for (const auto& [who, why] : failures.reasons) table += fmt::format("{}: {}\n", who, why);
  return table;
}

}  // namespace bench
