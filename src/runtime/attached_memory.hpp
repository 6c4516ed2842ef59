// Memory of other processes of the node as the kernel copies it. Owner: runtime.
#pragma once

#include <unistd.h>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/peer_memory.hpp"
#include "os/attach.hpp"
#include "promotion/promotion.hpp"
#include "transport/shm/shm_transport.hpp"

namespace farsum {

// Used once ShmTransport::probe_peers() has run on this rank.
class AttachedMemory final : public PeerMemory {
 public:
  // Of the rank in place `mine`.
  AttachedMemory(ShmTransport& transport, os::PromotionRegistry& promotions, std::uint32_t mine)
      : transport_(transport), promotions_(promotions), mine_(mine) {}

  std::uint32_t my_place() const override { return mine_; }
  bool reaches_all() const override { return transport_.first_attach_refusal().empty(); }
  bool can_copy_own(std::span<const std::uintptr_t> addresses) override {
    std::array<std::byte, most_addresses> looked_at;
    std::array<os::AttachPiece, most_addresses> pieces;
    assert(addresses.size() <= pieces.size());
    for (std::size_t i = 0; i < addresses.size(); ++i) pieces[i] = {addresses[i], &looked_at[i], 1};
    return os::Attach().copy_from(getpid(), std::span(pieces).first(addresses.size())).ok();
  }
  bool hold_pages() override { return promotions_.begin_copies(); }
  void let_go() override { promotions_.end_copies(); }
  PeerCopy read(std::uint32_t place, std::uintptr_t address, std::span<std::byte> into) override {
    return how(transport_.read(place, address, into, 0));
  }
  PeerCopy write(std::uint32_t place, std::uintptr_t address, std::span<const std::byte> from) override {
    return how(transport_.write(place, address, from, 0));
  }

 private:
  static PeerCopy how(Transfer transfer) {
    switch (transfer) {
      case Transfer::done:
        return PeerCopy::done;
      case Transfer::bad_address:
        return PeerCopy::not_mapped;
      case Transfer::peer_dead:
        return PeerCopy::gone;
      case Transfer::started:
      case Transfer::refused:
        break;
    }
    return PeerCopy::refused;
  }

  ShmTransport& transport_;
  os::PromotionRegistry& promotions_;
  std::uint32_t mine_;
};

}  // namespace farsum
