// Memory of other processes of the node as the kernel copies it. Owner: runtime.
#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/peer_memory.hpp"
#include "os/attach.hpp"
#include "transport/shm/shm_transport.hpp"

namespace farsum {

// Used once ShmTransport::probe_peers() has run on this rank.
class AttachedMemory final : public PeerMemory {
 public:
  // Of so many ranks, of which this is the one in place `mine`.
  AttachedMemory(ShmTransport& transport, std::uint32_t ranks, std::uint32_t mine)
      : transport_(transport), ranks_(ranks), mine_(mine) {}

  std::uint32_t my_place() const override { return mine_; }
  bool reaches_all() const override {
    for (std::uint32_t place = 0; place < ranks_; ++place)
      if (!transport_.attach_refusal(place).empty()) return false;
    return true;
  }
  bool can_copy_own(std::span<const std::uintptr_t> addresses) override {
    std::array<std::byte, most_addresses> looked_at;
    std::array<os::AttachPiece, most_addresses> pieces;
    for (std::size_t i = 0; i < addresses.size(); ++i) pieces[i] = {addresses[i], &looked_at[i], 1};
    return os::Attach().copy_from(getpid(), std::span(pieces).first(addresses.size())).ok();
  }
  bool read(std::uint32_t place, std::uintptr_t address, std::span<std::byte> into) override {
    return transport_.read(place, address, into, 0) == Transfer::done;
  }
  bool write(std::uint32_t place, std::uintptr_t address, std::span<const std::byte> from) override {
    return transport_.write(place, address, from, 0) == Transfer::done;
  }

 private:
  ShmTransport& transport_;
  std::uint32_t ranks_;
  std::uint32_t mine_;
};

}  // namespace farsum
