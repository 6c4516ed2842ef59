// A busy machine: as many busy loops as there are processors, beside a library alone and with Farsum in turn. Each
// library is its own peer here: how it shares a processor with others is its own.
#include <algorithm>
#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "common/busy_loops.hpp"
#include "common/usable_processors.hpp"
#include "nwchem_run.hpp"
#include "rank_with_loop.hpp"
#include "samples.hpp"
#include "session.hpp"

namespace bench {
namespace {

constexpr const char* beside_row = "beside";
constexpr const char* water = "NWChem's water";
constexpr double no_slower_beside = 1.2;
constexpr int pairs_beside = 5;

bool are_sessions_apart() {
  int enabled = 0;
  std::ifstream("/proc/sys/kernel/sched_autogroup_enabled") >> enabled;
  return enabled != 0;
}

// Where the loops are, and how many ranks.
struct Crowd {
  std::string place;  // of BesideOptions
  int ranks = 2;

  [[nodiscard]] std::string case_of(const std::string& name) const {
    return place == "nothing" ? fmt::format("{}, {} ranks", name, ranks)
                              : fmt::format("{}, loops {}, {} ranks", name, place, ranks);
  }
  [[nodiscard]] std::unique_ptr<BusyLoops> loops() const {
    return place == "outside" ? std::make_unique<BusyLoops>(usable_processors()) : nullptr;
  }
  [[nodiscard]] std::vector<std::string> through(const std::string& folder) const {
    if (place != "inside") return {};
    return {folder + "/bench-mpi", with_loop_word, std::to_string(usable_processors())};
  }
};

class BesideRun {
 public:
  BesideRun(const Session& session, const Crowd& crowd, NwchemWater& nwchem)
      : session_(session), crowd_(crowd), nwchem_(nwchem) {
    for (const std::string& name : session.lab.call_names(session.options.libraries.front())) {
      if (session.wants(beside_row, name)) names_.push_back(name);
    }
  }

  void measure() {
    const std::unique_ptr<BusyLoops> loops = crowd_.loops();
    const int pairs = session_.pairs(pairs_beside);
    for (int pair = 0; pair < pairs; ++pair) {
      for (const std::string& library : session_.options.libraries) {
        for (const Side side : {Side::without, Side::with}) {
          session_.report.progress(fmt::format("{}: pair {} of {}, {} {} Farsum", crowd_.case_of(beside_row), pair + 1,
                                               pairs, library, name_of(side)));
          for (const std::string& name : names_) run_call(library, side, name, pair);
          run_water(library, side, pair);
        }
      }
    }
  }

  void tell() {
    for (const std::string& name : names_) {
      for (const std::string& library : session_.options.libraries) tell_case(library, name, "ns");
    }
    if (!wants_water()) return;
    for (const std::string& library : session_.options.libraries) {
      if (NwchemWater::is_here(library)) tell_case(library, water, "s");
    }
  }

 private:
  using Key = std::tuple<std::string, Side, std::string>;

  [[nodiscard]] bool wants_water() const { return session_.wants(beside_row, water); }

  // Each in a program of its own, long enough for others to have the processor several times. One that a library does
  // not survive, or does not end, is not tried again.
  void run_call(const std::string& library, Side side, const std::string& name, int pair) {
    if (reasons_.contains({library, side, name})) return;
    const LabOutcome outcome =
        session_.lab.run({.program = "bench",
                          .library = library,
                          .side = side,
                          .ranks = crowd_.ranks,
                          .arguments = {"--memory", "allocate", "--owner", "idle", "--repeats", "1", "--repeat-ms",
                                        session_.options.quick ? "20" : "200", "--cases", name},
                          .through = crowd_.through(session_.lab.folder())});
    if (outcome.ending == Ending::good && !outcome.records.empty()) {
      samples_.add(library, side, name, pair, outcome.records.front().at("ns").get<double>());
    } else {
      fail({library, side, name}, outcome.reason, outcome.errors);
    }
  }

  void run_water(const std::string& library, Side side, int pair) {
    if (!wants_water() || !NwchemWater::is_here(library) || reasons_.contains({library, side, water})) return;
    const NwchemWater::Run run = nwchem_.run(library, side, crowd_.ranks, crowd_.through(session_.lab.folder()));
    if (run.seconds)
      samples_.add(library, side, water, pair, *run.seconds);
    else
      fail({library, side, water}, run.reason, run.errors);
  }

  void fail(const Key& key, const std::string& reason, const std::string& errors) {
    const auto& [library, side, name] = key;
    reasons_[key] = reason;
    if (side == Side::with)
      session_.report.failure(fmt::format("{} with Farsum, {}: {}\n{}", library, crowd_.case_of(name), reason, errors));
    else
      session_.report.progress(fmt::format("{} alone cannot do {}: {}", library, crowd_.case_of(name), reason));
  }

  void tell_case(const std::string& library, const std::string& name, const char* unit) {
    const bool has_peer = samples_.has(library, Side::without, name);
    Line line{.row = beside_row,
              .name = crowd_.case_of(name),
              .library = library,
              .peer = has_peer ? library : "",
              .unit = unit,
              .figure = figure_of(
                  samples_.pairs(library, has_peer ? std::optional<std::string>(library) : std::nullopt, name)),
              .aim = no_slower_beside};
    if (const auto reason = reasons_.find({library, Side::without, name}); reason != reasons_.end())
      line.note = fmt::format("peer missing: {} ({})", library, reason->second);
    session_.report.line(line);
  }

  const Session& session_;
  const Crowd& crowd_;
  NwchemWater& nwchem_;
  std::vector<std::string> names_;
  Samples samples_;
  std::map<Key, std::string> reasons_;
};

}  // namespace

void run_beside(const Session& session) {
  if (!are_sessions_apart())
    session.report.progress(
        "this kernel shares processors by process (autogroup is off): in and out of a session is one");
  NwchemWater nwchem(session.lab.folder(), session.lab.cap_ms());
  for (const std::string& place : session.options.beside) {
    for (const int ranks : session.options.ranks) {
      const Crowd crowd{.place = place, .ranks = ranks};
      BesideRun run(session, crowd, nwchem);
      run.measure();
      run.tell();
    }
  }
}

}  // namespace bench
