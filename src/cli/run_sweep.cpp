// Walks the tree of processes in /proc.
#include "cli/run_sweep.hpp"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <unordered_map>

namespace farsum::cli {

namespace {

namespace fs = std::filesystem;
using ChildMap = std::unordered_map<pid_t, std::vector<pid_t>>;

bool kernel_lists_children() {
  std::error_code ignored;
  return fs::exists("/proc/thread-self/children", ignored);
}

// Names of /proc's entries that are numbers; other names give nothing.
std::vector<pid_t> numbered_entries(const std::string& folder) {
  std::vector<pid_t> numbers;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    pid_t number = 0;
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc{} && rest == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

std::vector<pid_t> children_from_task_files(pid_t parent) {
  std::vector<pid_t> children;
  const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  for (const pid_t task : numbered_entries(tasks)) {
    std::ifstream file(tasks + "/" + std::to_string(task) + "/children");
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

// The parent that /proc/PID/stat names; 0 when the process is gone. The command's name before it may hold any
// character.
pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text, '\0');
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > text.size()) return 0;
  return static_cast<pid_t>(std::strtol(text.c_str() + name_end + 4, nullptr, 10));
}

ChildMap children_of_everyone() {
  ChildMap children;
  for (const pid_t pid : numbered_entries("/proc")) children[parent_of(pid)].push_back(pid);
  return children;
}

template <typename ChildrenOf>
std::vector<pid_t> walk(pid_t root, const PidSet& spared, const ChildrenOf& children_of) {
  std::vector<pid_t> found;
  PidSet seen;
  pid_t parent = root;
  for (std::size_t next = 0;; ++next) {
    for (const pid_t child : children_of(parent)) {
      if (!spared.contains(child) && seen.insert(child).second) found.push_back(child);
    }
    if (next == found.size()) return found;
    parent = found[next];
  }
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t root, const PidSet& spared) {
  if (kernel_lists_children()) return walk(root, spared, children_from_task_files);
  const ChildMap everyone = children_of_everyone();
  return walk(root, spared, [&](pid_t parent) {
    const auto found = everyone.find(parent);
    return found == everyone.end() ? std::vector<pid_t>{} : found->second;
  });
}

std::size_t kill_descendants(const PidSet& spared) {
  const std::vector<pid_t> found = descendants_of(getpid(), spared);
  for (const pid_t pid : found) ::kill(pid, SIGKILL);
  return found.size();
}

}  // namespace farsum::cli
