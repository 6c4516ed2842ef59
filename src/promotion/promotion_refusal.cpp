#include "promotion/promotion_refusal.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "os/thread_id.hpp"

namespace farsum::os {
namespace {

std::string refuse_kind(const MappedRange& range) {
  switch (range.kind) {
    case MemoryKind::heap:
    case MemoryKind::anonymous_private:
      break;
    case MemoryKind::static_data: {
      const bool has_file =
          std::any_of(range.maps.begin(), range.maps.end(), [](const Map& map) { return map.inode != 0; });
      if (has_file) return "the range is static data that belongs to a file";
      break;
    }
    case MemoryKind::unmapped:
    case MemoryKind::partly_mapped:
    case MemoryKind::mixed:
    case MemoryKind::anonymous_shared:
    case MemoryKind::stack:
    case MemoryKind::file_private:
    case MemoryKind::file_shared:
    case MemoryKind::huge_pages:
    case MemoryKind::special:
    case MemoryKind::read_only:
      return "the range is " + range.describe();
  }
  const bool is_plain = std::all_of(range.maps.begin(), range.maps.end(),
                                    [](const Map& map) { return map.readable && !map.executable && !map.shared; });
  return is_plain ? std::string() : "the range is executable or not readable";
}

std::string refuse_size(const MappedRange& range, const Stretch& pages, const PromotionRules& rules) {
  if (pages.bytes() / page_bytes() >= rules.least_pages) return {};
  std::size_t map_bytes = 0;
  for (const Map& map : range.maps) map_bytes += map.bytes();
  if (static_cast<double>(pages.bytes()) >= rules.least_share_of_map * static_cast<double>(map_bytes)) return {};
  return "the range has only " + std::to_string(pages.bytes() / page_bytes()) + " whole pages, a small part of its map";
}

std::string refuse_map_count(const std::vector<Map>& maps, const PromotionRules& rules) {
  std::ifstream file("/proc/sys/vm/max_map_count");
  std::size_t most = 0;
  if (!(file >> most) || static_cast<double>(maps.size()) < rules.most_share_of_maps * static_cast<double>(most))
    return {};
  return "the process has " + std::to_string(maps.size()) + " maps already, of " + std::to_string(most);
}

// Native asynchronous I/O holds on to pages, and has a map instead of a descriptor.
std::string refuse_asynchronous_io(const std::vector<Map>& maps) {
  const bool has_ring =
      std::any_of(maps.begin(), maps.end(), [](const Map& map) { return map.name.starts_with("/[aio]"); });
  return has_ring ? "the process uses native asynchronous I/O, which may hold on to its pages" : std::string();
}

// Calls `visit` with each name in a folder of /proc until it returns a reason.
template <class Visit>
std::string first_reason(const char* folder, Visit visit) {
  DIR* entries = opendir(folder);
  if (entries == nullptr) return std::string(folder) + " cannot be read";
  std::string reason;
  while (const dirent* entry = readdir(entries)) {
    if (entry->d_name[0] != '.') reason = visit(entry->d_name);
    if (!reason.empty()) break;
  }
  closedir(entries);
  return reason;
}

std::string refuse_descriptors() {
  static constexpr std::array<std::string_view, 14> holders = {"/dev/nvidia",
                                                               "/dev/kfd",
                                                               "/dev/dri/",
                                                               "/dev/infiniband/",
                                                               "/dev/vfio/",
                                                               "/dev/knem",
                                                               "/dev/xpmem",
                                                               "/dev/hfi1",
                                                               "/dev/gdrdrv",
                                                               "/dev/cxi",
                                                               "anon_inode:[io_uring]",
                                                               "anon_inode:[userfaultfd]",
                                                               "/dev/uverbs",
                                                               "anon_inode:[infinibandevent]"};
  return first_reason("/proc/self/fd", [](const char* name) -> std::string {
    std::array<char, 256> target;
    const std::string path = std::string("/proc/self/fd/") + name;
    const ssize_t length = readlink(path.c_str(), target.data(), target.size());
    if (length <= 0) return {};
    const std::string_view opened(target.data(), static_cast<std::size_t>(length));
    const bool holds_pages = std::any_of(holders.begin(), holders.end(),
                                         [&](std::string_view holder) { return opened.starts_with(holder); });
    return holds_pages ? "the process has " + std::string(opened) + " open, which may hold on to its pages"
                       : std::string();
  });
}

}  // namespace

std::string refuse_pages(const Stretch& pages, const PromotionRules& rules) {
  if (pages.is_empty()) return "the range has no whole page";
  const std::vector<Map> maps = read_maps();
  const MappedRange range = classify(pointer(pages.begin), pages.bytes(), maps);
  std::string refusal = refuse_kind(range);
  if (refusal.empty()) refusal = refuse_size(range, pages, rules);
  if (refusal.empty()) refusal = refuse_map_count(maps, rules);
  if (refusal.empty()) refusal = refuse_threads(rules);
  if (refusal.empty()) refusal = refuse_page_holders(maps);
  return refusal;
}

std::string refuse_flags(const SpecialFlags& flags) {
  if (!flags.known) return "/proc/self/smaps cannot be read";
  if (flags.locked) return "the range is locked in memory";
  if (flags.huge_pages) return "the range is made of huge pages";
  if (flags.fault_handled_by_user) return "the range is watched through userfaultfd";
  if (flags.left_out_of_fork) return "the range is left out of forked children (MADV_DONTFORK or MADV_WIPEONFORK)";
  if (flags.device) return "the range is memory of a device";
  if (flags.grows_down) return "the range is a stack";
  if (flags.mergeable) return "the range's pages may be merged (MADV_MERGEABLE)";
  if (flags.protection_key) return "the range has a protection key";
  return {};
}

pid_t other_thread(const PromotionRules& rules) {
  const pid_t self = own_thread_id();
  pid_t other = 0;
  const std::string unreadable = first_reason("/proc/self/task", [&](const char* name) -> std::string {
    const auto thread = static_cast<pid_t>(std::strtol(name, nullptr, 10));
    const auto& parked = rules.parked_threads;
    if (thread == self || std::find(parked.begin(), parked.end(), thread) != parked.end()) return {};
    other = thread;
    return name;
  });
  // Where they cannot be listed there may be some.
  return other == 0 && !unreadable.empty() ? -1 : other;
}

std::string refuse_threads(pid_t thread, const std::string& why) {
  if (thread < 0) return "/proc/self/task cannot be read";
  return "the process has other threads (" + std::to_string(thread) + "), and " + why;
}

std::string refuse_threads(const PromotionRules& rules) {
  if (rules.may_hold_threads) return {};
  const pid_t other = other_thread(rules);
  return other == 0 ? std::string() : refuse_threads(other, "they may not be held (FARSUM_HOLD_THREADS=refuse)");
}

std::string refuse_page_holders(const std::vector<Map>& maps) {
  std::string refusal = refuse_asynchronous_io(maps);
  return refusal.empty() ? refuse_descriptors() : refusal;
}

}  // namespace farsum::os
