// What this machine has for messages between hosts: asked by `farsum info`. It sees no header of UCX, for it also
// answers in a build without them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "transport/ucx/ucx_text.hpp"

namespace farsum {

struct NetworkProbe {
  std::string refusal;  // why there is no network; the rest is empty then, but for what was found before
  std::string version;
  std::string library;
  std::string origin;
  std::vector<UcxResource> resources;
  std::size_t address_bytes = 0;  // of a worker: what each rank tells the others
  UcxResource messages;           // what carries messages from here to a peer like oneself
  std::size_t peer_bytes = 0;     // kept for a rank that this one could ask
  std::size_t asking_bytes = 0;   // and for one that has asked this one
  std::size_t piece_bytes = 0;    // the longest message that travels whole
};

// Loads UCX, makes a worker that is gone again, and tells. `library`, `transports` and `devices` as FARSUM_UCX_LIBRARY,
// FARSUM_NET_TLS and FARSUM_NET_DEVICES; empty: the defaults. Takes some 20 ms.
NetworkProbe probe_network(const std::string& library, const std::string& transports, const std::string& devices);

}  // namespace farsum
