#include "core/packed_sides.hpp"

namespace farsum {
namespace {

// Calls move(piece) for each piece of a layout. Only lists lie apart in a way that the processor does not foresee.
template <class Move>
void for_each_piece(const ops::LayoutView& layout, std::uint64_t total_bytes, const std::byte* base, Move&& move) {
  ops::PieceCursor cursor(layout, total_bytes);
  if (layout.kind() != ops::LayoutKind::indexed) {
    for (ops::Piece piece = cursor.next(); piece.bytes != 0; piece = cursor.next()) move(piece);
    return;
  }
  ops::walk_ahead([&] { return cursor.next(); },
                  [&](const ops::Piece& piece)
                      __attribute__((always_inline)) { __builtin_prefetch(base + piece.offset); },
                  [&](const ops::Piece& piece) {
                    move(piece);
                    return true;
                  });
}

// A word is copied without a call.
void copy_piece(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  if (bytes == sizeof(std::uint64_t))
    std::memcpy(to, from, sizeof(std::uint64_t));
  else
    std::memcpy(to, from, bytes);
}

}  // namespace

void pack(const ops::LayoutView& layout, std::uint64_t total_bytes, const std::byte* from, std::byte* to) {
  for_each_piece(layout, total_bytes, from, [&](const ops::Piece& piece) {
    copy_piece(to, from + piece.offset, piece.bytes);
    to += piece.bytes;
  });
}

void unpack(const ops::LayoutView& layout, std::uint64_t total_bytes, const std::byte* from, std::byte* to) {
  for_each_piece(layout, total_bytes, to, [&](const ops::Piece& piece) {
    copy_piece(to + piece.offset, from, piece.bytes);
    from += piece.bytes;
  });
}

}  // namespace farsum
