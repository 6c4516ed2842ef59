// Layouts at random that name each byte at most once, and what they mean spelt out: the place of every element.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "farsum.h"

namespace farsum::test {

using Random = std::mt19937_64;

// Uniform in [low, high].
inline std::uint64_t pick(Random& random, std::uint64_t low, std::uint64_t high) {
  return low + random() % (high - low + 1);
}

// A layout of `elements` elements inside [0, room_elements), in units of whole elements.
class ElementList {
 public:
  static ElementList contiguous(std::size_t elements, std::size_t element_bytes);
  // Of at most `levels` levels; some strides are negative. The number of elements follows from the counts.
  static ElementList strided(Random& random, int levels, std::size_t most_elements, std::size_t room_elements,
                             std::size_t element_bytes);
  // Pieces in random order, of random lengths.
  static ElementList indexed(Random& random, std::size_t elements, std::size_t room_elements,
                             std::size_t element_bytes);

  // Bytes from the start of the room to each element, in the layout's order.
  const std::vector<std::size_t>& places() const { return places_; }
  std::size_t elements() const { return places_.size(); }
  // To be added to the offset or pointer of the room.
  std::int64_t base() const { return base_; }
  // As farsum_operate takes it; null where it is contiguous. Points into this object.
  const farsum_layout* layout();

 private:
  farsum_layout_kind kind_ = FARSUM_CONTIGUOUS;
  std::vector<std::size_t> places_;
  std::int64_t base_ = 0;
  std::size_t block_bytes_ = 0;
  std::vector<std::size_t> counts_;
  std::vector<std::int64_t> strides_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::size_t> lengths_;
  farsum_layout layout_{};
};

// Adds `ones`, 64-bit words, to the words at the byte offsets `places`. What the layout's arrays hold is spoilt behind
// the call: they are the caller's again at once, where `ones` is not.
farsum_status add_to_words(farsum_window window, int target, std::vector<std::int64_t> places, const void* ones);

}  // namespace farsum::test
