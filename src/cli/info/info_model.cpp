// Collects the sections of info_model.hpp.
#include "cli/info/info_model.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "cli/info/info_reductions.hpp"
#include "cost/model.hpp"
#include "runtime/link_models.hpp"

namespace farsum::cli {

namespace {

using cost::Kind;
using cost::LinkClass;
using cost::Way;

const char* place_of(LinkClass link) { return link == LinkClass::node ? "node" : "hosts"; }

struct Models {
  LinkParameters node;
  LinkParameters tcp;
  cost::Thresholds thresholds;

  [[nodiscard]] const LinkParameters& of(LinkClass link) const { return link == LinkClass::node ? node : tcp; }
};

Models read_models(const Settings& settings, std::uint32_t partner) {
  const std::string folder = model_folder(settings, environment);
  Models models{
      read_link_parameters(folder, LinkClass::node), read_link_parameters(folder, LinkClass::tcp, partner), {}};
  models.thresholds = cost::thresholds(models.node.model, models.tcp.model);
  return models;
}

std::string source_of(const LinkParameters& parameters) {
  if (!parameters.measured) return "built in: measured on 2 virtual processors of an AMD EPYC in November 2026";
  return fmt::format("measured {}: {}", parameters.when, parameters.source);
}

std::string size_threshold(std::uint64_t bytes) { return bytes == cost::never ? "never" : fmt::format("{}", bytes); }

Report sources(const Settings& settings, const Models& models) {
  Report section;
  const std::string folder = model_folder(settings, environment);
  section["folder"] = folder.empty() ? "none" : folder;
  for (const LinkClass link : cost::link_classes) {
    const LinkParameters& parameters = models.of(link);
    section[cost::name_of(link)] = source_of(parameters);
    if (!parameters.complaint.empty()) section[fmt::format("{}_complaint", cost::name_of(link))] = parameters.complaint;
  }
  section["user_memory_of_a_node"] = fmt::format("{}; single elements: {}", cost::name_of(models.thresholds.user_bulk),
                                                 cost::name_of(models.thresholds.user_single));
  section["caller_from_bytes_between_hosts"] = size_threshold(models.thresholds.caller_from_bytes);
  section["gathering_single_updates_between_hosts"] =
      models.thresholds.aggregates ? "faster still in bursts by FARSUM_PATH=aggregated" : "by the owner path as fast";
  return section;
}

Report parameter_rows(const Models& models) {
  Report rows = Report::array();
  for (const LinkClass link : cost::link_classes) {
    for (const cost::Parameter& parameter : cost::parameters()) {
      rows.push_back({{"class", cost::name_of(link)},
                      {"parameter", parameter.name},
                      {"value", models.of(link).model.*parameter.value},
                      {"unit", parameter.unit},
                      {"from", models.of(link).measured ? "measured" : "built in"},
                      {"meaning", parameter.meaning}});
    }
  }
  return rows;
}

// Rounded to what anybody reads.
double shown(double us) { return std::round(us * 1e3) / 1e3; }

class Choices {
 public:
  explicit Choices(const Models& models) : models_(models) {}

  // `name` is the operation's as `farsum bench model` has it.
  void add(LinkClass link, bool user_memory, const char* name, const cost::Work& asked) {
    cost::Work work = asked;
    work.guarded = user_memory;
    const bool single = work.bytes == sizeof(double);
    const Way way = cost::chosen(models_.thresholds, link, work, single);
    Report predicted;
    for (const Way other : cost::ways) {
      if (!is_possible(link, user_memory, other, work)) continue;
      predicted[cost::name_of(other)] = shown(cost::predict(models_.of(link).model, link, other, work));
    }
    rows_.push_back({{"place", place_of(link)},
                     {"memory", user_memory ? "adopted" : "allocated"},
                     {"operation", name},
                     {"bytes", work.bytes},
                     {"burst", work.burst},
                     {"origins", work.contenders},
                     {"path", cost::name_of(way)},
                     {"predicted_us", shown(cost::predict(models_.of(link).model, link, way, work))},
                     {"all_us", predicted}});
  }

  Report take() { return std::move(rows_); }

 private:
  static bool is_possible(LinkClass link, bool user_memory, Way way, const cost::Work& work) {
    if (way == Way::aggregated) return work.kind == Kind::accumulate && work.bytes == sizeof(double);
    if (link == LinkClass::tcp) return way == Way::owner || way == Way::caller;
    return way != Way::direct || !user_memory;
  }

  const Models& models_;
  Report rows_ = Report::array();
};

constexpr std::uint64_t sizes[] = {8, 512, 4096, 65536, 1048576};
constexpr std::uint64_t longest_in_burst = 4096;
constexpr std::uint32_t operations_in_burst = 64;

void add_operations(Choices& choices, LinkClass link, bool user_memory, std::uint32_t origins) {
  for (const Kind kind : cost::kinds) {
    for (const std::uint64_t bytes : sizes) {
      choices.add(link, user_memory, cost::name_of(kind), {.kind = kind, .bytes = bytes, .contenders = origins});
      const bool streams = kind == Kind::put || kind == Kind::accumulate;
      if (!streams || bytes > longest_in_burst) continue;
      choices.add(link, user_memory, cost::name_of(kind),
                  {.kind = kind, .bytes = bytes, .contenders = origins, .burst = operations_in_burst});
    }
  }
  choices.add(link, user_memory, "fetch_and_op",
              {.kind = Kind::get_accumulate, .bytes = sizeof(double), .contenders = origins});
}

Report choice_rows(const Models& models) {
  Choices choices(models);
  for (const LinkClass link : cost::link_classes) {
    for (const bool user_memory : {false, true}) {
      for (const std::uint32_t origins : {1u, 2u}) add_operations(choices, link, user_memory, origins);
    }
  }
  return choices.take();
}

}  // namespace

Report describe_model(const Settings& settings, std::uint32_t partner) {
  const Models models = read_models(settings, partner);
  Report report;
  report["model"] = sources(settings, models);
  report["parameters"] = parameter_rows(models);
  report["choices"] = choice_rows(models);
  report.update(describe_reductions(model_folder(settings, environment), settings));
  return report;
}

Report describe_model_shortly(const Settings& settings, std::uint32_t partner) {
  Report report = describe_model(settings, partner);
  Report few = Report::array();
  for (Report& row : report["choices"]) {
    if (row["origins"] != 1) continue;
    row.erase("origins");
    std::string others;
    for (const auto& [way, us] : row["all_us"].items()) others += fmt::format("{} {}  ", way, us.dump());
    row["all_us"] = others;
    few.push_back(row);
  }
  report["choices"] = few;
  return report;
}

}  // namespace farsum::cli
