// gups: HPCC RandomAccess over farsum.h, in the ways of paper 4 and those that Farsum adds.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "../common/command_line.hpp"
#include "experiment.hpp"
#include "options.hpp"
#include "report.hpp"

namespace gups {

namespace {

// What FARSUM_PATH is for a way. The aggregated way is that path.
std::string path_of(Way way, const Options& options, const std::string& inherited) {
  if (way == Way::aggregated) return "aggregated";
  return options.path.empty() ? inherited : options.path;
}

// A way has a job of its own, because the path is chosen when Farsum starts.
int run_way(Way way, const Options& options, nlohmann::json& results) {
  const apps::Job job;
  if (options.words() < static_cast<std::uint64_t>(job.size())) {
    return apps::refuse(job, "gups",
                        fmt::format("a table of {} words is too small for {} ranks", options.words(), job.size()));
  }
  const Result result = run_experiment(way, job, options);
  if (job.is_root()) {
    if (options.json) {
      results["ranks"] = job.size();
      results["results"].push_back(result_json(result, options));
    } else {
      if (way == options.ways.front()) print_heading(options, job.size());
      print_result(result, options);
      std::fflush(stdout);
    }
  }
  return result.is_right(options.words()) ? apps::exit_right : apps::exit_wrong;
}

int run(const Options& options) {
  const char* inherited = std::getenv("FARSUM_PATH");
  const std::string inherited_path = inherited != nullptr ? inherited : "";
  nlohmann::json document = {
      {"program", "gups"}, {"log2_words", options.log2_words}, {"results", nlohmann::json::array()}};
  int worst = apps::exit_right;
  for (const Way way : options.ways) {
    apps::set_environment("FARSUM_PATH", path_of(way, options, inherited_path));
    const int code = run_way(way, options, document);
    if (code == apps::exit_bad_options) return code;
    worst = std::max(worst, code);
  }
  // Only rank 0 has results.
  if (options.json && !document["results"].empty()) fmt::print("{}\n", document.dump(2));
  std::fflush(stdout);
  return worst;
}

}  // namespace

}  // namespace gups

int main(int argc, char** argv) {
  gups::Options options;
  return apps::run_program("gups", [&] {
    if (const std::optional<int> code = gups::read_options(argc, argv, options)) return *code;
    return gups::run(options);
  });
}
