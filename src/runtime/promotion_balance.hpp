// Whether moving memory into the node's segment pays for a process: what moves have cost it against what its windows'
// operations have been spared since. A program that makes windows again and again and does little with each stops
// promoting. It looks at no clock and no memory, and knows no window; its owner guards it.
#pragma once

#include <cstdint>

namespace farsum {

struct MoveCost {
  std::uint64_t bytes = 0;
  std::uint64_t touched_bytes = 0;  // only these are copied
  // For finding out whether the memory can move, which takes long in a process that has much.
  std::uint64_t looked_ns = 0;
};

class PromotionBalance {
 public:
  // Memory moved there, to be moved back later; both ways are counted here, once. Also memory that could not be moved
  // (then of 0 bytes), and memory that was not moved for this balance's sake: it follows what promoting would have
  // done, so that it finds out when that would pay.
  void moved(const MoveCost& cost);
  // Operations of other ranks on such memory.
  void spared(std::uint64_t ns);
  // Whether the next memory had better stay. Time alone gives back a little, so that windows that a program makes early
  // and often do not decide about one that it makes later, for long.
  [[nodiscard]] bool is_spent(std::uint64_t now_ns);

  // What operations on mapped memory are spared of the kernel's copies.
  [[nodiscard]] static std::uint64_t worth_ns(std::uint64_t operations, std::uint64_t bytes) {
    return 1000 * operations + bytes / 8;
  }

  // What a process may lose before it stops, some 60 windows of a page.
  static constexpr std::int64_t credit_ns = 25'000'000;
  // Traffic saves up no more, and moves that were not made cost no more.
  static constexpr std::int64_t most_ns = 4 * credit_ns;
  static constexpr std::int64_t least_ns = -credit_ns / 5;

 private:
  void add(std::int64_t ns);

  std::int64_t balance_ns_ = credit_ns;
  std::uint64_t asked_ns_ = 0;  // when is_spent was asked last; 0: never
};

}  // namespace farsum
