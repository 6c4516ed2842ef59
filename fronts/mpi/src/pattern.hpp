// Where the bytes of one item of a datatype lie, in the order of its type map: a block repeated over nested strides, or
// a list of pieces. And the engine's layout of many such items.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "farsum.h"

namespace farsum::mpi {

// Nested strides, innermost first. Copies take the levels in use alone: most have one.
struct Strides {
  Strides() {}  // leaves the arrays as they are
  Strides(const Strides& other) { *this = other; }
  Strides& operator=(const Strides& other) {
    levels = other.levels;
    for (std::size_t level = 0; level < static_cast<std::size_t>(levels); ++level) {
      counts[level] = other.counts[level];
      strides[level] = other.strides[level];
    }
    return *this;
  }

  int levels = 0;
  std::array<std::size_t, FARSUM_MAX_LEVELS> counts;
  std::array<std::int64_t, FARSUM_MAX_LEVELS> strides;
};

// Offsets are from the item's base, the address that MPI calls are given. Pieces that touch in memory and follow each
// other are one.
struct Pattern : Strides {
  std::size_t bytes = 0;              // of all pieces
  std::int64_t first = 0;             // where the first piece begins; unused in a list
  std::size_t block = 0;              // bytes of each piece, or 0: see `lengths`
  std::vector<std::int64_t> offsets;  // a list if not empty
  std::vector<std::size_t> lengths;   // of a list whose pieces differ

  [[nodiscard]] bool is_list() const { return !offsets.empty(); }
  [[nodiscard]] bool is_block() const { return levels == 0 && offsets.empty(); }
  // Number of pieces.
  [[nodiscard]] std::size_t pieces() const;
};

// A list of more pieces than this is not made; it would take gigabytes.
inline constexpr std::size_t most_pieces = std::size_t{1} << 27;

// Pieces in the order in which they are added; those that touch become one.
class PieceList {
 public:
  void reserve(std::size_t pieces);
  // False if the list would grow past most_pieces.
  [[nodiscard]] bool add(std::int64_t offset, std::size_t length) {
    if (!offsets_.empty() && end_ == static_cast<std::uint64_t>(offset)) {
      tell_lengths();
      lengths_.back() += length;
      end_ += length;
      return true;
    }
    if (offsets_.size() == most_pieces) return false;
    if (offsets_.empty()) common_ = length;
    if (!lengths_.empty() || length != common_) {
      tell_lengths();
      lengths_.push_back(length);
    }
    offsets_.push_back(offset);
    end_ = static_cast<std::uint64_t>(offset) + length;
    return true;
  }
  [[nodiscard]] bool add(const Pattern& pattern, std::int64_t displacement);
  // The pieces as a pattern: nested strides if they are regular. Leaves nothing here.
  [[nodiscard]] Pattern take();
  // The pieces as they are; lengths are empty if all are of the length returned.
  std::size_t take(std::vector<std::int64_t>& offsets, std::vector<std::size_t>& lengths);

 private:
  void tell_lengths() {
    if (lengths_.empty()) lengths_.assign(offsets_.size(), common_);
  }

  std::vector<std::int64_t> offsets_;
  std::vector<std::size_t> lengths_;  // empty while all are of the common one
  std::size_t common_ = 0;
  std::uint64_t end_ = 0;  // of the last
};

// The pattern `count` times, each `stride` bytes after the one before. False if that takes too many pieces.
[[nodiscard]] bool repeat(Pattern& pattern, std::size_t count, std::int64_t stride);
void move(Pattern& pattern, std::int64_t displacement);

// The engine's layout of `count` items. Borrows the pattern's arrays where it can, so the pattern must outlive it; use
// it for the call it was made for. Costs no allocation unless a list is repeated.
class Layout {
 public:
  Layout() = default;
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  // False if the bytes or addresses overflow, or memory for a repeated list is not to be had.
  [[nodiscard]] bool set(const Pattern& pattern, std::int64_t extent, std::size_t count) {
    if (pattern.is_block() && (count == 1 || extent == static_cast<std::int64_t>(pattern.block))) [[likely]] {
      return set_contiguous(pattern, count);
    }
    return set_spread(pattern, extent, count);
  }
  // The same of `bytes` from the base on.
  [[nodiscard]] bool set_run(std::size_t bytes, std::int64_t first = 0);

  // Makes a list count from its first piece, for a base that is null: lists over MPI_BOTTOM name addresses, and the
  // engine takes a null base for none. False if there is no memory for it.
  [[nodiscard]] bool begin_at_first_piece();

  // Relative to the base moved by shift().
  [[nodiscard]] const farsum_layout& shape() const { return shape_; }
  // Bytes to add to the caller's base: what the shape is relative to.
  [[nodiscard]] std::int64_t shift() const { return shift_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  bool set_contiguous(const Pattern& pattern, std::size_t count);
  bool set_spread(const Pattern& pattern, std::int64_t extent, std::size_t count);
  bool set_strided(const Pattern& pattern, std::int64_t extent, std::size_t count);
  bool set_list(const Pattern& pattern, std::int64_t extent, std::size_t count);

  farsum_layout shape_{};
  std::int64_t shift_ = 0;
  std::size_t bytes_ = 0;
  Strides strides_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::size_t> lengths_;
};

inline bool Layout::set_run(std::size_t bytes, std::int64_t first) {
  std::int64_t end = 0;
  if (static_cast<std::int64_t>(bytes) < 0 || __builtin_add_overflow(first, static_cast<std::int64_t>(bytes), &end)) {
    return false;
  }
  shape_ = {};
  shape_.kind = FARSUM_CONTIGUOUS;
  shape_.bytes = bytes_ = bytes;
  shift_ = bytes == 0 ? 0 : first;
  return true;
}

inline bool Layout::set_contiguous(const Pattern& pattern, std::size_t count) {
  std::size_t bytes = 0;
  return !__builtin_mul_overflow(pattern.bytes, count, &bytes) && set_run(bytes, pattern.first);
}

}  // namespace farsum::mpi
