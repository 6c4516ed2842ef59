// What a rank tells the ranks of other nodes, so that they reach it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "base/status.hpp"
#include "base/units.hpp"
#include "liveness/job_map.hpp"

namespace farsum {

struct NetworkCard {
  std::uint32_t layout = 2;  // of this structure; the rest is read only where it is the reader's own
  std::uint16_t link_version = 0;
  std::uint16_t message_version = 0;
  Rank rank = 0;
  Code code = Code::ok;  // why the rank has no network, in words where its address would be
  NodeIdentity node;
  std::uint32_t machine = 0;             // machine_number() of its kind
  std::array<std::uint32_t, 8> hosts{};  // IPv4 addresses of the node's devices, as the network has them
  std::uint32_t address_bytes = 0;
  std::array<std::byte, 264> address{};
};
static_assert(std::is_trivially_copyable_v<NetworkCard>);
static_assert(sizeof(NetworkCard) <= 512);

// A card with the versions of this program, and nothing else.
NetworkCard versioned_card();
// Whether the card has this program's layout: of another, nothing else is to be read.
bool has_own_layout(const NetworkCard& card);
// Why the rank that the card speaks of, of a job of so many, cannot be reached; empty where it can. The card may be
// anything.
std::string why_unreachable(const NetworkCard& card, std::uint32_t ranks);
// The same with who cannot be.
std::string refusal_of(const NetworkCard& card, std::uint32_t ranks);

}  // namespace farsum
