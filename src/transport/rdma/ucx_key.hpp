// The key to exposed memory, as ranks hand it to each other: where the memory is, then UCX's own key, sealed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace farsum {

struct UcxKey {
  std::uint64_t begin = 0, bytes = 0;  // in the owner
  std::vector<std::byte> packed;       // UCX's own; empty for no bytes
};

std::vector<std::byte> sealed_key(const UcxKey& key);
// Nothing where that is no key.
std::optional<UcxKey> unsealed_key(std::span<const std::byte> whole);

}  // namespace farsum
