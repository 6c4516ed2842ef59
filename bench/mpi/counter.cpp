// Paper 3's counter by lab-counter: a number drawn while the owner of the counter computes (case 1) beside one drawn
// while it waits in MPI (case 2). With Farsum the two are to be alike. In memory that MPI allocated, the owner's draws
// take the counter into its own cache, which costs a number after one of another rank's what it costs the processor's
// own addition: so that is measured in the same run.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "session.hpp"

namespace bench {
namespace {

constexpr double alike = 1.5;
constexpr const char* counter_row = "counter";
constexpr const char* tasks = "irregular";
constexpr const char* bare = "bare";
constexpr int owner_computes = 1;
constexpr int owner_waits = 2;

struct Setting {
  std::string implementation;
  std::string memory;
};

const std::array<Setting, 6> settings{{{"fetch-op", "create"},
                                       {"fetch-op", "allocate"},
                                       {"tree", "create"},
                                       {"tree", "allocate"},
                                       {"per-rank-words", "create"},
                                       {"per-rank-words", "allocate"}}};

// One of the medians that a run tells.
struct Measure {
  std::string implementation;
  int kernel_case;
  std::string field;

  [[nodiscard]] std::optional<double> of(const std::vector<Json>& records) const {
    for (const Json& record : records) {
      if (record.at("implementation") == implementation && record.at("case") == kernel_case)
        return record.at(field).at("median").get<double>();
    }
    return std::nullopt;
  }
};

// Two of them beside one another.
struct Comparison {
  std::string name;
  Measure ours;
  Measure limit;
  std::string peer;
  std::optional<double> aim;
};

std::vector<Comparison> comparisons_of(const Setting& setting) {
  const auto cases = [&](const std::string& implementation, std::optional<double> aim) {
    return Comparison{fmt::format("{}, {}, {} tasks: owner computes / waits", implementation, setting.memory, tasks),
                      {implementation, owner_computes, "get_us"},
                      {implementation, owner_waits, "get_us"},
                      "owner waits",
                      aim};
  };
  std::vector<Comparison> comparisons{cases(setting.implementation, alike)};
  if (setting.implementation == "fetch-op" && setting.memory == "allocate") {
    comparisons.push_back({fmt::format("{}, {}, {} tasks: after another rank's number / bare", setting.implementation,
                                       setting.memory, tasks),
                           {setting.implementation, owner_computes, "get_us_after_another"},
                           {bare, owner_computes, "get_us_after_another"},
                           bare,
                           alike});
    comparisons.push_back(cases(bare, std::nullopt));
  }
  return comparisons;
}

class CounterRun {
 public:
  CounterRun(const Session& session, const Setting& setting)
      : session_(session), setting_(setting), comparisons_(comparisons_of(setting)) {}

  [[nodiscard]] bool is_wanted() const {
    return std::any_of(comparisons_.begin(), comparisons_.end(),
                       [this](const Comparison& comparison) { return session_.wants(counter_row, comparison.name); });
  }

  void measure() {
    const int pairs = session_.pairs(usual_pairs);
    for (int pair = 0; pair < pairs; ++pair) {
      for (const std::string& library : session_.options.libraries) {
        // The papers' two slower counters wait still longer without Farsum: their ratio is asked for once.
        if (setting_.implementation == "fetch-op" || pair == 0) run(library, Side::without);
        run(library, Side::with);
      }
    }
  }

  void tell() {
    for (const Comparison& comparison : comparisons_) {
      if (!session_.wants(counter_row, comparison.name)) continue;
      for (const std::string& library : session_.options.libraries) {
        const Figure alone = figure_of(pairs_[{comparison.name, library, Side::without}]);
        session_.report.line({.row = counter_row,
                              .name = comparison.name,
                              .library = library,
                              .peer = comparison.peer,
                              .unit = "us",
                              .figure = figure_of(pairs_[{comparison.name, library, Side::with}]),
                              .aim = comparison.aim,
                              .ratio_without = alone.ratio,
                              .note = notes_[library]});
      }
    }
  }

 private:
  static constexpr int usual_pairs = 3;  // each has two repetitions of either case, in turn

  void run(const std::string& library, Side side) {
    session_.report.progress(
        fmt::format("counter: {} {}, {} {} Farsum", setting_.implementation, setting_.memory, library, name_of(side)));
    const bool quick = session_.options.quick;
    std::string implementations = setting_.implementation;
    if (comparisons_.size() > 1) implementations += fmt::format(",{}", bare);
    const LabOutcome outcome = session_.lab.run(
        {.program = "counter",
         .library = library,
         .side = side,
         .arguments = {"--cases", "1,2", "--implementation", implementations, "--memory", setting_.memory, "--tasks",
                       tasks, "--tasks-per-rank", "10", "--repeats", quick ? "1" : "2"}});
    if (outcome.ending != Ending::good) {
      if (side == Side::with) {
        session_.report.failure(fmt::format("{} with Farsum, counter {} on {} memory: {}\n{}", library,
                                            setting_.implementation, setting_.memory, outcome.reason, outcome.errors));
      } else {
        notes_[library] = fmt::format("{} alone: {}", library, outcome.reason);
      }
      return;
    }
    for (const Comparison& comparison : comparisons_) {
      const std::optional<double> ours = comparison.ours.of(outcome.records);
      const std::optional<double> limit = comparison.limit.of(outcome.records);
      // A rank that drew all numbers of a run has none after another's.
      if (ours.value_or(0) == 0 || limit.value_or(0) == 0) continue;
      Pairs& pairs = pairs_[{comparison.name, library, side}];
      pairs.ours.push_back(*ours);
      pairs.limit.push_back(*limit);
    }
  }

  const Session& session_;
  const Setting& setting_;
  std::vector<Comparison> comparisons_;
  std::map<std::tuple<std::string, std::string, Side>, Pairs> pairs_;
  std::map<std::string, std::string> notes_;
};

}  // namespace

void run_counter(const Session& session) {
  for (const Setting& setting : settings) {
    if (session.options.quick && setting.implementation != "fetch-op") continue;
    CounterRun run(session, setting);
    if (!run.is_wanted()) continue;
    run.measure();
    run.tell();
  }
}

}  // namespace bench
