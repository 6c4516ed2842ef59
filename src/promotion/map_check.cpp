#include "promotion/map_check.hpp"

#include "os/map_question.hpp"

namespace farsum::os {
namespace {

bool fits(const ExpectedPiece& piece, const BareMap& map) {
  if (map.protection != piece.protection || map.shared != piece.shared || map.inode != piece.inode) return false;
  if (piece.inode == 0) return true;
  return map.device == piece.device && map.file_offset - map.begin == piece.file_offset - piece.at.begin;
}

bool match(const ExpectedPiece* piece, std::size_t count, MapWalk& walk) {
  const ExpectedPiece* const end = piece + count;
  std::uintptr_t reached = piece->at.begin;
  BareMap map;
  while (walk.next(reached, map) && map.begin <= reached) {
    // One map may hold several pieces, and one piece lie in several maps.
    while (map.begin <= reached && reached < map.end) {
      if (!fits(*piece, map)) return false;
      if (piece->at.end > map.end) {
        reached = map.end;
        break;
      }
      if (++piece == end) return true;
      reached = piece->at.begin;
    }
  }
  return false;
}

}  // namespace

bool are_mapped(std::span<const ExpectedPiece> pieces, std::span<char> buffer) {
  if (pieces.empty()) return true;
  MapWalk walk(buffer, kernel_map_calls());
  return match(pieces.data(), pieces.size(), walk);
}

}  // namespace farsum::os
