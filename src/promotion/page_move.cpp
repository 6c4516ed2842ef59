#include "promotion/page_move.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/huge_page_advice.hpp"
#include "os/raw_system.hpp"

namespace farsum::os {
namespace {

// Shorter runs take their faults when they are used, which the kernel maps 16 at a time.
constexpr std::size_t worth_populating_bytes = std::size_t{64} << 10;

bool is_error(long result) { return -4096 < result && result < 0; }

static_assert(MoveBack{}.protection == (PROT_READ | PROT_WRITE));

#if defined(__clang__)
#define FARSUM_STAYS_A_LOOP clang::no_builtin("memcpy", "memmove")
#else
#define FARSUM_STAYS_A_LOOP gnu::optimize("no-tree-loop-distribute-patterns")
#endif

// Not memcpy: checkers intercept that and complain of memory that the user has freed, which is copied like any other.
[[gnu::noinline, gnu::no_sanitize("address"), gnu::no_sanitize("thread"), FARSUM_STAYS_A_LOOP]] void copy_pages(
    void* target, const void* source, std::size_t bytes) {
  using Chunk [[gnu::may_alias, gnu::vector_size(64)]] = std::uint64_t;
  auto* to = static_cast<Chunk*>(target);
  const auto* from = static_cast<const Chunk*>(source);
  for (std::size_t i = 0; i < bytes / sizeof(Chunk); ++i) to[i] = from[i];
}

// An mmap that fails may have unmapped the place already: then what was there comes back from the file.
template <class Calls>
bool fill_hole(const Stretch& step, int fd, std::uint64_t file_offset) {
  if (Calls::look(pointer(step.begin)) != -ENOMEM) return true;
  const long fresh = Calls::map(pointer(step.begin), step.bytes(), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (is_error(fresh)) return false;
  for (std::size_t done = 0; done < step.bytes();) {
    const long got = Calls::read_at(fd, pointer(step.begin + done), step.bytes() - done, file_offset + done);
    if (got == -EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

// Through a map of its own, for the step's is still that of the private memory. A kernel collapses only where some page
// is; populating one gives the whole huge page at once where shared memory may have them on advice.
template <class Calls>
bool ask_for_huge_pages(const Stretch& step, int fd, std::uint64_t file_offset) {
  constexpr std::uintptr_t mask = huge_page_bytes - 1;
  const Stretch whole{(step.begin + mask) & ~mask, step.end & ~mask};
  const std::uint64_t whole_offset = file_offset + (whole.begin - step.begin);
  if (whole.is_empty() || (whole_offset & mask) != 0) return false;
  const std::size_t reserved_bytes = whole.bytes() + huge_page_bytes;
  const long reserved =
      Calls::map(nullptr, reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (is_error(reserved)) return false;
  const std::uintptr_t begin = (static_cast<std::uintptr_t>(reserved) + mask) & ~mask;
  bool is_given = !is_error(
      Calls::map(pointer(begin), whole.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, whole_offset));
  if (is_given) Calls::advise(pointer(begin), whole.bytes(), MADV_HUGEPAGE);
  for (std::size_t at = 0; is_given && at < whole.bytes(); at += huge_page_bytes) {
    is_given = Calls::advise(pointer(begin + at), 1, MADV_POPULATE_WRITE) == 0;
  }
  is_given = is_given && Calls::advise(pointer(begin), whole.bytes(), MADV_COLLAPSE) == 0;
  Calls::unmap(pointer(static_cast<std::uintptr_t>(reserved)), reserved_bytes);
  return is_given;
}

template <class Calls>
int write_run(const Stretch& run, int fd, std::uint64_t file_offset) {
  for (std::size_t done = 0; done < run.bytes();) {
    const long written = Calls::write_at(fd, pointer(run.begin + done), run.bytes() - done, file_offset + done);
    if (written == -EINTR) continue;
    if (written <= 0) return written < 0 ? static_cast<int>(-written) : EIO;
    done += static_cast<std::size_t>(written);
  }
  return 0;
}

// Copying with pwrite takes no page fault for the file's side and clears no page first; populating then maps many at a
// time.
template <class Calls>
int to_file(const Stretch& step, std::span<const Stretch> runs, int fd, std::uint64_t file_offset) {
  const auto offset_of = [&](const Stretch& run) { return file_offset + (run.begin - step.begin); };
  for (const Stretch& run : runs) {
    if (const int failed = write_run<Calls>(run, fd, offset_of(run)); failed != 0) return failed;
  }
  const bool is_full = runs.size() == 1 && runs[0].holds(step);
  const long mapped = Calls::map(pointer(step.begin), step.bytes(), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_FIXED | (is_full ? MAP_POPULATE : 0), fd, file_offset);
  if (is_error(mapped)) return fill_hole<Calls>(step, fd, file_offset) ? static_cast<int>(-mapped) : step_is_lost;
  for (const Stretch& run : runs) {
    if (!is_full && run.bytes() >= worth_populating_bytes)
      Calls::advise(pointer(run.begin), run.bytes(), MADV_POPULATE_READ);
  }
  return 0;
}

// Calls `visit` with each part of a step that its file holds, swapped or not.
template <class Calls, class Visit>
void for_each_held(const Stretch& step, const MoveBack& options, Visit visit) {
  if (options.fd < 0) return visit(step);
  const std::uint64_t end = options.file_offset + step.bytes();
  for (std::uint64_t at = options.file_offset; at < end;) {
    const long data = Calls::seek(options.fd, at, SEEK_DATA);
    if (data == -ENXIO) return;
    const long hole = data < 0 ? data : Calls::seek(options.fd, static_cast<std::uint64_t>(data), SEEK_HOLE);
    const auto address_of = [&](std::uint64_t offset) { return step.begin + (offset - options.file_offset); };
    if (data < 0 || hole < 0) return visit({address_of(at), step.end});
    if (static_cast<std::uint64_t>(data) >= end) return;
    at = std::min(static_cast<std::uint64_t>(hole), end);
    visit({address_of(static_cast<std::uint64_t>(data)), address_of(at)});
  }
}

// A fresh map at the very address merges with its neighbours again, which one moved there by mremap would not. A length
// of 0 makes mremap duplicate a shared map, so no descriptor is needed. Taking the page tables along instead
// (MREMAP_DONTUNMAP) measured no faster.
template <class Calls>
int to_private(const Stretch& step, const MoveBack& options) {
  void* target = pointer(step.begin);
  if ((options.protection & PROT_READ) == 0) {
    if (const long failed = Calls::protect(target, step.bytes(), PROT_READ); failed != 0)
      return static_cast<int>(-failed);
  }
  const long duplicate = Calls::remap(target, 0, step.bytes(), MREMAP_MAYMOVE);
  if (is_error(duplicate)) return static_cast<int>(-duplicate);
  void* source = pointer(static_cast<std::uintptr_t>(duplicate));
  const long fresh =
      Calls::map(target, step.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (is_error(fresh)) {
    // An mmap that fails may have unmapped the place already.
    const long back = Calls::remap(source, step.bytes(), step.bytes(), MREMAP_MAYMOVE | MREMAP_FIXED, target);
    return is_error(back) ? step_is_lost : static_cast<int>(-fresh);
  }
  if (options.huge_page_advice != 0) Calls::advise(target, step.bytes(), options.huge_page_advice);
  for_each_held<Calls>(step, options, [&](const Stretch& held) {
    // Older kernels do not know it; the copy then takes its faults one by one.
    Calls::advise(pointer(held.begin), held.bytes(), MADV_POPULATE_WRITE);
    copy_pages(pointer(held.begin), static_cast<std::byte*>(source) + (held.begin - step.begin), held.bytes());
  });
  if (options.protection != (PROT_READ | PROT_WRITE)) Calls::protect(target, step.bytes(), options.protection);
  if (options.gives_pages_back) Calls::advise(source, step.bytes(), MADV_REMOVE);
  Calls::unmap(source, step.bytes());
  return 0;
}

}  // namespace

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

Stretch stretch_of(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return {begin, bytes > UINTPTR_MAX - begin ? UINTPTR_MAX : begin + bytes};
}

Stretch whole_pages(const Stretch& range) {
  const std::uintptr_t mask = page_bytes() - 1;
  if (range.begin > UINTPTR_MAX - mask) return {};
  return {(range.begin + mask) & ~mask, range.end & ~mask};
}

int move_to_file(const Stretch& step, std::span<const Stretch> runs, int fd, std::uint64_t file_offset,
                 Carrier carrier) {
  return carrier == Carrier::library ? to_file<LibraryCalls>(step, runs, fd, file_offset)
                                     : to_file<KernelCalls>(step, runs, fd, file_offset);
}

bool make_huge(const Stretch& step, int fd, std::uint64_t file_offset, Carrier carrier) {
  return carrier == Carrier::library ? ask_for_huge_pages<LibraryCalls>(step, fd, file_offset)
                                     : ask_for_huge_pages<KernelCalls>(step, fd, file_offset);
}

int move_to_private(const Stretch& step, const MoveBack& options, Carrier carrier) {
  return carrier == Carrier::library ? to_private<LibraryCalls>(step, options) : to_private<KernelCalls>(step, options);
}

void announce_move(const Stretch& stretch) {
  (void)mremap(pointer(stretch.begin), stretch.bytes(), stretch.bytes(), 0);
}

}  // namespace farsum::os
