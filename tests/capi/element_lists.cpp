#include "element_lists.hpp"

#include <algorithm>

namespace farsum::test {

ElementList ElementList::contiguous(std::size_t elements, std::size_t element_bytes) {
  ElementList list;
  for (std::size_t i = 0; i < elements; ++i) list.places_.push_back(i * element_bytes);
  return list;
}

ElementList ElementList::strided(Random& random, int levels, std::size_t most_elements, std::size_t room_elements,
                                 std::size_t element_bytes) {
  ElementList list;
  list.kind_ = FARSUM_STRIDED;
  std::size_t block = pick(random, 1, std::min<std::size_t>(4, most_elements));
  std::size_t reach = block;  // elements from the lowest to past the highest
  std::size_t elements = block;
  std::vector<std::int64_t> strides;  // in elements
  for (int level = 0; level < levels; ++level) {
    const std::size_t count = pick(random, 1, levels > 4 ? 2 : 4);
    const std::size_t stride = reach + pick(random, 0, 2);
    if (elements * count > most_elements || stride * (count - 1) + reach > room_elements) {
      list.counts_.push_back(1);
      strides.push_back(static_cast<std::int64_t>(stride));
      continue;
    }
    list.counts_.push_back(count);
    const bool down = pick(random, 0, 1) == 1;
    strides.push_back(down ? -static_cast<std::int64_t>(stride) : static_cast<std::int64_t>(stride));
    elements *= count;
    reach += stride * (count - 1);
  }
  // The base is where the first block is, so that the lowest block is at 0.
  std::int64_t base = 0;
  for (std::size_t level = 0; level < strides.size(); ++level) {
    if (strides[level] < 0) base -= strides[level] * static_cast<std::int64_t>(list.counts_[level] - 1);
  }
  std::vector<std::size_t> index(list.counts_.size(), 0);
  for (bool more = true; more;) {
    std::int64_t at = base;
    for (std::size_t level = 0; level < index.size(); ++level)
      at += strides[level] * static_cast<std::int64_t>(index[level]);
    for (std::size_t i = 0; i < block; ++i) list.places_.push_back((static_cast<std::size_t>(at) + i) * element_bytes);
    more = false;
    for (std::size_t level = 0; level < index.size() && !more; ++level) {
      if (++index[level] < list.counts_[level]) {
        more = true;
      } else {
        index[level] = 0;
      }
    }
  }
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  for (const std::int64_t stride : strides) list.strides_.push_back(stride * bytes);
  list.base_ = base * bytes;
  list.block_bytes_ = block * element_bytes;
  return list;
}

ElementList ElementList::indexed(Random& random, std::size_t elements, std::size_t room_elements,
                                 std::size_t element_bytes) {
  ElementList list;
  list.kind_ = FARSUM_INDEXED;
  struct Piece {
    std::size_t first;
    std::size_t count;
  };
  std::vector<Piece> pieces;
  std::size_t slack = room_elements - elements;
  std::size_t at = 0;
  for (std::size_t left = elements; left != 0;) {
    const std::size_t gap = pick(random, 0, std::min<std::size_t>(slack, 3));
    const std::size_t count = pick(random, 1, std::min<std::size_t>(left, 5));
    pieces.push_back({at + gap, count});
    at += gap + count;
    slack -= gap;
    left -= count;
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  for (const Piece& piece : pieces) {
    list.offsets_.push_back(static_cast<std::int64_t>(piece.first * element_bytes));
    list.lengths_.push_back(piece.count * element_bytes);
    for (std::size_t i = 0; i < piece.count; ++i) list.places_.push_back((piece.first + i) * element_bytes);
  }
  return list;
}

const farsum_layout* ElementList::layout() {
  if (kind_ == FARSUM_CONTIGUOUS) return nullptr;
  layout_ = farsum_layout{};
  layout_.kind = kind_;
  layout_.bytes = block_bytes_;
  layout_.levels = static_cast<int>(counts_.size());
  layout_.counts = counts_.data();
  layout_.strides = strides_.data();
  layout_.pieces = offsets_.size();
  layout_.offsets = offsets_.data();
  layout_.lengths = lengths_.data();
  return &layout_;
}

farsum_status add_to_words(farsum_window window, int target, std::vector<std::int64_t> places, const void* ones) {
  farsum_layout layout{};
  layout.kind = FARSUM_INDEXED;
  layout.bytes = 8;
  layout.pieces = places.size();
  layout.offsets = places.data();
  farsum_operation operation{};
  operation.struct_bytes = sizeof operation;
  operation.kind = FARSUM_ACCUMULATE;
  operation.target = target;
  operation.type = FARSUM_UINT64;
  operation.op = FARSUM_SUM;
  operation.origin = ones;
  operation.target_layout = &layout;
  const farsum_status status = farsum_operate(window, &operation, nullptr);
  std::ranges::fill(places, -1);
  return status;
}

}  // namespace farsum::test
