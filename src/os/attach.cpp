#include "os/attach.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#define PR_SET_PTRACER_ANY (static_cast<unsigned long>(-1))
#endif

namespace farsum::os {
namespace {

// Below IOV_MAX and small enough for the stack of any thread; a system call this long costs far more than its entry.
constexpr std::size_t batch_pieces = 256;
constexpr std::size_t short_piece_bytes = 4096;
// The kernel moves at most about 2 GiB a call; it says how much, and the rest follows.

constexpr const char* yama_scope_path = "/proc/sys/kernel/yama/ptrace_scope";

AttachError error_of(int error_number) {
  switch (error_number) {
    case EFAULT:
      return AttachError::bad_remote_address;
    case EPERM:
    case EACCES:
      return AttachError::refused;
    case ESRCH:
      return AttachError::gone;
    case ENOSYS:
      return AttachError::unsupported;
    default:
      return AttachError::failed;
  }
}

// Walks the pieces: what has been copied so far, and the next batch as two lists.
class Cursor {
 public:
  explicit Cursor(std::span<const AttachPiece> pieces) : pieces_(pieces) { skip_finished(); }

  bool at_end() const { return piece_ == pieces_.size(); }

  unsigned long fill(std::array<iovec, batch_pieces>& local, std::array<iovec, batch_pieces>& remote) const {
    std::size_t count = 0;
    std::size_t skip = offset_;
    for (std::size_t i = piece_; i < pieces_.size() && count < batch_pieces; ++i) {
      const AttachPiece& piece = pieces_[i];
      if (piece.bytes == 0) continue;
      local[count] = {static_cast<std::byte*>(piece.local) + skip, piece.bytes - skip};
      remote[count] = {reinterpret_cast<void*>(piece.remote + skip), piece.bytes - skip};
      skip = 0;
      ++count;
    }
    return count;
  }

  void advance(std::size_t bytes) {
    done_ += bytes;
    while (bytes > 0) {
      const std::size_t step = std::min(bytes, pieces_[piece_].bytes - offset_);
      offset_ += step;
      bytes -= step;
      skip_finished();
    }
  }

  AttachPiece rest_of_piece() const {
    const AttachPiece& piece = pieces_[piece_];
    return {piece.remote + offset_, static_cast<std::byte*>(piece.local) + offset_, piece.bytes - offset_};
  }

  AttachResult result(AttachError error, int error_number) const {
    AttachResult result{.error = error, .error_number = error_number, .bytes_done = done_};
    if (error != AttachError::none) {
      result.failed_piece = piece_;
      result.failed_address = rest_of_piece().remote;
    }
    return result;
  }

 private:
  void skip_finished() {
    while (piece_ < pieces_.size() && offset_ == pieces_[piece_].bytes) {
      ++piece_;
      offset_ = 0;
    }
  }

  std::span<const AttachPiece> pieces_;
  std::size_t piece_ = 0;
  std::size_t offset_ = 0;  // inside the current piece
  std::size_t done_ = 0;
};

bool can_read_byte(const AttachCalls& calls, pid_t pid, std::uintptr_t address) {
  std::byte byte{};
  const iovec local{&byte, 1};
  const iovec remote{reinterpret_cast<void*>(address), 1};
  return calls.read(pid, &local, 1, &remote, 1, 0) == 1;
}

enum class Direction : std::uint8_t { from_peer, to_peer };

// The kernel says EFAULT for either side. A copy from the peer failed here if the peer's byte can be read; a copy to it
// failed here if our own byte cannot be.
bool fault_is_local(const AttachCalls& calls, pid_t pid, const AttachPiece& piece, Direction direction) {
  if (direction == Direction::from_peer) return can_read_byte(calls, pid, piece.remote);
  return !can_read_byte(calls, getpid(), reinterpret_cast<std::uintptr_t>(piece.local));
}

AttachResult failure(const AttachCalls& calls, pid_t pid, const Cursor& cursor, Direction direction, int error_number) {
  AttachError error = error_of(error_number);
  if (error == AttachError::bad_remote_address && fault_is_local(calls, pid, cursor.rest_of_piece(), direction)) {
    error = AttachError::bad_local_address;
  }
  return cursor.result(error, error_number);
}

AttachResult transfer(const AttachCalls& calls, pid_t pid, std::span<const AttachPiece> pieces, Direction direction) {
  const AttachCalls::Call call = direction == Direction::from_peer ? calls.read : calls.write;
  Cursor cursor(pieces);
  std::array<iovec, batch_pieces> local;
  std::array<iovec, batch_pieces> remote;
  while (!cursor.at_end()) {
    const unsigned long count = cursor.fill(local, remote);
    const ssize_t bytes = call(pid, local.data(), count, remote.data(), count, 0);
    if (bytes < 0 && errno == EINTR) continue;
    // Nothing copied and no error would be a loop without end.
    if (bytes <= 0) return failure(calls, pid, cursor, direction, bytes < 0 ? errno : EFAULT);
    cursor.advance(static_cast<std::size_t>(bytes));
  }
  return cursor.result(AttachError::none, 0);
}

// The kernel moves a short piece in one call, or there is something wrong with it: then it is begun anew.
AttachResult transfer_one(const AttachCalls& calls, pid_t pid, const AttachPiece& piece, Direction direction) {
  const AttachCalls::Call call = direction == Direction::from_peer ? calls.read : calls.write;
  const iovec local{piece.local, piece.bytes};
  const iovec remote{reinterpret_cast<void*>(piece.remote), piece.bytes};
  const bool is_short = piece.bytes != 0 && piece.bytes <= short_piece_bytes;
  if (is_short && call(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(piece.bytes)) [[likely]]
    return {.error = AttachError::none, .bytes_done = piece.bytes};
  return transfer(calls, pid, {&piece, 1}, direction);
}

// The first line of a small file; empty if it cannot be read.
std::string first_line(const char* path) {
  std::array<char, 64> text{};
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t bytes = read(fd, text.data(), text.size());
  close(fd);
  const std::string line(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return line.substr(0, line.find('\n'));
}

}  // namespace

std::string yama_scope() { return first_line(yama_scope_path); }

std::string why_yama_forbids(const std::string& scope) {
  if (scope.empty() || scope == "0") return {};
  const std::string fact = std::string("Yama forbids it (") + yama_scope_path + " is " + scope;
  if (scope == "1") return fact + "; it takes 0, or the other's leave by PR_SET_PTRACER)";
  if (scope == "2") return fact + "; it takes 0 or 1, or CAP_SYS_PTRACE)";
  return fact + "; it takes 0 or 1, which this machine can have only after it has started anew)";
}

namespace {

std::string why_refused(pid_t pid) {
  struct stat owner {};
  const std::string process = "process " + std::to_string(pid);
  if (stat(("/proc/" + std::to_string(pid)).c_str(), &owner) == 0 && owner.st_uid != geteuid()) {
    return process + " belongs to user " + std::to_string(owner.st_uid) + " and this one to user " +
           std::to_string(geteuid()) + ", or it may not be dumped";
  }
  const std::string yama = why_yama_forbids(yama_scope());
  if (!yama.empty()) return "this process may not reach " + process + ": " + yama;
  return "the kernel or a security filter keeps this process out of " + process;
}

// As many bytes as a pipe holds: the caller goes on with the rest.
ssize_t pass_through_pipe(std::span<const iovec> from, std::span<const iovec> to) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return -1;
  ssize_t bytes = writev(ends[1], from.data(), static_cast<int>(from.size()));
  if (bytes > 0) bytes = readv(ends[0], to.data(), static_cast<int>(to.size()));
  const int error_number = errno;
  close(ends[0]);
  close(ends[1]);
  errno = error_number;
  return bytes;
}

// The bytes from where an entry begins to the end of its page, or to its own.
std::size_t first_page_of(const iovec& entry) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t left = page - reinterpret_cast<std::uintptr_t>(entry.iov_base) % page;
  return std::min<std::size_t>(entry.iov_len, left);
}

// A pipe fills and empties pages of its own, each as a whole, so that a hole may refuse bytes before it: these are had
// where a copy goes no further than the program's page.
ssize_t pass_within_process(std::span<const iovec> from, std::span<const iovec> to) {
  const ssize_t bytes = pass_through_pipe(from, to);
  if (bytes >= 0 || errno != EFAULT) return bytes;
  const std::size_t first = std::min(first_page_of(from.front()), first_page_of(to.front()));
  const iovec first_from{from.front().iov_base, first};
  const iovec first_to{to.front().iov_base, first};
  return pass_through_pipe({&first_from, 1}, {&first_to, 1});
}

}  // namespace

AttachCalls kernel_attach_calls() { return {&process_vm_readv, &process_vm_writev}; }

AttachCalls refusing_attach_calls() {
  const AttachCalls::Call refuse = [](pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                                      unsigned long) -> ssize_t {
    errno = EPERM;
    return -1;
  };
  return {refuse, refuse};
}

AttachCalls piped_attach_calls() {
  return {
      [](pid_t, const iovec* local, unsigned long locals, const iovec* remote, unsigned long remotes, unsigned long) {
        return pass_within_process({remote, remotes}, {local, locals});
      },
      [](pid_t, const iovec* local, unsigned long locals, const iovec* remote, unsigned long remotes, unsigned long) {
        return pass_within_process({local, locals}, {remote, remotes});
      }};
}

AttachCalls own_attach_calls() {
  const std::uint64_t word = 0;
  const AttachCalls kernels = kernel_attach_calls();
  const bool works = Attach(kernels).probe(getpid(), reinterpret_cast<std::uintptr_t>(&word)).allowed;
  return works ? kernels : piped_attach_calls();
}

AttachResult Attach::copy_from(pid_t pid, std::span<const AttachPiece> pieces) const {
  return transfer(calls_, pid, pieces, Direction::from_peer);
}

AttachResult Attach::copy_to(pid_t pid, std::span<const AttachPiece> pieces) const {
  return transfer(calls_, pid, pieces, Direction::to_peer);
}

AttachResult Attach::copy_from(pid_t pid, std::uintptr_t remote, void* local, std::size_t bytes) const {
  return transfer_one(calls_, pid, {remote, local, bytes}, Direction::from_peer);
}

AttachResult Attach::copy_to(pid_t pid, std::uintptr_t remote, const void* local, std::size_t bytes) const {
  // A piece serves both directions; this one is only read.
  return transfer_one(calls_, pid, {remote, const_cast<void*>(local), bytes}, Direction::to_peer);
}

Attach::Probe Attach::probe(pid_t pid, std::uintptr_t remote, std::optional<std::uint64_t> expected) const {
  std::uint64_t value = 0;
  const AttachResult result = copy_from(pid, remote, &value, sizeof(value));
  if (!result.ok()) return {.allowed = false, .reason = explain(result.error, pid)};
  if (expected && *expected != value) {
    return {.allowed = false,
            .reason = "process number " + std::to_string(pid) +
                      " is another process here than at the peer: they do not share a PID namespace"};
  }
  return {.allowed = true, .reason = {}};
}

bool allow_peers() {
  if (yama_scope().empty()) return true;
  return prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) == 0;
}

std::string explain(AttachError error, pid_t pid) {
  const std::string process = "process " + std::to_string(pid);
  switch (error) {
    case AttachError::none:
      return {};
    case AttachError::bad_remote_address:
      return "the memory of " + process + " is not mapped there, or may not be written";
    case AttachError::bad_local_address:
      return "the local buffer is not mapped, or may not be written";
    case AttachError::refused:
      return why_refused(pid);
    case AttachError::gone:
      return process + " does not exist";
    case AttachError::unsupported:
      return "this kernel has no cross-memory attach";
    case AttachError::failed:
      return "cross-memory attach to " + process + " failed";
  }
  return {};
}

}  // namespace farsum::os
