// A thread of Farsum's own in a program that ThreadSanitizer watches.
#pragma once

#include "os/raw_system.hpp"

// Of the runtime of ThreadSanitizer, where the process has one; else null.
// NOLINTBEGIN(readability-identifier-naming): the runtime's names
extern "C" {
[[gnu::weak]] void AnnotateIgnoreReadsBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreReadsEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesEnd(const char* file, int line);
}
// NOLINTEND(readability-identifier-naming)

namespace farsum::os {

// While one lives, the sanitizer takes nothing that this thread reads and writes for a race. It sees the calls of libc
// that copy memory, and not the atomics of shared memory by which the copies are ordered with the program's accesses.
// Where Farsum is itself built with the sanitizer, that sees all of it, and nothing is hidden.
class Unwatched {
 public:
#if defined(FARSUM_THREAD_SANITIZER)
  Unwatched() = default;
#else
  Unwatched() {
    if (AnnotateIgnoreReadsBegin != nullptr) AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    if (AnnotateIgnoreWritesBegin != nullptr) AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unwatched() {
    if (AnnotateIgnoreWritesEnd != nullptr) AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    if (AnnotateIgnoreReadsEnd != nullptr) AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#endif
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

}  // namespace farsum::os
