#include "runtime/reduction_models.hpp"

#include <cstdint>
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

constexpr int version_of_reductions = 1;
constexpr const char* class_name = "reductions";

// Why the file is no model; empty where it is one.
std::string read_reductions(const json& document, ReductionParameters& read) {
  if (std::string why = why_not_of(document, class_name, version_of_reductions); !why.empty()) return why;
  const auto round_trip = microseconds(document.value("round_trip_us", json()));
  const auto processors = whole_number(document.value("processors", json()), 1, 1U << 20);
  const auto packet = whole_number(document.value("packet_bytes", json()), 1, 1U << 20);
  if (!round_trip || !processors || !packet) return "it does not say in what conditions it was measured";
  read.measured.conditions = {.half_round_trip_us = *round_trip, .processors = *processors, .packet_bytes = *packet};
  const json curves = document.value("curves", json());
  if (!curves.is_array()) return "it has no times";
  for (const json& row : curves) {
    const auto timed = read_timed_vector(row);
    if (!timed) return "one of its rows is no serial reduction with its times";
    cost::SerialCurve& curve =
        read.measured.curves.emplace_back(cost::SerialCurve{.vector = timed->vector, .times = {}});
    for (const CountedTime& time : timed->times) curve.times.push_back({.ranks = time.count, .us = time.us});
  }
  auto fitted = cost::fit_model(read.measured.curves, read.measured.conditions);
  if (!fitted || fitted->model.combines.empty()) return "its times make no model";
  read.fitted = std::move(*fitted);
  read.model = read.fitted.model;
  const json when = document.value("when", json());
  read.when = when.is_string() ? when.get<std::string>() : "";
  return {};
}

}  // namespace

std::string reduction_file(const std::string& folder) {
  return fmt::format("{}/{}-{:08x}.json", folder, class_name, own_machine_number());
}

ReductionParameters read_reduction_parameters(const std::string& folder) {
  ReductionParameters built_in;
  built_in.model = cost::paper_model();
  built_in.source = "built in";
  if (folder.empty()) return built_in;
  const std::string path = reduction_file(folder);
  const std::optional<std::string> text = read_model_text(path);
  if (!text) return built_in;
  ReductionParameters read;
  read.source = path;
  const json document = json::parse(*text, nullptr, false);
  const std::string complaint = document.is_discarded() ? "it is not JSON" : read_reductions(document, read);
  if (complaint.empty()) return read;
  built_in.complaint = fmt::format("{} is not used: {}", path, complaint);
  return built_in;
}

cost::TreeRule read_tree_rule(const Settings& settings, const Environment& environment) {
  cost::TreeRule rule;
  rule.forced_degree = static_cast<std::uint32_t>(settings.reduce_degree);
  rule.splits = static_cast<std::uint32_t>(settings.reduce_splits);
  if (rule.forced_degree != 0 || settings.reduce_model == ReduceModel::off) return rule;
  const ReductionParameters parameters = read_reduction_parameters(model_folder(settings, environment));
  if (!parameters.is_measured()) return rule;
  rule.has_table = 1;
  rule.table = cost::table_of(parameters.model);
  return rule;
}

Status write_serial_reductions(const std::string& folder, const SerialReductions& measured, const std::string& when) {
  json curves = json::array();
  for (const cost::SerialCurve& curve : measured.curves) {
    TimedVectorRow row{.vector = curve.vector, .times = {}};
    for (const cost::SerialTime& time : curve.times) row.times.push_back({.count = time.ranks, .us = time.us});
    curves.push_back(json_of(row));
  }
  const json document = {{"version", version_of_reductions},
                         {"class", class_name},
                         {"machine", machine_kind()},
                         {"when", when},
                         {"round_trip_us", measured.conditions.half_round_trip_us},
                         {"processors", measured.conditions.processors},
                         {"packet_bytes", measured.conditions.packet_bytes},
                         {"curves", std::move(curves)}};
  return write_model_text(folder, reduction_file(folder),
                          document.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace farsum
