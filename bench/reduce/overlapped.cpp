#include "overlapped.hpp"

#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "rows.hpp"

namespace bench {
namespace {

using collectives::Way;

constexpr double usual_overlap_seconds = 0.5;
constexpr std::size_t longest_judged = 1024;  // bytes; what is longer is shown only
constexpr double most_cost = 1.005;
constexpr double most_cost_over_hosts = 1.05;
constexpr double least_over = 0.99;  // the rest for what preempts a rank
constexpr double most_waiting = 0.03;

// What is said of one call, of ours and of all peers.
class OverlapRows {
 public:
  OverlapRows(const Contest& contest, std::string call, std::string places, double aim)
      : contest_(contest), call_(std::move(call)), places_(std::move(places)), aim_(aim) {}

  void append(std::vector<Json>& rows, const char* who, const std::string& choice) const {
    if (!contest_.median_of(who, call_, "cost")) return;
    rows.push_back(cost(who, choice));
    rows.push_back(over(who, choice));
    rows.push_back(hidden(who, choice));
  }

 private:
  [[nodiscard]] std::optional<double> ours(const char* who, const char* name) const {
    return contest_.median_of(who, call_, name);
  }
  [[nodiscard]] std::string case_of(const char* what, const std::string& choice) const {
    return fmt::format("overlap of {}, {}{}: {}", call_, places_, choice, what);
  }
  [[nodiscard]] bool is_judged() const { return collectives::call_named(call_)->bytes <= longest_judged; }
  [[nodiscard]] std::optional<double> judged(double aim) const {
    return is_judged() ? std::optional(aim) : std::nullopt;
  }
  [[nodiscard]] Json with_peers(const Row& row, const char* name) const {
    Json object = json_of(row);
    object["peers"] = json_of(contest_.peers_of(call_, name));
    return object;
  }

  [[nodiscard]] Json cost(const char* who, const std::string& choice) const {
    return with_peers({.name = case_of("computing with it", choice),
                       .ours = ours(who, "stretched_us"),
                       .limit = ours(who, "alone_us"),
                       .ratio = ours(who, "cost"),
                       .aim = judged(aim_),
                       .peer = "the computing alone"},
                      "cost");
  }
  [[nodiscard]] Json over(const char* who, const std::string& choice) const {
    return with_peers({.name = case_of("it has ended when the computing has", choice),
                       .ours = ours(who, "over"),
                       .limit = 1,
                       .better = Better::higher,
                       .aim = judged(least_over),
                       .unit = "share",
                       .peer = "always"},
                      "over");
  }
  [[nodiscard]] Json hidden(const char* who, const std::string& choice) const {
    Json object = beside_best({.name = case_of("hidden, as OSU says it", choice),
                               .ours = ours(who, "osu"),
                               .better = Better::higher,
                               .unit = "%"},
                              contest_.peers_of(call_, "osu"));
    object["imb"] = *ours(who, "imb");
    object["peers_imb"] = json_of(contest_.peers_of(call_, "imb"));
    object["pure_us"] = *ours(who, "pure_us");
    object["peers_pure_us"] = json_of(contest_.peers_of(call_, "pure_us"));
    return object;
  }

  const Contest& contest_;
  const std::string call_;
  const std::string places_;
  const double aim_;  // of what computing with a call costs
};

void append_middle(std::vector<Json>& rows, const Contest& contest, const std::string& call,
                   const std::string& places) {
  const std::map<std::string, double> peers = contest.peers_of(call, "waited_us");
  for (const auto& [who, choice] : {std::pair(farsum_name, ""), std::pair(dedicated_name, ", dedicated agent")}) {
    Row row{.name = fmt::format("{}, {}{}: waited for, the middle rank computes 10 ms", call, places, choice),
            .ours = contest.median_of(who, call, "waited_us"),
            .aim = most_waiting};
    if (!row.ours) continue;
    rows.push_back(beside_best(std::move(row), peers));
  }
}

Contest turns_taken(const ContestOptions& options, const Lab& lab, const TestHosts& hosts, Way way, int ranks,
                    Failures& failures) {
  Contest contest(options, lab, hosts,
                  {.way = way,
                   .ranks = ranks,
                   .seconds = options.seconds.value_or(usual_overlap_seconds),
                   .calls = rows_wanted(options, overlapped_calls()),
                   .turns = options.pairs.value_or(usual_turns)});
  contest.take_turns(failures);
  return contest;
}

}  // namespace

std::vector<std::string> overlapped_calls() { return {"allreduce/8", "allreduce/1024", "allreduce/1048576"}; }

Measured measure_overlap(const ContestOptions& options, const Lab& lab, const TestHosts& hosts) {
  Measured measured;
  const std::vector<std::string> calls = rows_wanted(options, overlapped_calls());
  for (const int ranks : ranks_or(options, {2})) {
    const Contest contest = turns_taken(options, lab, hosts, Way::overlap, ranks, measured.failures);
    for (const std::string& call : calls) {
      const OverlapRows rows(contest, call, places_of(options, ranks),
                             options.hosts == 0 ? most_cost : most_cost_over_hosts);
      rows.append(measured.rows, farsum_name, "");
      rows.append(measured.rows, dedicated_name, ", dedicated agent");
    }
  }
  for (const int ranks : ranks_or(options, {3}, 2)) {
    if (ranks < 3) continue;  // nobody is between two others
    const Contest contest = turns_taken(options, lab, hosts, Way::middle, ranks, measured.failures);
    for (const std::string& call : calls) append_middle(measured.rows, contest, call, places_of(options, ranks));
  }
  return measured;
}

}  // namespace bench
