// The probes behind info_probe.hpp.
#include "cli/info/info_probe.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <future>
#include <thread>

#include "cli/unique_fd.hpp"
#include "os/attach.hpp"
#include "promotion/held_threads.hpp"

namespace farsum::cli {

namespace {

constexpr std::uint64_t owners_value = 0x6661'7273'756d'2121;

// A page that the owner alone fills after the fork, so that a reader sees the owner's copy or nothing.
volatile std::uint64_t* private_page() {
  void* page = mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? nullptr : static_cast<volatile std::uint64_t*>(page);
}

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Pipe make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

[[noreturn]] void be_owner(volatile std::uint64_t* page, bool ask, Pipe& ready, Pipe& over) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (ask) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  *page = owners_value;
  char byte = 0;
  over.write_end.reset();
  [[maybe_unused]] const ssize_t told = write(ready.write_end.get(), &byte, 1);
  [[maybe_unused]] const ssize_t ended = read(over.read_end.get(), &byte, 1);
  _exit(0);
}

[[noreturn]] void be_reader(pid_t owner, volatile std::uint64_t* page) {
  std::uint64_t value = 0;
  const iovec mine{&value, sizeof(value)};
  const iovec theirs{const_cast<std::uint64_t*>(page), sizeof(value)};
  if (process_vm_readv(owner, &mine, 1, &theirs, 1, 0) != static_cast<ssize_t>(sizeof(value))) _exit(errno & 0xff);
  _exit(value == owners_value ? 0 : EIO);
}

int exit_code_of_child(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status)) return ECHILD;
  return WEXITSTATUS(status);
}

// The errno of one sibling reading another; 0 when it could.
int read_sibling(bool ask) {
  volatile std::uint64_t* page = private_page();
  Pipe ready = make_pipe();
  Pipe over = make_pipe();
  if (page == nullptr || !ready.write_end.valid() || !over.write_end.valid()) return errno;
  const pid_t owner = fork();
  if (owner == 0) be_owner(page, ask, ready, over);
  ready.write_end.reset();
  char byte = 0;
  const bool up = owner > 0 && read(ready.read_end.get(), &byte, 1) == 1;
  const pid_t reader = up ? fork() : -1;
  if (reader == 0) be_reader(owner, page);
  const int error = exit_code_of_child(reader);
  over.write_end.reset();
  if (owner > 0) waitpid(owner, nullptr, 0);
  munmap(const_cast<std::uint64_t*>(page), sizeof(std::uint64_t));
  return error;
}

}  // namespace

AttachProbe probe_attach() {
  AttachProbe probe;
  const int plain = read_sibling(false);
  const int asked = plain == 0 ? 0 : read_sibling(true);
  probe.allowed = plain == 0;
  probe.allowed_on_ask = asked == 0;
  if (asked != 0) probe.refusal = std::strerror(asked);
  return probe;
}

std::string probe_held_threads() {
  Pipe answer = make_pipe();
  if (!answer.write_end.valid()) return std::strerror(errno);
  const pid_t child = fork();
  if (child == 0) {
    (void)os::allow_peers();
    std::promise<void> over;
    std::thread other([&over] { over.get_future().wait(); });
    const std::string reason = os::run_with_threads_held([](void*) {}, nullptr);
    over.set_value();
    other.join();
    [[maybe_unused]] const ssize_t told = write(answer.write_end.get(), reason.data(), reason.size());
    _exit(0);
  }
  answer.write_end.reset();
  std::array<char, 512> text{};
  const ssize_t bytes = child > 0 ? read(answer.read_end.get(), text.data(), text.size()) : 0;
  const int code = exit_code_of_child(child);
  return code != 0 ? std::strerror(code) : std::string(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
}

std::string probe_memory_file() {
  const UniqueFd file(memfd_create("farsum-probe", MFD_CLOEXEC));
  constexpr std::size_t bytes = 4096;
  if (!file.valid() || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return std::strerror(errno);
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return std::strerror(errno);
  munmap(mapped, bytes);
  return {};
}

int yama_scope() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = -1;
  return file >> scope ? scope : -1;
}

}  // namespace farsum::cli
