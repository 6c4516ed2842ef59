#include "os/wake_socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "os/futex.hpp"

namespace farsum::os {
namespace {

struct Address {
  explicit Address(const WakeName& name) {
    path.sun_family = AF_UNIX;
    // The first byte stays zero: a name that lies in no folder and goes with its socket.
    // Not by fmt, which would compile the whole of its formatter here.
    const int length =
        std::snprintf(path.sun_path + 1, sizeof path.sun_path - 1, "farsum-wake-%016llx-%llu",
                      static_cast<unsigned long long>(name.tag), static_cast<unsigned long long>(name.number));
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&path); }

  sockaddr_un path{};
  socklen_t bytes = 0;
};

int open_socket() { return socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

// A kernel without memory for a byte may have some soon.
constexpr std::uint64_t shortly_ns = 20'000;

enum class Sent : std::uint8_t { done, no_room, not_now };

Sent send_byte(int socket, const Address& to) {
  const char byte = 0;
  if (sendto(socket, &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL, to.get(), to.bytes) >= 0) return Sent::done;
  switch (errno) {
    case EAGAIN:
      return Sent::no_room;
    case EINTR:
    case ENOBUFS:
    case ENOMEM:
      return Sent::not_now;
    default:
      // Nobody has the name: who is gone does not sleep.
      return Sent::done;
  }
}

// A socket that has sent nothing yet: where it finds no room, the queue of the receiver is full, and so it is readable.
bool wake_by_new_socket(const Address& to) {
  const int fresh = open_socket();
  if (fresh < 0) return false;
  const Sent sent = send_byte(fresh, to);
  close(fresh);
  return sent != Sent::not_now;
}

}  // namespace

Result<WakeSocket> WakeSocket::open(const WakeName& name) {
  const int socket = open_socket();
  if (socket < 0) return Status(Code::system, fmt::format("cannot open a local socket: {}", std::strerror(errno)));
  WakeSocket opened(socket, name);
  const Address address(name);
  if (bind(socket, address.get(), address.bytes) != 0)
    return Status(Code::system, fmt::format("cannot name a local socket: {}", std::strerror(errno)));
  return opened;
}

WakeSocket::WakeSocket(WakeSocket&& other) noexcept : socket_(std::exchange(other.socket_, -1)), name_(other.name_) {}

WakeSocket& WakeSocket::operator=(WakeSocket&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(name_, other.name_);
  return *this;
}

WakeSocket::~WakeSocket() {
  if (socket_ >= 0) close(socket_);
}

void WakeSocket::drain() const {
  // Bounded, for a stranger might send without end; what is left wakes once more.
  constexpr int most_at_once = 64;
  char byte = 0;
  for (int taken = 0; taken < most_at_once; ++taken) {
    if (recv(socket_, &byte, sizeof byte, MSG_DONTWAIT) < 0 && errno != EINTR) return;
  }
}

// What this socket has sent lies in its own queue: no room means that it is readable.
void WakeSocket::wake() const {
  const Address self(name_);
  while (send_byte(socket_, self) == Sent::not_now) sleep_ns(shortly_ns);
}

WakeSender::WakeSender() : socket_(open_socket()) {}

WakeSender::~WakeSender() {
  if (socket_ >= 0) close(socket_);
}

void WakeSender::wake(const WakeName& name) const {
  const Address to(name);
  // No room is the receiver's, or this socket's own, used up by bytes that some hundred others have not taken yet.
  for (;;) {
    if (socket_ >= 0 && send_byte(socket_, to) == Sent::done) return;
    if (wake_by_new_socket(to)) return;
    // No descriptors and no room: those others have been woken and will make some.
    sleep_ns(shortly_ns);
  }
}

}  // namespace farsum::os
