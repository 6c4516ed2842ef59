#include "protocol/presence.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace farsum {

std::optional<std::uint64_t> first_missing_page(Transport& transport, Rank peer, std::uint64_t address,
                                                std::uint64_t bytes) {
  // A call of the kernel costs more than a page of it.
  std::array<TransferPiece, 64> pages;
  std::byte seen{};
  for (std::uint64_t left = bytes; left != 0;) {
    std::size_t count = 0;
    for (; count < pages.size() && left != 0; ++count) {
      pages[count] = {address, &seen, 1};
      const std::uint64_t here = std::min(left, page_bytes - address % page_bytes);
      address += here;
      left -= here;
    }
    const std::span<const TransferPiece> asked = std::span(pages).first(count);
    if (transport.read_pieces(peer, asked) == Transfer::done) continue;
    const auto missing = std::find_if(asked.begin(), asked.end(), [&](const TransferPiece& page) {
      return transport.read_pieces(peer, {&page, 1}) != Transfer::done;
    });
    if (missing != asked.end()) return missing->remote_address & ~(page_bytes - 1);
  }
  return std::nullopt;
}

}  // namespace farsum
