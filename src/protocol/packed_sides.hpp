// The origin's side of an operation as packed bytes, for the paths that compute on a copy or fetch into one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "ops/layout.hpp"
#include "protocol/operation.hpp"

namespace farsum {

inline bool is_contiguous(const ops::LayoutView& layout) { return layout.kind() == ops::LayoutKind::contiguous; }

inline std::byte* offset_by(std::byte* base, std::int64_t offset) { return base == nullptr ? nullptr : base + offset; }
inline const std::byte* offset_by(const std::byte* base, std::int64_t offset) {
  return base == nullptr ? nullptr : base + offset;
}

// Copies the bytes that a layout names into one run, or back; what lies apart is asked for ahead.
void pack(const ops::LayoutView& layout, std::uint64_t total_bytes, const std::byte* from, std::byte* to);
void unpack(const ops::LayoutView& layout, std::uint64_t total_bytes, const std::byte* from, std::byte* to);

// An origin side as packed bytes: the user's buffer where it is contiguous, else a copy.
class PackedOperand {
 public:
  explicit PackedOperand(const Operation& operation) : bytes_(operation.operand) {
    // Nobody has looked at the layout of what is not read.
    if (operation.operand == nullptr || !needs_operand(operation) || is_contiguous(operation.operand_layout)) return;
    copy_ = std::make_unique_for_overwrite<std::byte[]>(operation.bytes);
    pack(operation.operand_layout, operation.bytes, operation.operand, copy_.get());
    bytes_ = copy_.get();
  }
  const std::byte* data() const { return bytes_; }

 private:
  const std::byte* bytes_;
  std::unique_ptr<std::byte[]> copy_;
};

class PackedResult {
 public:
  explicit PackedResult(const Operation& operation) : operation_(operation), bytes_(operation.result) {
    if (operation.result == nullptr || is_contiguous(operation.result_layout)) return;
    copy_ = std::make_unique_for_overwrite<std::byte[]>(operation.bytes);
    bytes_ = copy_.get();
  }
  std::byte* data() { return bytes_; }
  // Puts a copy where the user wants it.
  void deliver() {
    if (copy_ == nullptr) return;
    unpack(operation_.result_layout, operation_.bytes, copy_.get(), operation_.result);
  }

 private:
  const Operation& operation_;
  std::byte* bytes_;
  std::unique_ptr<std::byte[]> copy_;
};

}  // namespace farsum
