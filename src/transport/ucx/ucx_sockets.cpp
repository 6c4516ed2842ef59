#include "transport/ucx/ucx_sockets.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>

#include <fmt/format.h>

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

std::vector<int> listening(const std::vector<int>& sockets) {
  std::vector<int> found;
  std::copy_if(sockets.begin(), sockets.end(), std::back_inserter(found), listens);
  return found;
}

std::vector<std::uint16_t> listening_ports(const std::vector<int>& sockets) {
  std::vector<std::uint16_t> ports;
  for (const int descriptor : listening(sockets)) ports.push_back(local_port(descriptor));
  return ports;
}

std::vector<HostRange> host_ranges(const std::vector<std::uint32_t>& hosts, std::size_t most) {
  std::vector<std::uint32_t> sorted(hosts.size());
  std::transform(hosts.begin(), hosts.end(), sorted.begin(), [](std::uint32_t host) { return ntohl(host); });
  std::sort(sorted.begin(), sorted.end());
  std::vector<HostRange> exact;
  for (const std::uint32_t host : sorted) {
    if (!exact.empty() && host - exact.back().last <= 1) {
      exact.back().last = host;
    } else {
      exact.push_back({host, host});
    }
  }
  if (exact.size() <= most) return exact;
  // The widest gaps stay.
  std::vector<std::size_t> gaps(exact.size() - 1);  // each by the range before it
  std::iota(gaps.begin(), gaps.end(), std::size_t{0});
  const auto width = [&](std::size_t gap) { return exact[gap + 1].first - exact[gap].last; };
  const auto first_closed = gaps.begin() + static_cast<std::ptrdiff_t>(most - 1);
  std::nth_element(gaps.begin(), first_closed, gaps.end(),
                   [&](std::size_t one, std::size_t other) { return width(one) > width(other); });
  std::vector<bool> is_closed(gaps.size());
  std::for_each(first_closed, gaps.end(), [&](std::size_t gap) { is_closed[gap] = true; });
  std::vector<HostRange> joined = {exact.front()};
  for (std::size_t gap = 0; gap < is_closed.size(); ++gap) {
    if (is_closed[gap]) {
      joined.back().last = exact[gap + 1].last;
    } else {
      joined.push_back(exact[gap + 1]);
    }
  }
  return joined;
}

namespace {

// The longest a range becomes in the kernel, which has room for this and for the filter before it at once: 20 KiB by
// default in Linux 6.1.
constexpr std::size_t bytes_of_range = 48;
static_assert(2 * (most_ranges_let_in * bytes_of_range + 256) < 20'480);

// Per packet: the source address of an IPv4 header, looked for among the ranges. A packet of IPv6 is dropped: UCX's
// addresses of it are not among what Farsum's ranks tell each other.
std::vector<sock_filter> filter_of(const std::vector<HostRange>& ranges) {
  constexpr std::uint32_t header = static_cast<std::uint32_t>(SKF_NET_OFF);
  constexpr std::uint32_t whole_packet = 0xffff'ffff;
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, header),      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 4, 1, 0),    BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, header + 12),
  };
  // Each range answers for itself, for a jump reaches no further than 255 instructions.
  for (const HostRange& range : ranges) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, range.first, 0, 2));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, range.last, 1, 0));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, whole_packet));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  return program;
}

// 0, or why not.
int attach(std::vector<sock_filter> program, const std::vector<int>& sockets) {
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  for (const int descriptor : sockets) {
    if (setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0) return errno;
  }
  return 0;
}

}  // namespace

Status let_in_only(const std::vector<std::uint32_t>& hosts, const std::vector<int>& sockets) {
  int refusal = ENOMEM;
  for (std::size_t most = most_ranges_let_in; most != 0 && refusal == ENOMEM; most /= 2)
    refusal = attach(filter_of(host_ranges(hosts, most)), sockets);
  if (refusal == 0) return {};
  return {Code::system, fmt::format("a filter for a listening socket was refused: {}", std::strerror(refusal))};
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
