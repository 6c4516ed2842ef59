// Addresses and keys on their way to other ranks: UCX trusts what it is given and reads past the end of what is not its
// own, so it is given nothing that did not arrive whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace farsum {

enum class UcxSeal : std::uint32_t { address = 0x31644143, key = 0x31654b43 };

inline constexpr std::size_t ucx_seal_bytes = 16;

std::vector<std::byte> sealed(UcxSeal kind, std::span<const std::byte> content);
// The content, within `bytes`; nothing where they are not what sealed() made of it.
std::optional<std::span<const std::byte>> unsealed(UcxSeal kind, std::span<const std::byte> bytes);

}  // namespace farsum
