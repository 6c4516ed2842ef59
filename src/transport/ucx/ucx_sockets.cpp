#include "transport/ucx/ucx_sockets.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <memory>

namespace farsum {
namespace {

int socket_option(int descriptor, int option) {
  int value = -1;
  socklen_t bytes = sizeof value;
  return getsockopt(descriptor, SOL_SOCKET, option, &value, &bytes) == 0 ? value : -1;
}

bool is_tcp(int descriptor) {
  const int domain = socket_option(descriptor, SO_DOMAIN);
  return (domain == AF_INET || domain == AF_INET6) && socket_option(descriptor, SO_PROTOCOL) == IPPROTO_TCP;
}

bool listens(int descriptor) { return socket_option(descriptor, SO_ACCEPTCONN) == 1; }

// 0 where the socket has none.
std::uint16_t local_port(int descriptor) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return 0;
  // The port lies at the same place for both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace

std::vector<int> open_tcp_sockets() {
  std::vector<int> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (!folder) return found;
  while (const dirent* entry = readdir(folder.get())) {
    int descriptor = -1;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    const auto [stop, error] = std::from_chars(entry->d_name, end, descriptor);
    if (error == std::errc{} && stop == end && is_tcp(descriptor)) found.push_back(descriptor);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<int> new_sockets(const std::vector<int>& before, const std::vector<int>& now) {
  std::vector<int> more;
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(more));
  return more;
}

void close_on_exec(const std::vector<int>& sockets) {
  for (const int descriptor : sockets) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

std::vector<std::uint16_t> listening_ports(const std::vector<int>& sockets) {
  std::vector<std::uint16_t> ports;
  for (const int descriptor : sockets) {
    if (listens(descriptor)) ports.push_back(local_port(descriptor));
  }
  return ports;
}

std::vector<int> accepted_on(const std::vector<std::uint16_t>& ports, const std::vector<int>& sockets) {
  std::vector<int> found;
  for (const int descriptor : sockets) {
    const bool ours = std::find(ports.begin(), ports.end(), local_port(descriptor)) != ports.end();
    if (ours && !listens(descriptor)) found.push_back(descriptor);
  }
  return found;
}

}  // namespace farsum
