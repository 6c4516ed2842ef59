// The TCP sockets that UCX opens. It opens them without FD_CLOEXEC, so a program started by the job would keep its
// connections open after the job has died, and nobody would be told of the death.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.hpp"

namespace farsum {

// The TCP sockets that this process has open now, by descriptor, ascending.
std::vector<int> open_tcp_sockets();

// The sockets of `now` that are not in `before`.
std::vector<int> new_sockets(const std::vector<int>& before, const std::vector<int>& now);

void close_on_exec(const std::vector<int>& sockets);

// The sockets among these that listen, and the ports on which they do.
std::vector<int> listening(const std::vector<int>& sockets);
std::vector<std::uint16_t> listening_ports(const std::vector<int>& sockets);

// Addresses of IPv4, in the order of this processor.
struct HostRange {
  std::uint32_t first = 0, last = 0;
};
// Ranges, ascending, that hold all these hosts (in the order of the network) and no others, where `most` of them are
// enough, at least 1; else with the smallest gaps between hosts in them, too.
std::vector<HostRange> host_ranges(const std::vector<std::uint32_t>& hosts, std::size_t most);

// Lets only these hosts (IPv4 addresses in the order of the network) connect to the sockets: what any other host sends
// them the kernel drops. UCX trusts whoever connects and knows its magic number, and a packet of a stranger's making
// ends the process. Of hosts in more than most_ranges_let_in ranges some of those between them are let in, too, and of
// still less where the kernel has no room for so many. Fails with Code::system: then some of the sockets may have these
// hosts, the others let in whom they did before.
inline constexpr std::size_t most_ranges_let_in = 200;
Status let_in_only(const std::vector<std::uint32_t>& hosts, const std::vector<int>& sockets);

// The sockets that were accepted on one of the ports.
std::vector<int> accepted_on(const std::vector<std::uint16_t>& ports, const std::vector<int>& sockets);

}  // namespace farsum
