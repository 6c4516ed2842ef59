// Whether memory of a process is there, asked of the kernel page by page: of windows over ranges with pages that are
// not mapped, or may not be touched, yet.
#pragma once

#include <cstdint>
#include <optional>

#include "transport/transport.hpp"

namespace farsum {

// The first page in which a byte of [address, address + bytes) of the peer, which may be the calling rank, cannot be
// read; none where all can. Only for a transport whose transfers end at once.
[[nodiscard]] std::optional<std::uint64_t> first_missing_page(Transport& transport, Rank peer, std::uint64_t address,
                                                              std::uint64_t bytes);

}  // namespace farsum
