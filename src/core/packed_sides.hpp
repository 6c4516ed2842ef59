// The origin's side of an operation as packed bytes, for the paths that compute on a copy or fetch into one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/origin_engine.hpp"
#include "ops/layout.hpp"

namespace farsum {

inline bool is_contiguous(const ops::LayoutView& layout) { return layout.kind() == ops::LayoutKind::contiguous; }

inline std::byte* offset_by(std::byte* base, std::int64_t offset) { return base == nullptr ? nullptr : base + offset; }
inline const std::byte* offset_by(const std::byte* base, std::int64_t offset) {
  return base == nullptr ? nullptr : base + offset;
}

// Copies the bytes that a layout names into one run, or back.
inline void pack(const ops::LayoutView& layout, const std::byte* from, std::byte* to) {
  ops::PieceCursor cursor(layout);
  for (ops::Piece piece = cursor.next(); piece.bytes != 0; piece = cursor.next()) {
    std::memcpy(to, from + piece.offset, piece.bytes);
    to += piece.bytes;
  }
}
inline void unpack(const ops::LayoutView& layout, const std::byte* from, std::byte* to) {
  ops::PieceCursor cursor(layout);
  for (ops::Piece piece = cursor.next(); piece.bytes != 0; piece = cursor.next()) {
    std::memcpy(to + piece.offset, from, piece.bytes);
    from += piece.bytes;
  }
}

// An origin side as packed bytes: the user's buffer where it is contiguous, else a copy.
class PackedOperand {
 public:
  explicit PackedOperand(const Operation& operation) : bytes_(operation.operand) {
    if (operation.operand == nullptr || is_contiguous(operation.operand_layout)) return;
    copy_.resize(operation.bytes);
    pack(operation.operand_layout, operation.operand, copy_.data());
    bytes_ = copy_.data();
  }
  const std::byte* data() const { return bytes_; }

 private:
  const std::byte* bytes_;
  std::vector<std::byte> copy_;
};

class PackedResult {
 public:
  explicit PackedResult(const Operation& operation) : operation_(operation), bytes_(operation.result) {
    if (operation.result == nullptr || is_contiguous(operation.result_layout)) return;
    copy_.resize(operation.bytes);
    bytes_ = copy_.data();
  }
  std::byte* data() { return bytes_; }
  // Puts a copy where the user wants it.
  void deliver() {
    if (copy_.empty()) return;
    unpack(operation_.result_layout, copy_.data(), operation_.result);
  }

 private:
  const Operation& operation_;
  std::byte* bytes_;
  std::vector<std::byte> copy_;
};

}  // namespace farsum
