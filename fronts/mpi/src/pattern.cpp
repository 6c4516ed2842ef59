#include "pattern.hpp"

#include <algorithm>
#include <limits>
#include <new>

namespace farsum::mpi {
namespace {

std::int64_t signed_size(std::size_t size) { return static_cast<std::int64_t>(size); }

// Addresses wrap around, and what leaves the address space is found out where it is used.
std::int64_t wrapped_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

std::size_t length_at(const Pattern& pattern, std::size_t piece) {
  return pattern.lengths.empty() ? pattern.block : pattern.lengths[piece];
}

// Calls `visit(offset)` for every block of a strided pattern, in order, until it returns false.
template <typename Visit>
bool for_each_block(const Pattern& pattern, Visit&& visit) {
  std::array<std::size_t, FARSUM_MAX_LEVELS> index{};
  std::int64_t offset = pattern.first;
  for (;;) {
    if (!visit(offset)) return false;
    int level = 0;
    for (; level < pattern.levels; ++level) {
      const auto at = static_cast<std::size_t>(level);
      offset += pattern.strides[at];
      if (++index[at] < pattern.counts[at]) break;
      offset -= signed_size(pattern.counts[at]) * pattern.strides[at];
      index[at] = 0;
    }
    if (level == pattern.levels) return true;
  }
}

// Length of the run at the start of every `step`-th offset, counted in those steps, whose distances are all the same.
std::size_t regular_run(const std::vector<std::int64_t>& offsets, std::size_t step, std::size_t rows) {
  const std::int64_t distance = offsets[step] - offsets[0];
  std::size_t run = 2;
  while (run < rows && offsets[run * step] - offsets[(run - 1) * step] == distance) ++run;
  return run;
}

// Whether all `rows` rows fall into groups of `run` with the distances of the first group.
bool groups_alike(const std::vector<std::int64_t>& offsets, std::size_t step, std::size_t rows, std::size_t run) {
  if (rows % run != 0) return false;
  const std::int64_t distance = offsets[step] - offsets[0];
  for (std::size_t row = 0; row < rows; row += run) {
    for (std::size_t i = 1; i < run; ++i) {
      if (offsets[(row + i) * step] != offsets[row * step] + signed_size(i) * distance) return false;
    }
  }
  return true;
}

// Sets the strides that visit the offsets in their order, if there are any.
bool find_strides(const std::vector<std::int64_t>& offsets, Pattern& pattern) {
  int levels = 0;
  std::size_t step = 1;
  std::size_t rows = offsets.size();
  while (rows > 1) {
    if (levels == FARSUM_MAX_LEVELS) return false;
    const std::size_t run = regular_run(offsets, step, rows);
    if (!groups_alike(offsets, step, rows, run)) return false;
    pattern.counts[static_cast<std::size_t>(levels)] = run;
    pattern.strides[static_cast<std::size_t>(levels)] = offsets[step] - offsets[0];
    ++levels;
    step *= run;
    rows /= run;
  }
  pattern.first = offsets[0];
  pattern.levels = levels;
  return true;
}

// Adds one more stride outside the others. False if there is no room for it.
template <typename Counts, typename Strides>
bool add_level(Counts& counts, Strides& strides, int& levels, std::size_t count, std::int64_t stride) {
  if (levels > 0) {
    const auto top = static_cast<std::size_t>(levels - 1);
    std::int64_t reach = 0;
    if (!__builtin_mul_overflow(signed_size(counts[top]), strides[top], &reach) && reach == stride) {
      counts[top] *= count;
      return true;
    }
  }
  if (levels == FARSUM_MAX_LEVELS) return false;
  counts[static_cast<std::size_t>(levels)] = count;
  strides[static_cast<std::size_t>(levels)] = stride;
  ++levels;
  return true;
}

bool repeat_as_list(Pattern& pattern, std::size_t count, std::int64_t stride) {
  const std::size_t pieces = pattern.pieces();
  if (count > most_pieces / pieces) {
    // Only a pattern whose items touch could still fit, and one that touches throughout is a block, not a list.
    return false;
  }
  PieceList list;
  list.reserve(count * pieces);
  for (std::size_t i = 0; i < count; ++i) {
    if (!list.add(pattern, signed_size(i) * stride)) return false;
  }
  pattern = list.take();
  return true;
}

}  // namespace

std::size_t Pattern::pieces() const {
  if (bytes == 0) return 0;
  if (is_list()) return offsets.size();
  std::size_t product = 1;
  for (int level = 0; level < levels; ++level) {
    if (__builtin_mul_overflow(product, counts[static_cast<std::size_t>(level)], &product)) {
      return std::numeric_limits<std::size_t>::max();
    }
  }
  return product;
}

void PieceList::reserve(std::size_t pieces) { offsets_.reserve(pieces); }

bool PieceList::add(const Pattern& pattern, std::int64_t displacement) {
  if (pattern.bytes == 0) return true;
  if (!pattern.is_list()) {
    return for_each_block(pattern,
                          [&](std::int64_t offset) { return add(wrapped_sum(displacement, offset), pattern.block); });
  }
  for (std::size_t piece = 0; piece < pattern.offsets.size(); ++piece) {
    if (!add(wrapped_sum(displacement, pattern.offsets[piece]), length_at(pattern, piece))) return false;
  }
  return true;
}

std::size_t PieceList::take(std::vector<std::int64_t>& offsets, std::vector<std::size_t>& lengths) {
  offsets = std::exchange(offsets_, {});
  lengths = std::exchange(lengths_, {});
  if (lengths.empty()) return offsets.empty() ? 0 : common_;
  if (std::ranges::any_of(lengths, [&](std::size_t length) { return length != lengths[0]; })) return 0;
  const std::size_t common = lengths[0];
  lengths = {};
  return common;
}

Pattern PieceList::take() {
  Pattern pattern;
  if (offsets_.empty()) return pattern;
  if (lengths_.empty()) pattern.bytes = offsets_.size() * common_;
  for (const std::size_t length : lengths_) pattern.bytes += length;
  pattern.block = take(pattern.offsets, pattern.lengths);
  if (pattern.lengths.empty() && find_strides(pattern.offsets, pattern)) {
    pattern.offsets = {};
  }
  return pattern;
}

bool repeat(Pattern& pattern, std::size_t count, std::int64_t stride) {
  if (count == 1 || pattern.bytes == 0) return true;
  if (count == 0) {
    pattern = Pattern{};
    return true;
  }
  if (pattern.is_list()) return repeat_as_list(pattern, count, stride);
  if (pattern.is_block() && stride == signed_size(pattern.block)) {
    if (__builtin_mul_overflow(pattern.block, count, &pattern.block)) return false;
    pattern.bytes = pattern.block;
    return true;
  }
  if (!add_level(pattern.counts, pattern.strides, pattern.levels, count, stride)) {
    return repeat_as_list(pattern, count, stride);
  }
  return !__builtin_mul_overflow(pattern.bytes, count, &pattern.bytes);
}

void move(Pattern& pattern, std::int64_t displacement) {
  if (pattern.bytes == 0) return;
  pattern.first += displacement;
  for (std::int64_t& offset : pattern.offsets) offset += displacement;
}

bool Layout::set_spread(const Pattern& pattern, std::int64_t extent, std::size_t count) {
  if (count == 0 || pattern.bytes == 0) return set_run(0);
  if (__builtin_mul_overflow(pattern.bytes, count, &bytes_) || signed_size(bytes_) < 0) return false;
  std::int64_t reach = 0;
  if (signed_size(count) < 0 || __builtin_mul_overflow(signed_size(count - 1), extent, &reach)) return false;
  return pattern.is_list() ? set_list(pattern, extent, count) : set_strided(pattern, extent, count);
}

bool Layout::set_strided(const Pattern& pattern, std::int64_t extent, std::size_t count) {
  const Strides* used = &pattern;
  if (count > 1) {
    strides_ = pattern;
    if (!add_level(strides_.counts, strides_.strides, strides_.levels, count, extent)) {
      return set_list(pattern, extent, count);
    }
    used = &strides_;
  }
  shift_ = pattern.first;
  shape_ = {};
  shape_.kind = FARSUM_STRIDED;
  shape_.bytes = pattern.block;
  shape_.levels = used->levels;
  shape_.counts = used->counts.data();
  shape_.strides = used->strides.data();
  return true;
}

bool Layout::set_list(const Pattern& pattern, std::int64_t extent, std::size_t count) {
  shift_ = 0;
  shape_ = {};
  shape_.kind = FARSUM_INDEXED;
  if (count == 1 && pattern.is_list()) {
    shape_.bytes = pattern.block;
    shape_.pieces = pattern.offsets.size();
    shape_.offsets = pattern.offsets.data();
    shape_.lengths = pattern.lengths.empty() ? nullptr : pattern.lengths.data();
    return true;
  }
  const std::size_t pieces = pattern.pieces();
  if (count > most_pieces / pieces) return false;
  try {
    PieceList list;
    list.reserve(count * pieces);
    for (std::size_t i = 0; i < count; ++i) {
      if (!list.add(pattern, signed_size(i) * extent)) return false;
    }
    shape_.bytes = list.take(offsets_, lengths_);
  } catch (const std::bad_alloc&) {
    return false;
  }
  shape_.pieces = offsets_.size();
  shape_.offsets = offsets_.data();
  shape_.lengths = lengths_.empty() ? nullptr : lengths_.data();
  return true;
}

bool Layout::begin_at_first_piece() {
  if (shape_.kind != FARSUM_INDEXED || shape_.pieces == 0) return true;
  try {
    if (shape_.offsets != offsets_.data()) offsets_.assign(shape_.offsets, shape_.offsets + shape_.pieces);
  } catch (const std::bad_alloc&) {
    return false;
  }
  const std::int64_t first = offsets_.front();
  for (std::int64_t& offset : offsets_) offset -= first;
  shift_ += first;
  shape_.offsets = offsets_.data();
  return true;
}

}  // namespace farsum::mpi
