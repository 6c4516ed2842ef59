#include "contest.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "rank_programs.hpp"
#include "reduce/cases/samples.hpp"

namespace bench {
namespace {

constexpr const char* program = "reduce";

std::vector<Contender> farsum_contenders(const ContestOptions& options) {
  std::vector<Contender> contenders{{.name = farsum_name}};
  if (options.by_ranks)
    contenders.push_back({.name = by_ranks_name, .environment = {{"FARSUM_REDUCE_ORDER", "ranks"}}});
  if (options.dedicated) contenders.push_back({.name = dedicated_name, .environment = {{"FARSUM_AGENT", "dedicated"}}});
  return contenders;
}

}  // namespace

std::vector<Contender> contenders_of(const ContestOptions& options, const Lab& lab) {
  std::vector<Contender> contenders = farsum_contenders(options);
  // Over test hosts the words that start the ranks leave all processors to all of them, and need another machine.
  const std::map<std::string, std::string> usual =
      options.hosts == 0 ? unbound_on_this_machine() : std::map<std::string, std::string>{};
  for (const std::string& library : lab.libraries_for(program)) {
    const bool is_second_name = library.ends_with("-abi");
    if (options.libraries.empty() ? is_second_name
                                  : std::ranges::find(options.libraries, library) == options.libraries.end())
      continue;
    contenders.push_back({.name = library, .library = library, .environment = usual});
    if (library != "openmpi5") continue;
    Contender preferred{.name = library + " (xhc, han)", .library = library, .environment = usual};
    preferred.environment["OMPI_MCA_coll_xhc_priority"] = "100";
    preferred.environment["OMPI_MCA_coll_han_priority"] = "90";
    contenders.push_back(std::move(preferred));
  }
  return contenders;
}

std::string places_of(const ContestOptions& options, int ranks) {
  return options.hosts == 0 ? fmt::format("{} ranks", ranks)
                            : fmt::format("{} ranks on {} hosts", ranks, options.hosts);
}

std::vector<int> ranks_or(const ContestOptions& options, const std::vector<int>& usual, int a_host) {
  if (!options.ranks.empty()) return options.ranks;
  return options.hosts == 0 ? usual : std::vector{options.hosts * a_host};
}

std::vector<std::string> rows_wanted(const ContestOptions& options, const std::vector<std::string>& names) {
  std::vector<std::string> wanted;
  std::ranges::copy_if(names, std::back_inserter(wanted), [&](const std::string& name) {
    const auto fits = [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; };
    return options.rows.empty() || std::ranges::any_of(options.rows, fits);
  });
  return wanted;
}

std::string why_not(const ContestOptions& options, const Lab& lab, const std::vector<std::string>& names) {
  const std::set<std::string> here = lab.libraries_for(program);
  for (const std::string& name : options.libraries) {
    if (!here.contains(name))
      return fmt::format("lab-reduce cannot run under {} here; there are: {}", name, fmt::join(here, ", "));
  }
  for (const int ranks : options.ranks) {
    if (options.hosts > 0 && ranks % options.hosts != 0)
      return fmt::format("{} ranks are not as many on each of {} hosts", ranks, options.hosts);
  }
  if (rows_wanted(options, names).empty())
    return fmt::format("no call is called so; there are: {}", fmt::join(names, ", "));
  return {};
}

void Contest::take_turn(int turn, Failures& failures) {
  for (const Contender& contender : contenders_) {
    if (failed_.contains(contender.name)) continue;
    fmt::print(stderr, "bench-reduce: {}, {}, turn {} of {}, {}\n", name_of(job_.way), places_of(options_, job_.ranks),
               turn, job_.turns, contender.name);
    keep(contender, start(contender), failures);
  }
}

LabOutcome Contest::start(const Contender& contender) const {
  const std::vector<std::string> words{"--way",        name_of(job_.way),
                                       "--calls",      joined(job_.calls),
                                       "--seconds",    fmt::format("{:.6f}", job_.seconds),
                                       "--most-calls", std::to_string(job_.most_calls),
                                       "--nice",       std::to_string(job_.nice)};
  if (!contender.library.empty()) {
    return lab_.run({.program = program,
                     .library = contender.library,
                     .ranks = job_.ranks,
                     .hosts = options_.hosts,
                     .arguments = words,
                     .environment = contender.environment});
  }
  std::vector<std::string> native{lab_.folder() + "/bench-reduce", native_word};
  native.insert(native.end(), words.begin(), words.end());
  if (options_.hosts > 0) return lab_.run_words(hosts_.started(job_.ranks, contender.environment, native));
  std::vector<std::string> here{"/usr/bin/env"};
  for (const auto& [name, value] : contender.environment) here.push_back(fmt::format("{}={}", name, value));
  here.insert(here.end(), {lab_.folder() + "/farsum", "run", "-n", std::to_string(job_.ranks)});
  here.insert(here.end(), native.begin(), native.end());
  return lab_.run_words(here);
}

void Contest::keep(const Contender& contender, const LabOutcome& outcome, Failures& failures) {
  std::string last;
  for (const Json& record : outcome.records) {
    if (record.contains("begin")) last = record.at("begin");
    if (record.contains("call")) records_[contender.name].push_back(record);
  }
  if (outcome.ending == Ending::good) return;
  failed_.insert(contender.name);
  failures.reasons[contender.name] =
      fmt::format("{}, at {}: {}", places_of(options_, job_.ranks), last, outcome.reason);
  if (contender.library.empty()) failures.is_wrong = true;
}

std::vector<double> Contest::said(const std::string& who, const std::string& call, const std::string& name) const {
  std::vector<double> numbers;
  const auto found = records_.find(who);
  if (found == records_.end()) return numbers;
  for (const Json& record : found->second) {
    if (record.at("call") == call && record.contains(name)) numbers.push_back(record.at(name));
  }
  return numbers;
}

std::optional<double> Contest::median_of(const std::string& who, const std::string& call,
                                         const std::string& name) const {
  std::vector<double> numbers = said(who, call, name);
  if (numbers.empty()) return std::nullopt;
  return collectives::median(std::move(numbers));
}

std::map<std::string, double> Contest::peers_of(const std::string& call, const std::string& name) const {
  std::map<std::string, double> peers;
  for (const Contender& contender : contenders_) {
    if (contender.library.empty()) continue;
    if (const auto median = median_of(contender.name, call, name)) peers[contender.name] = *median;
  }
  return peers;
}

}  // namespace bench
