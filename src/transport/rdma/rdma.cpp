#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "transport/rdma.hpp"
#include "transport/rdma/ucx_rdma.hpp"

namespace farsum {
namespace {

// TCP reaches no memory by itself, and its sockets would only let strangers in.
std::string without_tcp(const std::string& transports) {
  if (transports.empty()) return "^shm,self,tcp";
  if (transports.starts_with('^')) return transports + ",tcp";
  std::string kept;
  for (std::size_t begin = 0; begin <= transports.size();) {
    const std::size_t end = std::min(transports.find(',', begin), transports.size());
    const std::string name = transports.substr(begin, end - begin);
    if (name != "tcp" && !name.empty()) kept += (kept.empty() ? "" : ",") + name;
    begin = end + 1;
  }
  return kept;
}

}  // namespace

Result<std::unique_ptr<Rdma>> open_rdma(const RdmaOptions& options, const Settings& settings) {
  UcxRdma::Options all;
  all.job = options;
  all.card.ucx.transports = without_tcp(settings.net_tls);
  if (settings.net_tls.empty()) all.card.first_look = UcxOptions().transports;
  if (all.card.ucx.transports.empty()) {
    return Status(Code::unsupported, fmt::format("FARSUM_NET_TLS={} leaves no card that reaches memory by itself: over "
                                                 "TCP the owner's program does what a card would",
                                                 settings.net_tls));
  }
  if (!settings.net_devices.empty()) all.card.ucx.devices = settings.net_devices;
  all.library = settings.ucx_library;
  all.spin_ns = settings.spin_ns;
  auto made = UcxRdma::create(std::move(all));
  if (!made.is_ok()) return made.take_status();
  return std::unique_ptr<Rdma>(std::move(made.value()));
}

}  // namespace farsum
