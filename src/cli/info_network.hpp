// What `farsum info` reports about messages between hosts: what UCX finds here and what each path would use of it. It
// does not claim what is not there: no window spans hosts yet.
#pragma once

#include <string>
#include <vector>

#include "base/settings.hpp"
#include "cli/info_machine.hpp"
#include "transport/ucx/network_probe.hpp"

namespace farsum::cli {

// The same sentence wherever hosts are spoken of.
inline constexpr const char* hosts_are_not_served = "not carried yet: all ranks of a window must be on one host";

// Asks UCX as the settings say.
[[nodiscard]] NetworkProbe probe_network(const Settings& settings);

// One section: name and value.
[[nodiscard]] Report describe_network(const NetworkProbe& probe);
// One row a path: what it would use between hosts.
[[nodiscard]] Report describe_paths_across_hosts(const NetworkProbe& probe);

}  // namespace farsum::cli
