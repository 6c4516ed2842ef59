// The socket calls behind run_messages.hpp.
#include "cli/run/run_messages.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace farsum::cli {

namespace {

constexpr std::size_t outputs = 2;

union DescriptorBuffer {
  cmsghdr header;
  std::array<char, CMSG_SPACE(outputs * sizeof(int))> bytes;
};

bool send_whole(int channel, const msghdr& message) {
  ssize_t sent = -1;
  do {
    sent = sendmsg(channel, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

Received outcome(ssize_t got, std::size_t expected) {
  if (got == static_cast<ssize_t>(expected)) return Received::message;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Received::nothing_now;
  return Received::closed;
}

}  // namespace

std::optional<std::pair<UniqueFd, UniqueFd>> make_channel() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  return std::make_pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

void send_command(int channel, const Command& command) {
  [[maybe_unused]] const ssize_t sent = send(channel, &command, sizeof(command), MSG_NOSIGNAL | MSG_DONTWAIT);
}

Received receive_command(int channel, Command& command) {
  return outcome(recv(channel, &command, sizeof(command), MSG_DONTWAIT), sizeof(command));
}

bool send_event(int channel, const Event& event) {
  iovec part{const_cast<Event*>(&event), sizeof(event)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return send_whole(channel, message);
}

bool send_started(int channel, const Event& event, int out, int err) {
  iovec part{const_cast<Event*>(&event), sizeof(event)};
  DescriptorBuffer control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(outputs * sizeof(int));
  const std::array<int, outputs> descriptors{out, err};
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(descriptors));
  return send_whole(channel, message);
}

Received receive_event(int channel, ReceivedEvent& received) {
  iovec part{&received.event, sizeof(received.event)};
  DescriptorBuffer control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  const Received result = outcome(recvmsg(channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC), sizeof(received.event));
  if (result != Received::message) return result;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(outputs * sizeof(int))) {
    std::array<int, outputs> descriptors{};
    std::memcpy(descriptors.data(), CMSG_DATA(header), sizeof(descriptors));
    received.out.reset(descriptors[0]);
    received.err.reset(descriptors[1]);
  }
  return result;
}

}  // namespace farsum::cli
