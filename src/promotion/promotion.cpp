#include "promotion/promotion.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "os/blocked_signals.hpp"
#include "os/memory_map.hpp"
#include "promotion/forked_memory.hpp"
#include "promotion/held_threads.hpp"
#include "promotion/map_check.hpp"
#include "promotion/page_move.hpp"
#include "promotion/promoted_files.hpp"
#include "promotion/promotion_refusal.hpp"
#include "promotion/touched_pages.hpp"

namespace farsum::os {
namespace {

std::string with_error(std::string text, int error_number) {
  return std::move(text) + ": " + std::strerror(error_number);
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

[[noreturn]] void die_amid_move(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

// What a stretch of the user's memory that still maps its extent looks like now.
struct Piece {
  Stretch at;
  int protection = PROT_READ | PROT_WRITE;  // the user may have changed it
};

int protection_of(const Map& map) {
  return (map.readable ? PROT_READ : 0) | (map.writable ? PROT_WRITE : 0) | (map.executable ? PROT_EXEC : 0);
}

// ---- the moves ----

// Each runs with signals blocked, in this thread or, while threads are held, in the helper: see HeldWork.

struct ToFile {
  Stretch stretch;
  int fd = -1;
  std::uint64_t file_offset = 0;
  int huge_page_advice = 0;
  bool may_be_huge = false;
  TouchedPages touched;
  int error_number = 0;  // if not 0, nothing has changed
  bool is_lost = false;  // some of the memory, or its way back from an extent that others are to have

  void run(Carrier carrier) {
    Stretch moved{stretch.begin, stretch.begin};
    error_number = for_each_step(stretch, [&](const Stretch& step) {
      int failed = 0;
      while (moved.end < step.end && failed == 0) {
        const Stretch part = touched.look({moved.end, step.end}, carrier);
        make_runs_huge(carrier);
        failed = move_to_file(part, touched.runs(), fd, place_of(part), carrier);
        if (failed == 0) moved.end = part.end;
      }
      return failed;
    });
    if (error_number == 0) return;
    const int back = for_each_step(moved, [&](const Stretch& step) {
      return move_to_private(step, {.huge_page_advice = huge_page_advice, .fd = fd, .file_offset = place_of(step)},
                             carrier);
    });
    is_lost = error_number == step_is_lost || back != 0;
  }

  // Where no page is that was not touched.
  void make_runs_huge(Carrier carrier) {
    for (const Stretch& run : touched.runs()) {
      const std::uintptr_t first = (run.begin + huge_page_bytes - 1) & ~(huge_page_bytes - 1);
      const bool has_room = first < run.end && run.end - first >= huge_page_bytes;
      // A kernel that had none may have looked for long.
      if (may_be_huge && has_room) may_be_huge = make_huge(run, fd, place_of(run), carrier);
    }
  }

  std::uint64_t place_of(const Stretch& part) const { return file_offset + (part.begin - stretch.begin); }
  void announce() const { announce_move(stretch); }
};

struct ToPrivate {
  std::span<const Piece> pieces;
  Stretch stretch;
  int fd = -1;
  std::uint64_t file_offset = 0;
  bool gives_pages_back = false;
  int huge_page_advice = 0;
  int error_number = 0;
  bool is_lost = false;

  void run(Carrier carrier) {
    for (std::size_t i = 0; i < pieces.size() && error_number == 0; ++i) {
      MoveBack options{.protection = pieces[i].protection,
                       .gives_pages_back = gives_pages_back,
                       .huge_page_advice = huge_page_advice,
                       .fd = fd};
      error_number = for_each_step(pieces[i].at, [&](const Stretch& step) {
        options.file_offset = file_offset + (step.begin - stretch.begin);
        return move_to_private(step, options, carrier);
      });
    }
    is_lost = error_number == step_is_lost;
  }

  void announce() const {
    for (const Piece& piece : pieces) announce_move(piece.at);
  }
};

constexpr std::size_t maps_buffer_bytes = std::size_t{16} << 10;

template <class Job>
struct HeldJob {
  Job& job;
  std::span<const ExpectedPiece> expected;
  std::array<char, maps_buffer_bytes> buffer;
  enum class Stage : std::uint8_t { not_begun, changed, begun, done } stage = Stage::not_begun;

  static void run(void* argument) {
    auto& self = *static_cast<HeldJob*>(argument);
    if (!are_mapped(self.expected, self.buffer)) {
      self.stage = Stage::changed;
      return;
    }
    self.stage = Stage::begun;
    self.job.run(Carrier::kernel);
    self.stage = Stage::done;
  }
};

// Runs a move while no other thread of the program does anything. Returns why it has not been run.
template <class Job>
std::string run_alone(Job& job, std::span<const ExpectedPiece> expected, const PromotionRules& rules) {
  static constexpr std::string_view killed =
      "farsum: the process that moved memory of this one was killed midway; the program cannot go on\n";
  static constexpr std::string_view lost =
      "farsum: the kernel has no room to put back memory that was being moved; the program cannot go on\n";
  const pid_t other = other_thread(rules);
  if (other == 0) {
    const BlockedSignals blocked;
    job.run(Carrier::library);
    if (job.is_lost) die_amid_move(lost);
    return {};
  }
  if (other < 0 || !rules.may_hold_threads) return refuse_threads(other, "they may not be held");
  using Held = HeldJob<Job>;
  const auto held = std::make_unique<Held>(Held{.job = job, .expected = expected, .buffer = {}});
  const std::string reason = run_with_threads_held(
      &Held::run, held.get(), {.left_alone = rules.parked_threads, .patience = rules.hold_patience});
  // Half of the memory may be lost: nobody may go on with it.
  if (held->stage == Held::Stage::begun) die_amid_move(killed);
  if (job.is_lost) die_amid_move(lost);
  if (held->stage == Held::Stage::changed) return "another thread changes what is mapped there";
  if (!reason.empty()) return refuse_threads(other, "they cannot be held: " + reason);
  job.announce();
  return {};
}

}  // namespace

struct PromotionRegistry::Entry {
  std::uint64_t id = 0;
  Stretch stretch;
  int fd = -1;  // the caller's
  std::uint64_t file_offset = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  int huge_page_advice = 0;
  std::size_t references = 1;
  pid_t process = getpid();  // that has promoted it

  // In its forked children, whose copies are private.
  bool is_left_to_parent() const { return process != getpid(); }

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

  int descriptor() const {
    return PromotedFile{.device = device, .inode = inode, .fd = fd, .own_map = {}}.descriptor();
  }

  std::vector<Map> own_maps(const MapReader& maps) const {
    return maps.maps(stretch.begin, stretch.end, MapReader::Names::left_out);
  }

  // Whether all of it is as promote() left it: not in a forked child, nor where the user has unmapped some.
  bool is_whole(const MapReader& maps) const { return mapped_bytes(pieces(own_maps(maps))) == stretch.bytes(); }

  static std::size_t mapped_bytes(const std::vector<Piece>& pieces) {
    std::size_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.at.bytes();
    return bytes;
  }

  std::vector<ExpectedPiece> expected(const std::vector<Piece>& of) const {
    std::vector<ExpectedPiece> expected;
    expected.reserve(of.size());
    for (const Piece& piece : of) {
      expected.push_back({.at = piece.at,
                          .protection = piece.protection,
                          .shared = true,
                          .device = device,
                          .inode = inode,
                          .file_offset = file_offset + (piece.at.begin - stretch.begin)});
    }
    return expected;
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

// Of the fork() under way, guarded by registries_mutex.
constinit ChildReport fork_report;

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

  // Takes every lock, so that the child finds all lists whole.
  static void prepare() {
    registries_mutex.lock();
    for (PromotionRegistry* registry = registries; registry != nullptr; registry = registry->next_registry_) {
      registry->mutex_.lock();
    }
    if (!promoted_files().empty()) fork_report.open();
  }

  static void in_parent() {
    const int error_number = errno;
    fork_report.wait();
    unlock_all();
    errno = error_number;
  }

  // Only async-signal-safe calls from here on.
  static void in_child() {
    const int error_number = errno;
    const BlockedSignals blocked;
    fork_report.begin_in_child();
    keep_promoted_memory(fork_report);
    fork_report.finish();
    unlock_all();
    errno = error_number;
  }

  // Where the list of files is the calling thread's.
  static bool announce(const PromotedFile& file) {
    const std::lock_guard guard(registries_mutex);
    return promoted_files().add(file);
  }

  static void withdraw(std::uint64_t device, std::uint64_t inode) {
    const std::lock_guard guard(registries_mutex);
    promoted_files().remove(device, inode);
  }

 private:
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
  found.touched_bytes = TouchedPages().bytes_in(pages);
  found.may_be_huge = !flags.shuns_huge_pages && (flags.wants_huge_pages || flags.transparent_huge_bytes != 0);
  return found;
}

PromotionRegistry::PromotionRegistry(const MapCalls& calls) : maps_(calls) { ForkHandlers::add(*this); }

// What is still promoted keeps its file known: it must not be taken for the program's own shared memory.
PromotionRegistry::~PromotionRegistry() {
  ForkHandlers::remove(*this);
  for (const File& file : files_) {
    const bool is_in_use = std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
      return entry->device == file.device && entry->inode == file.inode && !entry->is_left_to_parent();
    });
    if (!is_in_use) ForkHandlers::withdraw(file.device, file.inode);
  }
}

void PromotionRegistry::leave_out(const void* begin, std::size_t bytes) {
  const std::lock_guard guard(mutex_);
  left_out_ = stretch_of(begin, bytes);
}

// Without the mutex, for a fork takes the list of registries before it.
bool PromotionRegistry::announce(int fd, std::uint64_t device, std::uint64_t inode) {
  const auto is_known = [&] {
    return std::any_of(files_.begin(), files_.end(),
                       [&](const File& file) { return file.device == device && file.inode == inode; });
  };
  PromotedFile file{.device = device, .inode = inode, .fd = fd, .own_map = {}};
  {
    const std::lock_guard guard(mutex_);
    if (is_known()) return true;
    file.own_map = left_out_;
  }
  if (!ForkHandlers::announce(file)) return false;
  {
    const std::lock_guard guard(mutex_);
    if (!is_known()) {
      files_.push_back({device, inode});
      return true;
    }
  }
  // Another thread has announced it meanwhile.
  ForkHandlers::withdraw(device, inode);
  return true;
}

Examination PromotionRegistry::examine(const void* address, std::size_t bytes, const PromotionRules& rules) const {
  const Stretch range = stretch_of(address, bytes);
  {
    const std::lock_guard guard(mutex_);
    const bool is_taken = std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
      if (!entry->stretch.overlaps(range)) return false;
      const std::vector<Piece> pieces = entry->pieces(entry->own_maps(maps_));
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
    if (!covers || !entry->is_whole(maps_)) continue;
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

  if (!announce(fd, file.st_dev, file.st_ino)) {
    outcome.refusal = "too many files have promoted memory in this process";
    return outcome;
  }

  const std::lock_guard guard(mutex_);
  // Much may have changed since the caller asked.
  const Stretch pages = stretch_of(pointer(stretch.address), stretch.bytes);
  outcome.refusal = refuse_pages(pages, rules);
  if (outcome.refusal.empty()) outcome.refusal = refuse_copies();
  if (!outcome.refusal.empty()) return outcome;
  auto entry = std::make_unique<Entry>();
  entry->id = next_id_++;
  entry->stretch = pages;
  entry->fd = fd;
  entry->file_offset = file_offset;
  entry->device = file.st_dev;
  entry->inode = file.st_ino;
  entry->huge_page_advice = stretch.huge_page_advice;
  entries_.reserve(entries_.size() + 1);

  ToFile job{.stretch = entry->stretch,
             .fd = fd,
             .file_offset = file_offset,
             .huge_page_advice = entry->huge_page_advice,
             .may_be_huge = stretch.may_be_huge,
             .touched = TouchedPages(rules.touched_pages),
             .error_number = 0};
  const ExpectedPiece expected{.at = entry->stretch, .protection = PROT_READ | PROT_WRITE};
  promoted_files().note_stretch();
  outcome.refusal = run_alone(job, {&expected, 1}, rules);
  if (outcome.refusal.empty() && job.error_number != 0)
    outcome.refusal = with_error("the range cannot be moved into its extent", job.error_number);
  if (!outcome.refusal.empty()) {
    promoted_files().forget_stretch();
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

std::vector<ReleaseOutcome> PromotionRegistry::retry_releases(const PromotionRules& rules) {
  const std::lock_guard guard(mutex_);
  std::vector<std::uint64_t> kept;
  for (const auto& entry : entries_) {
    if (entry->references == 0) kept.push_back(entry->id);
  }
  std::vector<ReleaseOutcome> outcomes;
  outcomes.reserve(kept.size());
  for (const std::uint64_t id : kept) outcomes.push_back(demote(*find(id), rules));
  return outcomes;
}

bool PromotionRegistry::begin_copies() {
  const std::unique_lock guard(mutex_, std::try_to_lock);
  if (!guard.owns_lock()) return false;
  copies_under_way_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Release pairs with the acquire in refuse_copies: what was copied was so before the pages go.
void PromotionRegistry::end_copies() { copies_under_way_.fetch_sub(1, std::memory_order_release); }

std::string PromotionRegistry::refuse_copies() const {
  if (copies_under_way_.load(std::memory_order_acquire) == 0) return {};
  return "another thread reduces or broadcasts, and ranks of this node copy from and to this process's memory "
         "meanwhile";
}

std::size_t PromotionRegistry::promoted_bytes() const {
  const std::lock_guard guard(mutex_);
  std::size_t bytes = 0;
  for (const auto& entry : entries_) bytes += entry->is_left_to_parent() ? 0 : entry->stretch.bytes();
  return bytes;
}

PromotionRegistry::Entry* PromotionRegistry::find(std::uint64_t id) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) { return entry->id == id; });
  return found == entries_.end() ? nullptr : found->get();
}

ReleaseOutcome PromotionRegistry::demote(Entry& entry, const PromotionRules& rules) {
  ReleaseOutcome outcome{
      .demotion = Demotion::restored, .reason = {}, .file_offset = entry.file_offset, .bytes = entry.stretch.bytes()};
  const auto forget = [&] {
    std::erase_if(entries_, [&](const auto& held) { return held.get() == &entry; });
    promoted_files().forget_stretch();
  };
  if (entry.is_left_to_parent()) {
    outcome.demotion = Demotion::left_to_parent;
    forget();
    return outcome;
  }
  const std::vector<Map> maps = read_maps();
  const std::vector<Piece> pieces = entry.pieces(maps);
  const std::size_t mapped_bytes = Entry::mapped_bytes(pieces);
  if (mapped_bytes < entry.stretch.bytes() && entry.was_moved(maps))
    outcome.reason = "the user has moved part of the range";
  if (mapped_bytes > 0 && outcome.reason.empty()) outcome.reason = refuse_copies();
  if (mapped_bytes > 0 && outcome.reason.empty()) outcome.reason = refuse_threads(rules);
  if (mapped_bytes > 0 && outcome.reason.empty()) outcome.reason = refuse_page_holders(maps);

  if (!pieces.empty() && outcome.reason.empty()) {
    ToPrivate job{.pieces = pieces,
                  .stretch = entry.stretch,
                  .fd = entry.descriptor(),
                  .file_offset = entry.file_offset,
                  .gives_pages_back = entry.stretch.bytes() > step_bytes,
                  .huge_page_advice = entry.huge_page_advice,
                  .error_number = 0};
    outcome.reason = run_alone(job, entry.expected(pieces), rules);
    if (outcome.reason.empty() && job.error_number != 0)
      outcome.reason = with_error("the range cannot be turned back", job.error_number);
  }
  if (!outcome.reason.empty()) {
    outcome.demotion = Demotion::kept;
    return outcome;
  }
  forget();
  return outcome;
}

}  // namespace farsum::os
