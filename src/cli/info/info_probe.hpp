// Tries out what this kernel lets processes of one user do to each other. Forks; call it while the process has one
// thread.
#pragma once

#include <string>

namespace farsum::cli {

// What happened when one child read another's memory with process_vm_readv, as ranks do on the attach path.
struct AttachProbe {
  bool allowed = false;         // at once
  bool allowed_on_ask = false;  // after the owner had allowed it by PR_SET_PTRACER, as Farsum does
  std::string refusal;          // what the kernel said, when neither works
};
[[nodiscard]] AttachProbe probe_attach();

// Whether a process can hold its own threads, as a rank does while it promotes memory. Empty when it can, else why not.
[[nodiscard]] std::string probe_held_threads();

// Whether an anonymous memory file can be made and mapped shared. Empty when it can, else why not.
[[nodiscard]] std::string probe_memory_file();

// The value of /proc/sys/kernel/yama/ptrace_scope, -1 where the kernel has no Yama.
[[nodiscard]] int yama_scope();

}  // namespace farsum::cli
