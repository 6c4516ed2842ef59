// Who takes turns in a measurement of `farsum bench reduce`, and how the ranks of each are started and heard.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/lab.hpp"
#include "reduce/cases/call.hpp"
#include "test_hosts.hpp"

namespace bench {

struct ContestOptions {
  std::vector<std::string> rows;       // as the shell's patterns of call names; empty: all
  std::vector<int> ranks;              // empty: the measurement's own
  std::vector<std::string> libraries;  // the peers; empty: all that are here
  std::optional<int> pairs;            // of turns; else the measurement's own, as the next two
  std::optional<double> seconds;       // of each call and turn
  std::optional<int> cap_s;
  int hosts = 0;           // test hosts, over which the ranks are; 0: this machine
  bool by_ranks = false;   // Farsum once more in each turn, in the order of ranks
  bool dedicated = false;  // and once more with agents that spin
};

// Who makes the calls. A library stands twice where another choice of its own is worth seeing, and so does Farsum.
struct Contender {
  std::string name;
  std::string library = {};  // empty: Farsum
  std::map<std::string, std::string> environment = {};
};

inline constexpr int usual_turns = 3;

inline constexpr const char* farsum_name = "farsum";
inline constexpr const char* by_ranks_name = "farsum, order of ranks";
inline constexpr const char* dedicated_name = "farsum, dedicated agent";

[[nodiscard]] std::vector<Contender> contenders_of(const ContestOptions& options, const Lab& lab);

// Those of `names` that are wanted.
[[nodiscard]] std::vector<std::string> rows_wanted(const ContestOptions& options,
                                                   const std::vector<std::string>& names);

// What cannot be, in a sentence; empty where all can.
[[nodiscard]] std::string why_not(const ContestOptions& options, const Lab& lab, const std::vector<std::string>& names);

// "4 ranks", and on how many hosts where it is not this machine.
[[nodiscard]] std::string places_of(const ContestOptions& options, int ranks);
// How many ranks are measured where none are named; `a_host` of them on each of several hosts.
[[nodiscard]] std::vector<int> ranks_or(const ContestOptions& options, const std::vector<int>& usual, int a_host = 1);

struct Failures {
  std::map<std::string, std::string> reasons;  // by who it was
  bool is_wrong = false;                       // a run of Farsum's ended badly
};

// Turns of all contenders on so many ranks, each of which makes all the calls in one job. Who has failed has no further
// turn.
class Contest {
 public:
  struct Job {
    collectives::Way way;
    int ranks;
    double seconds;
    std::vector<std::string> calls;
    int turns = 1;
    std::size_t most_calls = 100'000;
    int nice = 0;
  };

  Contest(const ContestOptions& options, const Lab& lab, const TestHosts& hosts, Job job)
      : options_(options), lab_(lab), hosts_(hosts), job_(std::move(job)) {}

  // `turn` counts from 1.
  void take_turn(int turn, Failures& failures);
  void take_turns(Failures& failures) {
    for (int turn = 1; turn <= job_.turns; ++turn) take_turn(turn, failures);
  }
  [[nodiscard]] const std::vector<Contender>& contenders() const { return contenders_; }

  // What one has said of a call by one name, a number a turn; empty where it has said none.
  [[nodiscard]] std::vector<double> said(const std::string& who, const std::string& call,
                                         const std::string& name) const;
  // The median of these, where there is any.
  [[nodiscard]] std::optional<double> median_of(const std::string& who, const std::string& call,
                                                const std::string& name) const;
  // Of all libraries that have said it.
  [[nodiscard]] std::map<std::string, double> peers_of(const std::string& call, const std::string& name) const;

 private:
  [[nodiscard]] LabOutcome start(const Contender& contender) const;
  void keep(const Contender& contender, const LabOutcome& outcome, Failures& failures);

  const ContestOptions& options_;
  const Lab& lab_;
  const TestHosts& hosts_;
  const Job job_;
  const std::vector<Contender> contenders_ = contenders_of(options_, lab_);
  std::map<std::string, std::vector<Json>> records_;  // by contender
  std::set<std::string> failed_;
};

}  // namespace bench
