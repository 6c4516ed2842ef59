#include "protocol/packed_sides.hpp"

#include <cstring>
#include <span>

#include "ops/layout_steps.hpp"

namespace farsum {
namespace {

enum class Access : std::uint8_t { read, write };

// Calls move(piece) for each piece of a layout over `base`. Only lists lie apart in a way that the processor does not
// foresee.
template <Access access, class Move>
void for_each_piece(const ops::LayoutView& layout, std::uint64_t total_bytes, const std::byte* base, Move&& move) {
  if (layout.kind() != ops::LayoutKind::indexed) {
    ops::PieceCursor cursor(layout, total_bytes);
    for (ops::Piece piece = cursor.next(); piece.bytes != 0; piece = cursor.next()) move(piece);
    return;
  }
  const std::span<const ops::Piece> pieces = layout.pieces();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    ops::note_piece();
    if (i + ops::pieces_ahead < pieces.size())
      __builtin_prefetch(base + pieces[i + ops::pieces_ahead].offset, access == Access::write ? 1 : 0);
    if (pieces[i].bytes != 0) move(pieces[i]);
  }
}

// A word is copied without a call. Within one's own part both sides may be one.
void copy_piece(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  if (bytes == sizeof(std::uint64_t))
    std::memcpy(to, from, sizeof(std::uint64_t));
  else
    std::memmove(to, from, bytes);
}

}  // namespace

void pack(const ops::LayoutView& layout, std::uint64_t total_bytes, const std::byte* from, std::byte* to) {
  for_each_piece<Access::read>(layout, total_bytes, from, [&](const ops::Piece& piece) {
    copy_piece(to, from + piece.offset, piece.bytes);
    to += piece.bytes;
  });
}

void unpack(const ops::LayoutView& layout, std::uint64_t total_bytes, const std::byte* from, std::byte* to) {
  for_each_piece<Access::write>(layout, total_bytes, to, [&](const ops::Piece& piece) {
    copy_piece(to + piece.offset, from, piece.bytes);
    from += piece.bytes;
  });
}

}  // namespace farsum
