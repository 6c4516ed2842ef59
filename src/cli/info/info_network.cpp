#include "cli/info/info_network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <string_view>

namespace farsum::cli {

namespace {

bool is_card(const UcxResource& resource) {
  const std::string& name = resource.transport;
  return name.starts_with("rc") || name.starts_with("dc") || name.starts_with("ud");
}

// "InfiniBand" or "RoCE", by what the card's port is plugged into; the device is "mlx5_0:1".
std::string kind_of_card(const std::string& device) {
  const std::size_t colon = device.find(':');
  if (colon == std::string::npos) return "InfiniBand or RoCE";
  std::ifstream file(
      fmt::format("/sys/class/infiniband/{}/ports/{}/link_layer", device.substr(0, colon), device.substr(colon + 1)));
  std::string layer;
  if (!std::getline(file, layer)) return "InfiniBand or RoCE";
  return layer == "Ethernet" ? "RoCE" : layer;
}

std::vector<std::string> names(const NetworkProbe& probe, bool cards) {
  std::vector<std::string> found;
  for (const UcxResource& resource : probe.resources) {
    if (is_card(resource) != cards) continue;
    std::string name = fmt::format("{} over {}", resource.transport, resource.device);
    if (cards) name += fmt::format(" ({})", kind_of_card(resource.device));
    found.push_back(std::move(name));
  }
  return found;
}

bool has_card(const NetworkProbe& probe) {
  return std::any_of(probe.resources.begin(), probe.resources.end(), is_card);
}

// What messages to another host travel on; empty where no device but lo carries any. Which of several devices it is
// depends on the host that is to be reached.
std::string carrier(const NetworkProbe& probe) {
  std::vector<std::string> devices;
  for (const UcxResource& resource : probe.resources) {
    if (resource.transport == probe.messages.transport && resource.device != "lo") devices.push_back(resource.device);
  }
  if (devices.empty()) return {};
  return fmt::format("{} over {}", probe.messages.transport, fmt::join(devices, " or "));
}

// Why there are no messages to other hosts; empty where there are.
std::string refusal_of(const NetworkProbe& probe) {
  if (!probe.refusal.empty()) return probe.refusal;
  return carrier(probe).empty() ? "UCX: no device but lo" : "";
}

std::string reads_answered_here(std::uint64_t age_ms) {
  if (age_ms == 0) return "always of the owner (FARSUM_READ_AGE=0), but in windows that allow copies";
  return fmt::format(
      "short ones from copies of at most {} ms, until this rank hears of others (FARSUM_READ_AGE); else of the owner",
      age_ms);
}

Report row(const char* path, std::string between_hosts) {
  return {{"path", path}, {"between_hosts", std::move(between_hosts)}};
}

}  // namespace

NetworkProbe probe_network(const Settings& settings) {
  return farsum::probe_network(settings.ucx_library, settings.net_tls, settings.net_devices);
}

std::string windows_across_hosts(const NetworkProbe& probe) {
  const std::string refusal = refusal_of(probe);
  return refusal.empty() ? "carried by messages to the owner's agent" : "none: " + refusal;
}

Report describe_network(const NetworkProbe& probe) {
  Report report;
  report["windows_across_hosts"] = windows_across_hosts(probe);
  if (!probe.version.empty()) {
    report["ucx_version"] = probe.version;
    report["ucx_library"] = probe.library;
    report["ucx_found"] = probe.origin;
  }
  if (const std::string refusal = refusal_of(probe); !refusal.empty()) {
    report["messages_between_hosts"] = "none: " + refusal;
    return report;
  }
  report["transports"] = names(probe, false);
  const std::vector<std::string> cards = names(probe, true);
  report["infiniband_or_roce"] = cards.empty() ? Report("none found") : Report(cards);
  report["messages_between_hosts"] = carrier(probe);
  report["longest_message_bytes"] = probe.piece_bytes;
  report["address_bytes"] = probe.address_bytes;
  report["bytes_kept_for_a_peer"] =
      fmt::format("{}, and {} for one that asks; without buffers for messages and what UCX keeps",
                  probe.peer_bytes + probe.address_bytes, probe.asking_bytes);
  report["connected"] = "when a rank is first asked for something (`farsum mpi --stats` and farsum_statistics count)";
  return report;
}

Report describe_paths_across_hosts(const NetworkProbe& probe, const Settings& settings) {
  Report rows = Report::array();
  if (const std::string refusal = refusal_of(probe); !refusal.empty()) {
    rows.push_back(row("all", "none: " + refusal));
    return rows;
  }
  const std::string messages = fmt::format("messages by {}, of {} bytes at most", carrier(probe), probe.piece_bytes);
  rows.push_back(row("direct", "none: no memory of another host is mapped here"));
  rows.push_back(row("attach", "none: the kernel copies within one host only"));
  rows.push_back(row("offload", has_card(probe)
                                    ? "in windows declared network-only: the card's own reads, writes and atomics"
                                    : "none: no InfiniBand or RoCE card, and TCP has no reads and atomics"));
  rows.push_back(row("caller", "under leases of the owner's agent, which lock nobody out: two messages each"));
  rows.push_back(row("owner", messages));
  rows.push_back(row("aggregated", messages));
  rows.push_back(row("reads", reads_answered_here(settings.read_age_ms)));
  return rows;
}

}  // namespace farsum::cli
