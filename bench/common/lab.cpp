// Command lines for `farsum lab`, and what comes back.
#include "common/lab.hpp"

#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

namespace bench {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The lab programs say "rank 0: ... wrong answer"; launchers bury it under boxes of their own.
std::string reason_of(const Outcome& outcome, std::int64_t cap_ms) {
  if (outcome.ending == Ending::capped) return fmt::format("not done after {} s", cap_ms / 1000);
  if (outcome.ending == Ending::stopped) return "interrupted";
  std::string told;
  for (const std::string& line : lines_of(outcome.errors)) {
    if (line.starts_with("rank ") || line.find("farsum") != std::string::npos ||
        line.find("(signal ") != std::string::npos || line.find("Signal:") != std::string::npos) {
      told = line;
      break;
    }
  }
  return fmt::format("code {}{}{}", outcome.exit_code, told.empty() ? "" : ": ", told);
}

}  // namespace

const char* name_of(Side side) { return side == Side::with ? "with" : "without"; }

const std::map<std::string, std::string>& unbound_on_this_machine() {
  static const std::map<std::string, std::string> environment{{"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                                              {"OMPI_MCA_plm", "isolated"},
                                                              {"PRTE_MCA_hwloc_default_binding_policy", "none"},
                                                              {"I_MPI_PIN", "0"}};
  return environment;
}

std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> records;
  for (const std::string& line : lines_of(text)) {
    Json record = Json::parse(line, nullptr, false);
    if (record.is_object()) records.push_back(std::move(record));
  }
  return records;
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ",")); }

std::set<std::string> Lab::libraries_for(const std::string& program) const {
  const Outcome outcome = run_capped({.words = {folder_ + "/farsum", "lab", "--json"}});
  std::set<std::string> libraries;
  const Json programs = Json::parse(outcome.output, nullptr, false);
  if (!programs.is_array()) throw std::runtime_error(fmt::format("{}/farsum lab --json says no list", folder_));
  for (const Json& one : programs) {
    if (one.at("name") != program) continue;
    for (const Json& library : one.at("mpi")) libraries.insert(library.get<std::string>());
  }
  return libraries;
}

std::vector<std::string> Lab::call_names(const std::string& library) const {
  const Outcome outcome = run_capped(
      {.words = {folder_ + "/farsum", "lab", "bench", "--mpi", library, "-n", "1", "--without", "--", "--list"}});
  if (outcome.ending != Ending::good) throw std::runtime_error("lab-bench does not list its cases: " + outcome.errors);
  return lines_of(outcome.output);
}

LabOutcome Lab::run(const LabRun& run) const {
  // One side alone, and without lab's own --json, `farsum lab` becomes the launcher: lines come as they are printed, so
  // that a run that is cut short leaves what it had.
  Command command{.words = {folder_ + "/farsum", "lab", run.program, "--mpi", run.library, "-n",
                            std::to_string(run.ranks), run.side == Side::with ? "--with" : "--without"},
                  .environment = run.environment};
  if (run.hosts > 0) command.words.insert(command.words.end(), {"--hosts", std::to_string(run.hosts)});
  for (const std::string& word : run.through) command.words.insert(command.words.end(), {"--through", word});
  command.words.insert(command.words.end(), {"--", "--json"});
  command.words.insert(command.words.end(), run.arguments.begin(), run.arguments.end());
  return run_command(std::move(command));
}

LabOutcome Lab::run_command(Command command) const {
  command.cap_ms = cap_ms_;
  command.stop_fd = stop_fd_;
  const Outcome outcome = run_capped(command);
  LabOutcome result{.records = json_lines(outcome.output), .ending = outcome.ending, .reason = {}, .errors = {}};
  if (outcome.ending != Ending::good) result.reason = reason_of(outcome, cap_ms_);
  result.errors = outcome.errors;
  return result;
}

}  // namespace bench
