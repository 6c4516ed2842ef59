// Layouts as they travel in a message. What comes in is not trusted.
#include <bit>
#include <cstddef>
#include <cstring>

#include "ops/layout.hpp"

namespace farsum::ops {

static_assert(std::endian::native == std::endian::little, "the wire form is little-endian");

namespace {

struct WireHeader {
  std::uint8_t kind;
  std::uint8_t levels;
  std::uint16_t unused;
  std::uint32_t pieces;
  std::uint64_t block_bytes;
};
static_assert(sizeof(WireHeader) == encoded_header_bytes);

constexpr std::uint64_t level_bytes = 16;
static_assert(sizeof(Piece) == encoded_piece_bytes && offsetof(Piece, bytes) == 8, "pieces travel as they are");

template <class T>
std::byte* append(std::byte* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

}  // namespace

std::uint64_t encoded_bytes(const LayoutView& layout) {
  return sizeof(WireHeader) + layout.counts().size() * level_bytes + layout.pieces().size() * encoded_piece_bytes;
}

std::optional<std::size_t> encode(const LayoutView& layout, std::span<std::byte> out) {
  if (layout.check(1) != LayoutFault::none || layout.pieces().size() > std::numeric_limits<std::uint32_t>::max())
    return std::nullopt;
  const std::uint64_t needed = encoded_bytes(layout);
  if (needed > out.size()) return std::nullopt;
  std::byte* to =
      append(out.data(),
             WireHeader{static_cast<std::uint8_t>(layout.kind()), static_cast<std::uint8_t>(layout.counts().size()), 0,
                        static_cast<std::uint32_t>(layout.pieces().size()), layout.block_bytes()});
  for (std::size_t level = 0; level < layout.counts().size(); ++level) {
    to = append(to, layout.counts()[level]);
    to = append(to, layout.strides()[level]);
  }
  if (!layout.pieces().empty()) std::memcpy(to, layout.pieces().data(), layout.pieces().size_bytes());
  return needed;
}

// Reads values off the front of a span, and remembers if there was once too little.
class LayoutReader {
 public:
  explicit LayoutReader(std::span<const std::byte> in) : left_(in) {}

  std::optional<Layout> read() {
    const auto header = take<WireHeader>();
    if (is_short_ || header.kind > static_cast<std::uint8_t>(LayoutKind::indexed) || header.unused != 0 ||
        !is_consistent(header)) {
      return std::nullopt;
    }
    Layout layout;
    layout.kind_ = static_cast<LayoutKind>(header.kind);
    layout.bytes_ = header.block_bytes;
    layout.levels_ = header.levels;
    for (std::size_t level = 0; level < header.levels; ++level) {
      layout.counts_[level] = take<std::uint64_t>();
      layout.strides_[level] = take<std::int64_t>();
    }
    // Before the allocation, not after.
    if (is_short_ || header.pieces > left_.size() / encoded_piece_bytes) return std::nullopt;
    layout.pieces_.resize(header.pieces);
    const std::size_t piece_bytes = header.pieces * sizeof(Piece);
    if (piece_bytes != 0) std::memcpy(layout.pieces_.data(), left_.data(), piece_bytes);
    left_ = left_.subspan(piece_bytes);
    return layout;
  }

  [[nodiscard]] std::size_t left() const { return left_.size(); }

 private:
  // Each kind uses its own fields only, so that one layout has one encoding.
  static bool is_consistent(const WireHeader& header) {
    switch (static_cast<LayoutKind>(header.kind)) {
      case LayoutKind::contiguous:
        return header.levels == 0 && header.pieces == 0;
      case LayoutKind::strided:
        return header.levels <= most_levels && header.pieces == 0;
      case LayoutKind::indexed:
        return header.levels == 0 && header.block_bytes == 0;
    }
    return false;
  }

  template <class T>
  T take() {
    T value{};
    if (left_.size() < sizeof value) {
      is_short_ = true;
      left_ = {};
      return value;
    }
    std::memcpy(&value, left_.data(), sizeof value);
    left_ = left_.subspan(sizeof value);
    return value;
  }

  std::span<const std::byte> left_;
  bool is_short_ = false;
};

std::optional<DecodedLayout> decode(std::span<const std::byte> in, std::uint64_t element_bytes) {
  LayoutReader reader(in);
  std::optional<Layout> layout = reader.read();
  if (!layout) return std::nullopt;
  const LayoutView::Measured measured = layout->view().measured(element_bytes);
  if (measured.fault != LayoutFault::none) return std::nullopt;
  return DecodedLayout{std::move(*layout), in.size() - reader.left(), measured.total_bytes, measured.extent};
}

}  // namespace farsum::ops
