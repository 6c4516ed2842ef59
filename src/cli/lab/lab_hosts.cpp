#include "cli/lab/lab_hosts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <sstream>

#include "cli/captured_run.hpp"
#include "cli/exit_codes.hpp"
#include "cli/own_folder.hpp"

namespace farsum::cli {

LabHosts::LabHosts(int count) : count_(count), name_(fmt::format("lab-{}", getpid())) {}

LabHosts::~LabHosts() {
  if (are_up_) static_cast<void>(run_captured(words({"down"}), ErrorOutput::passed_on));
}

std::vector<std::string> LabHosts::words(const std::vector<std::string>& more) const {
  std::vector<std::string> all{(own_folder() / "test-hosts").string(), "--name", name_};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

int LabHosts::make() {
  const CapturedRun run =
      run_captured(words({"up", std::to_string(count_), "--owner", std::to_string(getpid())}), ErrorOutput::kept);
  are_up_ = run.exit_code == exit_ok;
  if (run.exit_code == exit_not_found) {
    fmt::print(stderr, "farsum lab: --hosts needs {}, which a build makes\n", words({}).front());
  } else if (!are_up_) {
    fmt::print(stderr, "farsum lab: {}", run.out);
  }
  return run.exit_code;
}

std::vector<std::string> LabHosts::launcher(const std::string& library, int ranks_per_host) const {
  const CapturedRun run =
      run_captured(words({"launcher", library, "--ranks-per-host", std::to_string(ranks_per_host)}), ErrorOutput::kept);
  if (run.exit_code != exit_ok) {
    fmt::print(stderr, "farsum lab: {}", run.out);
    return {};
  }
  std::vector<std::string> found;
  std::istringstream said(run.out);
  for (std::string word; said >> word;) found.push_back(word);
  return found;
}

std::vector<std::string> LabHosts::in_first(const std::vector<std::string>& command) const {
  std::vector<std::string> all = words({"exec", "a"});
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

}  // namespace farsum::cli
