#include "os/memory_room.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "os/cgroups.h"

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

void offer_groups(const fs::path& root, Least& least) {
  const auto offer = [](const char* folder, int is_version_2, void* found) {
    offer_group(folder, is_version_2 != 0 ? version_2 : version_1, *static_cast<Least*>(found));
  };
  farsum_cgroup_visit(root == "/" ? "" : root.c_str(), "memory", offer, &least);
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
  offer_groups(query.root, least);
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
