#include "os/memory_room.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace farsum::os {
namespace {

namespace fs = std::filesystem;

// Version 1 writes "no limit" as the largest multiple of a page.
constexpr std::uint64_t least_unlimited = std::uint64_t{1} << 62;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? std::move(text).str() : std::string();
}

std::optional<std::uint64_t> number_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// The number behind `key` at the start of a line.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    if (text.starts_with(key)) return number_at(text.substr(key.size()));
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number_in(const fs::path& path) { return number_at(read_text(path)); }

std::uint64_t left_of(std::uint64_t limit, std::uint64_t used) { return limit > used ? limit - used : 0; }

// Keeps the least room seen.
class Least {
 public:
  void offer(std::uint64_t bytes, RoomLimit bound, const fs::path& where) {
    if (room_.bound != RoomLimit::unknown && room_.bytes <= bytes) return;
    room_ = {.bytes = bytes, .bound = bound, .where = where.string()};
  }
  MemoryRoom take() { return std::move(room_); }

 private:
  MemoryRoom room_;
};

void offer_machine(const fs::path& root, Least& least) {
  const fs::path path = root / "proc/meminfo";
  const std::string text = read_text(path);
  if (const auto kib = number_after(text, "MemAvailable:")) least.offer(*kib * 1024, RoomLimit::machine, path);
  if (number_in(root / "proc/sys/vm/overcommit_memory") != 2) return;
  const auto limit = number_after(text, "CommitLimit:");
  const auto used = number_after(text, "Committed_AS:");
  if (limit && used) least.offer(left_of(*limit, *used) * 1024, RoomLimit::commit_limit, path);
}

void offer_address_space(const fs::path& root, Least& least) {
  const fs::path path = root / "proc/self/limits";
  const auto limit = number_after(read_text(path), "Max address space");
  const auto pages = number_in(root / "proc/self/statm");
  if (!limit || !pages) return;
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  least.offer(left_of(*limit, *pages * page_bytes), RoomLimit::address_space, path);
}

// One of the two versions of the memory controller.
struct Controller {
  const char* limit_file;
  const char* usage_file;
  const char* reclaimable_key;  // of memory.stat: cache that the kernel drops before it refuses
};
constexpr Controller version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
constexpr Controller version_2{"memory.max", "memory.current", "inactive_file "};

void offer_group(const fs::path& folder, const Controller& controller, Least& least) {
  const auto limit = number_in(folder / controller.limit_file);  // "max" is no number
  const auto used = number_in(folder / controller.usage_file);
  if (!limit || !used || *limit >= least_unlimited) return;
  const std::uint64_t reclaimable =
      number_after(read_text(folder / "memory.stat"), controller.reclaimable_key).value_or(0);
  least.offer(left_of(*limit, left_of(*used, reclaimable)), RoomLimit::cgroup, folder);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

bool lists(std::string_view comma_separated, std::string_view item) {
  const std::string padded = "," + std::string(comma_separated) + ",";
  return padded.find("," + std::string(item) + ",") != std::string::npos;
}

struct Mount {
  fs::path point;
  fs::path top;  // the group that the mount shows as its root
  bool is_version_2 = false;
};

// "id parent major:minor ROOT POINT options ... - TYPE source SUPER_OPTIONS"
std::vector<Mount> memory_mounts(const fs::path& root) {
  std::vector<Mount> mounts;
  std::istringstream text(read_text(root / "proc/self/mountinfo"));
  for (std::string line; std::getline(text, line);) {
    const std::vector<std::string> words = words_of(line);
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const bool is_version_2 = dash[1] == "cgroup2";
    if (!is_version_2 && (dash[1] != "cgroup" || !lists(dash[3], "memory"))) continue;
    mounts.push_back({.point = words[4], .top = words[3], .is_version_2 = is_version_2});
  }
  return mounts;
}

// The process's group in the hierarchy of version 1's memory controller or of version 2.
std::optional<fs::path> own_group(const fs::path& root, bool is_version_2) {
  std::istringstream text(read_text(root / "proc/self/cgroup"));
  for (std::string line; std::getline(text, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (is_version_2 ? controllers.empty() : lists(controllers, "memory")) return line.substr(second + 1);
  }
  return std::nullopt;
}

void offer_groups_of(const fs::path& root, const Mount& mount, Least& least) {
  const std::optional<fs::path> group = own_group(root, mount.is_version_2);
  if (!group) return;
  const Controller& controller = mount.is_version_2 ? version_2 : version_1;
  // A container may see its own group as the mount's root; a group outside the mount cannot be looked at.
  fs::path below = group->lexically_relative(mount.top);
  if (below.empty() || *below.begin() == "..") below = ".";
  fs::path folder = root / mount.point.relative_path();
  offer_group(folder, controller, least);
  for (const fs::path& part : below) {
    if (part == ".") continue;
    folder /= part;
    offer_group(folder, controller, least);
  }
}

}  // namespace

std::string_view name_of(RoomLimit limit) {
  switch (limit) {
    case RoomLimit::unknown:
      return "no known limit";
    case RoomLimit::machine:
      return "the machine's available memory";
    case RoomLimit::cgroup:
      return "the memory limit of a cgroup";
    case RoomLimit::commit_limit:
      return "the commit limit (overcommit is strict)";
    case RoomLimit::address_space:
      return "the limit on address space";
  }
  return {};
}

MemoryRoom available(const RoomQuery& query) {
  Least least;
  offer_machine(query.root, least);
  for (const Mount& mount : memory_mounts(query.root)) offer_groups_of(query.root, mount, least);
  if (query.count_address_space) offer_address_space(query.root, least);
  return least.take();
}

std::uint64_t locked_bytes() {
  static constexpr std::string_view key = "VmLck:";
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t digits = line.find_first_of("0123456789");
    std::uint64_t kilobytes = 0;
    if (digits != std::string::npos) std::from_chars(line.data() + digits, line.data() + line.size(), kilobytes);
    return kilobytes << 10;
  }
  return 0;
}

}  // namespace farsum::os
