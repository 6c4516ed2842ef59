// The slots of a team's letters on one node, and the credit for those of its neighbours: what came and was not
// consumed, what may be sent. It sends nothing and wakes nobody: its caller does (docs/internals/letters.md). Owner:
// collectives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/units.hpp"

namespace farsum {

// Begins each letter of a team between two nodes.
struct LetterHead {
  static constexpr std::uint64_t credit_alone = ~std::uint64_t{0};

  std::uint64_t number;    // of its sender's letters to this node: 0, 1, 2, ...; credit_alone: it takes no slot
  std::uint64_t consumed;  // so many of this node's were

  bool operator==(const LetterHead&) const = default;
};

// Neighbours are counted from 0. One at a time files, who serves; and one at a time walks the steps, whoever holds the
// claim to them: both at once, in one process or two. Capacity: `slots` letters of each neighbour. Whoever dies in a
// call leaves the letter as it was before: not filed, or not consumed.
class Letters {
 public:
  struct Shape {
    std::uint32_t neighbours = 0;
    // Of each: two rounds deep, and twice as many where a round has two letters of one node to another.
    std::uint32_t slots = 2;
    // Of a letter without its head: at most what the transport carries to each of them (max_letter_bytes), less that.
    std::size_t slot_bytes = 4096 - sizeof(LetterHead);
  };

  static std::size_t footprint(const Shape& shape);
  // The block outlives it, as long as footprint() and aligned to two cache lines; zeroed memory is a block whose
  // letters all are to come. Everyone gives one shape.
  Letters(std::span<std::byte> block, const Shape& shape);

  // ---- who serves

  enum class Filed : std::uint8_t {
    letter,   // it waits for take()
    credit,   // it told of credit only
    refused,  // nobody who keeps the rules sends it, and nothing was done
  };
  Filed file(std::uint32_t from, std::span<const std::byte> letter);

  // ---- who walks

  // The oldest letter that was filed and is not consumed, without its head; it stays until consumed().
  std::optional<std::span<const std::byte>> take(std::uint32_t from) const;
  // That one was combined or copied.
  void consumed(std::uint32_t from);

  // Whether the next letter finds a slot there.
  bool has_room(std::uint32_t to) const;
  // Of the next letter, which has room; and that it was taken by the transport.
  LetterHead head_of_next(std::uint32_t to) const;
  void sent(std::uint32_t to);
  // Of a letter that tells of credit alone, where the neighbour may have no room and cannot know better; and that it
  // was taken. To be asked for after consumed(), when no letter goes there next.
  std::optional<LetterHead> head_of_credit(std::uint32_t to) const;
  void credit_sent(std::uint32_t to);

 private:
  struct alignas(2 * cache_line_bytes) Neighbour {
    // Written by who serves.
    std::atomic<std::uint64_t> filed;     // of its letters
    std::atomic<std::uint64_t> credited;  // of ours, as it told last: so many were consumed
    // Written by who walks; what is not atomic goes from one to the next by the claim.
    alignas(cache_line_bytes) std::atomic<std::uint64_t> consumed;  // of its letters
    std::uint64_t told;                                             // of these, as it knows
    std::uint64_t sent;                                             // of ours
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  static std::size_t slot_stride(const Shape& shape);
  Neighbour& at(std::uint32_t neighbour) const;
  std::byte* slot(std::uint32_t neighbour, std::uint64_t number) const;

  std::span<std::byte> block_;
  Shape shape_;
};

}  // namespace farsum
