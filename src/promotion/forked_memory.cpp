#include "promotion/forked_memory.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string_view>

#include "os/blocked_signals.hpp"
#include "os/raw_system.hpp"
#include "promotion/page_move.hpp"
#include "promotion/promoted_files.hpp"

namespace farsum::os {
namespace {

// A parent in fork() gives its child this long between two signs of life.
constexpr int child_patience_ms = 10'000;

constexpr char moved_a_step = 's';
constexpr char has_finished = 'f';

constexpr Carrier childs_carrier = has_raw_calls ? Carrier::kernel : Carrier::library;

void close_end(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

[[noreturn]] void end_without_maps() {
  static constexpr std::string_view text =
      "farsum: a forked child cannot read what is mapped in it (/proc/self/maps), and would share memory with its "
      "parent; it ends\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(127);
}

void copy_map(const BareMap& map, const PromotedFile& file, ChildReport& report) {
  MoveBack options{.protection = map.protection, .fd = file.descriptor()};
  for_each_step({map.begin, map.end}, [&](const Stretch& step) {
    options.file_offset = map.file_offset + (step.begin - map.begin);
    if (move_to_private(step, options, childs_carrier) != 0) {
      mmap(pointer(step.begin), step.bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
           0);
    }
    report.tell_of_life();
    return 0;
  });
}

}  // namespace

void ChildReport::open() {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets_.data()) != 0) sockets_ = {-1, -1};
}

void ChildReport::wait() {
  close_end(sockets_[1]);
  if (sockets_[0] < 0) return;
  char what = moved_a_step;
  ssize_t bytes = 1;
  while (bytes > 0 && what != has_finished) {
    pollfd child{.fd = sockets_[0], .events = POLLIN, .revents = 0};
    const int ready = poll(&child, 1, child_patience_ms);
    if (ready < 0 && errno == EINTR) continue;
    bytes = ready > 0 ? read(sockets_[0], &what, 1) : 0;
  }
  close_end(sockets_[0]);
}

void ChildReport::begin_in_child() { close_end(sockets_[0]); }

void ChildReport::tell_of_life() { report(moved_a_step); }

void ChildReport::finish() {
  report(has_finished);
  close_end(sockets_[1]);
}

void ChildReport::report(char what) {
  if (sockets_[1] < 0) return;
  while (send(sockets_[1], &what, 1, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

void keep_promoted_memory(ChildReport& report) {
  if (promoted_files().empty()) return;
  std::array<char, small_maps_buffer_bytes> buffer;
  // Opened here, for a descriptor of the parent's shows the parent.
  MapWalk walk(buffer, has_raw_calls ? kernel_map_calls() : library_map_calls());
  BareMap map;
  for (std::uintptr_t at = 0; walk.next(at, map); at = map.end) {
    if (const std::optional<PromotedFile> file = promoted_files().file_of(map)) copy_map(map, *file, report);
  }
  if (walk.failed()) end_without_maps();
}

pid_t fork_bare(pid_t (*make_child)()) {
  if (promoted_files().empty()) return make_child();
  // No handler of the child's may store anything before it has its own memory.
  const BlockedSignals blocked;
  ChildReport report;
  report.open();
  const pid_t child = make_child();
  const int error_number = errno;
  if (child == 0) {
    report.begin_in_child();
    keep_promoted_memory(report);
    report.finish();
  } else {
    report.wait();
  }
  errno = error_number;
  return child;
}

}  // namespace farsum::os
