#include "os/page_move.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace farsum::os {
namespace {

static_assert(MoveBack{}.protection == (PROT_READ | PROT_WRITE));

// Not memcpy: checkers intercept that and complain of memory that the user has freed, which is copied like any other.
[[gnu::noinline, gnu::no_sanitize("address"), gnu::no_sanitize("thread"),
  gnu::optimize("no-tree-loop-distribute-patterns")]] void
copy_pages(void* target, const void* source, std::size_t bytes) {
  using Chunk [[gnu::may_alias, gnu::vector_size(64)]] = std::uint64_t;
  auto* to = static_cast<Chunk*>(target);
  const auto* from = static_cast<const Chunk*>(source);
  for (std::size_t i = 0; i < bytes / sizeof(Chunk); ++i) to[i] = from[i];
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

// Copying with pwrite takes no page fault for the file's side and clears no page first; MAP_POPULATE then maps many at
// a time. This goes through libc's mmap, which libraries that cache registrations intercept.
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

// A fresh map at the very address merges with its neighbours again, which one moved there by mremap would not. A length
// of 0 makes mremap duplicate a shared map, so no descriptor is needed. Taking the page tables along instead
// (MREMAP_DONTUNMAP) measured no faster.
int move_to_private(const Stretch& step, const MoveBack& options) {
  void* target = pointer(step.begin);
  if ((options.protection & PROT_READ) == 0 && mprotect(target, step.bytes(), PROT_READ) != 0) return errno;
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
  if (options.protection != (PROT_READ | PROT_WRITE)) mprotect(target, step.bytes(), options.protection);
  if (options.gives_pages_back) madvise(source, step.bytes(), MADV_REMOVE);
  munmap(source, step.bytes());
  return 0;
}

}  // namespace farsum::os
