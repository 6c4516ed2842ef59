#include "runner.hpp"

#include <fmt/format.h>

#include "rank_programs.hpp"

namespace bench {
namespace {

constexpr const char* program = "ranks";
std::vector<std::string> joined_words(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

LabOutcome Runner::start(const Contender& contender, int ranks, const std::vector<std::string>& words) const {
  const std::string count = std::to_string(ranks);
  const std::string self = lab_.folder() + "/bench-ranks";
  if (contender.kind == Contender::Kind::bare)
    return lab_.run_words(joined_words({self, bare_word, "-n", count}, words));
  if (contender.kind == Contender::Kind::native)
    return lab_.run_words(joined_words({lab_.folder() + "/farsum", "run", "-n", count, self, native_word}, words));
  return lab_.run({.program = program,
                   .library = contender.library,
                   .side = contender.kind == Contender::Kind::alone ? Side::without : Side::with,
                   .ranks = ranks,
                   .arguments = words,
                   .environment = unbound_on_this_machine()});
}

RunResult Runner::run(const Contender& contender, int ranks, const std::vector<std::string>& points) const {
  const LabOutcome outcome =
      start(contender, ranks, {"--cases", joined(points), "--seconds", fmt::format("{:.6f}", seconds_)});
  RunResult result;
  result.ending = outcome.ending;
  result.reason = outcome.reason;
  result.errors = outcome.errors;
  for (const Json& record : outcome.records) {
    if (record.contains("begin")) result.culprit = record.at("begin");
    if (record.contains("case")) result.records[record.at("case")] = record;
  }
  return result;
}

std::string Runner::version_of(const std::string& library) const {
  const LabOutcome outcome = start({.kind = Contender::Kind::alone, .library = library}, 1, {"--about"});
  return outcome.records.empty() ? std::string() : outcome.records.front().at("library").get<std::string>();
}

}  // namespace bench
