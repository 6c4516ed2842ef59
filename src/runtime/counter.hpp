// The shared counter, four ways: one word by fetch-and-add, leased chunks of it, and for comparison paper 3's word per
// rank under an exclusive lock and the tree of words that it cites (Gropp et al.). All stand on a window's public
// operations.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.hpp"
#include "runtime/context.hpp"

namespace farsum {

enum class CounterKind : std::uint8_t { strict = 0, leased = 1, per_rank = 2, tree = 3 };

class Counter {
 public:
  struct Options {
    CounterKind kind = CounterKind::strict;
    std::uint32_t home = 0;
    std::uint64_t limit = 0;    // leased only
    bool lacks_memory = false;  // the caller has found none: then no rank gets the counter
  };

  // Collective.
  static Result<std::shared_ptr<Counter>> create(Context& context, Group& group, const Options& options);
  // Any thread.
  Result<std::uint64_t> next();
  // Collective.
  Status reset();
  Status free();

 private:
  Counter(Context& context, Group& group, const Options& options)
      : context_(context), group_(group), options_(options) {}
  static std::shared_ptr<Counter> make(Context& context, Group& group, const Options& options) noexcept;
  Status begin();
  Result<std::uint64_t> next_strict();
  Result<std::uint64_t> next_leased();
  Result<std::uint64_t> next_per_rank();
  Result<std::uint64_t> next_tree();
  Status get_words(std::uint64_t first, std::uint64_t count, std::uint64_t* into);
  Status fetch_add(std::uint64_t amount, std::uint64_t& old);

  Context& context_;
  Group& group_;
  Options options_;
  WindowObject* object_ = nullptr;
  Window* window_ = nullptr;
  std::uint64_t leaves_ = 1;  // tree: a power of two, at least the group's size

  std::mutex opening_;                // of the access epoch of the one-word kinds
  std::atomic<bool> is_open_{false};  // it
  std::mutex mutex_;                  // guards what follows
  std::uint64_t lease_next_ = 0;
  std::uint64_t lease_end_ = 0;
  std::uint64_t taken_ = 0;  // tickets of this rank; per_rank and tree
};

}  // namespace farsum
