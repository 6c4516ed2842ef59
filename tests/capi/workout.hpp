// Operations at random by one rank on its own slice of every rank's part, each answer and at the end every byte
// compared with a model, and updates by all ranks at once on words that they share, whose totals must be exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "element_lists.hpp"
#include "exposed_memory.hpp"

namespace farsum::test {

inline constexpr int workout_ranks = 3;
inline constexpr std::size_t shared_words = 512;
inline constexpr std::size_t most_slice_bytes = 349504;

// What every rank's slice should hold at the end; seen by all.
struct Expected {
  std::byte slices[workout_ranks][workout_ranks][most_slice_bytes];  // [target][origin]
};

class Workout {
 public:
  Workout(int rank, ExposedMemory& memory, std::size_t part_bytes, Expected& expected);

  // Every legal pair of type and operator, by each kind of operation, on single and many elements, in random layouts.
  void try_every_legal_pair();
  // Contiguous operations of sizes around every threshold.
  void straddle_thresholds();
  // Many accumulates without a flush between them, on the same elements.
  void keep_program_order();
  // Puts, accumulates and gets on one place, ordered by farsum_order alone.
  void order_puts_among_accumulates();
  void compare_and_swap_each_type();
  // Collective. Leaves exact totals behind.
  void hammer_shared_words();
  // Collective: each owner compares its own memory with what the origins expect.
  void compare_memory();

 private:
  struct Operands;
  const View& any_view() { return memory_.views()[pick(random_, 0, memory_.views().size() - 1)]; }
  std::byte* model(int target) { return expected_.slices[target][rank_]; }
  std::size_t lane(farsum_type type) const { return static_cast<std::size_t>(type) * lane_bytes; }
  std::size_t bulk_begin() const { return lane_count * lane_bytes; }
  void issue(const View& view, farsum_operation& operation, int mode);
  void settle(const View& view, int target, int mode);
  void one_pair(int target, farsum_type type, farsum_op op, farsum_kind kind, int mode);
  void bulk(int target, std::size_t offset, std::size_t count, farsum_type type, farsum_op op, farsum_kind kind,
            int mode);

  static constexpr std::size_t lane_count = FARSUM_FLOAT16 + 1;
  static constexpr std::size_t lane_elements = 16;
  static constexpr std::size_t lane_bytes = lane_elements * 32;

  int rank_;
  ExposedMemory& memory_;
  std::size_t slice_bytes_;
  std::size_t shared_begin_;
  Expected& expected_;
  Random random_;
};

}  // namespace farsum::test
