// Stacks that the explorer switches between. They run on one thread, one at a time, and may be dropped midway: nothing
// is unwound, so code on them must not own heap memory.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <vector>

#include <ucontext.h>

namespace farsum::model {

// The sanitizers lose track of stacks that are left by longjmp and dropped.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool fibers_work = false;
#else
inline constexpr bool fibers_work = true;
#endif

class Fiber {
 public:
  // Makes the next resume() call entry() on a fresh stack; entry must not return.
  void restart(void (*entry)()) {
    stack_.resize(stack_bytes);
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack_.data();
    context_.uc_stack.ss_size = stack_.size();
    context_.uc_link = nullptr;
    makecontext(&context_, entry, 0);
    fresh_ = true;
  }

  // Leaves `from` where it is and goes on with `to`. After the first time without a system call, unlike swapcontext.
  static void resume(Fiber& from, Fiber& to) {
    if (_setjmp(from.jump_) != 0) {
      return;
    }
    if (to.fresh_) {
      to.fresh_ = false;
      setcontext(&to.context_);
    }
    _longjmp(to.jump_, 1);
  }

 private:
  static constexpr std::size_t stack_bytes = 64 * 1024;

  std::vector<char> stack_;
  ucontext_t context_{};
  std::jmp_buf jump_{};
  bool fresh_ = false;
};

}  // namespace farsum::model
