// A collective that is carried while its ranks do something else: what it is, and how much each rank brings and gets.
// Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "lockfree/said_of_call.hpp"
#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"

namespace farsum {

struct CarriedCall {
  // As farsum.h numbers them.
  enum class Kind : std::uint8_t { barrier, broadcast, allgather, allreduce, reduce, reduce_scatter_block };
  static constexpr std::uint64_t kinds = 6;

  Kind kind = Kind::barrier;
  ops::ElementType type{};                 // 0 of a barrier
  ops::Operator op{};                      // of a reduction, which with type can be folded; else 0
  std::uint32_t root = 0;                  // of a broadcast and a reduce; else 0
  std::uint64_t count = 0;                 // of elements, as farsum.h counts them for the kind
  ReduceOrder order = ReduceOrder::nodes;  // of a reduction

  bool reduces() const { return kind >= Kind::allreduce; }
  bool reduces_by_ranks() const { return reduces() && order == ReduceOrder::ranks; }
  std::size_t bytes() const { return kind == Kind::barrier ? 0 : count * ops::size_of(type); }
  // What a rank brings, and what all ranks together make, in a group of so many.
  std::size_t part_bytes(std::uint32_t rank, std::uint32_t size) const;
  std::size_t answer_bytes(std::uint32_t size) const;
  // Where in the answer that lies which a rank gets.
  struct Share {
    std::size_t from = 0;
    std::size_t bytes = 0;
  };
  Share share_of(std::uint32_t rank, std::uint32_t size) const;

  bool operator==(const CarriedCall&) const = default;
};

// What a rank says of its call: also, modulo 256, how many calls that are not carried it has made of the group before.
SaidOfCall said_of(const CarriedCall& call, std::uint64_t calls_before);
// Nothing where said_of() makes no such words.
std::optional<CarriedCall> call_in(const SaidOfCall& said);

// What is found of the ranks of a call.
struct CarriedFinding {
  enum class What : std::uint32_t {
    the_same,
    another_call,   // two ranks have said different things
    lacks_memory,   // `rank` has none
    too_scattered,  // by ranks no letter has room for an element of each of so many
    garbled,        // from the node of `rank` has come what makes no sense
    cut_off,        // another node has refused what `rank` sends
  };
  std::uint32_t rank = 0;
  What what = What::the_same;
  // The node's words and those of others no longer match, and no later call mends that.
  bool breaks_group() const { return what == What::garbled || what == What::cut_off; }

  // Of another call: what that rank has said, and another one.
  SaidOfCall said;
  SaidOfCall other_said;
  std::uint32_t other_rank = 0;
};

// Either may be null where there are no bytes.
inline void copy_carried(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

// How the call of `my_rank`, which has said `mine`, ends by it.
Status told(const char* doing, std::uint32_t my_rank, const SaidOfCall& mine, const CarriedFinding& found);

}  // namespace farsum
