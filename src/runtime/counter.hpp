// The shared counter: one word of a window by fetch-and-add, a ticket at a time or leased in chunks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.hpp"
#include "base/thread_mutex.hpp"
#include "runtime/windows.hpp"

namespace farsum {

enum class CounterKind : std::uint8_t { strict = 0, leased = 1 };

class Counter {
 public:
  struct Options {
    CounterKind kind = CounterKind::strict;
    std::uint32_t home = 0;
    std::uint64_t limit = 0;    // leased only
    bool lacks_memory = false;  // the caller has found none: then no rank gets the counter
  };

  // Collective.
  static Result<std::shared_ptr<Counter>> create(Windows& windows, Group& group, const Options& options);
  // Any thread.
  Result<std::uint64_t> next();
  // Collective.
  Status reset();
  Status free();

 private:
  Counter(Windows& windows, Group& group, const Options& options)
      : windows_(windows), group_(group), options_(options) {}
  static std::shared_ptr<Counter> make(Windows& windows, Group& group, const Options& options) noexcept;
  Status begin();
  Result<std::uint64_t> next_strict();
  Result<std::uint64_t> next_leased();
  Status fetch_add(std::uint64_t amount, std::uint64_t& old);

  Windows& windows_;
  Group& group_;
  Options options_;
  WindowObject* object_ = nullptr;
  Window* window_ = nullptr;

  ThreadMutex opening_;               // of the access epoch
  std::atomic<bool> is_open_{false};  // the epoch
  ThreadMutex mutex_;
  std::uint64_t lease_next_ FARSUM_GUARDED_BY(mutex_) = 0;
  std::uint64_t lease_end_ FARSUM_GUARDED_BY(mutex_) = 0;
};

}  // namespace farsum
