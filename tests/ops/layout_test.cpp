// Layouts against the naive list of their bytes, and the wire form against damage.
#include "ops/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace farsum::ops {
namespace {

using Offsets = std::vector<std::int64_t>;

// Every byte in order, by recursion over the levels.
void expand_level(const LayoutView& layout, std::size_t levels, std::int64_t base, Offsets& offsets) {
  if (levels == 0) {
    for (std::uint64_t i = 0; i < layout.block_bytes(); ++i) offsets.push_back(base + static_cast<std::int64_t>(i));
    return;
  }
  for (std::uint64_t i = 0; i < layout.counts()[levels - 1]; ++i) {
    expand_level(layout, levels - 1, base + static_cast<std::int64_t>(i) * layout.strides()[levels - 1], offsets);
  }
}

Offsets expand(const LayoutView& layout) {
  Offsets offsets;
  if (layout.kind() != LayoutKind::indexed) {
    expand_level(layout, layout.counts().size(), 0, offsets);
    return offsets;
  }
  for (const Piece& piece : layout.pieces()) {
    for (std::uint64_t i = 0; i < piece.bytes; ++i) offsets.push_back(piece.offset + static_cast<std::int64_t>(i));
  }
  return offsets;
}

PieceCursor cursor_over(const LayoutView& layout) { return {layout, layout.total_bytes().value()}; }

Offsets walk(PieceCursor cursor, std::uint64_t most_bytes = no_piece_limit) {
  Offsets offsets;
  for (Piece piece = cursor.next(most_bytes); piece.bytes != 0; piece = cursor.next(most_bytes)) {
    EXPECT_LE(piece.bytes, most_bytes);
    for (std::uint64_t i = 0; i < piece.bytes; ++i) offsets.push_back(piece.offset + static_cast<std::int64_t>(i));
  }
  EXPECT_EQ(cursor.remaining(), 0u);
  return offsets;
}

std::size_t count_runs(const Offsets& offsets) {
  std::size_t runs = offsets.empty() ? 0 : 1;
  for (std::size_t i = 1; i < offsets.size(); ++i) runs += offsets[i] != offsets[i - 1] + 1;
  return runs;
}

void expect_walk_matches(const LayoutView& layout) {
  const Offsets expected = expand(layout);
  ASSERT_EQ(layout.total_bytes(), expected.size());
  Extent extent;
  if (!expected.empty()) {
    extent = {*std::ranges::min_element(expected), *std::ranges::max_element(expected) + 1};
  }
  ASSERT_EQ(layout.measured(1).extent, extent);
  ASSERT_EQ(walk(cursor_over(layout)), expected);
  ASSERT_EQ(walk(cursor_over(layout), 3), expected);

  std::size_t pieces = 0;
  for (PieceCursor cursor = cursor_over(layout); cursor.next().bytes != 0;) ++pieces;
  ASSERT_EQ(pieces, count_runs(expected)) << "touching pieces must be given as one";

  PieceCursor moving = cursor_over(layout);
  for (const std::size_t position : {std::size_t{0}, expected.size() / 3, expected.size() / 3 + 1, expected.size() / 2,
                                     expected.size(), expected.size() + 1}) {
    moving.skip(position - std::min<std::size_t>(position, moving.position()));
    const std::size_t reached = std::min(position, expected.size());
    ASSERT_GE(moving.position(), reached);
    ASSERT_EQ(walk(moving), Offsets(expected.begin() + static_cast<std::ptrdiff_t>(moving.position()), expected.end()));
  }
}

TEST(StridedLayout, is_walked_like_its_expansion_for_all_small_shapes) {
  const std::int64_t some_strides[] = {-5, -2, 0, 1, 2, 4, 6};
  for (std::uint64_t block = 0; block <= 2; ++block) {
    for (std::uint64_t count0 = 0; count0 <= 3; ++count0) {
      for (std::uint64_t count1 = 0; count1 <= 3; ++count1) {
        for (const std::int64_t stride0 : some_strides) {
          for (const std::int64_t stride1 : some_strides) {
            const std::uint64_t counts[] = {count0, count1};
            const std::int64_t strides[] = {stride0, stride1};
            expect_walk_matches(LayoutView::strided(block, counts, strides));
            if (HasFatalFailure())
              FAIL() << block << " " << count0 << "x" << stride0 << " " << count1 << "x" << stride1;
          }
        }
      }
    }
  }
}

TEST(StridedLayout, is_walked_like_its_expansion_with_seven_and_eight_levels) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::uint64_t counts[most_levels];
    std::int64_t strides[most_levels];
    for (auto& count : counts) count = 1 + random() % 2;
    for (auto& stride : strides) stride = static_cast<std::int64_t>(random() % 41) - 20;
    for (const std::size_t levels : {std::size_t{7}, std::size_t{8}}) {
      expect_walk_matches(
          LayoutView::strided(1 + random() % 4, std::span(counts).first(levels), std::span(strides).first(levels)));
      ASSERT_FALSE(HasFatalFailure()) << "round " << round;
    }
  }
}

TEST(IndexedLayout, is_walked_like_its_expansion) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Piece> pieces(random() % 7);
    std::int64_t end = 0;
    for (auto& piece : pieces) {
      piece = {random() % 2 ? end : static_cast<std::int64_t>(random() % 60) - 30, random() % 4};
      end = piece.offset + static_cast<std::int64_t>(piece.bytes);
    }
    expect_walk_matches(LayoutView::indexed(pieces));
    ASSERT_FALSE(HasFatalFailure()) << "round " << round;
  }
}

TEST(ContiguousLayout, is_one_piece) {
  expect_walk_matches(LayoutView::contiguous(0));
  expect_walk_matches(LayoutView::contiguous(1));
  expect_walk_matches(LayoutView::contiguous(100));
}

TEST(PieceCursor, continues_where_it_was_copied) {
  const std::uint64_t counts[] = {3, 4};
  const std::int64_t strides[] = {10, -40};
  const LayoutView layout = LayoutView::strided(6, counts, strides);
  const Offsets expected = expand(layout);
  PieceCursor cursor = cursor_over(layout);
  (void)cursor.next(4);
  (void)cursor.next(5);
  const PieceCursor kept = cursor;
  (void)cursor.next();
  const auto position = static_cast<std::ptrdiff_t>(kept.position());
  EXPECT_EQ(walk(kept), Offsets(expected.begin() + position, expected.end()));
}

TEST(LayoutCheck, reports_each_fault) {
  constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
  constexpr auto farthest = std::numeric_limits<std::int64_t>::max();
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
  const std::uint64_t nine_counts[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  const std::int64_t nine_strides[9] = {};
  const std::uint64_t two_huge[] = {std::uint64_t{1} << 32, std::uint64_t{1} << 32};
  const std::uint64_t three[] = {3};
  const std::int64_t far[] = {farthest}, back[] = {lowest}, none[] = {0, 0};
  const Piece past_the_end[] = {{farthest, 1}};
  const Piece too_many[] = {{0, static_cast<std::uint64_t>(farthest)}, {0, 1}};

  EXPECT_EQ(LayoutView::contiguous(huge).check(1), LayoutFault::overflow);
  EXPECT_EQ(LayoutView::contiguous(12).check(8), LayoutFault::not_whole_elements);
  EXPECT_EQ(LayoutView::strided(8, nine_counts, nine_strides).check(8), LayoutFault::too_many_levels);
  EXPECT_EQ(LayoutView::strided(8, three, none).check(8), LayoutFault::uneven_levels);
  EXPECT_EQ(LayoutView::strided(8, two_huge, none).check(8), LayoutFault::overflow);
  EXPECT_EQ(LayoutView::strided(8, three, far).check(8), LayoutFault::overflow);
  EXPECT_EQ(LayoutView::strided(8, three, back).check(8), LayoutFault::overflow);
  EXPECT_EQ(LayoutView::strided(12, three, std::span(none).first(1)).check(8), LayoutFault::not_whole_elements);
  EXPECT_EQ(LayoutView::indexed(past_the_end).check(1), LayoutFault::overflow);
  EXPECT_EQ(LayoutView::indexed(too_many).check(1), LayoutFault::overflow);
  EXPECT_EQ(LayoutView::indexed(std::span(past_the_end).first(0)).check(1), LayoutFault::none);
  EXPECT_EQ(LayoutView::strided(8, three, far).total_bytes(), std::nullopt);
  EXPECT_EQ(LayoutView::strided(8, three, far).measured(1).fault, LayoutFault::overflow);
}

// A random layout of `elements` elements of 4 bytes.
Layout random_layout(std::uint64_t elements, std::mt19937_64& random) {
  if (elements % 6 == 0 && random() % 2 == 0) {
    const std::uint64_t counts[] = {3, 2};
    const std::int64_t strides[] = {static_cast<std::int64_t>(random() % 100) * 4 - 200,
                                    static_cast<std::int64_t>(random() % 100) * 4};
    return Layout(LayoutView::strided(elements / 6 * 4, counts, strides));
  }
  std::vector<Piece> pieces;
  while (elements != 0) {
    const std::uint64_t some = std::min(elements, random() % 5);
    pieces.push_back({static_cast<std::int64_t>(random() % 1000) * 4 - 2000, some * 4});
    elements -= some;
  }
  return Layout(LayoutView::indexed(pieces));
}

TEST(ForEachPair, walks_two_layouts_in_step_and_cuts_between_elements) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t elements = random() % 40;
    const Layout target = random_layout(elements, random), origin = random_layout(elements, random);
    const std::uint64_t limit = 1 + random() % 30;
    Offsets target_offsets, origin_offsets;
    for_each_pair(target.view(), origin.view(), elements * 4, 4, limit,
                  [&](std::int64_t at, std::int64_t from, std::uint64_t bytes) {
                    EXPECT_TRUE(bytes != 0 && bytes % 4 == 0 && bytes <= std::max<std::uint64_t>(limit, 4));
                    for (std::uint64_t i = 0; i < bytes; ++i) {
                      target_offsets.push_back(at + static_cast<std::int64_t>(i));
                      origin_offsets.push_back(from + static_cast<std::int64_t>(i));
                    }
                  });
    ASSERT_EQ(target_offsets, expand(target.view())) << "round " << round;
    ASSERT_EQ(origin_offsets, expand(origin.view())) << "round " << round;
  }
}

TEST(ForEachPair, gives_two_contiguous_layouts_as_one_pair_and_stops_when_told) {
  int calls = 0;
  const LayoutView layout = LayoutView::contiguous(64);
  for_each_pair(layout, layout, 64, 8, no_piece_limit, [&](std::int64_t, std::int64_t, std::uint64_t bytes) {
    ++calls;
    EXPECT_EQ(bytes, 64u);
  });
  EXPECT_EQ(calls, 1);
  for_each_pair(layout, layout, 64, 8, 8, [&](std::int64_t, std::int64_t, std::uint64_t) { return ++calls < 4; });
  EXPECT_EQ(calls, 4);
  for_each_pair(LayoutView(), LayoutView(), 0, 8, 8, [&](std::int64_t, std::int64_t, std::uint64_t) { ++calls; });
  EXPECT_EQ(calls, 4);
}

// Blocks over strides or one run, so that most pairs fall into rows.
Layout random_rows(std::uint64_t block_elements, std::mt19937_64& random) {
  if (random() % 4 == 0) return Layout(LayoutView::contiguous(block_elements * 24 * 4));
  std::vector<std::uint64_t> counts;
  std::vector<std::int64_t> strides;
  for (std::uint64_t left = 24; left != 1;) {
    const std::uint64_t divisors[] = {2, 3, 4};
    const std::uint64_t count = divisors[random() % 3];
    if (left % count != 0) continue;
    counts.push_back(count);
    strides.push_back(random() % 3 == 0 ? static_cast<std::int64_t>(block_elements * 4)
                                        : static_cast<std::int64_t>(random() % 200) * 4 - 400);
    left /= count;
  }
  if (random() % 5 == 0) {
    block_elements *= counts.back();
    counts.pop_back(), strides.pop_back();
  }
  return Layout(LayoutView::strided(block_elements * 4, counts, strides));
}

void nobody(const PiecePair&) {}

TEST(ForEachRows, walks_two_layouts_as_pairs_of_pieces_do) {
  std::mt19937_64 random(29);
  for (int round = 0; round < 3000; ++round) {
    const std::uint64_t elements = random() % 4;
    const bool lists = round % 4 == 0;
    const Layout target = lists ? random_layout(elements * 24, random) : random_rows(elements, random);
    const Layout origin = lists ? random_layout(elements * 24, random) : random_rows(elements, random);
    Offsets target_offsets, origin_offsets;
    for_each_rows(target.view(), origin.view(), *target.view().total_bytes(), 4, nobody, [&](const RowPairs& rows) {
      for (std::uint64_t row = 0; row < rows.rows; ++row) {
        const auto step = static_cast<std::int64_t>(row);
        for (std::uint64_t i = 0; i < rows.row_bytes; ++i) {
          const auto byte = static_cast<std::int64_t>(i);
          target_offsets.push_back(rows.target_offset + step * rows.target_stride + byte);
          origin_offsets.push_back(rows.origin_offset + step * rows.origin_stride + byte);
        }
      }
      return true;
    });
    ASSERT_EQ(target_offsets, expand(target.view())) << "round " << round;
    ASSERT_EQ(origin_offsets, expand(origin.view())) << "round " << round;
  }
}

TEST(ForEachRows, gives_a_patch_as_one_and_stops_when_told) {
  const std::uint64_t counts[] = {64};
  const std::int64_t wide[] = {2048}, narrow[] = {1024};
  const LayoutView target = LayoutView::strided(512, counts, wide), origin = LayoutView::strided(512, counts, narrow);
  int calls = 0;
  for_each_rows(target, origin, 64 * 512, 8, nobody, [&](const RowPairs& rows) {
    EXPECT_EQ(rows.rows, 64u);
    EXPECT_EQ(rows.row_bytes, 512u);
    EXPECT_EQ(rows.target_stride, 2048);
    EXPECT_EQ(rows.origin_stride, 1024);
    return ++calls < 1;
  });
  EXPECT_EQ(calls, 1);
  const std::uint64_t more[] = {128};
  const LayoutView half = LayoutView::strided(256, more, narrow);
  for_each_rows(target, half, 64 * 512, 8, nobody, [&](const RowPairs&) { return ++calls < 4; });
  EXPECT_EQ(calls, 4);
}

struct Numbered {
  std::uint64_t bytes = 0;  // its number, from 1
};

// Which items are used, and how many were asked for when each was.
std::vector<std::pair<std::uint64_t, std::uint64_t>> walk_numbers(std::uint64_t count, std::uint64_t stop_at) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> used;
  std::uint64_t made = 0, asked_for = 0;
  walk_ahead([&] { return Numbered{made == count ? 0 : ++made}; },
             [&](const Numbered& item) { EXPECT_EQ(item.bytes, ++asked_for); },
             [&](const Numbered& item) {
               used.emplace_back(item.bytes, asked_for);
               return item.bytes != stop_at;
             });
  return used;
}

TEST(WalkAhead, asks_for_each_item_some_items_before_its_turn) {
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{pieces_ahead - 1},
                                    std::uint64_t{pieces_ahead}, std::uint64_t{pieces_ahead + 1}, std::uint64_t{100}}) {
    const auto used = walk_numbers(count, 0);
    ASSERT_EQ(used.size(), count);
    for (std::uint64_t number = 1; number <= count; ++number) {
      EXPECT_EQ(used[number - 1].first, number);
      EXPECT_EQ(used[number - 1].second, std::min<std::uint64_t>(number + pieces_ahead, count)) << number;
    }
  }
}

TEST(WalkAhead, stops_when_told) {
  EXPECT_EQ(walk_numbers(100, 7).size(), 7u);
  EXPECT_EQ(walk_numbers(5, 4).size(), 4u);
}

void expect_same_layout(const LayoutView& a, const LayoutView& b) {
  EXPECT_EQ(a.kind(), b.kind());
  EXPECT_EQ(a.block_bytes(), b.block_bytes());
  EXPECT_TRUE(std::ranges::equal(a.counts(), b.counts()));
  EXPECT_TRUE(std::ranges::equal(a.strides(), b.strides()));
  EXPECT_TRUE(std::ranges::equal(a.pieces(), b.pieces()));
}

std::vector<std::byte> encoded(const LayoutView& layout) {
  std::vector<std::byte> message(encoded_bytes(layout));
  EXPECT_EQ(encode(layout, message), message.size());
  return message;
}

std::vector<Layout> some_layouts() {
  std::mt19937_64 random(19);
  std::vector<Layout> layouts;
  layouts.emplace_back(LayoutView::contiguous(4096));
  layouts.emplace_back(LayoutView::contiguous(0));
  layouts.emplace_back(LayoutView::strided(8, {}, {}));
  for (int i = 0; i < 20; ++i) layouts.push_back(random_layout(random() % 40, random));
  return layouts;
}

TEST(EncodedLayout, comes_back_equal_and_leaves_what_follows) {
  for (const Layout& layout : some_layouts()) {
    std::vector<std::byte> message = encoded(layout.view());
    const std::size_t bytes = message.size();
    message.resize(bytes + 5, std::byte{0xff});
    const auto back = decode(message, 1);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->bytes_used, bytes);
    EXPECT_EQ(back->total_bytes, layout.view().total_bytes());
    EXPECT_EQ(back->extent, layout.view().measured(1).extent);
    expect_same_layout(back->layout.view(), layout.view());
  }
}

TEST(EncodedLayout, is_refused_when_cut_short_anywhere) {
  for (const Layout& layout : some_layouts()) {
    const std::vector<std::byte> message = encoded(layout.view());
    for (std::size_t bytes = 0; bytes < message.size(); ++bytes) {
      // A heap copy of exactly that size lets the address sanitizer see a read past its end.
      const std::vector<std::byte> cut(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(bytes));
      EXPECT_FALSE(decode(cut, 1).has_value());
    }
  }
}

TEST(EncodedLayout, is_refused_where_a_piece_is_no_whole_number_of_elements) {
  const Piece pieces[] = {{0, 8}, {16, 12}};
  const std::vector<std::byte> message = encoded(LayoutView::indexed(pieces));
  EXPECT_TRUE(decode(message, 4));
  EXPECT_FALSE(decode(message, 8));
}

TEST(EncodedLayout, is_not_written_where_it_does_not_fit) {
  const Piece pieces[] = {{0, 4}, {8, 4}};
  std::vector<std::byte> room(encoded_bytes(LayoutView::indexed(pieces)) - 1, std::byte{7});
  EXPECT_EQ(encode(LayoutView::indexed(pieces), room), std::nullopt);
  EXPECT_TRUE(std::ranges::all_of(room, [](std::byte value) { return value == std::byte{7}; }));
}

TEST(EncodedLayout, survives_random_bytes_and_random_damage) {
  const std::uint64_t seed = 23;
  std::mt19937_64 random(seed);
  const std::vector<Layout> layouts = some_layouts();
  std::size_t accepted = 0;
  for (int round = 0; round < 200000; ++round) {
    std::vector<std::byte> message;
    if (round % 2 == 0) {
      message.resize(random() % 80);
      for (auto& value : message) value = static_cast<std::byte>(random() % 3 == 0 ? random() : random() % 3);
    } else {
      message = encoded(layouts[random() % layouts.size()].view());
      for (std::uint64_t flips = 1 + random() % 3; flips != 0; --flips) {
        message[random() % message.size()] = static_cast<std::byte>(random());
      }
    }
    const auto layout = decode(message, 1);
    if (!layout) continue;
    ++accepted;
    ASSERT_LE(layout->bytes_used, message.size()) << "seed " << seed << ", round " << round;
    const LayoutView view = layout->layout.view();
    ASSERT_EQ(view.total_bytes(), layout->total_bytes) << "seed " << seed << ", round " << round;
    const Extent extent = layout->extent;
    PieceCursor cursor(view, layout->total_bytes);
    for (int steps = 0; steps < 50; ++steps) {
      const Piece piece = cursor.next(1000);
      if (piece.bytes == 0) break;
      ASSERT_TRUE(piece.offset >= extent.low && piece.offset + static_cast<std::int64_t>(piece.bytes) <= extent.high)
          << "seed " << seed << ", round " << round;
    }
    std::vector<std::byte> again(layout->bytes_used);
    ASSERT_EQ(encode(view, again), again.size());
    ASSERT_TRUE(std::equal(again.begin(), again.end(), message.begin())) << "seed " << seed << ", round " << round;
  }
  EXPECT_GT(accepted, 100u) << "the damage was too heavy to test anything";
}

}  // namespace
}  // namespace farsum::ops
