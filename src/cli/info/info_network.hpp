// What `farsum info` reports about messages between hosts: what UCX finds here and what each path uses of it.
#pragma once

#include <string>
#include <vector>

#include "base/settings.hpp"
#include "cli/info/info_machine.hpp"
#include "transport/ucx/network_probe.hpp"

namespace farsum::cli {

// How a window reaches ranks of other hosts, or why not.
std::string windows_across_hosts(const NetworkProbe& probe);

// Asks UCX as the settings say.
[[nodiscard]] NetworkProbe probe_network(const Settings& settings);

// One section: name and value.
[[nodiscard]] Report describe_network(const NetworkProbe& probe);
// One row a path: what it uses between hosts.
[[nodiscard]] Report describe_paths_across_hosts(const NetworkProbe& probe, const Settings& settings);

}  // namespace farsum::cli
