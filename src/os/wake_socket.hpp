// Where a thread that sleeps on descriptors is woken by other processes of the node: a datagram socket with a name that
// they can form, so that nobody hands descriptors around and each process has one. Owner: os. One byte, whatever for.
#pragma once

#include <cstdint>

#include "base/status.hpp"

namespace farsum::os {

// `tag` is random and the job's, so that nobody takes the name before. Others of the host can read it: what they send
// wakes for nothing.
struct WakeName {
  std::uint64_t tag = 0;
  std::uint32_t number = 0;
};

// The sleeper's end. In the network namespace of this process.
class WakeSocket {
 public:
  static Result<WakeSocket> open(const WakeName& name);
  WakeSocket() = default;
  WakeSocket(WakeSocket&& other) noexcept;
  WakeSocket& operator=(WakeSocket&& other) noexcept;
  ~WakeSocket();

  // Readable when somebody has woken.
  int descriptor() const { return socket_; }
  // Takes away what has come.
  void drain() const;
  // Makes it readable; any thread of this process.
  void wake() const;

 private:
  WakeSocket(int socket, const WakeName& name) : socket_(socket), name_(name) {}
  int socket_ = -1;
  WakeName name_;
};

// The other end, towards all names.
class WakeSender {
 public:
  // Opens its socket now, while there are descriptors; where there are none, each wake opens one.
  WakeSender();
  ~WakeSender();
  WakeSender(const WakeSender&) = delete;
  WakeSender& operator=(const WakeSender&) = delete;

  // On return the socket of that name is readable, or has been since this began, or is gone. Any thread may call.
  void wake(const WakeName& name) const;

 private:
  int socket_;
};

}  // namespace farsum::os
