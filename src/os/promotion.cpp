#include "os/promotion.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include "os/memory_map.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace farsum::os {
namespace {

// Stretches move in steps of this many bytes, so that a stretch never needs twice its memory.
constexpr std::size_t step_bytes = std::size_t{64} << 20;

// A parent in fork() gives its child this long between two signs of life.
constexpr int child_patience_ms = 10'000;

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

std::string with_error(std::string text, int error_number) {
  return std::move(text) + ": " + std::strerror(error_number);
}

struct Stretch {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool is_empty() const { return begin >= end; }
  std::size_t bytes() const { return is_empty() ? 0 : end - begin; }
  bool holds(const Stretch& other) const { return begin <= other.begin && other.end <= end; }
  bool overlaps(const Stretch& other) const { return begin < other.end && other.begin < end; }
};

Stretch stretch_of(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return {begin, bytes > UINTPTR_MAX - begin ? UINTPTR_MAX : begin + bytes};
}

Stretch whole_pages(const Stretch& range) {
  const std::uintptr_t mask = page_bytes() - 1;
  if (range.begin > UINTPTR_MAX - mask) return {};
  return {(range.begin + mask) & ~mask, range.end & ~mask};
}

// ---- reasons to refuse ----

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

std::string refuse_threads(const PromotionRules& rules) {
  const pid_t self = gettid();
  return first_reason("/proc/self/task", [&](const char* name) -> std::string {
    const auto thread = static_cast<pid_t>(std::strtol(name, nullptr, 10));
    const auto& parked = rules.parked_threads;
    if (thread == self || std::find(parked.begin(), parked.end(), thread) != parked.end()) return {};
    return "the process has other threads (" + std::string(name) + ")";
  });
}

// Devices and rings that keep physical pages: they would go on reading and writing the old ones.
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

// All reasons that are cheap to look for.
std::string refuse_pages(const Stretch& pages, const PromotionRules& rules) {
  if (pages.is_empty()) return "the range has no whole page";
  const std::vector<Map> maps = read_maps();
  const MappedRange range = classify(pointer(pages.begin), pages.bytes(), maps);
  std::string refusal = refuse_kind(range);
  if (refusal.empty()) refusal = refuse_size(range, pages, rules);
  if (refusal.empty()) refusal = refuse_map_count(maps, rules);
  if (refusal.empty()) refusal = refuse_threads(rules);
  if (refusal.empty()) refusal = refuse_asynchronous_io(maps);
  if (refusal.empty()) refusal = refuse_descriptors();
  return refusal;
}

int huge_page_advice(const SpecialFlags& flags) {
  if (flags.wants_huge_pages) return MADV_HUGEPAGE;
  return flags.shuns_huge_pages ? MADV_NOHUGEPAGE : 0;
}

std::string refuse_extent(const Examination& stretch, int fd, std::uint64_t file_offset, const struct stat& file) {
  if (file_offset % page_bytes() != 0) return "the extent does not begin at a page";
  const std::uint64_t end = file_offset + stretch.bytes;
  if (end < file_offset || end > static_cast<std::uint64_t>(file.st_size)) return "the extent lies outside its file";
  rlimit limit{};
  // Writing past it would raise SIGXFSZ.
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur) {
    return "the limit on file size (RLIMIT_FSIZE) is too low";
  }
  return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR ? std::string() : "the file of the extent is not open for writing";
}

// ---- moving memory ----

// Keeps this thread's signal handlers away from memory that is being moved.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Copying with pwrite takes no page fault for the file's side and clears no page first; MAP_POPULATE then maps many at
// a time. This goes through libc's mmap, which libraries that cache registrations intercept. Returns 0 or an errno, and
// then nothing has changed.
int move_to_file(const Stretch& step, int fd, std::uint64_t file_offset) {
  for (std::size_t done = 0; done < step.bytes();) {
    const ssize_t written =
        pwrite(fd, pointer(step.begin + done), step.bytes() - done, static_cast<off_t>(file_offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    done += static_cast<std::size_t>(written);
  }
  void* mapped = mmap(pointer(step.begin), step.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                      fd, static_cast<off_t>(file_offset));
  return mapped == MAP_FAILED ? errno : 0;
}

// What a stretch of the user's memory that still maps its extent looks like now.
struct Piece {
  Stretch at;
  int protection = PROT_READ | PROT_WRITE;  // the user may have changed it
};

// Not memcpy: checkers intercept that and complain of memory that the user has freed, which is copied like any other.
[[gnu::noinline, gnu::no_sanitize("address"), gnu::no_sanitize("thread"),
  gnu::optimize("no-tree-loop-distribute-patterns")]] void
copy_pages(void* target, const void* source, std::size_t bytes) {
  using Word [[gnu::may_alias]] = std::uint64_t;
  auto* to = static_cast<Word*>(target);
  const auto* from = static_cast<const Word*>(source);
  for (std::size_t i = 0; i < bytes / sizeof(Word); ++i) to[i] = from[i];
}

struct MoveBack {
  bool gives_pages_back = false;  // empties the extent while going along
  int huge_page_advice = 0;       // what the user had advised
};

// Puts private anonymous memory with the same contents in place of a shared map. A fresh map at the very address merges
// with its neighbours again, which one moved there by mremap would not. A length of 0 makes mremap duplicate a shared
// map, so no descriptor is needed. Async-signal-safe. Returns 0 or an errno.
int move_to_private(const Stretch& step, int protection, const MoveBack& options) {
  void* target = pointer(step.begin);
  if ((protection & PROT_READ) == 0 && mprotect(target, step.bytes(), PROT_READ) != 0) return errno;
  void* source = mremap(target, 0, step.bytes(), MREMAP_MAYMOVE);
  if (source == MAP_FAILED) return errno;
  void* fresh = mmap(target, step.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (fresh == MAP_FAILED) {
    const int error_number = errno;
    // An mmap that fails may have unmapped the place already.
    mremap(source, step.bytes(), step.bytes(), MREMAP_MAYMOVE | MREMAP_FIXED, target);
    return error_number;
  }
  if (options.huge_page_advice != 0) madvise(target, step.bytes(), options.huge_page_advice);
  // Older kernels do not know it; the copy then takes its faults one by one.
  madvise(target, step.bytes(), MADV_POPULATE_WRITE);
  copy_pages(target, source, step.bytes());
  if (protection != (PROT_READ | PROT_WRITE)) mprotect(target, step.bytes(), protection);
  if (options.gives_pages_back) madvise(source, step.bytes(), MADV_REMOVE);
  munmap(source, step.bytes());
  return 0;
}

template <class Move>
int for_each_step(const Stretch& stretch, Move move) {
  for (std::uintptr_t begin = stretch.begin; begin < stretch.end;) {
    const Stretch step{begin, begin + std::min<std::size_t>(step_bytes, stretch.end - begin)};
    if (const int error_number = move(step)) return error_number;
    begin = step.end;
  }
  return 0;
}

int protection_of(const Map& map) {
  return (map.readable ? PROT_READ : 0) | (map.writable ? PROT_WRITE : 0) | (map.executable ? PROT_EXEC : 0);
}

}  // namespace

struct PromotionRegistry::Entry {
  std::uint64_t id = 0;
  Stretch stretch;
  std::uint64_t file_offset = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  int huge_page_advice = 0;
  std::size_t references = 1;
  bool is_left_to_parent = false;
  std::vector<Piece> pieces_at_fork;

  bool maps_extent(const Map& map) const { return map.shared && map.device == device && map.inode == inode; }

  // The parts that are as promote() left them. The user may have unmapped some, and mapped other things there.
  std::vector<Piece> pieces(const std::vector<Map>& maps) const {
    std::vector<Piece> found;
    for (const Map& map : maps) {
      if (!maps_extent(map) || !map.overlaps(stretch.begin, stretch.end)) continue;
      if (map.file_offset - map.begin != file_offset - stretch.begin) continue;
      found.push_back({{std::max(map.begin, stretch.begin), std::min(map.end, stretch.end)}, protection_of(map)});
    }
    return found;
  }

  // Whether all of it is as promote() left it: not in a forked child, nor where the user has unmapped some.
  bool is_whole(const std::vector<Map>& maps) const { return mapped_bytes(pieces(maps)) == stretch.bytes(); }

  static std::size_t mapped_bytes(const std::vector<Piece>& pieces) {
    std::size_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.at.bytes();
    return bytes;
  }

  // Whether some of the extent is mapped at another address and nothing else with it: the user has moved his memory.
  bool was_moved(const std::vector<Map>& maps) const {
    return std::any_of(maps.begin(), maps.end(), [&](const Map& map) {
      const bool is_inside =
          map.file_offset >= file_offset && map.file_offset + map.bytes() <= file_offset + stretch.bytes();
      return maps_extent(map) && is_inside && map.file_offset - map.begin != file_offset - stretch.begin;
    });
  }
};

// ---- fork ----

namespace {

// pthread_atfork hands its handlers nothing, so this list has to be global. Both are trivially destroyed.
constinit std::mutex registries_mutex;
constinit PromotionRegistry* registries = nullptr;

// The sockets of the fork() under way, guarded by registries_mutex: the child reports on the second, and its end of
// file tells of its death or that it was never made. A pipe would do, but for SIGPIPE when the parent has lost
// patience.
constinit std::array<int, 2> report_sockets = {-1, -1};

constexpr char moved_a_step = 's';
constexpr char has_finished = 'f';

void close_end(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

void report(char what) {
  if (report_sockets[1] < 0) return;
  while (send(report_sockets[1], &what, 1, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

// Until the child has finished, has died, was never made, or has shown no life for long.
void wait_for_child() {
  close_end(report_sockets[1]);
  if (report_sockets[0] < 0) return;
  char what = moved_a_step;
  ssize_t bytes = 1;
  while (bytes > 0 && what != has_finished) {
    pollfd child{.fd = report_sockets[0], .events = POLLIN, .revents = 0};
    const int ready = poll(&child, 1, child_patience_ms);
    if (ready < 0 && errno == EINTR) continue;
    bytes = ready > 0 ? read(report_sockets[0], &what, 1) : 0;
  }
  close_end(report_sockets[0]);
}

}  // namespace

struct ForkHandlers {
  static bool install() {
    static const bool is_installed = pthread_atfork(&prepare, &in_parent, &in_child) == 0;
    return is_installed;
  }

  static void add(PromotionRegistry& registry) {
    const std::lock_guard guard(registries_mutex);
    registry.next_registry_ = registries;
    registries = &registry;
  }

  static void remove(PromotionRegistry& registry) {
    const std::lock_guard guard(registries_mutex);
    for (PromotionRegistry** link = &registries; *link != nullptr; link = &(*link)->next_registry_) {
      if (*link != &registry) continue;
      *link = registry.next_registry_;
      return;
    }
  }

  // Takes every lock, so that the child finds all lists whole, and writes down what it has to copy.
  static void prepare() {
    registries_mutex.lock();
    bool has_promotions = false;
    for (PromotionRegistry* registry = registries; registry != nullptr; registry = registry->next_registry_) {
      registry->mutex_.lock();
      has_promotions |= !registry->entries_.empty();
    }
    if (!has_promotions) return;
    const std::vector<Map> maps = read_maps();
    for_each_entry([&](PromotionRegistry::Entry& entry) { entry.pieces_at_fork = entry.pieces(maps); });
    // Without a pipe the parent does not wait, and what it writes meanwhile may show in the child; nothing flows the
    // other way.
    if (pipe2(report_sockets.data(), O_CLOEXEC) != 0) report_sockets = {-1, -1};
  }

  static void in_parent() {
    const int error_number = errno;
    wait_for_child();
    unlock_all();
    errno = error_number;
  }

  // Only async-signal-safe calls from here on.
  static void in_child() {
    const int error_number = errno;
    const SignalsBlocked blocked;
    close_end(report_sockets[0]);
    for_each_entry([](PromotionRegistry::Entry& entry) {
      if (!entry.is_left_to_parent) copy_in_child(entry);
      entry.is_left_to_parent = true;
    });
    report(has_finished);
    close_end(report_sockets[1]);
    unlock_all();
    errno = error_number;
  }

 private:
  template <class Visit>
  static void for_each_entry(Visit visit) {
    for (PromotionRegistry* registry = registries; registry != nullptr; registry = registry->next_registry_) {
      for (const auto& entry : registry->entries_) visit(*entry);
    }
  }

  static void copy_in_child(const PromotionRegistry::Entry& entry) {
    const MoveBack options{.gives_pages_back = false, .huge_page_advice = entry.huge_page_advice};
    for (const Piece& piece : entry.pieces_at_fork) {
      for_each_step(piece.at, [&](const Stretch& step) {
        // A child without room must not write into its parent's memory; it faults if it touches these pages.
        if (move_to_private(step, piece.protection, options) != 0) {
          mmap(pointer(step.begin), step.bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
               -1, 0);
        }
        report(moved_a_step);
        return 0;
      });
    }
  }

  static void unlock_all() {
    for (PromotionRegistry* registry = registries; registry != nullptr; registry = registry->next_registry_) {
      registry->mutex_.unlock();
    }
    registries_mutex.unlock();
  }
};

// ---- the registry ----

Examination examine(const void* address, std::size_t bytes, const PromotionRules& rules) {
  const Stretch pages = whole_pages(stretch_of(address, bytes));
  Examination found;
  found.refusal = refuse_pages(pages, rules);
  if (!found.ok()) return found;
  const SpecialFlags flags = special_flags(pointer(pages.begin), pages.bytes());
  found.refusal = refuse_flags(flags);
  if (!found.ok()) return found;
  found.address = pages.begin;
  found.bytes = pages.bytes();
  found.huge_page_advice = huge_page_advice(flags);
  return found;
}

PromotionRegistry::PromotionRegistry() { ForkHandlers::add(*this); }

PromotionRegistry::~PromotionRegistry() { ForkHandlers::remove(*this); }

Examination PromotionRegistry::examine(const void* address, std::size_t bytes, const PromotionRules& rules) const {
  const Stretch range = stretch_of(address, bytes);
  {
    const std::lock_guard guard(mutex_);
    const std::vector<Map> maps = entries_.empty() ? std::vector<Map>() : read_maps();
    const bool is_taken = std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
      const std::vector<Piece> pieces = entry->pieces(maps);
      return std::any_of(pieces.begin(), pieces.end(), [&](const Piece& piece) { return piece.at.overlaps(range); });
    });
    if (is_taken) {
      Examination taken;
      taken.refusal = "part of the range is promoted for another window";
      return taken;
    }
  }
  return os::examine(address, bytes, rules);
}

Promotion PromotionRegistry::share(const void* address, std::size_t bytes) {
  const Stretch range = stretch_of(address, bytes);
  const Stretch pages = whole_pages(range);
  Promotion promotion;
  if (range.is_empty()) return promotion;
  const std::lock_guard guard(mutex_);
  for (const auto& entry : entries_) {
    const Stretch common{std::max(range.begin, entry->stretch.begin), std::min(range.end, entry->stretch.end)};
    const bool covers = pages.is_empty() ? entry->stretch.holds(range) : entry->stretch.holds(pages);
    if (!covers || !entry->is_whole(read_maps())) continue;
    ++entry->references;
    promotion.address_ = common.begin;
    promotion.bytes_ = common.bytes();
    promotion.file_offset_ = entry->file_offset + (common.begin - entry->stretch.begin);
    promotion.entry_ = entry->id;
    return promotion;
  }
  return promotion;
}

PromotionOutcome PromotionRegistry::promote(const Examination& stretch, int fd, std::uint64_t file_offset,
                                            const PromotionRules& rules) {
  PromotionOutcome outcome;
  if (!stretch.ok()) {
    outcome.refusal = stretch.refusal;
    return outcome;
  }
  if (!ForkHandlers::install()) {
    outcome.refusal = "no fork handlers can be installed";
    return outcome;
  }
  struct stat file {};
  if (fstat(fd, &file) != 0) {
    outcome.refusal = with_error("the file of the extent cannot be used", errno);
    return outcome;
  }
  outcome.refusal = refuse_extent(stretch, fd, file_offset, file);
  if (!outcome.refusal.empty()) return outcome;

  const std::lock_guard guard(mutex_);
  // Much may have changed since the caller asked.
  const Stretch pages = stretch_of(pointer(stretch.address), stretch.bytes);
  outcome.refusal = refuse_pages(pages, rules);
  if (!outcome.refusal.empty()) return outcome;

  auto entry = std::make_unique<Entry>();
  entry->id = next_id_++;
  entry->stretch = pages;
  entry->file_offset = file_offset;
  entry->device = file.st_dev;
  entry->inode = file.st_ino;
  entry->huge_page_advice = stretch.huge_page_advice;
  entries_.reserve(entries_.size() + 1);

  const SignalsBlocked blocked;
  Stretch moved{entry->stretch.begin, entry->stretch.begin};
  const int error_number = for_each_step(entry->stretch, [&](const Stretch& step) {
    const int failed = move_to_file(step, fd, file_offset + (step.begin - entry->stretch.begin));
    if (failed == 0) moved.end = step.end;
    return failed;
  });
  if (error_number != 0) {
    for_each_step(moved, [&](const Stretch& step) {
      return move_to_private(step, PROT_READ | PROT_WRITE, {.huge_page_advice = entry->huge_page_advice});
    });
    outcome.refusal = with_error("the range cannot be moved into its extent", error_number);
    return outcome;
  }
  outcome.promotion.address_ = entry->stretch.begin;
  outcome.promotion.bytes_ = entry->stretch.bytes();
  outcome.promotion.file_offset_ = file_offset;
  outcome.promotion.entry_ = entry->id;
  entries_.push_back(std::move(entry));
  return outcome;
}

ReleaseOutcome PromotionRegistry::release(Promotion& promotion, const PromotionRules& rules) {
  const std::lock_guard guard(mutex_);
  Entry* entry = find(promotion.entry_);
  promotion = Promotion();
  if (entry == nullptr || entry->references == 0) {
    return {.demotion = Demotion::kept, .reason = "this promotion is not of this registry"};
  }
  --entry->references;
  if (entry->references > 0) return {.demotion = Demotion::still_shared, .reason = {}};
  return demote(*entry, rules);
}

std::vector<ReleaseOutcome> PromotionRegistry::retry_kept(const PromotionRules& rules) {
  const std::lock_guard guard(mutex_);
  std::vector<std::uint64_t> kept;
  for (const auto& entry : entries_) {
    if (entry->references == 0) kept.push_back(entry->id);
  }
  std::vector<ReleaseOutcome> outcomes;
  for (const std::uint64_t id : kept) outcomes.push_back(demote(*find(id), rules));
  return outcomes;
}

std::size_t PromotionRegistry::promoted_bytes() const {
  const std::lock_guard guard(mutex_);
  std::size_t bytes = 0;
  for (const auto& entry : entries_) bytes += entry->is_left_to_parent ? 0 : entry->stretch.bytes();
  return bytes;
}

PromotionRegistry::Entry* PromotionRegistry::find(std::uint64_t id) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry->id == id; });
  return found == entries_.end() ? nullptr : found->get();
}

ReleaseOutcome PromotionRegistry::demote(Entry& entry, const PromotionRules& rules) {
  ReleaseOutcome outcome{
      .demotion = Demotion::restored, .reason = {}, .file_offset = entry.file_offset, .bytes = entry.stretch.bytes()};
  const auto forget = [&] { std::erase_if(entries_, [&](const auto& held) { return held.get() == &entry; }); };
  if (entry.is_left_to_parent) {
    outcome.demotion = Demotion::left_to_parent;
    forget();
    return outcome;
  }
  const std::vector<Map> maps = read_maps();
  const std::vector<Piece> pieces = entry.pieces(maps);
  const std::size_t mapped_bytes = Entry::mapped_bytes(pieces);
  if (mapped_bytes < entry.stretch.bytes() && entry.was_moved(maps))
    outcome.reason = "the user has moved part of the range";
  // Another thread's stores between the copy and the exchange would be lost.
  if (mapped_bytes > 0 && outcome.reason.empty()) outcome.reason = refuse_threads(rules);

  const SignalsBlocked blocked;
  const MoveBack options{.gives_pages_back = entry.stretch.bytes() > step_bytes,
                         .huge_page_advice = entry.huge_page_advice};
  for (const Piece& piece : pieces) {
    if (!outcome.reason.empty()) break;
    const int error_number =
        for_each_step(piece.at, [&](const Stretch& step) { return move_to_private(step, piece.protection, options); });
    if (error_number != 0) outcome.reason = with_error("the range cannot be turned back", error_number);
  }
  if (!outcome.reason.empty()) {
    outcome.demotion = Demotion::kept;
    return outcome;
  }
  forget();
  return outcome;
}

}  // namespace farsum::os
