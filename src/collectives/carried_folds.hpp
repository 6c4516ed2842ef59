// How what a node's ranks bring to a call becomes the node's part of its answer: compared once all have come, then
// folded or copied in slices, by whoever has time. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/settings.hpp"
#include "collectives/carried_bells.hpp"
#include "collectives/carried_memory.hpp"
#include "collectives/carry_help.hpp"
#include "collectives/rank_order.hpp"
#include "ops/kernels.hpp"

namespace farsum {

// One member's. Any thread may call.
class CarriedFolds {
 public:
  static constexpr std::size_t slice_bytes = 256 << 10;

  struct Parts {
    const CarriedMemory& memory;
    CarriedBells& bells;
    CarryHelp& help;
    const ops::KernelSet& kernels;
    ReduceOrder order;  // of all calls that reduce
  };
  explicit CarriedFolds(const Parts& parts);

  // By the last to come to a call.
  void begin(std::uint64_t number);
  // Of that call. False: none is left, or there was none.
  bool fold_slice(std::uint64_t number);
  // Of whichever call is under way in the place.
  bool fold_slice_in(std::uint64_t of_place);

 private:
  CarriedFinding compare(std::uint64_t number) const;
  std::size_t bytes_to_fold(const CarriedCall& call) const;
  bool fold_taken(std::uint64_t of_place, const std::optional<CallPlace::Slice>& slice);
  bool fold(std::uint64_t number, std::uint64_t slice) const;
  void fold_by_ranks(std::uint64_t number, const CarriedCall& call, std::size_t from, std::size_t bytes) const;
  void end(std::uint64_t number);

  const CarriedMemory& memory_;
  CarriedBells& bells_;
  CarryHelp& help_;
  const ops::KernelSet& kernels_;
  std::vector<RankOrder::Join> joins_here_;  // of several nodes, where ranks decide the order
};

}  // namespace farsum
