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
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "collectives/node_rounds.hpp"
#include "os/process.hpp"
#include "runtime/pmix.hpp"

namespace farsum {
namespace {

constexpr int look_interval_ms = 100;

NodeSegment::Options segment_options(std::uint32_t ranks, const Settings& settings) {
  return {.ranks = ranks, .segment_bytes = settings.segment_bytes, .team_bytes = GroupBlock::footprint(ranks)};
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

constexpr std::uint32_t most_job_ranks = 65'536;

// What each rank tells all others.
struct Card {
  NodeIdentity node;
  std::array<char, 48> socket{};  // abstract name on which this rank, if it is its node's lowest, hands out the memory
  std::array<std::byte, 16> secret{};
  std::int32_t pid = 0;
  std::uint32_t rank = 0;  // of the job
};

// What a rank knows of its own node while it joins the others there.
struct Joining {
  std::vector<Card> cards;  // by place
  std::uint64_t timeout_s = 0;
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
Status look_at(const Joining& joining) {
  for (const Card& card : joining.cards) {
    if (!os::process_has_ended(card.pid)) continue;
    return {Code::peer_failed, fmt::format("farsum_init: rank {} of the job died", card.rank)};
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
  // system when nothing has come in time, peer_failed when one of the ranks has died before.
  Status wait_readable(const Joining& joining) const {
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      pollfd query{fd_, POLLIN, 0};
      if (poll(&query, 1, look_interval_ms) == 1) return {};
      if (Status status = look_at(joining); !status.is_ok()) return status;
      if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(joining.timeout_s)) {
        return {Code::system, "nothing came in time"};
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
bool is_one_of_us(const Socket& peer, const Card& card, const Joining& joining) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(peer.fd(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0 || credentials.uid != getuid())
    return false;
  std::array<std::byte, 16> secret{};
  const auto receive = [&] { return recv(peer.fd(), secret.data(), secret.size(), MSG_WAITALL); };
  return peer.wait_readable(joining).is_ok() && despite_signals(receive) == static_cast<ssize_t>(secret.size()) &&
         secret == card.secret;
}

Status hand_out(const Socket& listener, int fd, const Card& card, const Joining& joining) {
  const std::size_t others = joining.cards.size() - 1;
  for (std::size_t served = 0; served < others;) {
    if (Status status = listener.wait_readable(joining); !status.is_ok()) {
      if (status.code() == Code::peer_failed) return status;
      return {Code::system, fmt::format("farsum_init: {} of {} ranks did not come for the node's memory within {} s "
                                        "(FARSUM_WIREUP_TIMEOUT)",
                                        others - served, others, joining.timeout_s)};
    }
    const Socket peer(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (peer.fd() < 0 || !is_one_of_us(peer, card, joining)) continue;
    if (!send_descriptor(peer.fd(), fd)) return system_failure("handing out the node's memory");
    ++served;
  }
  return {};
}

Result<int> fetch(const Joining& joining) {
  const Card& card = joining.cards[0];
  const Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t length = 0;
  const sockaddr_un address = address_of(card, length);
  // What fails because the first rank has died is reported as that.
  const auto failed = [&](const char* what) {
    const int error = errno;
    Status dead = look_at(joining);
    errno = error;
    return dead.is_ok() ? system_failure(what) : std::move(dead);
  };
  const auto join = [&] { return connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), length); };
  if (despite_signals(join) != 0) return failed("connecting to the node's first rank");
  const auto greet = [&] { return send(socket.fd(), card.secret.data(), card.secret.size(), MSG_NOSIGNAL); };
  if (despite_signals(greet) != static_cast<ssize_t>(card.secret.size()))
    return failed("greeting the node's first rank");
  if (Status status = socket.wait_readable(joining); !status.is_ok()) {
    if (status.code() == Code::peer_failed) return status;
    return Status(Code::system,
                  fmt::format("farsum_init: the node's first rank did not answer within {} s (FARSUM_WIREUP_TIMEOUT)",
                              joining.timeout_s));
  }
  const int fd = receive_descriptor(socket.fd());
  if (fd < 0) {
    Status dead = look_at(joining);
    return dead.is_ok() ? Status(Code::system, "farsum_init: the node's first rank did not hand out the node's memory")
                        : std::move(dead);
  }
  return fd;
}

// Each context has an open file of its own: a lock on one that several ranks share would exclude none of them.
Result<Membership> take(const Credentials& credentials, const Settings& settings) {
  const int fd = ::open(fmt::format("/proc/self/fd/{}", credentials.node_fd).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return system_failure("opening the node's memory");
  Result<std::unique_ptr<NodeSegment>> segment =
      NodeSegment::open(fd, segment_options(credentials.here.count(), settings));
  if (!segment.is_ok()) {
    close(fd);
    return segment.take_status();
  }
  Membership membership{
      credentials.rank, credentials.size,   std::move(segment.value()), credentials.map,
      credentials.here, credentials.secret, credentials.allgather,
  };
  // Written down for everybody, so that the death of one is seen that never gets to do it itself.
  for (std::uint32_t at = 0; at < credentials.processes.size(); ++at) {
    // Relaxed: whoever writes it writes the same.
    membership.segment->rank(at).pid.store(credentials.processes[at], std::memory_order_relaxed);
  }
  return membership;
}

Result<Membership> join_by_launcher(const Environment& environment, const Settings& settings) {
  const char* rank_text = environment("FARSUM_RANK");
  const char* size_text = environment("FARSUM_SIZE");
  const char* fd_text = environment("FARSUM_NODE_FD");
  Credentials credentials;
  credentials.rank = number(rank_text);
  credentials.size = number(size_text);
  const std::uint32_t fd = number(fd_text);
  if (credentials.size == 0 || credentials.size > most_node_ranks || credentials.rank >= credentials.size ||
      fd == no_number) {
    return Status(
        Code::argument,
        fmt::format("farsum_init: the launcher's environment does not hold together: FARSUM_RANK={} FARSUM_SIZE={} "
                    "FARSUM_NODE_FD={}; start the program with farsum run",
                    rank_text ? rank_text : "", size_text ? size_text : "", fd_text ? fd_text : ""));
  }
  credentials.node_fd = fcntl(static_cast<int>(fd), F_DUPFD_CLOEXEC, 0);
  if (credentials.node_fd < 0) return system_failure("using the descriptor in FARSUM_NODE_FD");
  // What this process starts later is no rank.
  fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
  credentials.map = JobMap::of_one_node(credentials.size, identify_node(settings.node_name));
  credentials.here = NodeRanks::of_all(credentials.size);
  return take(credentials, settings);
}

Result<Membership> join_alone(const Settings& settings) {
  Result<std::unique_ptr<NodeSegment>> segment = NodeSegment::create(segment_options(1, settings));
  if (!segment.is_ok()) return segment.take_status();
  JobMap map = JobMap::of_one_node(1, identify_node(settings.node_name));
  return Membership{0, 1, std::move(segment.value()), std::move(map), NodeRanks::of_all(1)};
}

// Whoever may be its node's lowest rank listens: which one is, the cards tell.
Status make_card(const Socket& listener, std::uint32_t rank, const Settings& settings, Card& card) {
  card.node = identify_node(settings.node_name);
  card.pid = getpid();
  card.rank = rank;
  if (getrandom(card.secret.data(), card.secret.size(), 0) != static_cast<ssize_t>(card.secret.size()))
    return system_failure("getrandom");
  std::uint64_t tag = 0;
  std::memcpy(&tag, card.secret.data(), sizeof tag);
  // The name is no secret; the rest of the bytes are.
  const std::string name = fmt::format("farsum-{}-{:x}", getpid(), tag & 0xffffffU);
  std::memcpy(card.socket.data(), name.data(), std::min(name.size(), card.socket.size() - 1));
  socklen_t length = 0;
  const sockaddr_un address = address_of(card, length);
  if (bind(listener.fd(), reinterpret_cast<const sockaddr*>(&address), length) != 0 || listen(listener.fd(), 128) != 0)
    return system_failure("listening for the node's ranks");
  return {};
}

// Gets the node's memory from its lowest rank.
Status get_memory(const Socket& listener, const Joining& joining, Credentials& credentials) {
  if (credentials.here.place_of(credentials.rank) != 0) {
    Result<int> fd = fetch(joining);
    if (!fd.is_ok()) return fd.take_status();
    credentials.node_fd = fd.value();
    return {};
  }
  credentials.node_fd = memfd_create("farsum-node", MFD_CLOEXEC);
  if (credentials.node_fd < 0) return system_failure("memfd_create");
  return hand_out(listener, credentials.node_fd, joining.cards[0], joining);
}

Status check_job_size(std::uint32_t size) {
  if (size <= most_job_ranks) return {};
  return {Code::unsupported,
          fmt::format("farsum_init: the job has {} ranks; there may be {} at most", size, most_job_ranks)};
}

Status check_node_size(std::size_t ranks, const NodeIdentity& node) {
  if (ranks <= most_node_ranks) return {};
  return {Code::unsupported, fmt::format("farsum_init: {} ranks of the job run on {}; one node holds {} at most", ranks,
                                         node.host.data(), most_node_ranks)};
}

// Gathers the cards of all ranks that the caller's allgather reaches, in its order.
Result<std::vector<Card>> exchange_cards(const Card& mine, std::uint32_t ranks, const Allgather& allgather) {
  std::vector<Card> cards(ranks);
  if (Status status = allgather(&mine, cards.data(), sizeof mine); !status.is_ok()) return status;
  return cards;
}

// Takes the ranks whose cards lie at `places` for those of this node, in this order.
Joining joining_of(const std::vector<Card>& cards, std::span<const std::uint32_t> places, const Settings& settings,
                   Credentials& credentials) {
  Joining joining{{}, settings.wireup_timeout_s};
  std::vector<Rank> here;
  for (const std::uint32_t place : places) {
    joining.cards.push_back(cards[place]);
    here.push_back(cards[place].rank);
    credentials.processes.push_back(cards[place].pid);
  }
  credentials.here = NodeRanks(std::move(here));
  return joining;
}

// All ranks of the job meet.
Status meet(std::uint32_t rank, std::uint32_t size, const Allgather& allgather, const Settings& settings,
            Credentials& credentials) {
  if (Status status = check_job_size(size); !status.is_ok()) return status;
  const Socket listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Card mine;
  if (Status status = make_card(listener, rank, settings, mine); !status.is_ok()) return status;
  Result<std::vector<Card>> exchanged = exchange_cards(mine, size, allgather);
  if (!exchanged.is_ok()) return exchanged.take_status();
  const std::vector<Card>& cards = exchanged.value();
  std::vector<NodeIdentity> identities;
  identities.reserve(cards.size());
  for (const Card& card : cards) identities.push_back(card.node);
  credentials.rank = rank;
  credentials.size = size;
  credentials.secret = cards[0].secret;
  credentials.map = JobMap(identities);
  // Every rank looks at every node, so that all ranks refuse alike.
  for (std::uint32_t node = 0; node < credentials.map.nodes(); ++node) {
    const std::vector<Rank>& ranks = credentials.map.ranks_of(node);
    if (Status status = check_node_size(ranks.size(), identities[ranks[0]]); !status.is_ok()) return status;
  }
  if (credentials.map.nodes() > 1) credentials.allgather = allgather;
  return get_memory(listener,
                    joining_of(cards, credentials.map.ranks_of(credentials.map.node_of(rank)), settings, credentials),
                    credentials);
}

// The ranks meet that the caller takes for one node's; what shares no memory with this rank is as good as remote.
Status meet_here(std::uint32_t rank, std::uint32_t size, const Allgather& allgather, const RestOfJob& job,
                 const Settings& settings, Credentials& credentials) {
  if (Status status = check_job_size(job.size); !status.is_ok()) return status;
  const Socket listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Card mine;
  if (Status status = make_card(listener, job.rank, settings, mine); !status.is_ok()) return status;
  Result<std::vector<Card>> exchanged = exchange_cards(mine, size, allgather);
  if (!exchanged.is_ok()) return exchanged.take_status();
  const std::vector<Card>& cards = exchanged.value();
  std::vector<bool> seen(job.size);
  std::vector<std::uint32_t> places;
  for (std::uint32_t place = 0; place < size; ++place) {
    const Rank of_job = cards[place].rank;
    if (of_job >= job.size || seen[of_job]) {
      return {Code::argument, fmt::format("farsum_init: rank {} of {} here says it is rank {} of a job of {}; each "
                                          "rank of the job must be one process",
                                          place, size, of_job, job.size)};
    }
    seen[of_job] = true;
    if (cards[place].node.is_same_node(cards[rank].node)) places.push_back(place);
  }
  if (Status status = check_node_size(places.size(), mine.node); !status.is_ok()) return status;
  credentials.rank = job.rank;
  credentials.size = job.size;
  credentials.secret = job.secret;
  return get_memory(listener, joining_of(cards, places, settings, credentials), credentials);
}

// Not every version of PMIx can be started twice in a process: a job of one node leaves it at once, one of several
// keeps it in its credentials, for every context exchanges anew how ranks are reached over the network.
Result<Membership> join_by_pmix(const Settings& settings, std::unique_ptr<Credentials>& kept) {
  if (kept != nullptr) return take(*kept, settings);
  Result<std::unique_ptr<Pmix>> opened = open_pmix(settings);
  if (!opened.is_ok()) return opened.take_status();
  const std::uint32_t rank = opened.value()->rank();
  const std::uint32_t size = opened.value()->size();
  const auto exchange =
      std::make_shared<PmixExchange>(std::move(opened.value()), std::chrono::seconds(settings.wireup_timeout_s));
  auto credentials = std::make_unique<Credentials>();
  const Allgather allgather = [exchange](const void* mine, void* all, std::size_t bytes) {
    return exchange->gather(mine, all, bytes);
  };
  if (Status status = meet(rank, size, allgather, settings, *credentials); !status.is_ok()) return status;
  kept = std::move(credentials);
  return take(*kept, settings);
}

}  // namespace

Credentials::~Credentials() {
  if (node_fd >= 0) close(node_fd);
}

WireUp choose_wire_up(const Environment& environment, const Settings& settings) {
  for (const char* name : {"FARSUM_RANK", "FARSUM_SIZE", "FARSUM_NODE_FD"}) {
    if (environment(name) != nullptr) return WireUp::launcher;
  }
  const bool by_pmix = environment("PMIX_NAMESPACE") != nullptr && settings.pmix != Permission::refuse;
  return by_pmix ? WireUp::pmix : WireUp::alone;
}

Result<Membership> join_job(const Environment& environment, const Settings& settings,
                            std::unique_ptr<Credentials>& kept) {
  switch (choose_wire_up(environment, settings)) {
    case WireUp::launcher:
      return join_by_launcher(environment, settings);
    case WireUp::pmix:
      return join_by_pmix(settings, kept);
    case WireUp::alone:
      break;
  }
  return join_alone(settings);
}

Result<Membership> join_by_allgather(std::uint32_t rank, std::uint32_t size, const Allgather& allgather,
                                     const Settings& settings) {
  Credentials credentials;
  if (Status status = meet(rank, size, allgather, settings, credentials); !status.is_ok()) return status;
  return take(credentials, settings);
}

Result<Membership> join_by_node_allgather(std::uint32_t rank, std::uint32_t size, const Allgather& allgather,
                                          const RestOfJob& job, const Settings& settings) {
  Credentials credentials;
  if (Status status = meet_here(rank, size, allgather, job, settings, credentials); !status.is_ok()) return status;
  return take(credentials, settings);
}

}  // namespace farsum
