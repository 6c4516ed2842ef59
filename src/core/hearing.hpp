// How often a process has, or may have, heard what other ranks did.
#pragma once

#include <atomic>
#include <cstdint>

namespace farsum {

// Every call that synchronises with other ranks counts before it returns: what was copied of others' memory before it
// answers no reads after it. Any thread may call.
class alignas(64) Hearing {
 public:
  // seq_cst, here and below: a thread that was told by another of its process finds no copy from before either.
  void hear() { times_.fetch_add(1, std::memory_order_seq_cst); }
  std::uint64_t times() const { return times_.load(std::memory_order_seq_cst); }

 private:
  std::atomic<std::uint64_t> times_{1};
};

}  // namespace farsum
