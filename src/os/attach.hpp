// Copies between this process and memory of another (or of itself) through the kernel: process_vm_readv and
// process_vm_writev, or within this process pipes. A bad address is an answer here, never a signal. It takes no lock
// and keeps no state.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace farsum::os {

// One contiguous piece of a transfer.
struct AttachPiece {
  std::uintptr_t remote = 0;
  void* local = nullptr;
  std::size_t bytes = 0;
};

enum class AttachError : std::uint8_t {
  none,
  bad_remote_address,  // not mapped there, or not writable for a copy to it
  bad_local_address,
  refused,      // EPERM: Yama, another user, a security filter
  gone,         // the process does not exist
  unsupported,  // ENOSYS: this kernel or its filter has no cross-memory attach
  failed,       // anything else; see error_number
};

struct AttachResult {
  AttachError error = AttachError::none;
  int error_number = 0;
  std::size_t bytes_done = 0;         // pieces are done in order; the first bytes_done bytes of them were copied
  std::size_t failed_piece = 0;       // with an error: the piece that could not be finished
  std::uintptr_t failed_address = 0;  // with an error: the first remote byte that was not copied

  [[nodiscard]] bool ok() const { return error == AttachError::none; }
};

// The two system calls, so that tests can refuse, cut short or count them.
struct AttachCalls {
  using Call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);
  Call read = nullptr;
  Call write = nullptr;
};
[[nodiscard]] AttachCalls kernel_attach_calls();
[[nodiscard]] AttachCalls refusing_attach_calls();  // EPERM always, as under Yama: for tests and for a setting
// The same between parts of this process alone, through a pipe made for each call; whose process is named is not looked
// at. For where a filter of system calls forbids the two, as containers do.
[[nodiscard]] AttachCalls piped_attach_calls();
// Of this process, what works: the kernel's, else through pipes.
[[nodiscard]] AttachCalls own_attach_calls();

// Any thread may call, any number at once. A copy is not atomic: who needs that holds the owner's lock.
class Attach {
 public:
  Attach() : Attach(kernel_attach_calls()) {}
  explicit Attach(AttachCalls calls) : calls_(calls) {}

  [[nodiscard]] AttachResult copy_from(pid_t pid, std::span<const AttachPiece> pieces) const;
  [[nodiscard]] AttachResult copy_to(pid_t pid, std::span<const AttachPiece> pieces) const;
  [[nodiscard]] AttachResult copy_from(pid_t pid, std::uintptr_t remote, void* local, std::size_t bytes) const;
  [[nodiscard]] AttachResult copy_to(pid_t pid, std::uintptr_t remote, const void* local, std::size_t bytes) const;

  struct Probe {
    bool allowed = false;
    std::string reason;  // a sentence; empty when allowed
  };
  // Reads 8 bytes at `remote`. With `expected`, they must be that value: in another PID namespace the same number is
  // another process, and only the value tells.
  [[nodiscard]] Probe probe(pid_t pid, std::uintptr_t remote,
                            std::optional<std::uint64_t> expected = std::nullopt) const;

 private:
  AttachCalls calls_;
};

// Lets every process of this user attach to this one where Yama would refuse. True also where no Yama is there to ask.
[[nodiscard]] bool allow_peers();

// The value of Yama's ptrace_scope; empty where there is no Yama.
[[nodiscard]] std::string yama_scope();
// Why Yama keeps a process out of another of the same user at that value, and what would let it in, as part of a
// sentence; empty where it does not.
[[nodiscard]] std::string why_yama_forbids(const std::string& scope);

// Why `error` may have come from that process, as one sentence.
[[nodiscard]] std::string explain(AttachError error, pid_t pid);

}  // namespace farsum::os
