// Measuring and walking layouts. All arithmetic on what a caller or a message gave is checked; offsets inside a layout
// that passed the check cannot overflow, and the comments say why.
#include "ops/layout.hpp"

#include "ops/layout_steps.hpp"

namespace farsum::ops {

namespace {

using Measure = LayoutView::Measured;

constexpr Measure failed(LayoutFault fault) { return {fault, 0, {}}; }

Measure measure_contiguous(std::uint64_t bytes) {
  if (bytes > most_bytes_of_a_layout) return failed(LayoutFault::overflow);
  return {LayoutFault::none, bytes, {0, static_cast<std::int64_t>(bytes)}};
}

// In locals to the end: this is on the way of every operation with a layout.
Measure measure_strided(const LayoutView& layout) {
  const std::span<const std::uint64_t> counts = layout.counts();
  const std::span<const std::int64_t> strides = layout.strides();
  if (counts.size() != strides.size()) return failed(LayoutFault::uneven_levels);
  if (counts.size() > most_levels) return failed(LayoutFault::too_many_levels);
  for (const std::uint64_t count : counts) {
    if (count == 0) return {};
  }
  std::uint64_t total = layout.block_bytes();
  if (total == 0) return {};
  std::int64_t low = 0;
  auto high = static_cast<std::int64_t>(total);
  bool overflows = total > most_bytes_of_a_layout;
  for (std::size_t level = 0; level < counts.size(); ++level) {
    overflows |= counts[level] > most_bytes_of_a_layout || __builtin_mul_overflow(total, counts[level], &total) ||
                 total > most_bytes_of_a_layout;
    std::int64_t reach = 0;
    overflows |= __builtin_mul_overflow(static_cast<std::int64_t>(counts[level] - 1), strides[level], &reach);
    overflows |= reach < 0 ? __builtin_add_overflow(low, reach, &low) : __builtin_add_overflow(high, reach, &high);
  }
  if (overflows) return failed(LayoutFault::overflow);
  return {LayoutFault::none, total, {low, high}};
}

// Pieces are mostly as long as the one before: only others are divided, and none where any length is whole.
Measure measure_indexed(std::span<const Piece> pieces, std::uint64_t element_bytes) {
  Measure measure;
  std::uint64_t whole = 0;
  bool is_whole = true;
  for (const Piece& piece : pieces) {
    note_piece();
    if (piece.bytes == 0) continue;
    if (element_bytes != 1 && piece.bytes != whole) {
      is_whole &= piece.bytes % element_bytes == 0;
      whole = piece.bytes;
    }
    std::int64_t end = 0;
    if (piece.bytes > most_bytes_of_a_layout ||
        __builtin_add_overflow(piece.offset, static_cast<std::int64_t>(piece.bytes), &end) ||
        piece.bytes > most_bytes_of_a_layout - measure.total_bytes) {
      return failed(LayoutFault::overflow);
    }
    const bool is_first = measure.total_bytes == 0;
    measure.extent.low = is_first ? piece.offset : std::min(measure.extent.low, piece.offset);
    measure.extent.high = is_first ? end : std::max(measure.extent.high, end);
    measure.total_bytes += piece.bytes;
  }
  if (!is_whole) measure.fault = LayoutFault::not_whole_elements;
  return measure;
}

Measure measure(const LayoutView& layout, std::uint64_t element_bytes) {
  switch (layout.kind()) {
    case LayoutKind::contiguous:
      return measure_contiguous(layout.block_bytes());
    case LayoutKind::strided:
      return measure_strided(layout);
    case LayoutKind::indexed:
      return measure_indexed(layout.pieces(), element_bytes);
  }
  return failed(LayoutFault::overflow);
}

}  // namespace

LayoutView::Measured LayoutView::measured(std::uint64_t element_bytes) const {
  Measured result = measure(*this, element_bytes);
  if (element_bytes == 1 || result.fault != LayoutFault::none) return result;
  if (bytes_ % element_bytes != 0) result.fault = LayoutFault::not_whole_elements;
  return result;
}

std::optional<std::uint64_t> LayoutView::total_bytes() const {
  const Measure measured = measure(*this, 1);
  if (measured.fault != LayoutFault::none) return std::nullopt;
  return measured.total_bytes;
}

PieceCursor::PieceCursor(const LayoutView& layout, std::uint64_t total_bytes)
    : total_bytes_(total_bytes), blocks_(total_bytes == 0 ? LayoutView() : layout) {
  if (total_bytes_ == 0) return;
  if (layout.kind() == LayoutKind::indexed) {
    pieces_ = layout.pieces();
    here_ = pieces_.front();
    if (here_.bytes == 0) enter_next_piece();
    return;
  }
  index_.fill(0);
  here_ = {0, blocks_.bytes};
}

// Products stay below the total.
Blocks::Blocks(const LayoutView& layout) : bytes(layout.block_bytes()) {
  for (std::size_t level = 0; level < layout.counts().size(); ++level) {
    const std::uint64_t count = layout.counts()[level];
    const std::int64_t stride = layout.strides()[level];
    if (count == 1) continue;
    if (levels == 0 && stride == static_cast<std::int64_t>(bytes)) {
      bytes *= count;
      continue;
    }
    std::int64_t inner_reach = 0;
    if (levels != 0 &&
        !__builtin_mul_overflow(static_cast<std::int64_t>(counts[levels - 1]), strides[levels - 1], &inner_reach) &&
        inner_reach == stride) {
      counts[levels - 1] *= count;
      continue;
    }
    counts[levels] = count;
    strides[levels] = stride;
    ++levels;
  }
}

Piece PieceCursor::next(std::uint64_t most_bytes) {
  Piece run{here_.offset, std::min(here_.bytes, most_bytes)};
  take(run.bytes);
  while (run.bytes < most_bytes && here_.bytes != 0 &&
         here_.offset == run.offset + static_cast<std::int64_t>(run.bytes)) {
    const std::uint64_t more = std::min(here_.bytes, most_bytes - run.bytes);
    run.bytes += more;
    take(more);
  }
  return run;
}

// `bytes` is no more than what is left here. The offset stays within the extent, which fits.
void PieceCursor::take(std::uint64_t bytes) {
  position_ += bytes;
  here_.offset += static_cast<std::int64_t>(bytes);
  here_.bytes -= bytes;
  if (here_.bytes == 0) enter_next_piece();
}

// Adding a stride and taking back a level's whole reach both lead to blocks of the layout, so neither overflows.
void PieceCursor::enter_next_piece() {
  if (remaining() == 0) {
    here_ = {};
    return;
  }
  if (!pieces_.empty()) {
    do {
      note_piece();
      here_ = pieces_[++piece_index_];
    } while (here_.bytes == 0);
    return;
  }
  std::int64_t start = here_.offset - static_cast<std::int64_t>(blocks_.bytes);
  for (std::size_t level = 0; level < blocks_.levels; ++level) {
    if (index_[level] + 1 < blocks_.counts[level]) {
      ++index_[level];
      start += blocks_.strides[level];
      break;
    }
    start -= static_cast<std::int64_t>(index_[level]) * blocks_.strides[level];
    index_[level] = 0;
  }
  here_ = {start, blocks_.bytes};
}

void PieceCursor::skip(std::uint64_t bytes) {
  bytes = std::min(bytes, remaining());
  if (bytes < here_.bytes) {
    take(bytes);
  } else if (!pieces_.empty()) {
    skip_pieces(bytes);
  } else if (bytes != 0) {
    position_ += bytes;
    locate_block();
  }
}

void PieceCursor::skip_pieces(std::uint64_t bytes) {
  while (bytes != 0) {
    const std::uint64_t step = std::min(bytes, here_.bytes);
    take(step);
    bytes -= step;
  }
}

// Finds the block that holds position_. Each sum of the inner levels' offsets lies within the extent.
void PieceCursor::locate_block() {
  if (remaining() == 0) {
    here_ = {};
    return;
  }
  std::uint64_t block = position_ / blocks_.bytes;
  const std::uint64_t inside = position_ % blocks_.bytes;
  std::int64_t start = 0;
  for (std::size_t level = 0; level < blocks_.levels; ++level) {
    index_[level] = block % blocks_.counts[level];
    block /= blocks_.counts[level];
    start += static_cast<std::int64_t>(index_[level]) * blocks_.strides[level];
  }
  here_ = {start + static_cast<std::int64_t>(inside), blocks_.bytes - inside};
}

PiecePair PairCursor::next(std::uint64_t most_bytes) {
  if (target_piece_.bytes == 0) target_piece_ = target_.next();
  if (origin_piece_.bytes == 0) origin_piece_ = origin_.next();
  const std::uint64_t limit = std::max(most_bytes - most_bytes % element_bytes_, element_bytes_);
  const std::uint64_t bytes = std::min({target_piece_.bytes, origin_piece_.bytes, limit});
  const PiecePair pair{target_piece_.offset, origin_piece_.offset, bytes};
  target_piece_ = {target_piece_.offset + static_cast<std::int64_t>(bytes), target_piece_.bytes - bytes};
  origin_piece_ = {origin_piece_.offset + static_cast<std::int64_t>(bytes), origin_piece_.bytes - bytes};
  return pair;
}

// Blocks against one run: rows are as long as the blocks.
RowWalk::RowWalk(const LayoutView& target, const LayoutView& origin, std::uint64_t total_bytes)
    : target_(target), origin_(origin) {
  if (total_bytes == 0) return;
  const std::uint64_t row_bytes = std::min(target_.blocks.bytes, origin_.blocks.bytes);
  const auto fits = [row_bytes](const Blocks& blocks) { return blocks.levels == 0 || blocks.bytes == row_bytes; };
  if (!fits(target_.blocks) || !fits(origin_.blocks)) return;
  target_.cut(row_bytes);
  origin_.cut(row_bytes);
  rows_left_ = total_bytes / row_bytes;
  possible_ = true;
}

// A run as rows, one behind the other. It is a whole number of rows, as the other side is.
void RowWalk::Side::cut(std::uint64_t row_bytes) {
  index.fill(0);
  if (blocks.levels != 0) return;
  blocks.levels = 1;
  blocks.counts[0] = blocks.bytes / row_bytes;
  blocks.strides[0] = static_cast<std::int64_t>(row_bytes);
  blocks.bytes = row_bytes;
}

RowPairs RowWalk::next() {
  if (rows_left_ == 0) return {};
  const std::uint64_t rows = std::min(target_.left(), origin_.left());
  const RowPairs pairs{
      target_.offset, origin_.offset, target_.blocks.strides[0], origin_.blocks.strides[0], target_.blocks.bytes, rows};
  target_.advance(rows);
  origin_.advance(rows);
  rows_left_ -= rows;
  return pairs;
}

// Past rows of the innermost level. All sums lead to blocks of the layout or back from them, so none overflows.
void RowWalk::Side::advance(std::uint64_t rows) {
  index[0] += rows;
  if (index[0] < blocks.counts[0]) {
    offset += static_cast<std::int64_t>(rows) * blocks.strides[0];
    return;
  }
  offset -= static_cast<std::int64_t>(index[0] - rows) * blocks.strides[0];
  index[0] = 0;
  for (std::size_t level = 1; level < blocks.levels; ++level) {
    if (++index[level] < blocks.counts[level]) {
      offset += blocks.strides[level];
      return;
    }
    offset -= static_cast<std::int64_t>(blocks.counts[level] - 1) * blocks.strides[level];
    index[level] = 0;
  }
}

Layout::Layout(const LayoutView& view)
    : kind_(view.kind()),
      levels_(view.counts().size()),
      bytes_(view.block_bytes()),
      pieces_(view.pieces().begin(), view.pieces().end()) {
  std::ranges::copy(view.counts(), counts_.begin());
  std::ranges::copy(view.strides(), strides_.begin());
}

LayoutView Layout::view() const {
  switch (kind_) {
    case LayoutKind::contiguous:
      break;
    case LayoutKind::strided:
      return LayoutView::strided(bytes_, std::span(counts_).first(levels_), std::span(strides_).first(levels_));
    case LayoutKind::indexed:
      return LayoutView::indexed(pieces_);
  }
  return LayoutView::contiguous(bytes_);
}

}  // namespace farsum::ops
