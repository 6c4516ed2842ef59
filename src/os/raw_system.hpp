// System calls made in place, for code that runs while other threads of the process are held: no errno, no symbol that
// is bound on first use, nothing that a preloaded library or a sanitizer has put between. They return what the kernel
// returns: a value, or a negated errno.
#pragma once

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace farsum::os {

// Not under the thread sanitizer, whose own calls in every function take locks that a held thread may hold.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FARSUM_THREAD_SANITIZER 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define FARSUM_THREAD_SANITIZER 1
#endif

#if defined(__x86_64__) && !defined(FARSUM_THREAD_SANITIZER)
inline constexpr bool has_raw_calls = true;

[[gnu::always_inline]] inline long raw_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                                            long f = 0) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result;
}
#else
inline constexpr bool has_raw_calls = false;

inline long raw_call(long, long = 0, long = 0, long = 0, long = 0, long = 0, long = 0) { return -ENOSYS; }
#endif

template <class T>
long raw_argument(T* pointer) {
  return static_cast<long>(reinterpret_cast<std::uintptr_t>(pointer));
}

// The calls that move pages, as libraries that watch over memory may see them.
struct LibraryCalls {
  static long write_at(int fd, const void* from, std::size_t bytes, std::uint64_t offset) {
    const ssize_t written = ::pwrite(fd, from, bytes, static_cast<off_t>(offset));
    return written < 0 ? -errno : static_cast<long>(written);
  }
  static long read_at(int fd, void* to, std::size_t bytes, std::uint64_t offset) {
    const ssize_t got = ::pread(fd, to, bytes, static_cast<off_t>(offset));
    return got < 0 ? -errno : static_cast<long>(got);
  }
  static long control(int fd, unsigned long request, void* argument) {
    const int result = ::ioctl(fd, request, argument);
    return result < 0 ? -errno : result;
  }
  static long seek(int fd, std::uint64_t offset, int whence) {
    const off_t found = ::lseek(fd, static_cast<off_t>(offset), whence);
    return found < 0 ? -errno : static_cast<long>(found);
  }
  static long map(void* at, std::size_t bytes, int protection, int flags, int fd, std::uint64_t offset) {
    return pointer_or_error(::mmap(at, bytes, protection, flags, fd, static_cast<off_t>(offset)));
  }
  static long remap(void* at, std::size_t old_bytes, std::size_t new_bytes, int flags, void* to = nullptr) {
    return pointer_or_error(::mremap(at, old_bytes, new_bytes, flags, to));
  }
  static long protect(void* at, std::size_t bytes, int protection) {
    return ::mprotect(at, bytes, protection) != 0 ? -errno : 0;
  }
  static long advise(void* at, std::size_t bytes, int advice) { return ::madvise(at, bytes, advice) != 0 ? -errno : 0; }
  static long unmap(void* at, std::size_t bytes) { return ::munmap(at, bytes) != 0 ? -errno : 0; }
  // -ENOMEM where nothing is mapped.
  static long look(void* at) {
    unsigned char resident = 0;
    return ::mincore(at, 1, &resident) != 0 ? -errno : 0;
  }

 private:
  static long pointer_or_error(void* mapped) { return mapped == MAP_FAILED ? -errno : raw_argument(mapped); }
};

// The same straight to the kernel.
struct KernelCalls {
  static long write_at(int fd, const void* from, std::size_t bytes, std::uint64_t offset) {
    return raw_call(SYS_pwrite64, fd, raw_argument(from), static_cast<long>(bytes), static_cast<long>(offset));
  }
  static long read_at(int fd, void* to, std::size_t bytes, std::uint64_t offset) {
    return raw_call(SYS_pread64, fd, raw_argument(to), static_cast<long>(bytes), static_cast<long>(offset));
  }
  static long control(int fd, unsigned long request, void* argument) {
    return raw_call(SYS_ioctl, fd, static_cast<long>(request), raw_argument(argument));
  }
  static long seek(int fd, std::uint64_t offset, int whence) {
    return raw_call(SYS_lseek, fd, static_cast<long>(offset), whence);
  }
  static long map(void* at, std::size_t bytes, int protection, int flags, int fd, std::uint64_t offset) {
    return raw_call(SYS_mmap, raw_argument(at), static_cast<long>(bytes), protection, flags, fd,
                    static_cast<long>(offset));
  }
  static long remap(void* at, std::size_t old_bytes, std::size_t new_bytes, int flags, void* to = nullptr) {
    return raw_call(SYS_mremap, raw_argument(at), static_cast<long>(old_bytes), static_cast<long>(new_bytes), flags,
                    raw_argument(to));
  }
  static long protect(void* at, std::size_t bytes, int protection) {
    return raw_call(SYS_mprotect, raw_argument(at), static_cast<long>(bytes), protection);
  }
  static long advise(void* at, std::size_t bytes, int advice) {
    return raw_call(SYS_madvise, raw_argument(at), static_cast<long>(bytes), advice);
  }
  static long unmap(void* at, std::size_t bytes) {
    return raw_call(SYS_munmap, raw_argument(at), static_cast<long>(bytes));
  }
  static long look(void* at) {
    unsigned char resident = 0;
    return raw_call(SYS_mincore, raw_argument(at), 1, raw_argument(&resident));
  }
};

}  // namespace farsum::os
