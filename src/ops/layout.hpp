// Byte layouts: which bytes, counted from a base, an operation reads or writes. Used alike for origin buffers and for
// windows. A view borrows the caller's arrays; nothing here touches the memory that it describes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace farsum::ops {

inline constexpr std::size_t most_levels = 8;
inline constexpr std::uint64_t most_bytes_of_a_layout = std::numeric_limits<std::int64_t>::max();
inline constexpr std::uint64_t no_piece_limit = std::numeric_limits<std::uint64_t>::max();

enum class LayoutKind : std::uint8_t { contiguous = 0, strided = 1, indexed = 2 };

// A run of bytes; the offset counts from the layout's base and may be negative.
struct Piece {
  std::int64_t offset = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const Piece&, const Piece&) = default;
};

// The lowest byte touched and one past the highest, as offsets from the base. Both zero when nothing is touched.
struct Extent {
  std::int64_t low = 0;
  std::int64_t high = 0;

  friend bool operator==(const Extent&, const Extent&) = default;
};

enum class LayoutFault : std::uint8_t {
  none,
  too_many_levels,     // More than most_levels.
  uneven_levels,       // As many counts as strides are needed.
  overflow,            // The total or an offset does not fit 63 bits.
  not_whole_elements,  // A piece is no multiple of the element size.
};

// Cheap to make and to copy. Valid while the arrays it was made from are.
class LayoutView {
 public:
  LayoutView() = default;

  [[nodiscard]] static LayoutView contiguous(std::uint64_t bytes) {
    LayoutView view;
    view.bytes_ = bytes;
    return view;
  }

  // A block repeated counts[0] times at distances of strides[0] bytes, all that counts[1] times at strides[1], and so
  // on: level 0 is the innermost. Strides may be negative or zero.
  [[nodiscard]] static LayoutView strided(std::uint64_t block_bytes, std::span<const std::uint64_t> counts,
                                          std::span<const std::int64_t> strides) {
    LayoutView view;
    view.kind_ = LayoutKind::strided;
    view.bytes_ = block_bytes;
    view.counts_ = counts;
    view.strides_ = strides;
    return view;
  }

  [[nodiscard]] static LayoutView indexed(std::span<const Piece> pieces) {
    LayoutView view;
    view.kind_ = LayoutKind::indexed;
    view.pieces_ = pieces;
    return view;
  }

  [[nodiscard]] LayoutKind kind() const { return kind_; }
  // Of a contiguous layout the whole, of a strided one the innermost block.
  [[nodiscard]] std::uint64_t block_bytes() const { return bytes_; }
  [[nodiscard]] std::span<const std::uint64_t> counts() const { return counts_; }
  [[nodiscard]] std::span<const std::int64_t> strides() const { return strides_; }
  [[nodiscard]] std::span<const Piece> pieces() const { return pieces_; }

  // Whether the other calls, and a cursor, may be used on it, and every piece holds whole elements. Costs a pass over
  // the pieces of an indexed layout.
  [[nodiscard]] LayoutFault check(std::uint64_t element_bytes) const { return measured(element_bytes).fault; }

  // The same with what that pass finds besides.
  struct Measured {
    LayoutFault fault = LayoutFault::none;
    std::uint64_t total_bytes = 0;  // those named twice counted twice
    Extent extent;
  };
  [[nodiscard]] Measured measured(std::uint64_t element_bytes) const;

  // Null on overflow or bad levels.
  [[nodiscard]] std::optional<std::uint64_t> total_bytes() const;

 private:
  LayoutKind kind_ = LayoutKind::contiguous;
  std::uint64_t bytes_ = 0;
  std::span<const std::uint64_t> counts_;
  std::span<const std::int64_t> strides_;
  std::span<const Piece> pieces_;
};

// A layout that is not indexed as blocks over nested strides: levels of one block are left out, and those that only go
// on with what is inside them are joined to it. The layout has passed LayoutView::check and names bytes. Made where it
// stays: a copy right behind would wait for every word of it to be in the cache.
struct Blocks {
  explicit Blocks(const LayoutView& layout);

  std::uint64_t bytes = 0;  // of a block
  std::size_t levels = 0;
  std::array<std::uint64_t, most_levels> counts;
  std::array<std::int64_t, most_levels> strides;
};

// Walks a layout piece by piece, in the layout's order, and never back: however an operation is cut, all its parts
// together cost one walk. A cursor may be copied to remember a position; it borrows what the view borrows. The layout
// has passed LayoutView::check and names `total_bytes`, which are known by then: finding them would be a walk of its
// own.
class PieceCursor {
 public:
  PieceCursor(const LayoutView& layout, std::uint64_t total_bytes);

  // The next bytes as one run: pieces that touch are given as one, and no more than most_bytes of them. An empty piece
  // ends the walk.
  [[nodiscard]] Piece next(std::uint64_t most_bytes = no_piece_limit);

  // Passes over bytes. Costs one division per level, or a step per piece of an indexed layout.
  void skip(std::uint64_t bytes);

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t remaining() const { return total_bytes_ - position_; }

 private:
  void take(std::uint64_t bytes);
  void enter_next_piece();
  void locate_block();
  void skip_pieces(std::uint64_t bytes);

  std::uint64_t position_ = 0;
  std::uint64_t total_bytes_ = 0;
  Piece here_;  // What is left of the piece at position_.

  // Strided.
  Blocks blocks_;
  std::array<std::uint64_t, most_levels> index_;

  // Indexed.
  std::span<const Piece> pieces_;
  std::size_t piece_index_ = 0;
};

// A run of bytes in each of two layouts.
struct PiecePair {
  std::int64_t target_offset = 0;
  std::int64_t origin_offset = 0;
  std::uint64_t bytes = 0;
};

// Walks two layouts of equal total in step. Every cut falls between elements: pieces hold whole elements on both sides
// (checked by LayoutView::check), and the limit is rounded down to whole elements, but never below one.
class PairCursor {
 public:
  PairCursor(const LayoutView& target, const LayoutView& origin, std::uint64_t total_bytes, std::uint64_t element_bytes)
      : target_(target, total_bytes), origin_(origin, total_bytes), element_bytes_(element_bytes) {}

  // A pair of no bytes ends the walk.
  [[nodiscard]] PiecePair next(std::uint64_t most_bytes = no_piece_limit);

 private:
  PieceCursor target_;
  PieceCursor origin_;
  std::uint64_t element_bytes_;
  Piece target_piece_;
  Piece origin_piece_;
};

// Calls fn(target_offset, origin_offset, bytes) for each pair of two layouts of `total_bytes` each. If fn returns bool,
// false stops the walk.
template <class Fn>
void for_each_pair(const LayoutView& target, const LayoutView& origin, std::uint64_t total_bytes,
                   std::uint64_t element_bytes, std::uint64_t most_piece_bytes, Fn&& fn) {
  if (target.kind() == LayoutKind::contiguous && origin.kind() == LayoutKind::contiguous) {
    if (total_bytes != 0 && total_bytes <= most_piece_bytes) {
      (void)fn(std::int64_t{0}, std::int64_t{0}, total_bytes);
      return;
    }
  }
  PairCursor pairs(target, origin, total_bytes, element_bytes);
  for (PiecePair pair = pairs.next(most_piece_bytes); pair.bytes != 0; pair = pairs.next(most_piece_bytes)) {
    if constexpr (std::is_same_v<decltype(fn(pair.target_offset, pair.origin_offset, pair.bytes)), bool>) {
      if (!fn(pair.target_offset, pair.origin_offset, pair.bytes)) return;
    } else {
      fn(pair.target_offset, pair.origin_offset, pair.bytes);
    }
  }
}

// What lies far apart in memory is on its way for as long as some twenty pieces take to move.
inline constexpr std::size_t pieces_ahead = 24;

// Gives use(item) all that next() gives until one of no bytes, or until use returns false; each has been shown to
// ask(item) so many items before, so that whoever asks for its cache lines there waits for none of them here.
template <class Next, class Ask, class Use>
void walk_ahead(Next&& next, Ask&& ask, Use&& use) {
  using Item = decltype(next());
  static_assert(std::is_trivially_copyable_v<Item>);
  union Slot {
    Slot() {}  // left as it is: most walks are short
    Item item;
  };
  std::array<Slot, pieces_ahead> coming;
  std::size_t first = 0, count = 0;
  const auto take_first = [&] {
    const Item item = coming[first].item;
    first = first + 1 == pieces_ahead ? 0 : first + 1;
    return item;
  };
  for (Item item = next(); item.bytes != 0; item = next()) {
    ask(item);
    if (count != pieces_ahead) {
      coming[count++].item = item;
      continue;
    }
    Slot& freed = coming[first];
    const Item due = take_first();
    freed.item = item;
    if (!use(due)) return;
  }
  for (; count != 0; --count) {
    if (!use(take_first())) return;
  }
}

// Rows of one length at equal distances in each of two layouts.
struct RowPairs {
  std::int64_t target_offset = 0;
  std::int64_t origin_offset = 0;
  std::int64_t target_stride = 0;
  std::int64_t origin_stride = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t rows = 0;
};

// Two layouts as rows that fall together in both: blocks of one length, or blocks against one run. Blocks against
// blocks of another length, and lists, are not.
class RowWalk {
 public:
  // Both have passed LayoutView::check and name `total_bytes`.
  RowWalk(const LayoutView& target, const LayoutView& origin, std::uint64_t total_bytes);

  [[nodiscard]] bool is_possible() const { return possible_; }
  // As many rows as keep their distance on both sides; none at the end.
  [[nodiscard]] RowPairs next();

 private:
  struct Side {
    explicit Side(const LayoutView& layout) : blocks(layout) {}
    void cut(std::uint64_t row_bytes);
    void advance(std::uint64_t rows);
    [[nodiscard]] std::uint64_t left() const { return blocks.counts[0] - index[0]; }

    Blocks blocks;  // with one level at least
    std::array<std::uint64_t, most_levels> index;
    std::int64_t offset = 0;
  };

  Side target_, origin_;
  std::uint64_t rows_left_ = 0;
  bool possible_ = false;
};

// Calls fn(RowPairs) for all of two layouts of `total_bytes` each, in their order, until it returns false. What falls
// into no rows goes by pairs, as rows of one, each shown to ask(PiecePair) some time before.
template <class Ask, class Fn>
void for_each_rows(const LayoutView& target, const LayoutView& origin, std::uint64_t total_bytes,
                   std::uint64_t element_bytes, Ask&& ask, Fn&& fn) {
  if (target.kind() != LayoutKind::indexed && origin.kind() != LayoutKind::indexed) {
    RowWalk walk(target, origin, total_bytes);
    if (walk.is_possible()) {
      for (RowPairs rows = walk.next(); rows.rows != 0; rows = walk.next()) {
        if (!fn(rows)) return;
      }
      return;
    }
  }
  PairCursor pairs(target, origin, total_bytes, element_bytes);
  walk_ahead([&] { return pairs.next(); }, ask,
             [&](const PiecePair& pair) {
               return fn(RowPairs{pair.target_offset, pair.origin_offset, 0, 0, pair.bytes, 1});
             });
}

// A layout that owns its arrays: what a message carried.
class Layout {
 public:
  Layout() = default;
  explicit Layout(const LayoutView& view);  // Copies. The view has passed LayoutView::check.

  // Borrows from this layout.
  [[nodiscard]] LayoutView view() const;

 private:
  friend class LayoutReader;

  LayoutKind kind_ = LayoutKind::contiguous;
  std::size_t levels_ = 0;
  std::uint64_t bytes_ = 0;
  std::array<std::uint64_t, most_levels> counts_{};
  std::array<std::int64_t, most_levels> strides_{};
  std::vector<Piece> pieces_;
};

// In a message: a header of 16 bytes (kind, levels, pieces, block bytes), then per level a count and a stride, or per
// piece an offset and a length, all of 8 bytes, little-endian.
inline constexpr std::uint64_t encoded_header_bytes = 16, encoded_piece_bytes = 16;
[[nodiscard]] std::uint64_t encoded_bytes(const LayoutView& layout);

// Writes the layout to the front of `out` and returns the bytes used. Null, with nothing written, if it does not fit or
// is not valid.
[[nodiscard]] std::optional<std::size_t> encode(const LayoutView& layout, std::span<std::byte> out);

struct DecodedLayout {
  Layout layout;
  std::size_t bytes_used = 0;
  std::uint64_t total_bytes = 0;
  Extent extent;
};

// Reads a layout from the front of `in`. Null if it is cut short, malformed, or overflows, or has pieces that are no
// whole elements; never reads past `in`, and allocates no more than `in` is long. The layout has passed
// LayoutView::check(element_bytes); the caller checks its extent.
[[nodiscard]] std::optional<DecodedLayout> decode(std::span<const std::byte> in, std::uint64_t element_bytes);

}  // namespace farsum::ops
