// Paper 3's counter by lab-counter: a number drawn while the owner of the counter computes (case 1) beside one drawn
// while it waits in MPI (case 2). With Farsum the two are to be alike.
#include <array>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "session.hpp"

namespace bench {
namespace {

constexpr double alike = 1.5;
constexpr const char* row = "counter";
constexpr const char* tasks = "irregular";
constexpr int owner_computes = 1;

struct Setting {
  std::string implementation;
  std::string memory;
  [[nodiscard]] std::string name() const {
    return fmt::format("{}, {}, {} tasks: owner computes / waits", implementation, memory, tasks);
  }
};

const std::array<Setting, 6> settings{{{"fetch-op", "create"},
                                       {"fetch-op", "allocate"},
                                       {"tree", "create"},
                                       {"tree", "allocate"},
                                       {"per-rank-words", "create"},
                                       {"per-rank-words", "allocate"}}};

class CounterRun {
 public:
  explicit CounterRun(const Session& session) : session_(session) {}

  void measure(const Setting& setting) {
    const int pairs = session_.pairs(usual_pairs);
    for (int pair = 0; pair < pairs; ++pair) {
      for (const std::string& library : session_.options.libraries) {
        // The papers' two slower counters wait still longer without Farsum: their ratio is asked for once.
        if (setting.implementation == "fetch-op" || pair == 0) run(setting, library, Side::without);
        run(setting, library, Side::with);
      }
    }
  }

  void tell(const Setting& setting) {
    for (const std::string& library : session_.options.libraries) {
      const Figure alone = figure_of(pairs_[{library, Side::without}]);
      session_.report.line({.row = row,
                            .name = setting.name(),
                            .library = library,
                            .peer = "owner waits",
                            .unit = "us",
                            .figure = figure_of(pairs_[{library, Side::with}]),
                            .aim = alike,
                            .ratio_without = alone.ratio,
                            .note = notes_[library]});
    }
  }

 private:
  static constexpr int usual_pairs = 3;  // each has two repetitions of either case, in turn

  void run(const Setting& setting, const std::string& library, Side side) {
    session_.report.progress(
        fmt::format("counter: {} {}, {} {} Farsum", setting.implementation, setting.memory, library, name_of(side)));
    const bool quick = session_.options.quick;
    const LabOutcome outcome = session_.lab.run(
        {.program = "counter",
         .library = library,
         .side = side,
         .arguments = {"--cases", "1,2", "--implementation", setting.implementation, "--memory", setting.memory,
                       "--tasks", tasks, "--tasks-per-rank", "10", "--repeats", quick ? "1" : "2"}});
    if (outcome.ending != Ending::good) {
      if (side == Side::with) {
        session_.report.failure(fmt::format("{} with Farsum, counter {} on {} memory: {}\n{}", library,
                                            setting.implementation, setting.memory, outcome.reason, outcome.errors));
      } else {
        notes_[library] = fmt::format("{} alone: {}", library, outcome.reason);
      }
      return;
    }
    Pairs& pairs = pairs_[{library, side}];
    for (const Json& record : outcome.records) {
      const double get_us = record.at("get_us").at("median").get<double>();
      (record.at("case") == owner_computes ? pairs.ours : pairs.limit).push_back(get_us);
    }
  }

  const Session& session_;
  std::map<std::pair<std::string, Side>, Pairs> pairs_;
  std::map<std::string, std::string> notes_;
};

}  // namespace

void run_counter(const Session& session) {
  for (const Setting& setting : settings) {
    if (!session.wants(row, setting.name())) continue;
    if (session.options.quick && setting.implementation != "fetch-op") continue;
    CounterRun run(session);
    run.measure(setting);
    run.tell(setting);
  }
}

}  // namespace bench
