// Walks the tree of processes in /proc.
#include "cli/run/run_sweep.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <unordered_map>

#include "cli/unique_fd.hpp"

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

void add_children_of_task(const std::string& task, std::vector<pid_t>& children) {
  const UniqueFd file(open((task + "/children").c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> bytes;
  for (ssize_t got = 0; (got = read(file.get(), bytes.data(), bytes.size())) > 0;) {
    text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  const char* at = text.data();
  const char* const end = at + text.size();
  for (pid_t child = 0;;) {
    while (at != end && *at == ' ') ++at;
    const auto [rest, error] = std::from_chars(at, end, child);
    if (error != std::errc{}) return;
    children.push_back(child);
    at = rest;
  }
}

std::vector<pid_t> children_from_task_files(pid_t parent) {
  std::vector<pid_t> children;
  const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  struct stat about {};
  if (stat(tasks.c_str(), &about) != 0) return children;
  // A folder has one link for itself, one from above, and one for each sub-folder: most processes have one thread.
  constexpr nlink_t links_with_one_task = 3;
  if (about.st_nlink == links_with_one_task) {
    add_children_of_task(tasks + "/" + std::to_string(parent), children);
    return children;
  }
  for (const pid_t task : numbered_entries(tasks)) add_children_of_task(tasks + "/" + std::to_string(task), children);
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

std::size_t Sweep::kill_everyone() {
  PidSet killed;
  std::size_t before = 0;
  do {
    before = killed.size();
    const std::vector<pid_t> found = descendants_of(getpid(), spared_);
    found_ = found.size();
    for (const pid_t pid : found) {
      ::kill(pid, SIGKILL);
      killed.insert(pid);
    }
  } while (killed.size() > before);
  reaped_ = 0;
  last_walk_ = std::chrono::steady_clock::now();
  return found_;
}

bool Sweep::due() const {
  return reaped_ * 2 >= found_ || std::chrono::steady_clock::now() - last_walk_ >= longest_gap;
}

}  // namespace farsum::cli
