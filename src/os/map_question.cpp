#include "os/map_question.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "os/raw_system.hpp"

namespace farsum::os {
namespace {

constexpr unsigned long procmap_query = _IOWR('f', 17, MapQuestion);
// Of the question and of its answer.
constexpr std::uint64_t readable = 1;
constexpr std::uint64_t writable = 2;
constexpr std::uint64_t executable = 4;
constexpr std::uint64_t shared = 8;
constexpr std::uint64_t covering_or_next = 16;

// glibc's makedev, which may be a function.
std::uint64_t device_of(std::uint64_t major, std::uint64_t minor) {
  return (minor & 0xff) | (major & 0xfff) << 8 | (minor & ~std::uint64_t{0xff}) << 12 |
         (major & ~std::uint64_t{0xfff}) << 32;
}

// "/proc/self/maps", or "/proc/123/maps".
class Path {
 public:
  explicit Path(pid_t process) {
    add("/proc/");
    if (process == 0) {
      add("self");
    } else {
      add_number(static_cast<unsigned>(process));
    }
    add("/maps");
  }
  const char* text() const { return text_.data(); }

 private:
  void add(const char* part) {
    while (*part != '\0') text_[length_++] = *part++;
    text_[length_] = '\0';
  }
  void add_number(unsigned number) {
    if (number >= 10) add_number(number / 10);
    text_[length_++] = static_cast<char>('0' + number % 10);
  }

  std::array<char, 32> text_{};
  std::size_t length_ = 0;
};

long or_error(long result) { return result < 0 ? -errno : result; }

}  // namespace

const MapCalls& library_map_calls() {
  static constexpr MapCalls calls{
      [](pid_t process) -> long { return or_error(::open(Path(process).text(), O_RDONLY | O_CLOEXEC)); },
      [](int fd) -> long { return or_error(::close(fd)); },
      [](int fd, MapQuestion* question) -> long { return or_error(::ioctl(fd, procmap_query, question)); },
      [](int fd, char* buffer, std::size_t bytes) -> long { return or_error(::read(fd, buffer, bytes)); }};
  return calls;
}

const MapCalls& kernel_map_calls() {
  static constexpr MapCalls calls{
      [](pid_t process) -> long {
        return raw_call(SYS_openat, AT_FDCWD, raw_argument(Path(process).text()), O_RDONLY | O_CLOEXEC);
      },
      [](int fd) -> long { return raw_call(SYS_close, fd); },
      [](int fd, MapQuestion* question) -> long {
        return raw_call(SYS_ioctl, fd, static_cast<long>(procmap_query), raw_argument(question));
      },
      [](int fd, char* buffer, std::size_t bytes) -> long {
        return raw_call(SYS_read, fd, raw_argument(buffer), static_cast<long>(bytes));
      }};
  return calls;
}

long ask_for_map(const MapCalls& calls, int fd, std::uintptr_t address, BareMap& map, std::span<char> name) {
  MapQuestion question;
  question.flags = covering_or_next;
  question.address = address;
  question.name_bytes = static_cast<std::uint32_t>(name.size());
  question.name_address = name.empty() ? 0 : reinterpret_cast<std::uintptr_t>(name.data());
  long result = 0;
  do {
    result = calls.ask(fd, &question);
  } while (result == -EINTR);
  if (result < 0) return result;
  map = {.begin = question.begin,
         .end = question.end,
         .protection = ((question.access & readable) != 0 ? PROT_READ : 0) |
                       ((question.access & writable) != 0 ? PROT_WRITE : 0) |
                       ((question.access & executable) != 0 ? PROT_EXEC : 0),
         .shared = (question.access & shared) != 0,
         .page_bytes = question.page_bytes,
         .file_offset = question.file_offset,
         .device = device_of(question.device_major, question.device_minor),
         .inode = question.inode};
  if (!name.empty() && question.name_bytes == 0) name[0] = '\0';
  return 0;
}

MapWalk::MapWalk(std::span<char> buffer, const MapCalls& calls, pid_t process)
    : calls_(calls), buffer_(buffer), fd_(static_cast<int>(calls.open(process))) {
  has_failed_ = fd_ < 0;
}

MapWalk::~MapWalk() {
  if (fd_ >= 0) calls_.close(fd_);
}

bool MapWalk::next(std::uintptr_t address, BareMap& map) {
  if (has_failed_) return false;
  if (!by_text_) {
    const long result = ask_for_map(calls_, fd_, address, map);
    if (result == 0 || result == -ENOENT) return result == 0;
    by_text_ = true;
  }
  while (line_.end <= address) {
    if (!take_line(line_)) return false;
  }
  map = line_;
  return true;
}

// The next character without taking it; 0 at the end.
char MapWalk::peek() {
  if (at_ == end_) {
    long bytes = 0;
    do {
      bytes = calls_.read(fd_, buffer_.data(), buffer_.size());
    } while (bytes == -EINTR);
    has_failed_ = has_failed_ || bytes < 0;
    at_ = 0;
    end_ = bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
    if (end_ == 0) return '\0';
  }
  return buffer_[at_];
}

char MapWalk::take() {
  const char next = peek();
  if (next != '\0') ++at_;
  return next;
}

std::uint64_t MapWalk::take_number(unsigned base) {
  std::uint64_t number = 0;
  for (;;) {
    const char next = peek();
    unsigned digit = base;
    if (next >= '0' && next <= '9') digit = static_cast<unsigned>(next - '0');
    if (next >= 'a' && next <= 'f') digit = static_cast<unsigned>(next - 'a') + 10;
    if (digit >= base) return number;
    number = number * base + digit;
    take();
  }
}

// 7f0000000000-7f0000001000 rw-p 00000000 fd:01 1234   name
bool MapWalk::take_line(BareMap& map) {
  if (peek() == '\0') return false;
  map.begin = take_number(16);
  take();
  map.end = take_number(16);
  take();
  map.protection = take() == 'r' ? PROT_READ : 0;
  map.protection |= take() == 'w' ? PROT_WRITE : 0;
  map.protection |= take() == 'x' ? PROT_EXEC : 0;
  map.shared = take() == 's';
  take();
  map.file_offset = take_number(16);
  take();
  const std::uint64_t major = take_number(16);
  take();
  map.device = device_of(major, take_number(16));
  take();
  map.inode = take_number(10);
  for (char next = take(); next != '\n' && next != '\0';) next = take();
  return true;
}

}  // namespace farsum::os
