#include "runtime/wireup.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "collectives/node_team.hpp"
#include "os/process.hpp"

namespace farsum {
namespace {

constexpr int join_timeout_ms = 30'000;
constexpr int look_interval_ms = 100;

NodeSegment::Options segment_options(std::uint32_t ranks, const Settings& settings) {
  return {.ranks = ranks, .segment_bytes = settings.segment_bytes, .team_bytes = NodeTeamBlock::footprint(ranks)};
}

Result<Place> place_on(int fd, std::uint32_t rank, std::uint32_t size, const Settings& settings) {
  Result<std::unique_ptr<NodeSegment>> segment = NodeSegment::open(fd, segment_options(size, settings));
  if (!segment.is_ok()) {
    close(fd);
    return segment.take_status();
  }
  return Place{rank, size, std::move(segment.value())};
}

constexpr std::uint32_t no_number = ~std::uint32_t{0};

// The whole text as a number; no_number when it is none, or null.
std::uint32_t number(const char* text) {
  if (text == nullptr) return no_number;
  std::uint32_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || stop != end || stop == text) return no_number;
  return value;
}

Status system_failure(const char* what) {
  return {Code::system, fmt::format("farsum_init: {} failed: {}", what, std::strerror(errno))};
}

// What each rank tells all others through the caller's allgather.
struct Card {
  std::array<char, 40> node{};    // the boot of the machine: the same for all ranks of a node
  std::array<char, 48> socket{};  // abstract name on which the node's lowest rank hands out the memory
  std::array<unsigned char, 16> secret{};
  std::int32_t pid = 0;
};

// Repeats a call that a signal of the program interrupted.
template <class Call>
auto despite_signals(Call&& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// Why a rank waits in vain for the others; fine while all of them live.
Status look_at(const std::vector<Card>& cards) {
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    if (!os::process_has_ended(cards[rank].pid)) continue;
    return {Code::peer_failed, fmt::format("farsum_init: rank {} of the job died", rank)};
  }
  return {};
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }
  // system when nothing has come within 30 s, peer_failed when one of the ranks has died before.
  Status wait_readable(const std::vector<Card>& cards) const {
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      pollfd query{fd_, POLLIN, 0};
      if (poll(&query, 1, look_interval_ms) == 1) return {};
      if (Status status = look_at(cards); !status.is_ok()) return status;
      if (std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(join_timeout_ms)) {
        return {Code::system, "nothing came within 30 s"};
      }
    }
  }

 private:
  int fd_;
};

sockaddr_un address_of(const Card& card, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A leading zero byte makes the name abstract: no file is left behind.
  const std::size_t name_bytes = strnlen(card.socket.data(), card.socket.size());
  std::memcpy(address.sun_path + 1, card.socket.data(), name_bytes);
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_bytes);
  return address;
}

bool send_descriptor(int socket, int fd) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return despite_signals([&] { return sendmsg(socket, &message, MSG_NOSIGNAL); }) == 1;
}

int receive_descriptor(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (despite_signals([&] { return recvmsg(socket, &message, MSG_CMSG_CLOEXEC); }) != 1) return -1;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

// Whether who connected runs as this user and knows the job's secret.
bool is_one_of_us(const Socket& peer, const Card& card, const std::vector<Card>& cards) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(peer.fd(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0 || credentials.uid != getuid())
    return false;
  std::array<unsigned char, 16> secret{};
  const auto receive = [&] { return recv(peer.fd(), secret.data(), secret.size(), MSG_WAITALL); };
  return peer.wait_readable(cards).is_ok() && despite_signals(receive) == static_cast<ssize_t>(secret.size()) &&
         secret == card.secret;
}

Status hand_out(const Socket& listener, int fd, const Card& card, const std::vector<Card>& cards) {
  const std::size_t others = cards.size() - 1;
  for (std::size_t served = 0; served < others;) {
    if (Status status = listener.wait_readable(cards); !status.is_ok()) {
      if (status.code() == Code::peer_failed) return status;
      return {Code::system, fmt::format("farsum_init: {} of {} ranks did not come for the node's memory within 30 s",
                                        others - served, others)};
    }
    const Socket peer(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (peer.fd() < 0 || !is_one_of_us(peer, card, cards)) continue;
    if (!send_descriptor(peer.fd(), fd)) return system_failure("handing out the node's memory");
    ++served;
  }
  return {};
}

Result<int> fetch(const std::vector<Card>& cards) {
  const Card& card = cards[0];
  const Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t length = 0;
  const sockaddr_un address = address_of(card, length);
  // What fails because the first rank has died is reported as that.
  const auto failed = [&](const char* what) {
    const int error = errno;
    Status dead = look_at(cards);
    errno = error;
    return dead.is_ok() ? system_failure(what) : std::move(dead);
  };
  const auto join = [&] { return connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), length); };
  if (despite_signals(join) != 0) return failed("connecting to the node's first rank");
  const auto greet = [&] { return send(socket.fd(), card.secret.data(), card.secret.size(), MSG_NOSIGNAL); };
  if (despite_signals(greet) != static_cast<ssize_t>(card.secret.size()))
    return failed("greeting the node's first rank");
  if (Status status = socket.wait_readable(cards); !status.is_ok()) {
    if (status.code() == Code::peer_failed) return status;
    return Status(Code::system, "farsum_init: the node's first rank did not answer within 30 s");
  }
  const Socket received(receive_descriptor(socket.fd()));
  // As in place_from_environment: an open file of its own.
  const int fd =
      received.fd() < 0 ? -1 : ::open(fmt::format("/proc/self/fd/{}", received.fd()).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    Status dead = look_at(cards);
    return dead.is_ok() ? Status(Code::system, "farsum_init: the node's first rank did not hand out the node's memory")
                        : std::move(dead);
  }
  return fd;
}

// Writes down everybody's process, so that the death of one is seen that never gets to do it itself.
Result<Place> introduce(Result<Place> place, const std::vector<Card>& cards) {
  if (!place.is_ok()) return place;
  for (std::uint32_t rank = 0; rank < cards.size(); ++rank) {
    // Relaxed: whoever writes it writes the same.
    place.value().segment->rank(rank).pid.store(cards[rank].pid, std::memory_order_relaxed);
  }
  return place;
}

}  // namespace

Result<Place> place_from_environment(const Environment& environment, const Settings& settings) {
  const char* rank_text = environment("FARSUM_RANK");
  const char* size_text = environment("FARSUM_SIZE");
  const char* fd_text = environment("FARSUM_NODE_FD");
  if (rank_text == nullptr && size_text == nullptr && fd_text == nullptr) {
    Result<std::unique_ptr<NodeSegment>> segment = NodeSegment::create(segment_options(1, settings));
    if (!segment.is_ok()) return segment.take_status();
    return Place{0, 1, std::move(segment.value())};
  }
  const std::uint32_t rank = number(rank_text);
  const std::uint32_t size = number(size_text);
  const std::uint32_t fd = number(fd_text);
  if (size == 0 || size > most_node_ranks || rank >= size || fd == no_number) {
    return Status(
        Code::argument,
        fmt::format("farsum_init: the launcher's environment does not hold together: FARSUM_RANK={} FARSUM_SIZE={} "
                    "FARSUM_NODE_FD={}; start the program with farsum run",
                    rank_text ? rank_text : "", size_text ? size_text : "", fd_text ? fd_text : ""));
  }
  // Opened anew, so that a next context can start from the same descriptor, and because the ranks share the launcher's
  // open file: a lock on that would exclude none of them.
  const int copy = ::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_RDWR | O_CLOEXEC);
  if (copy < 0) return system_failure("using the descriptor in FARSUM_NODE_FD");
  // What this process starts later is no rank.
  fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
  return place_on(copy, rank, size, settings);
}

Result<Place> place_from_allgather(std::uint32_t rank, std::uint32_t size, const Allgather& allgather,
                                   const Settings& settings) {
  Card mine;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::memcpy(mine.node.data(), boot.data(), std::min(boot.size(), mine.node.size() - 1));
  mine.pid = getpid();
  if (getrandom(mine.secret.data(), mine.secret.size(), 0) != static_cast<ssize_t>(mine.secret.size()))
    return system_failure("getrandom");
  const Socket listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (rank == 0) {
    std::uint64_t tag = 0;
    std::memcpy(&tag, mine.secret.data(), sizeof tag);
    // The name is no secret; the rest of the bytes are.
    const std::string name = fmt::format("farsum-{}-{:x}", getpid(), tag & 0xffffffU);
    std::memcpy(mine.socket.data(), name.data(), std::min(name.size(), mine.socket.size() - 1));
    socklen_t length = 0;
    const sockaddr_un address = address_of(mine, length);
    if (bind(listener.fd(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
        listen(listener.fd(), 128) != 0) {
      return system_failure("listening for the node's ranks");
    }
  }
  std::vector<Card> cards(size);
  if (!allgather(&mine, cards.data(), sizeof mine))
    return Status(Code::system, "farsum_init: the caller's allgather failed");
  for (std::uint32_t other = 0; other < size; ++other) {
    if (cards[other].node == cards[0].node) continue;
    return Status(
        Code::unsupported,
        fmt::format("farsum_init: rank {} runs on another node than rank 0; this build serves one node", other));
  }
  if (rank != 0) {
    Result<int> fd = fetch(cards);
    if (!fd.is_ok()) return fd.take_status();
    return introduce(place_on(fd.value(), rank, size, settings), cards);
  }
  const int fd = memfd_create("farsum-node", MFD_CLOEXEC);
  if (fd < 0) return system_failure("memfd_create");
  if (Status status = hand_out(listener, fd, mine, cards); !status.is_ok()) {
    close(fd);
    return status;
  }
  return introduce(place_on(fd, rank, size, settings), cards);
}

}  // namespace farsum
