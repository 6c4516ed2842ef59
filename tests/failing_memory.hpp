// Lets the program's operator new fail when a test says so. For one source of a program: it replaces the operators.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace farsum {

// While it lives, this thread's allocations succeed `after` times and then fail once.
class FailingMemory {
 public:
  explicit FailingMemory(std::size_t after) { left = after; }
  ~FailingMemory() { left = never; }
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  // What the test itself asks for meanwhile does not count.
  class Pause {
   public:
    Pause() : kept_(left) { left = never; }
    ~Pause() { left = kept_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    std::size_t kept_;
  };

  static bool has_failed() { return left == never; }
  static bool fails_now() {
    if (left == never) return false;
    if (left-- != 0) return false;
    left = never;
    return true;
  }

 private:
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  static inline thread_local std::size_t left = never;
};

}  // namespace farsum

// Not inlined, or g++ finds that what new made is given to free.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = farsum::FailingMemory::fails_now() ? nullptr : std::malloc(bytes != 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return farsum::FailingMemory::fails_now() ? nullptr : std::malloc(bytes != 0 ? bytes : 1);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept { return operator new(bytes, nothrow); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
