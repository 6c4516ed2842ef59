#include "reduce/cases/call.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace collectives {
namespace {

constexpr std::array<std::pair<Kind, const char*>, 5> kind_names = {{{Kind::allreduce, "allreduce"},
                                                                     {Kind::reduce, "reduce"},
                                                                     {Kind::reduce_scatter, "reduce-scatter"},
                                                                     {Kind::broadcast, "broadcast"},
                                                                     {Kind::barrier, "barrier"}}};
constexpr std::array<std::size_t, 7> all_bytes = {8, 64, 512, 4096, 32768, 262144, 1048576};
constexpr std::size_t most_bytes = std::size_t{1} << 30;

const std::vector<std::pair<std::string, Way>>& ways() {
  static const std::vector<std::pair<std::string, Way>> names{
      {"in-a-row", Way::in_a_row}, {"overlap", Way::overlap}, {"middle", Way::middle}, {"steady", Way::steady}};
  return names;
}

}  // namespace

std::string Call::name() const {
  const auto* const found = std::ranges::find(kind_names, kind, [](const auto& one) { return one.first; });
  return kind == Kind::barrier ? found->second : fmt::format("{}/{}", found->second, bytes);
}

std::vector<Call> all_calls() {
  std::vector<Call> calls;
  for (const auto& [kind, name] : kind_names) {
    for (const std::size_t bytes : all_bytes) {
      if (kind != Kind::barrier) calls.push_back({.kind = kind, .bytes = bytes});
    }
  }
  calls.push_back({.kind = Kind::barrier});
  return calls;
}

std::optional<Call> call_named(const std::string& name) {
  const std::size_t slash = std::min(name.find('/'), name.size());
  const auto* const found =
      std::ranges::find(kind_names, name.substr(0, slash), [](const auto& one) { return std::string(one.second); });
  if (found == kind_names.end()) return std::nullopt;
  Call call{.kind = found->first};
  const char* const end = name.data() + name.size();
  if (slash < name.size()) std::from_chars(name.data() + slash + 1, end, call.bytes);
  const bool is_whole = call.kind == Kind::barrier || (call.elements() > 0 && call.bytes <= most_bytes);
  // Whatever else stands there is another name.
  return is_whole && call.name() == name && call.bytes % sizeof(double) == 0 ? std::optional(call) : std::nullopt;
}

const char* name_of(Way way) {
  return std::ranges::find(ways(), way, [](const auto& one) { return one.second; })->first.c_str();
}

void Request::declare(CLI::App& app) {
  const auto is_known = [](const std::string& name) {
    return call_named(name) ? std::string() : "there is no call " + name;
  };
  app.add_option("--calls", names, "what to time, each KIND/BYTES")->delimiter(',')->check(is_known);
  app.add_option("--way", way,
                 "how: many of them, or each begun beside computing of all ranks, or of the middle one, "
                 "or one by one")
      ->transform(CLI::CheckedTransformer(ways()).description("in-a-row, overlap, middle, steady"));
  app.add_option("--seconds", seconds, "how long each is timed at least")
      ->check(CLI::Range(0.0001, 3600.0))
      ->capture_default_str();
  app.add_option("--most-calls", most_calls, "how many are timed at most, one by one")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--nice", nice, "the priority of all threads, as `nice` has it")->check(CLI::Range(-20, 19));
  app.add_flag("--about", about, "time nothing and tell of the library");
}

std::vector<Call> Request::calls() const {
  std::vector<Call> calls;
  for (const std::string& name : names) calls.push_back(*call_named(name));
  return calls;
}

std::string Request::take_priority() const {
  if (nice == 0 || setpriority(PRIO_PROCESS, 0, nice) == 0) return {};
  return fmt::format("the priority {} is not to be had: {}", nice, std::strerror(errno));
}

bool may_be_nice(int nice) {
  const int before = getpriority(PRIO_PROCESS, 0);
  return setpriority(PRIO_PROCESS, 0, nice) == 0 && setpriority(PRIO_PROCESS, 0, before) == 0;
}

}  // namespace collectives
