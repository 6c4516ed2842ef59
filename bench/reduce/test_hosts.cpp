#include "test_hosts.hpp"

#include <unistd.h>

#include <sstream>

#include <fmt/format.h>

#include "common/capped_run.hpp"

namespace bench {
namespace {

constexpr const char* library = "openmpi";

}  // namespace

TestHosts::TestHosts(const std::string& folder, int count) : tool_(folder + "/test-hosts"), count_(count) {
  if (count_ == 0) return;
  const Outcome made =
      run_capped({.words = words({"up", std::to_string(count_), "--owner", std::to_string(getpid())})});
  if (made.ending != Ending::good) why_not_ = fmt::format("there are no test hosts: {}{}", made.output, made.errors);
  if (why_not_.empty() && launcher(1).empty())
    why_not_ = fmt::format("the launcher of {}, which starts ranks on test hosts, is not here", library);
}

TestHosts::~TestHosts() {
  if (count_ > 0) static_cast<void>(run_capped({.words = words({"down"})}));
}

std::vector<std::string> TestHosts::words(const std::vector<std::string>& more) const {
  std::vector<std::string> all{tool_, "--name", fmt::format("bench-reduce-{}", getpid())};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<std::string> TestHosts::launcher(int ranks_a_host) const {
  const Outcome said =
      run_capped({.words = words({"launcher", library, "--ranks-per-host", std::to_string(ranks_a_host)})});
  std::vector<std::string> found;
  if (said.ending != Ending::good) return found;
  std::istringstream stream(said.output);
  for (std::string word; stream >> word;) found.push_back(word);
  return found;
}

std::vector<std::string> TestHosts::started(int ranks, const std::map<std::string, std::string>& environment,
                                            const std::vector<std::string>& program) const {
  std::vector<std::string> all = words({"exec", "a"});
  const std::vector<std::string> start = launcher(ranks / count_);
  all.insert(all.end(), start.begin(), start.end());
  for (const auto& [name, value] : environment) all.insert(all.end(), {"-x", fmt::format("{}={}", name, value)});
  all.insert(all.end(), program.begin(), program.end());
  return all;
}

}  // namespace bench
