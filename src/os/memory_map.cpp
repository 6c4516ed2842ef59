#include "os/memory_map.hpp"

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <utility>

#include "os/thread_id.hpp"

namespace farsum::os {
namespace {

constexpr long hugetlbfs_magic = 0x958458f6;
constexpr std::size_t read_bytes = 64 * 1024;

// Feeds a /proc file to `consume` line by line until that returns false. False if the file cannot be read.
bool for_each_line(const char* path, const std::function<bool(std::string_view)>& consume) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::string text;
  bool wants_more = true;
  ssize_t bytes = 1;
  while (wants_more && bytes > 0) {
    const std::size_t kept = text.size();
    text.resize(kept + read_bytes);
    bytes = read(fd, text.data() + kept, read_bytes);
    text.resize(kept + (bytes > 0 ? static_cast<std::size_t>(bytes) : 0));
    std::size_t begin = 0;
    for (std::size_t end = 0; wants_more && (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      wants_more = consume(std::string_view(text).substr(begin, end - begin));
    }
    text.erase(0, begin);
  }
  close(fd);
  return bytes >= 0;
}

// Takes numbers and words off the front of a line.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  template <class Number>
  bool number(Number& value, int base) {
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value, base);
    if (error != std::errc()) return false;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return true;
  }
  bool literal(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::string_view take(std::size_t count) {
    const std::string_view taken = text_.substr(0, count);
    text_.remove_prefix(taken.size());
    return taken;
  }
  void spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size())); }
  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
};

// "begin-end rwxp offset major:minor inode    name"
bool parse_map(std::string_view line, Map& map) {
  Scanner scan(line);
  if (!scan.number(map.begin, 16) || !scan.literal('-') || !scan.number(map.end, 16) || !scan.literal(' '))
    return false;
  const std::string_view access = scan.take(4);
  unsigned major_number = 0;
  unsigned minor_number = 0;
  if (access.size() != 4 || !scan.literal(' ') || !scan.number(map.file_offset, 16) || !scan.literal(' ')) return false;
  if (!scan.number(major_number, 16) || !scan.literal(':') || !scan.number(minor_number, 16)) return false;
  if (!scan.literal(' ') || !scan.number(map.inode, 10)) return false;
  scan.spaces();
  map.readable = access[0] == 'r';
  map.writable = access[1] == 'w';
  map.executable = access[2] == 'x';
  map.shared = access[3] == 's';
  map.device = makedev(major_number, minor_number);
  map.name = scan.rest();
  return true;
}

struct AddressRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool contains(std::uintptr_t from, std::uintptr_t to) const { return begin <= from && to <= end; }
};

// Whether the range is data or bss of a loaded object: maps have no name for bss.
bool is_static_data(std::uintptr_t begin, std::uintptr_t end) {
  struct Search {
    std::uintptr_t begin, end;
    bool found;
  } search{begin, end, false};
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* data) {
        auto* wanted = static_cast<Search*>(data);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& header = object->dlpi_phdr[i];
          if (header.p_type != PT_LOAD) continue;
          const std::uintptr_t from = object->dlpi_addr + header.p_vaddr;
          if (AddressRange{from, from + header.p_memsz}.contains(wanted->begin, wanted->end)) wanted->found = true;
        }
        return wanted->found ? 1 : 0;
      },
      &search);
  return search.found;
}

// The stack of the calling thread, which only [stack] would name, and only in the first thread.
bool is_on_own_thread_stack(std::uintptr_t begin, std::uintptr_t end) {
  if (own_thread_id() == getpid()) return false;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  void* stack = nullptr;
  std::size_t bytes = 0;
  const int failed = pthread_attr_getstack(&attributes, &stack, &bytes);
  pthread_attr_destroy(&attributes);
  const auto from = reinterpret_cast<std::uintptr_t>(stack);
  return failed == 0 && begin < from + bytes && from < end;
}

bool is_on_huge_pages(const Map& map) {
  if (map.name.starts_with("/anon_hugepage")) return true;
  if (map.inode == 0 || !map.name.starts_with("/") || map.name.starts_with("/memfd:")) return false;
  struct statfs system {};
  return statfs(map.name.c_str(), &system) == 0 && static_cast<long>(system.f_type) == hugetlbfs_magic;
}

// What the map was made from, whatever its protection.
MemoryKind origin_of(const Map& map, std::uintptr_t begin, std::uintptr_t end) {
  const std::uintptr_t from = std::max(begin, map.begin);
  const std::uintptr_t to = std::min(end, map.end);
  if (map.name == "[heap]") return MemoryKind::heap;
  if (map.name == "[stack]" || map.name.starts_with("[stack:")) return MemoryKind::stack;
  if (is_on_huge_pages(map)) return MemoryKind::huge_pages;
  const bool is_named_anonymous = map.name.starts_with("[anon:") || map.name.starts_with("[anon_shmem:");
  if (map.name.starts_with("[") && !is_named_anonymous) return MemoryKind::special;
  if (map.shared) {
    const bool has_no_file = map.inode == 0 || map.name.starts_with("/dev/zero") || map.name.starts_with("/SYSV") ||
                             map.name.starts_with("[anon_shmem:");
    if (map.name.starts_with("/dev/") && !map.name.starts_with("/dev/zero") && !map.name.starts_with("/dev/shm/")) {
      return MemoryKind::special;
    }
    return has_no_file ? MemoryKind::anonymous_shared : MemoryKind::file_shared;
  }
  if (is_static_data(from, to)) return MemoryKind::static_data;
  if (map.inode != 0) return MemoryKind::file_private;
  if (is_on_own_thread_stack(from, to)) return MemoryKind::stack;
  return MemoryKind::anonymous_private;
}

MemoryKind kind_of(const MappedRange& range, std::uintptr_t begin, std::uintptr_t end) {
  if (range.maps.empty()) return MemoryKind::unmapped;
  std::uintptr_t reached = begin;
  for (const Map& map : range.maps) {
    if (map.begin > reached) return MemoryKind::partly_mapped;
    reached = map.end;
  }
  if (reached < end) return MemoryKind::partly_mapped;
  if (!range.writable) return MemoryKind::read_only;
  const MemoryKind first = origin_of(range.maps.front(), begin, end);
  const bool all_alike = std::all_of(range.maps.begin(), range.maps.end(),
                                     [&](const Map& map) { return origin_of(map, begin, end) == first; });
  return all_alike ? first : MemoryKind::mixed;
}

bool has_flag(std::string_view flags, std::string_view flag) {
  for (std::size_t at = flags.find(flag); at != std::string_view::npos; at = flags.find(flag, at + 1)) {
    const bool starts = at == 0 || flags[at - 1] == ' ';
    const bool ends = at + flag.size() == flags.size() || flags[at + flag.size()] == ' ';
    if (starts && ends) return true;
  }
  return false;
}

// Collects the flags of the maps that overlap a range from the lines of smaps.
class FlagReader {
 public:
  FlagReader(std::uintptr_t begin, std::uintptr_t end) : begin_(begin), end_(end) {}

  // False once past the range.
  bool line(std::string_view text) {
    Map map;
    if (parse_map(text, map)) {
      inside_ = map.overlaps(begin_, end_);
      return map.begin < end_;
    }
    if (!inside_) return true;
    constexpr std::string_view flags_key = "VmFlags:";
    constexpr std::string_view key_key = "ProtectionKey:";
    if (text.starts_with(flags_key)) note_flags(text.substr(flags_key.size()));
    constexpr std::string_view huge_key = "AnonHugePages:";
    if (text.starts_with(huge_key)) {
      Scanner scan(text.substr(huge_key.size()));
      scan.spaces();
      std::size_t kilobytes = 0;
      if (scan.number(kilobytes, 10)) flags_.transparent_huge_bytes += kilobytes << 10U;
    }
    if (text.starts_with(key_key)) {
      const std::string_view value = text.substr(key_key.size());
      flags_.protection_key |= value.find_first_not_of(" 0") != std::string_view::npos;
    }
    return true;
  }

  SpecialFlags flags() const { return flags_; }

 private:
  void note_flags(std::string_view flags) {
    flags_.known = true;
    flags_.locked |= has_flag(flags, "lo");
    flags_.huge_pages |= has_flag(flags, "ht");
    flags_.fault_handled_by_user |= has_flag(flags, "um") || has_flag(flags, "uw") || has_flag(flags, "ui");
    flags_.left_out_of_fork |= has_flag(flags, "dc") || has_flag(flags, "wf");
    flags_.device |= has_flag(flags, "io") || has_flag(flags, "pf");
    flags_.grows_down |= has_flag(flags, "gd");
    flags_.mergeable |= has_flag(flags, "mg");
    flags_.wants_huge_pages |= has_flag(flags, "hg");
    flags_.shuns_huge_pages |= has_flag(flags, "nh");
  }

  std::uintptr_t begin_;
  std::uintptr_t end_;
  bool inside_ = false;
  SpecialFlags flags_;
};

AddressRange range_of(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t length = std::max<std::size_t>(bytes, 1);
  // A length that wraps around reaches to the end of the address space.
  return {begin, length > UINTPTR_MAX - begin ? UINTPTR_MAX : begin + length};
}

}  // namespace

std::string_view name_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::unmapped:
      return "unmapped memory";
    case MemoryKind::partly_mapped:
      return "partly mapped memory";
    case MemoryKind::mixed:
      return "memory of several kinds";
    case MemoryKind::heap:
      return "heap memory";
    case MemoryKind::anonymous_private:
      return "private anonymous memory";
    case MemoryKind::anonymous_shared:
      return "shared anonymous memory";
    case MemoryKind::static_data:
      return "static data";
    case MemoryKind::stack:
      return "the stack";
    case MemoryKind::file_private:
      return "a private map of a file";
    case MemoryKind::file_shared:
      return "a shared map of a file";
    case MemoryKind::huge_pages:
      return "huge pages";
    case MemoryKind::special:
      return "memory of the kernel or of a device";
    case MemoryKind::read_only:
      return "read-only memory";
  }
  return {};
}

std::vector<Map> read_maps() {
  std::vector<Map> maps;
  maps.reserve(128);
  for_each_line("/proc/self/maps", [&](std::string_view line) {
    Map map;
    if (parse_map(line, map)) maps.push_back(std::move(map));
    return true;
  });
  return maps;
}

std::vector<Map> parse_maps(std::string_view text) {
  std::vector<Map> maps;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Map map;
    if (parse_map(text.substr(0, end), map)) maps.push_back(std::move(map));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return maps;
}

std::string MappedRange::describe() const {
  std::string text(name_of(kind));
  if (kind == MemoryKind::unmapped) return text;
  text += readable ? ", readable" : ", not readable";
  text += writable ? " and writable" : " and not writable";
  text += ", in " + std::to_string(maps.size()) + (maps.size() == 1 ? " map" : " maps");
  return text;
}

MappedRange classify(const void* address, std::size_t bytes) { return classify(address, bytes, read_maps()); }

MappedRange classify(const void* address, std::size_t bytes, const std::vector<Map>& maps) {
  const AddressRange wanted = range_of(address, bytes);
  MappedRange range;
  for (const Map& map : maps) {
    if (map.overlaps(wanted.begin, wanted.end)) range.maps.push_back(map);
  }
  range.readable = std::all_of(range.maps.begin(), range.maps.end(), [](const Map& map) { return map.readable; });
  range.writable = std::all_of(range.maps.begin(), range.maps.end(), [](const Map& map) { return map.writable; });
  range.kind = kind_of(range, wanted.begin, wanted.end);
  if (range.kind == MemoryKind::unmapped || range.kind == MemoryKind::partly_mapped) {
    range.readable = false;
    range.writable = false;
  }
  return range;
}

MapReader::~MapReader() {
  // Relaxed: who destroys is alone.
  const Opened opened = opened_.load(std::memory_order_relaxed);
  if (opened.fd < 0 || opened.process != getpid() || is_unanswered_.load(std::memory_order_relaxed)) return;
  // The program may have closed it, and then it is another file's.
  BareMap map;
  if (ask_for_map(calls_, opened.fd, 0, map) == 0) calls_.close(opened.fd);
}

std::optional<int> MapReader::descriptor() const {
  const std::int32_t process = getpid();
  // Relaxed, here and below: a descriptor says all there is to know.
  Opened opened = opened_.load(std::memory_order_relaxed);
  if (opened.process == process) return opened.fd;
  const Opened fresh{process, static_cast<std::int32_t>(calls_.open(0))};
  if (fresh.fd < 0) return std::nullopt;
  if (opened_.compare_exchange_strong(opened, fresh, std::memory_order_relaxed)) return fresh.fd;
  calls_.close(fresh.fd);
  return opened.fd;
}

// A descriptor that the program has closed is another file's now, or nobody's: it is left alone.
long MapReader::ask(std::uintptr_t address, BareMap& map, std::span<char> name) const {
  for (int attempt = 0;; ++attempt) {
    const std::optional<int> fd = descriptor();
    if (!fd) return -ENOSYS;
    questions_.fetch_add(1, std::memory_order_relaxed);
    const long result = ask_for_map(calls_, *fd, address, map, name);
    if ((result != -EBADF && result != -ENOTTY) || attempt == 1) return result;
    opened_.store(Opened{}, std::memory_order_relaxed);
  }
}

// An older one.
void MapReader::forget_kernel() const {
  if (is_unanswered_.exchange(true, std::memory_order_relaxed)) return;
  const Opened opened = opened_.load(std::memory_order_relaxed);
  if (opened.fd >= 0 && opened.process == getpid()) calls_.close(opened.fd);
}

// Nothing where the kernel does not answer, or has so many maps there that its file is quicker.
std::optional<std::vector<Map>> MapReader::ask_for_maps(std::uintptr_t begin, std::uintptr_t end, Names names) const {
  constexpr std::size_t most_questions = 64;
  std::array<char, 512> name;
  std::vector<Map> found;
  for (std::uintptr_t at = begin; at < end;) {
    BareMap map;
    const bool asks = names == Names::asked;
    const long result = ask(at, map, asks ? std::span<char>(name) : std::span<char>());
    if (result == -ENOENT) break;
    // One that is too long for us, as others are not.
    if (result == -ENAMETOOLONG || found.size() == most_questions) return std::nullopt;
    if (result != 0) {
      forget_kernel();
      return std::nullopt;
    }
    if (map.begin >= end) break;
    found.push_back({.begin = map.begin,
                     .end = map.end,
                     .readable = (map.protection & PROT_READ) != 0,
                     .writable = (map.protection & PROT_WRITE) != 0,
                     .executable = (map.protection & PROT_EXEC) != 0,
                     .shared = map.shared,
                     .file_offset = map.file_offset,
                     .device = map.device,
                     .inode = map.inode,
                     .name = asks ? name.data() : ""});
    at = map.end;
  }
  return found;
}

std::vector<Map> MapReader::maps(std::uintptr_t begin, std::uintptr_t end, Names names) const {
  if (!is_unanswered_.load(std::memory_order_relaxed)) {
    if (std::optional<std::vector<Map>> found = ask_for_maps(begin, end, names)) return std::move(*found);
  }
  readings_.fetch_add(1, std::memory_order_relaxed);
  std::vector<Map> all = read_maps();
  std::erase_if(all, [&](const Map& map) { return !map.overlaps(begin, end); });
  return all;
}

MapReader::Access MapReader::access(const void* address, std::size_t bytes) const {
  const AddressRange wanted = range_of(address, bytes);
  Access access{true, true};
  std::uintptr_t reached = wanted.begin;
  for (const Map& map : maps(wanted.begin, wanted.end, Names::left_out)) {
    if (map.begin > reached) return {};
    access.readable &= map.readable;
    access.writable &= map.writable;
    reached = map.end;
  }
  return reached >= wanted.end ? access : Access{};
}

std::vector<MapReader::Part> MapReader::parts(const void* address, std::size_t bytes) const {
  const AddressRange wanted = range_of(address, bytes);
  std::vector<Part> parts;
  const auto add = [&](const Part& part) {
    if (part.begin == part.end) return;
    const bool goes_on =
        !parts.empty() && parts.back().readable == part.readable && parts.back().writable == part.writable;
    if (goes_on) {
      parts.back().end = part.end;
    } else {
      parts.push_back(part);
    }
  };
  std::uintptr_t reached = wanted.begin;
  for (const Map& map : maps(wanted.begin, wanted.end, Names::left_out)) {
    const std::uintptr_t begin = std::max(map.begin, reached);
    const std::uintptr_t end = std::min(map.end, wanted.end);
    if (end <= begin) continue;
    add({.begin = reached, .end = begin});
    add({.begin = begin, .end = end, .readable = map.readable, .writable = map.readable && map.writable});
    reached = end;
  }
  add({.begin = reached, .end = wanted.end});
  return parts;
}

MappedRange MapReader::classify(const void* address, std::size_t bytes) const {
  const AddressRange wanted = range_of(address, bytes);
  return os::classify(address, bytes, maps(wanted.begin, wanted.end, Names::asked));
}

SpecialFlags special_flags(const void* address, std::size_t bytes) {
  const AddressRange wanted = range_of(address, bytes);
  FlagReader reader(wanted.begin, wanted.end);
  const bool was_read = for_each_line("/proc/self/smaps", [&](std::string_view line) { return reader.line(line); });
  SpecialFlags flags = reader.flags();
  flags.known = flags.known && was_read;
  return flags;
}

SpecialFlags parse_special_flags(std::string_view smaps, std::uintptr_t begin, std::uintptr_t end) {
  FlagReader reader(begin, end);
  bool wants_more = true;
  while (wants_more && !smaps.empty()) {
    const std::size_t line_end = std::min(smaps.find('\n'), smaps.size());
    wants_more = reader.line(smaps.substr(0, line_end));
    smaps.remove_prefix(std::min(line_end + 1, smaps.size()));
  }
  return reader.flags();
}

}  // namespace farsum::os
