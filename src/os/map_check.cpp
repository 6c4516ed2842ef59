#include "os/map_check.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "os/raw_system.hpp"

namespace farsum::os {
namespace {

// The text of a file, read piece by piece. Pieces and text lie in plain memory: no function of the library is called.
class Text {
 public:
  Text(long fd, char* buffer, std::size_t most) : fd_(fd), buffer_(buffer), most_(most) {}

  // The next character without taking it; 0 at the end.
  char peek() {
    if (at_ == end_) {
      const long bytes = raw_call(SYS_read, fd_, raw_argument(buffer_), static_cast<long>(most_));
      at_ = 0;
      end_ = bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
      if (end_ == 0) return '\0';
    }
    return buffer_[at_];
  }
  char take() {
    const char next = peek();
    if (next != '\0') ++at_;
    return next;
  }
  std::uint64_t take_number(unsigned base) {
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
  void skip_line() {
    for (char next = take(); next != '\n' && next != '\0';) next = take();
  }

 private:
  long fd_;
  char* buffer_;
  std::size_t most_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
};

struct Line {
  Stretch at;
  int protection = 0;
  bool shared = false;
  std::uint64_t file_offset = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

// 7f0000000000-7f0000001000 rw-p 00000000 fd:01 1234   name
bool take_line(Text& text, Line& line) {
  if (text.peek() == '\0') return false;
  line.at.begin = text.take_number(16);
  text.take();
  line.at.end = text.take_number(16);
  text.take();
  line.protection = text.take() == 'r' ? PROT_READ : 0;
  line.protection |= text.take() == 'w' ? PROT_WRITE : 0;
  line.protection |= text.take() == 'x' ? PROT_EXEC : 0;
  line.shared = text.take() == 's';
  text.take();
  line.file_offset = text.take_number(16);
  text.take();
  const std::uint64_t major = text.take_number(16);
  text.take();
  const std::uint64_t minor = text.take_number(16);
  // As glibc's makedev has it, which may be a function.
  line.device = (minor & 0xff) | (major & 0xfff) << 8 | (minor & ~std::uint64_t{0xff}) << 12 |
                (major & ~std::uint64_t{0xfff}) << 32;
  text.take();
  line.inode = text.take_number(10);
  text.skip_line();
  return true;
}

bool fits(const ExpectedPiece& piece, const Line& line) {
  if (line.protection != piece.protection || line.shared != piece.shared || line.inode != piece.inode) return false;
  if (piece.inode == 0) return true;
  return line.device == piece.device && line.file_offset - line.at.begin == piece.file_offset - piece.at.begin;
}

bool match(const ExpectedPiece* piece, std::size_t count, Text& text) {
  const ExpectedPiece* const end = piece + count;
  std::uintptr_t reached = piece->at.begin;
  Line line;
  while (take_line(text, line)) {
    // One map may hold several pieces, and one piece lie in several maps.
    while (line.at.begin <= reached && reached < line.at.end) {
      if (!fits(*piece, line)) return false;
      if (piece->at.end > line.at.end) {
        reached = line.at.end;
        break;
      }
      if (++piece == end) return true;
      reached = piece->at.begin;
    }
    if (line.at.begin > reached) return false;
  }
  return false;
}

}  // namespace

bool are_mapped(std::span<const ExpectedPiece> pieces, std::span<char> buffer) {
  if (pieces.empty()) return true;
  const long fd = raw_call(SYS_openat, AT_FDCWD, raw_argument("/proc/self/maps"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  Text text(fd, buffer.data(), buffer.size());
  const bool is_match = match(pieces.data(), pieces.size(), text);
  raw_call(SYS_close, fd);
  return is_match;
}

}  // namespace farsum::os
