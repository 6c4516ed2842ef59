// The TCP sockets that UCX opens. It opens them without FD_CLOEXEC, so a program started by the job would keep its
// connections open after the job has died, and nobody would be told of the death.
#pragma once

#include <cstdint>
#include <vector>

namespace farsum {

// The TCP sockets that this process has open now, by descriptor, ascending.
std::vector<int> open_tcp_sockets();

// Those of `now` that are not in `before`.
std::vector<int> new_sockets(const std::vector<int>& before, const std::vector<int>& now);

void close_on_exec(const std::vector<int>& sockets);

// The ports on which those of the sockets that listen do so.
std::vector<std::uint16_t> listening_ports(const std::vector<int>& sockets);

// The sockets that were accepted on one of the ports.
std::vector<int> accepted_on(const std::vector<std::uint16_t>& ports, const std::vector<int>& sockets);

}  // namespace farsum
