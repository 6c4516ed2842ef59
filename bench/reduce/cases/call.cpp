#include "reduce/cases/call.hpp"

#include <algorithm>
#include <array>
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
  for (const Call& call : all_calls()) {
    if (call.name() == name) return call;
  }
  return std::nullopt;
}

void Request::declare(CLI::App& app) {
  const auto is_known = [](const std::string& name) {
    return call_named(name) ? std::string() : "there is no call " + name;
  };
  app.add_option("--calls", names, "what to time, each KIND/BYTES")->delimiter(',')->check(is_known);
  app.add_option("--seconds", seconds, "how long each is timed at least")
      ->check(CLI::Range(0.0001, 3600.0))
      ->capture_default_str();
  app.add_flag("--about", about, "time nothing and tell of the library");
}

std::vector<Call> Request::calls() const {
  std::vector<Call> calls;
  for (const std::string& name : names) calls.push_back(*call_named(name));
  return calls;
}

}  // namespace collectives
