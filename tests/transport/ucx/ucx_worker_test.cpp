#include "transport/ucx/ucx_worker.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include <gmock/gmock.h>

#include "transport/ucx/two_workers.hpp"
#include "transport/ucx/ucx_sockets.hpp"

namespace farsum {
namespace {

using Piece = std::span<const std::byte>;

Bytes scrambled(std::size_t bytes, std::uint32_t seed) {
  Bytes made(bytes);
  for (std::byte& byte : made) {
    seed = seed * 1'664'525 + 1'013'904'223;
    byte = static_cast<std::byte>(seed >> 24);
  }
  return made;
}

// The message cut into so many pieces, the first ones short.
std::vector<Piece> cut(const Bytes& message, std::size_t pieces) {
  std::vector<Piece> made;
  Piece rest(message);
  for (std::size_t i = 0; i + 1 < pieces; ++i) {
    const std::size_t bytes = std::min<std::size_t>(rest.size(), 64);
    made.push_back(rest.first(bytes));
    rest = rest.subspan(bytes);
  }
  made.push_back(rest);
  return made;
}

class UcxWorkerTest : public testing::TestWithParam<UcxSetUp> {
 protected:
  void SetUp() override {
    sockets_before_ = open_tcp_sockets();
    std::string refusal;
    pair_ = TwoWorkers::make(GetParam().options, refusal);
    if (!pair_ && std::getenv("FARSUM_TEST_UCX_MUST_WORK") != nullptr) FAIL() << refusal;
    if (!pair_) GTEST_SKIP() << refusal;
  }
  UcxWorker& a() { return *pair_->a; }
  UcxWorker& b() { return *pair_->b; }
  Heard& heard_by_a() { return pair_->heard_by_a; }
  Heard& heard_by_b() { return pair_->heard_by_b; }

  UcxWorker::Sent send(const Bytes& message, std::uint64_t cookie = 0, std::size_t pieces = 1) {
    return a().send(pair_->a_to_b, 1, cut(message, pieces), cookie);
  }
  // UCX may read the message until it lets go of it.
  UcxWorker::Sent send(Bytes&& message) {
    kept_.push_back(std::move(message));
    return send(kept_.back());
  }

  std::vector<int> sockets_before_;  // of earlier tests' workers, where UCX could not end them
  std::deque<Bytes> kept_;           // outlives the workers
  std::unique_ptr<TwoWorkers> pair_;
};

// Endpoints whose end their peer is told of, and that can be closed by force.
class UcxWorkerThatTells : public UcxWorkerTest {};
class UcxWorkerOfTwoAddresses : public UcxWorkerTest {};

TEST_P(UcxWorkerTest, carries_messages_of_every_length_up_to_a_piece_whole_and_in_order) {
  const std::size_t piece = a().piece_bytes(pair_->a_to_b);
  std::vector<Bytes> posted;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{511}, std::size_t{512}, std::size_t{513},
                                  std::size_t{7999}, std::size_t{8000}, piece - 1, piece}) {
    for (const std::size_t pieces : {1u, 2u, 4u}) {
      posted.push_back(scrambled(bytes, static_cast<std::uint32_t>(posted.size())));
      ASSERT_NE(send(posted.back(), posted.size(), pieces), UcxWorker::Sent::failed);
      pair_->until([&] { return heard_by_b().messages.size() == posted.size(); });
    }
  }
  for (std::size_t i = 0; i < posted.size(); ++i) {
    EXPECT_EQ(heard_by_b().messages[i].channel, 1u);
    EXPECT_EQ(heard_by_b().messages[i].bytes, posted[i]) << posted[i].size() << " bytes";
  }
}

TEST_P(UcxWorkerTest, answers_over_an_endpoint_made_from_the_address_that_came_in_a_message) {
  const Bytes hello(a().address().begin(), a().address().end());
  ASSERT_NE(send(hello), UcxWorker::Sent::failed);
  pair_->until([&] { return !heard_by_b().messages.empty(); });
  auto back = b().connect(heard_by_b().messages.front().bytes);
  ASSERT_TRUE(back.is_ok()) << back.take_status().text();
  const Bytes answer = scrambled(300, 7);
  ASSERT_NE(b().send(back.value(), 2, cut(answer, 2), 0), UcxWorker::Sent::failed);
  pair_->until([&] { return !heard_by_a().messages.empty(); });
  EXPECT_EQ(heard_by_a().messages.front().channel, 2u);
  EXPECT_EQ(heard_by_a().messages.front().bytes, answer);
}

TEST_P(UcxWorkerTest, keeps_the_order_of_many_messages_on_their_way_at_once) {
  constexpr std::uint64_t count = 400;
  const std::size_t piece = a().piece_bytes(pair_->a_to_b);
  std::vector<Bytes> posted;
  for (std::uint64_t i = 0; i < count; ++i) {
    posted.push_back(scrambled(i % 3 == 0 ? piece : 16 + i, static_cast<std::uint32_t>(i)));
    ASSERT_NE(send(posted.back(), i, 2), UcxWorker::Sent::failed);
  }
  pair_->until([&] { return heard_by_b().messages.size() == count; });
  for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(heard_by_b().messages[i].bytes, posted[i]) << "message " << i;
}

TEST_P(UcxWorkerTest, lets_its_owner_sleep_until_a_message_comes) {
  ASSERT_NE(send(scrambled(8, 1)), UcxWorker::Sent::failed);
  pair_->until([&] { return heard_by_b().messages.size() == 1; });
  const auto arm = [&] {
    for (;;) {
      while (b().progress() != 0) {
      }
      auto armed = b().arm();
      if (!armed.is_ok()) return armed.take_status();
      if (armed.value()) return Status();
    }
  };
  for (std::size_t round = 2; round < 20; ++round) {
    const Status status = arm();
    ASSERT_TRUE(status.is_ok()) << status.text();
    pollfd asleep{.fd = b().event_descriptor(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&asleep, 1, 0), 0) << "awake with nothing to do";
    ASSERT_NE(send(scrambled(8, 1)), UcxWorker::Sent::failed);
    a().progress();
    ASSERT_EQ(poll(&asleep, 1, -1), 1);
    pair_->until([&] { return heard_by_b().messages.size() == round; });
  }
}

TEST_P(UcxWorkerThatTells, once_that_the_peer_is_gone_and_closes_what_is_left) {
  ASSERT_TRUE(pair_->context->tells_of_failures());
  ASSERT_NE(send(scrambled(8, 1)), UcxWorker::Sent::failed);
  pair_->until([&] { return heard_by_b().messages.size() == 1; });
  pair_->b.reset();
  pair_->until([&] { return !heard_by_a().broken.empty(); });
  EXPECT_EQ(send(scrambled(8, 1)), UcxWorker::Sent::failed);
  a().close(pair_->a_to_b);
  pair_->until([&] { return !heard_by_a().closed.empty(); });
  EXPECT_EQ(heard_by_a().broken, std::vector{pair_->a_to_b});
  EXPECT_EQ(heard_by_a().closed, std::vector{pair_->a_to_b});
  EXPECT_EQ(a().open_endpoints(), 0u);
}

TEST_P(UcxWorkerTest, lets_go_of_every_piece_before_it_tells_that_an_endpoint_is_closed) {
  const std::size_t piece = a().piece_bytes(pair_->a_to_b);
  const Bytes message = scrambled(piece, 3);
  // Nobody takes these, so that they fill the connection and wait here.
  std::set<std::uint64_t> started;
  for (std::uint64_t cookie = 0; cookie < 2000; ++cookie) {
    const UcxWorker::Sent sent = send(message, cookie, 2);
    ASSERT_NE(sent, UcxWorker::Sent::failed);
    if (sent == UcxWorker::Sent::started) started.insert(cookie);
    if (started.size() == 100) break;
  }
  a().close(pair_->a_to_b);
  const bool forced = pair_->context->tells_of_failures();
  while (heard_by_a().closed.empty()) {
    a().progress();
    if (!forced) b().progress();  // without force, UCX waits until all has gone
  }
  std::set<std::uint64_t> told;
  for (const Heard::Sent& sent : heard_by_a().sent) EXPECT_TRUE(told.insert(sent.cookie).second) << "told twice";
  EXPECT_EQ(told, started);
  EXPECT_EQ(send(message), UcxWorker::Sent::failed);
}

// As the link does it: the new connection brings the address to answer to, and the old answering endpoint goes.
TEST_P(UcxWorkerThatTells, goes_over_the_same_address_a_thousand_times_without_growing) {
  const Bytes address_of_a(a().address().begin(), a().address().end());
  UcxWorker::Endpoint b_to_a = 0;
  const auto reconnect = [&] {
    a().close(pair_->a_to_b);
    pair_->until([&] { return heard_by_a().closed.size() == 1; });
    auto endpoint = a().connect(b().address());
    ASSERT_TRUE(endpoint.is_ok()) << endpoint.take_status().text();
    pair_->a_to_b = endpoint.value();
    ASSERT_NE(send(address_of_a), UcxWorker::Sent::failed);
    pair_->until([&] { return heard_by_b().messages.size() == 1; });
    if (b_to_a != 0) {
      b().close(b_to_a);
      pair_->until([&] { return heard_by_b().closed.size() == 1; });
    }
    auto back = b().connect(heard_by_b().messages.front().bytes);
    ASSERT_TRUE(back.is_ok()) << back.take_status().text();
    b_to_a = back.value();
    ASSERT_NE(b().send(b_to_a, 2, cut(address_of_a, 1), 0), UcxWorker::Sent::failed);
    pair_->until([&] { return heard_by_a().messages.size() == 1; });
    for (Heard* heard : {&heard_by_a(), &heard_by_b()}) {
      heard->messages.clear();
      heard->closed.clear();
      heard->sent.clear();
      heard->broken.clear();
    }
  };
  for (int i = 0; i < 100; ++i) ASSERT_NO_FATAL_FAILURE(reconnect());
  const std::size_t sockets = open_tcp_sockets().size();
  const std::size_t bytes = mallinfo2().uordblks;
  for (int i = 0; i < 1000; ++i) ASSERT_NO_FATAL_FAILURE(reconnect());
  const auto grown = static_cast<std::int64_t>(mallinfo2().uordblks - bytes);
  EXPECT_LE(open_tcp_sockets().size(), sockets + 2);
  EXPECT_LT(grown, 1000 * 64) << "bytes of the heap for 1000 connections";
  EXPECT_EQ(a().open_endpoints() + b().open_endpoints(), 2u);
}

TEST_P(UcxWorkerTest, keeps_its_sockets_from_programs_that_the_job_starts) {
  ASSERT_NE(send(scrambled(8, 1)), UcxWorker::Sent::failed);
  pair_->until([&] { return heard_by_b().messages.size() == 1; });
  // Between ranks of one process the accepted ones may be marked already, with those that connect.
  for (const int descriptor : accepted_on(b().ports(), open_tcp_sockets())) fcntl(descriptor, F_SETFD, 0);
  b().mark_accepted_sockets();
  for (const int descriptor : new_sockets(sockets_before_, open_tcp_sockets())) {
    EXPECT_NE(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0) << "descriptor " << descriptor;
  }
}

// Whether a connection from this address to that port of 127.0.0.1 is there at once, as all on one machine are.
bool connects(const char* from, std::uint16_t port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in source{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {inet_addr(from)}, .sin_zero = {}};
  sockaddr_in target{
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {inet_addr("127.0.0.1")}, .sin_zero = {}};
  EXPECT_EQ(bind(descriptor, reinterpret_cast<sockaddr*>(&source), sizeof source), 0);
  static_cast<void>(connect(descriptor, reinterpret_cast<sockaddr*>(&target), sizeof target));
  pollfd ready{.fd = descriptor, .events = POLLOUT, .revents = 0};
  const bool connected = poll(&ready, 1, 0) == 1 && (ready.revents & (POLLERR | POLLHUP)) == 0;
  close(descriptor);
  return connected;
}

// Only lo has two addresses everywhere.
TEST_P(UcxWorkerOfTwoAddresses, lets_in_only_the_hosts_that_it_was_told) {
  ASSERT_FALSE(b().ports().empty());
  const std::uint16_t port = b().ports().front();
  EXPECT_TRUE(connects("127.0.0.1", port));
  EXPECT_TRUE(connects("127.0.0.2", port));
  // Each longer than the one before, until there is no room for one by one.
  std::vector<std::uint32_t> hosts = {inet_addr("127.0.0.1")};
  for (const std::uint32_t count : {1u, 100u, 10'000u}) {
    for (std::uint32_t i = 0; i < count; ++i) hosts.push_back(htonl(0xac10'0000 + 3 * i));
    const Status status = b().let_in_only(hosts);
    ASSERT_TRUE(status.is_ok()) << status.text();
  }
  EXPECT_TRUE(connects("127.0.0.1", port));
  EXPECT_FALSE(connects("127.0.0.2", port));
  // Who may connect is not hindered.
  a().close(pair_->a_to_b);
  auto endpoint = a().connect(b().address());
  ASSERT_TRUE(endpoint.is_ok()) << endpoint.take_status().text();
  pair_->a_to_b = endpoint.value();
  ASSERT_NE(send(scrambled(a().piece_bytes(pair_->a_to_b), 1)), UcxWorker::Sent::failed);
  pair_->until([&] { return heard_by_b().messages.size() == 1; });
}

// The signals that a thread blocks, as /proc has it.
std::uint64_t blocked_by(const std::filesystem::path& task) {
  std::ifstream status(task / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigBlk:")) return std::stoull(line.substr(7), nullptr, 16);
  }
  return 0;
}

TEST_P(UcxWorkerTest, gives_no_thread_of_ucx_the_programs_signals) {
  constexpr std::uint64_t sigusr1 = std::uint64_t{1} << (SIGUSR1 - 1);
  const std::string self = std::to_string(gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == self) {
      EXPECT_EQ(blocked_by(task.path()) & sigusr1, 0u) << "the program's thread";
    } else {
      EXPECT_NE(blocked_by(task.path()) & sigusr1, 0u) << "thread " << task.path().filename();
    }
  }
}

// An answer of UCX's own may then wait for a connection that is still being made: UCX 1.13 ends the process by an
// assertion within some 20 turns where the other worker is destroyed at such a moment.
TEST_P(UcxWorkerTest, lives_on_when_one_that_it_has_to_answer_ends) {
  std::uint32_t seed = 1;
  const auto some = [&](std::uint32_t most) {
    seed = seed * 1'664'525 + 1'013'904'223;
    return (seed >> 16) % most;
  };
  const auto progress = [&](UcxWorker& worker) {
    for (std::uint32_t rounds = some(30); rounds != 0; --rounds) worker.progress();
  };
  const Bytes message = scrambled(64, 1);
  const std::array pieces = {Piece(message)};
  for (int turn = 0; turn < 60; ++turn) {
    Heard heard;
    auto made = UcxWorker::create(*pair_->context, heard);
    ASSERT_TRUE(made.is_ok());
    std::unique_ptr<UcxWorker> answering = std::move(made.value());
    if (some(2) != 0) {
      auto back = answering->connect(b().address());
      ASSERT_TRUE(back.is_ok());
      answering->send(back.value(), 1, pieces, 0);
    }
    progress(*answering);
    progress(b());
    auto asking = b().connect(answering->address());
    ASSERT_TRUE(asking.is_ok());
    b().send(asking.value(), 1, pieces, 0);
    for (std::uint32_t rounds = some(6); rounds != 0; --rounds) {
      progress(b());
      progress(*answering);
    }
    answering.reset();
    b().close(asking.value());
    pair_->until(
        [&] { return std::count(heard_by_b().closed.begin(), heard_by_b().closed.end(), asking.value()) == 1; });
  }
}

const UcxSetUp tcp_lo{"tcp_lo", {.transports = "tcp", .devices = "lo"}};
const UcxSetUp tcp{"tcp", {.transports = "tcp", .devices = "all"}};
const UcxSetUp network{"network", {}};
const UcxSetUp posix{"posix", {.transports = "posix", .devices = "all"}};

INSTANTIATE_TEST_SUITE_P(over, UcxWorkerTest, testing::Values(tcp_lo, tcp, network, posix), set_up_name);
INSTANTIATE_TEST_SUITE_P(over, UcxWorkerThatTells, testing::Values(tcp_lo, tcp, network), set_up_name);
INSTANTIATE_TEST_SUITE_P(over, UcxWorkerOfTwoAddresses, testing::Values(tcp_lo), set_up_name);

}  // namespace
}  // namespace farsum
