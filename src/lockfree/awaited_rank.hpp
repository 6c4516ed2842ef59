// Whom a rank waits for, and what would end the wait, told to everybody: so that ranks which wait for each other in a
// circle can see it.
#pragma once

#include <atomic>
#include <cstdint>

namespace farsum {

// In memory shared between processes; zeroed memory is a valid one, of a rank that waits for nobody.
//
// Who may call: one thread of the rank publishes and withdraws, anybody reads. A crash leaves what was told last.
class AwaitedRank {
 public:
  struct Wait {
    std::uint32_t rank = 0;    // that is waited for
    std::uint64_t offset = 0;  // of the word whose upper 56 bits must become `least` or more
    std::uint64_t least = 0;
  };

  // `serial` is another at every call of a rank.
  void publish(std::uint32_t serial, const Wait& wait) {
    withdraw();
    // Release: whoever reads a new value also sees that the old ticket is gone; pairs with the acquire loads in read.
    offset_.store(wait.offset, std::memory_order_release);
    least_.store(wait.least, std::memory_order_release);
    ticket_.store(std::uint64_t{serial} << 32 | (wait.rank + 1), std::memory_order_release);
  }
  // Release: the wait is over for who sees it over.
  void withdraw() { ticket_.store(0, std::memory_order_release); }

  // A name for the wait as it stands, 0 for none; what it is for is in `wait`. It still stood while the caller did
  // anything between read() and a true answer of stands().
  std::uint64_t read(Wait& wait) const {
    // Acquire pairs with the release store in publish.
    const std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    wait.rank = static_cast<std::uint32_t>(ticket) - 1;
    wait.offset = offset_.load(std::memory_order_acquire);
    wait.least = least_.load(std::memory_order_acquire);
    return stands(ticket) ? ticket : 0;
  }
  // Relaxed: ordered behind the acquire loads before it.
  bool stands(std::uint64_t ticket) const { return ticket_.load(std::memory_order_relaxed) == ticket; }

 private:
  std::atomic<std::uint64_t> ticket_;
  std::atomic<std::uint64_t> offset_;
  std::atomic<std::uint64_t> least_;
};

}  // namespace farsum
