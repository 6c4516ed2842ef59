// Lets the program's operator new fail when a test says so, in a program of which one source has failing_operators.hpp.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace farsum {

// While it lives, this thread's allocations succeed `after` times; then one fails, or all do.
class FailingMemory {
 public:
  enum class Fails { once, for_good };

  explicit FailingMemory(std::size_t after, Fails fails = Fails::once) {
    left = after;
    goes_on = fails == Fails::for_good;
  }
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

  // Of one that fails once.
  static bool has_failed() { return left == never; }

  static void* allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
    if (left != never) {
      if (left == 0) {
        if (!goes_on) left = never;
        return nullptr;
      }
      --left;
    }
    if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes != 0 ? bytes : 1);
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    return std::aligned_alloc(alignment, rounded != 0 ? rounded : alignment);
  }
  static void* allocate_or_throw(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
    void* const memory = allocate(bytes, alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }

 private:
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  static inline thread_local std::size_t left = never;
  static inline thread_local bool goes_on = false;
};

}  // namespace farsum
