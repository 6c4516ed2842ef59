// The states of a link at its origin.
#pragma once

#include <cstdint>

namespace farsum::link {

enum class LinkState : std::uint8_t {
  idle,        // no connection and no need of one
  connecting,  // hello sent
  open,
  broken,   // the connection is being closed, or the next attempt waits
  closing,  // bye sent
  closed,
  failed,  // for good: everything is answered with Code::peer_failed
};

// Why a link has failed.
enum class LinkEnd : std::uint8_t {
  none,
  silence,   // no sign of the peer for the timeout
  refused,   // by a peer that was told this side is dead
  given_up,  // on this side's word
};

}  // namespace farsum::link
