// Ends the connections of this process under UCX.
#pragma once

#include <sys/socket.h>

#include <cstddef>

#include "transport/ucx/ucx_sockets.hpp"

namespace farsum {

// As a network does it that forgets connections: both ends read their end.
inline std::size_t break_all_connections() {
  std::size_t broken = 0;
  for (const int descriptor : open_tcp_sockets()) {
    int listens = 0;
    socklen_t bytes = sizeof listens;
    getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes);
    if (listens == 0 && shutdown(descriptor, SHUT_RDWR) == 0) ++broken;
  }
  return broken;
}

}  // namespace farsum
