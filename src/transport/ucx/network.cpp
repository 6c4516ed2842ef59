#include "transport/network.hpp"

#include <algorithm>
#include <utility>

#include "transport/ucx/ucx_transport.hpp"

namespace farsum {

Result<std::unique_ptr<Network>> open_network(const NetworkOptions& options, const Settings& settings) {
  constexpr std::uint64_t ns_per_s = 1'000'000'000;
  UcxTransport::Options all;
  all.rank = options.rank;
  all.ranks = options.ranks;
  std::copy(options.secret.begin(), options.secret.end(), all.secret.bytes);
  if (!settings.net_tls.empty()) all.ucx.transports = settings.net_tls;
  if (!settings.net_devices.empty()) all.ucx.devices = settings.net_devices;
  all.library = settings.ucx_library;
  all.receive_bytes = settings.net_receive_bytes;
  all.timeout_ns = settings.net_timeout_s * ns_per_s;
  all.on_lost = options.on_lost;
  all.on_hand_over = options.on_hand_over;
  auto made = UcxTransport::create(std::move(all));
  if (!made.is_ok()) return made.take_status();
  return std::unique_ptr<Network>(std::move(made.value()));
}

}  // namespace farsum
