#include "runtime/tree_times.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/link_models.hpp"
#include "runtime/model_files.hpp"
#include "runtime/model_json.hpp"

namespace farsum {
namespace {

using nlohmann::json;

constexpr int version_of_trees = 1;
constexpr const char* class_of_trees = "trees";

// Why the file has no trees; empty where it has.
std::string read_trees(const json& document, MeasuredTrees& read) {
  if (std::string why = why_not_of(document, class_of_trees, version_of_trees); !why.empty()) return why;
  const auto nodes = whole_number(document.value("nodes", json()), 2, 65'536);
  const auto processors = whole_number(document.value("processors", json()), 1, 1U << 20);
  if (!nodes || !processors) return "it does not say in what conditions it was measured";
  read.nodes = *nodes;
  read.processors = *processors;
  const json curves = document.value("curves", json());
  if (!curves.is_array() || curves.empty()) return "it has no times";
  for (const json& row : curves) {
    const auto timed = read_timed_vector(row);
    if (!timed || timed->times.empty()) return "one of its rows is no vector with its times by degree";
    TreeCurve& curve = read.curves.emplace_back(TreeCurve{.vector = timed->vector, .times = {}});
    for (const CountedTime& time : timed->times) curve.times.push_back({.degree = time.count, .us = time.us});
  }
  const json when = document.value("when", json());
  read.when = when.is_string() ? when.get<std::string>() : "";
  return {};
}

}  // namespace

std::string tree_file(const std::string& folder) {
  return fmt::format("{}/{}-{:08x}.json", folder, class_of_trees, own_machine_number());
}

MeasuredTrees read_measured_trees(const std::string& folder) {
  MeasuredTrees none;
  if (folder.empty()) return none;
  const std::string path = tree_file(folder);
  const std::optional<std::string> text = read_model_text(path);
  if (!text) return none;
  MeasuredTrees read;
  read.source = path;
  const json document = json::parse(*text, nullptr, false);
  const std::string complaint = document.is_discarded() ? "it is not JSON" : read_trees(document, read);
  if (complaint.empty()) return read;
  none.complaint = fmt::format("{} is not used: {}", path, complaint);
  return none;
}

Status write_measured_trees(const std::string& folder, const MeasuredTrees& trees, const std::string& when) {
  json curves = json::array();
  for (const TreeCurve& curve : trees.curves) {
    TimedVectorRow row{.vector = curve.vector, .times = {}};
    for (const TreeTime& time : curve.times) row.times.push_back({.count = time.degree, .us = time.us});
    curves.push_back(json_of(row));
  }
  const json document = {
      {"version", version_of_trees}, {"class", class_of_trees},        {"machine", machine_kind()},  {"when", when},
      {"nodes", trees.nodes},        {"processors", trees.processors}, {"curves", std::move(curves)}};
  return write_model_text(folder, tree_file(folder), document.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace farsum
