// A worker of UCX, as every use of it makes and ends one: its descriptor to sleep on, its address, its listening
// sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "transport/ucx/ucx_context.hpp"

struct ucp_worker;

namespace farsum {

struct UcxBareWorker {
  ucp_worker* handle = nullptr;
  int event_descriptor = -1;
  std::vector<std::byte> address;  // what another worker connects to
  std::vector<int> listening;      // UCX's sockets for this worker
  std::vector<std::uint16_t> ports;
};

// One thread at a time may use it. The context must outlive it.
Result<UcxBareWorker> make_worker(UcxContext& context);
// All its endpoints are closed. A worker that UCX could not end safely stays, with its context, until the process ends.
void end_worker(UcxContext& context, const UcxBareWorker& worker);
// Sets close-on-exec on connections that UCX's thread has accepted meanwhile.
void mark_accepted_sockets(const UcxBareWorker& worker);

}  // namespace farsum
