// Lists of processing units.
#include "cli/run/run_binding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <unordered_set>

namespace farsum::cli {

namespace {

constexpr int highest_cpu = 65535;

bool parse_number(const char*& at, const char* end, int& number) {
  const auto [rest, error] = std::from_chars(at, end, number);
  if (error != std::errc{} || number < 0 || number > highest_cpu) return false;
  at = rest;
  return true;
}

// One item of the list: N or N-M.
bool parse_range(const std::string& item, CpuList& cpus) {
  const char* at = item.data();
  const char* const end = at + item.size();
  int first = 0;
  if (!parse_number(at, end, first)) return false;
  int last = first;
  if (at != end && (*at++ != '-' || !parse_number(at, end, last))) return false;
  if (at != end || last < first) return false;
  for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  return true;
}

std::string not_allowed(const CpuList& cpus, const std::vector<CpuList>& cores) {
  std::unordered_set<int> allowed;
  for (const CpuList& core : cores) allowed.insert(core.begin(), core.end());
  for (const int cpu : cpus) {
    if (!allowed.contains(cpu)) {
      return fmt::format(
          "--bind: processing unit {} does not exist or is not allowed here (farsum info --all lists those that are)",
          cpu);
    }
  }
  return {};
}

}  // namespace

ParsedCpus parse_cpu_list(const std::string& text) {
  ParsedCpus parsed;
  std::istringstream items(text);
  bool good = !text.empty() && text.back() != ',';
  for (std::string item; good && std::getline(items, item, ',');) good = parse_range(item, parsed.cpus);
  if (good) return parsed;
  return {{}, fmt::format("--bind takes none, core or a list such as 0,1 or 0-3,6, not '{}'", text)};
}

Bindings choose_bindings(const std::string& request, int ranks, const std::vector<CpuList>& cores) {
  if (request == "none") return {};
  if (request == "core") return {static_cast<std::size_t>(ranks) > cores.size() ? std::vector<CpuList>{} : cores, {}};
  const ParsedCpus parsed = parse_cpu_list(request);
  if (!parsed.sentence.empty()) return {{}, parsed.sentence};
  Bindings bindings;
  for (const int cpu : parsed.cpus) bindings.of_ranks.push_back({cpu});
  bindings.sentence = not_allowed(parsed.cpus, cores);
  return bindings;
}

}  // namespace farsum::cli
