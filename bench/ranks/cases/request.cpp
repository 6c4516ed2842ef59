#include "ranks/cases/request.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>

namespace ranks {

void RequestOptions::declare(CLI::App& app) {
  app.add_option("--cases", names, "what to measure, each ROW/VARIANT/THREADS")->delimiter(',');
  app.add_option("--seconds", seconds, "how long each is timed, unless half a million operations take less")
      ->check(CLI::Range(0.0001, 3600.0))
      ->capture_default_str();
  app.add_flag("--about", about, "measure nothing and tell of the library");
  const auto is_known = [](const std::string& name) {
    return point_called(name) ? std::string() : "there is no case called " + name;
  };
  app.get_option("--cases")->check(is_known);
}

Request RequestOptions::request() const {
  Request request{.points = {}, .seconds = seconds};
  for (const std::string& name : names) {
    request.points.push_back(*point_called(name));
    request.threads = std::max(request.threads, request.points.back().threads);
    request.calls_from_threads = request.calls_from_threads || request.points.back().row->has_threads();
  }
  return request;
}

}  // namespace ranks
