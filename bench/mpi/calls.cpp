// Single calls between two ranks, by lab-bench: MPI's memory, NWChem's shapes, the program's memory, and that with the
// owner computing. Each library without and with Farsum in turn; the limit is the fastest of those without.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "paths.hpp"
#include "samples.hpp"
#include "session.hpp"

namespace bench {
namespace {

constexpr double fetch_op_beside_open_mpi = 0.6;
constexpr double half = 0.5;
constexpr double promoted = 0.1;
constexpr double no_wait = 0.001;
constexpr const char* computing_suffix = ", owner computing";

// One program run serves all cases of a group, on one kind of memory.
struct Group {
  const char* row;
  const char* computing_row;  // where the figures of a computing owner belong; empty: the owner does not compute
  const char* memory;
  std::vector<const char*> patterns;
  std::vector<const char*> without;  // patterns of cases that belong elsewhere
  int pairs;
  // A computing owner makes no MPI call for so long; a library that needs it to waits that out, as in paper 3.
  const char* compute_ms;
};

const std::vector<Group>& groups() {
  static const std::vector<Group> all{
      {"allocate",
       "allocate",
       "allocate",
       {"*"},
       {"nwchem-*", "bare-*", "flush-all-*", "alloc-free-*", "win-create-*"},
       9,
       "5"},
      {"nwchem", "", "allocate", {"nwchem-*", "bare-*", "flush-all-*", "alloc-free-*"}, {}, 5, "5"},
      {"create",
       "owner-computing",
       "create",
       {"put-*", "get-*", "accumulate-*", "fetch-and-op", "compare-and-swap"},
       {},
       5,
       "40"}};
  return all;
}

bool matches_any(const std::vector<const char*>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const char* pattern) { return fnmatch(pattern, name.c_str(), 0) == 0; });
}

// With both ranks calling, or nothing to ask of the owner, it cannot compute meanwhile; nor does lab-bench time that.
bool can_compute(const std::string& name) { return !matches_any({"fence*", "pscw", "alloc-free-*", "win-*"}, name); }

class GroupRun {
 public:
  GroupRun(const Session& session, const Group& group, const std::vector<std::string>& names)
      : session_(session), group_(group) {
    for (const std::string& name : names) {
      if (!matches_any(group.patterns, name) || matches_any(group.without, name)) continue;
      idle_ |= session.wants(group.row, name);
      computing_ |= wants_computing(name);
      if (session.wants(group.row, name) || wants_computing(name)) names_.push_back(name);
    }
  }

  void measure() {
    const int pairs = session_.pairs(group_.pairs);
    for (int pair = 0; pair < pairs && !names_.empty(); ++pair) {
      for (const std::string& library : session_.options.libraries) {
        for (const Side side : {Side::without, Side::with}) {
          session_.report.progress(
              fmt::format("{}: pair {} of {}, {} {} Farsum", group_.row, pair + 1, pairs, library, name_of(side)));
          run_all_cases(library, side, pair);
        }
      }
    }
  }

  void tell() {
    // With memory of MPI's own there is one path.
    const bool asked = !session_.options.quick || std::string(group_.memory) == "create";
    for (const std::string& library : session_.options.libraries) {
      if (asked) paths_.ask(session_.lab, library, group_.memory, names_);
    }
    for (const std::string& name : names_) {
      for (const char* suffix : {"", computing_suffix}) {
        for (const std::string& library : session_.options.libraries) tell_case(library, name, suffix);
      }
    }
    tell_heap_path();
  }

 private:
  static constexpr int most_crashes = 3;  // of one library in one pair, before the rest is left

  [[nodiscard]] bool wants_computing(const std::string& name) const {
    return *group_.computing_row != '\0' && can_compute(name) && session_.wants(group_.computing_row, name);
  }

  // A program that dies takes the cases behind with it: they are run again without the one it died of.
  void run_all_cases(const std::string& library, Side side, int pair) {
    std::vector<std::string> left;
    for (const std::string& name : names_) {
      if (!dead_.contains({library, side, name})) left.push_back(name);
    }
    for (int crashes = 0; !left.empty() && crashes < most_crashes; ++crashes) {
      const LabOutcome outcome = run(library, side, left);
      for (const Json& record : outcome.records) add(library, side, pair, record);
      if (outcome.ending == Ending::good) return;
      const std::string culprit = died_of(left, outcome);
      dead_.insert({library, side, culprit});
      reasons_[{library, side, culprit}] = outcome.reason;
      if (side == Side::with) {
        session_.report.failure(fmt::format("{} with Farsum, {} on {} memory: {}\n{}", library, culprit, group_.memory,
                                            outcome.reason, outcome.errors));
      } else {
        session_.report.progress(fmt::format("{} alone cannot do {}: {}", library, culprit, outcome.reason));
      }
      left.erase(left.begin(), std::find(left.begin(), left.end(), culprit) + 1);
    }
  }

  LabOutcome run(const std::string& library, Side side, const std::vector<std::string>& names) const {
    const char* owners = idle_ && computing_ ? "idle,computing" : computing_ ? "computing" : "idle";
    const bool quick = session_.options.quick;
    return session_.lab.run(
        {.program = "bench",
         .library = library,
         .side = side,
         .arguments = {"--memory", group_.memory, "--owner", owners, "--repeats", quick ? "1" : "3", "--repeat-ms",
                       quick ? "2" : "5", "--compute-ms", group_.compute_ms, "--cases", joined(names)}});
  }

  // The case whose figures are not all there: the one behind the last that said anything, or that one itself.
  [[nodiscard]] std::string died_of(const std::vector<std::string>& names, const LabOutcome& outcome) const {
    if (outcome.records.empty()) return names.front();
    const Json& last = outcome.records.back();
    std::string name = last.at("case").get<std::string>();
    if (computing_ && can_compute(name) && last.at("owner") == "idle") return name;
    const auto found = std::find(names.begin(), names.end(), name);
    return found == names.end() || found + 1 == names.end() ? names.back() : *(found + 1);
  }

  void add(const std::string& library, Side side, int pair, const Json& record) {
    const bool computing = record.at("owner") == "computing";
    samples_.add(library, side, record.at("case").get<std::string>() + (computing ? computing_suffix : ""), pair,
                 record.at("ns").get<double>());
  }

  void tell_case(const std::string& library, const std::string& name, const std::string& suffix) {
    const bool computing = !suffix.empty();
    const std::string row = computing ? group_.computing_row : group_.row;
    const std::string measured = name + suffix;
    if (computing ? !wants_computing(name) : !session_.wants(row, name)) return;
    const auto peer = samples_.fastest(session_.options.libraries, measured);
    Line line{.row = row,
              .name = measured,
              .library = library,
              .peer = peer.value_or(""),
              .path = paths_.of(library, group_.memory, name),
              .unit = "ns",
              .figure = figure_of(samples_.pairs(library, peer, measured))};
    line.aim = aim_of(row, name, line.path);
    line.note = missing_peers(name);
    session_.report.line(line);
    if (row == "allocate" && measured == "fetch-and-op") tell_beside_open_mpi(line);
  }

  [[nodiscard]] static std::optional<double> aim_of(const std::string& row, const std::string& name,
                                                    const std::string& path) {
    if (row == "allocate") return never_slower;
    // A bare loop is there to be compared with.
    if (row == "nwchem" && matches_any({"bare-*"}, name)) return std::nullopt;
    if (row == "nwchem") return half;
    if (row == "owner-computing") return no_wait;
    // Single-element accumulates and swaps are shown for what they are.
    if (!matches_any({"put-*", "get-*", "accumulate-512", "accumulate-131072"}, name)) return std::nullopt;
    return path == "direct" ? promoted : half;
  }

  void tell_beside_open_mpi(Line line) {
    for (const char* open_mpi : {"openmpi5", "openmpi"}) {
      if (!samples_.has(open_mpi, Side::without, "fetch-and-op")) continue;
      line.name += " beside Open MPI's";
      line.peer = open_mpi;
      line.figure = figure_of(samples_.pairs(line.library, open_mpi, "fetch-and-op"));
      line.aim = fetch_op_beside_open_mpi;
      session_.report.line(line);
      return;
    }
  }

  // Libraries have threads of their own while the window is over 2 MiB of heap; it must be reached without asking
  // anyone.
  void tell_heap_path() {
    if (std::string(group_.memory) != "create") return;
    for (const std::string& library : session_.options.libraries) {
      const std::string path = paths_.of(library, group_.memory, "put-4KiB");
      Line line{.row = "path",
                .name = "put, large heap Win_create",
                .library = library,
                .peer = {},
                .path = path,
                .unit = {}};
      if (path.empty()) {
        line.note = "the front's statistics told no path";
      } else {
        line.met = path.find("caller") == std::string::npos && path.find("owner") == std::string::npos;
      }
      if (session_.wants(line.row, line.name)) session_.report.line(line);
    }
  }

  [[nodiscard]] std::string missing_peers(const std::string& name) const {
    std::string missing;
    for (const std::string& library : session_.options.libraries) {
      const auto reason = reasons_.find({library, Side::without, name});
      if (reason == reasons_.end()) continue;
      missing += fmt::format("{}peer missing: {} ({})", missing.empty() ? "" : "; ", library, reason->second);
    }
    return missing;
  }

  using Culprit = std::tuple<std::string, Side, std::string>;

  const Session& session_;
  const Group& group_;
  std::vector<std::string> names_;
  bool idle_ = false;
  bool computing_ = false;
  Samples samples_;
  Paths paths_;
  std::set<Culprit> dead_;
  std::map<Culprit, std::string> reasons_;
};

}  // namespace

void run_calls(const Session& session) {
  const std::vector<std::string> names = session.lab.call_names(session.options.libraries.front());
  for (const Group& group : groups()) {
    GroupRun run(session, group, names);
    run.measure();
    run.tell();
  }
}

}  // namespace bench
