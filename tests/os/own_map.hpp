// Memory for tests of os: maps that unmap themselves, and a shared file that stands for the node's segment.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

namespace farsum::os {

inline std::size_t test_page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

class OwnMap {
 public:
  OwnMap(std::size_t bytes, int protection, int flags, int fd = -1)
      : address_(mmap(nullptr, bytes, protection, flags, fd, 0)), bytes_(bytes) {}
  OwnMap(OwnMap&& other) noexcept
      : address_(std::exchange(other.address_, MAP_FAILED)), bytes_(std::exchange(other.bytes_, 0)) {}
  OwnMap& operator=(OwnMap&&) = delete;
  ~OwnMap() { unmap(); }

  // Private anonymous memory with an inaccessible page on either side, so that it never merges with its neighbours.
  static OwnMap alone(std::size_t bytes) {
    OwnMap map(bytes + 2 * test_page_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);
    mprotect(map.data() + test_page_bytes(), bytes, PROT_READ | PROT_WRITE);
    return map;
  }
  std::byte* middle() const { return data() + test_page_bytes(); }

  void unmap() {
    if (is_mapped()) munmap(address_, bytes_);
    address_ = MAP_FAILED;
  }
  bool is_mapped() const { return address_ != MAP_FAILED; }
  std::byte* data() const { return static_cast<std::byte*>(address_); }
  std::size_t bytes() const { return bytes_; }

 private:
  void* address_;
  std::size_t bytes_;
};

// A sparse memfd.
class SharedFile {
 public:
  explicit SharedFile(std::size_t bytes) : fd_(memfd_create("farsum-test", MFD_CLOEXEC)) {
    is_made_ = fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(bytes)) == 0;
  }
  ~SharedFile() { close(fd_); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  bool is_made() const { return is_made_; }
  int fd() const { return fd_; }

 private:
  int fd_;
  bool is_made_ = false;
};

// Runs `body` in a forked child and gives its exit status, or -1 when a signal killed it.
inline int run_in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline void fill(std::byte* data, std::size_t bytes, std::uint32_t seed) {
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((i * 2654435761U + seed) >> 7);
}

inline bool is_filled(const std::byte* data, std::size_t bytes, std::uint32_t seed) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (data[i] != static_cast<std::byte>((i * 2654435761U + seed) >> 7)) return false;
  }
  return true;
}

}  // namespace farsum::os
