#include "transport/rdma/ucx_rdma.hpp"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <latch>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "transport/rdma/ucx_cards.hpp"
#include "transport/ucx/broken_connections.hpp"
#include "transport/ucx/ucx_sealed.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;

constexpr Rank origin = 0, owner = 1;

Result<std::unique_ptr<Rdma>> opened(const std::string& transports) {
  Settings settings;
  settings.ucx_library = ucx_library_for_tests();
  settings.net_tls = transports;
  return open_rdma({}, settings);
}

TEST(OpenRdma, is_refused_over_tcp_with_what_is_missing) {
  auto made = opened("tcp");
  ASSERT_FALSE(made.is_ok());
  const Status status = made.take_status();
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_THAT(status.text(), HasSubstr("FARSUM_NET_TLS=tcp"));
  EXPECT_THAT(status.text(), HasSubstr("over TCP the owner's program does what a card would"));
}

TEST(OpenRdma, names_what_there_is_where_nothing_was_named_and_there_is_no_card) {
  testing::internal::CaptureStderr();
  auto made = opened("");
  const std::string complaint = testing::internal::GetCapturedStderr();
  if (made.is_ok()) GTEST_SKIP() << "here is " << made.value()->description();
  const Status status = made.take_status();
  EXPECT_EQ(status.code(), Code::unsupported);
  if (status.text().find("there is only tcp/") == std::string::npos) GTEST_SKIP() << status.text();
  EXPECT_EQ(complaint, "");
}

TEST(OpenRdma, names_the_transports_where_there_is_no_device_for_them) {
  auto made = opened("rc_of_no_machine");
  ASSERT_FALSE(made.is_ok());
  const Status status = made.take_status();
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_THAT(status.text(), HasSubstr("rc_of_no_machine"));
}

TEST(OpenRdma, takes_what_is_left_of_a_list_without_tcp) {
  auto made = opened("tcp,posix");
  ASSERT_TRUE(made.is_ok()) << made.take_status().text();
  EXPECT_EQ(made.value()->description(), "posix/memory");
}

// Takes seconds: a trial waits for an owner that does nothing.
TEST(UcxTrialTest, finds_out_that_an_owners_program_does_it) {
  UcxRdma::Options options = cards_over("tcp");
  options.card.owners = UcxOwners::idle;
  auto made = UcxRdma::create(options);
  ASSERT_FALSE(made.is_ok());
  const Status status = made.take_status();
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_THAT(status.text(), HasSubstr("finds no card that reaches memory by itself: over tcp/"));
  EXPECT_THAT(status.text(), HasSubstr("waits for the owner's program"));
}

// An origin and an owner in this process. The owner is looked after only when a test says so.
class UcxCardPair {
 public:
  explicit UcxCardPair(const std::string& transports, std::uint64_t spin_ns = 20'000) {
    for (const Rank rank : {origin, owner}) {
      UcxRdma::Options options = cards_over(transports);
      options.job.rank = rank;
      options.spin_ns = spin_ns;
      options.job.on_lost = [this](Rank peer, const std::string& why) {
        const std::lock_guard<std::mutex> lock(mutex_);
        lost_.emplace_back(peer, why);
      };
      auto made = UcxRdma::create(options);
      if (!made.is_ok()) {
        ADD_FAILURE() << made.take_status().text();
        std::abort();
      }
      cards_[rank] = std::move(made.value());
    }
    for (const auto& card : cards_) {
      card->introduce(origin, cards_[origin]->address());
      card->introduce(owner, cards_[owner]->address());
    }
  }
  ~UcxCardPair() {
    for (const auto& card : cards_) {
      if (card) card->abandon();
    }
    agents_.clear();
  }
  UcxCardPair(const UcxCardPair&) = delete;
  UcxCardPair& operator=(const UcxCardPair&) = delete;

  UcxRdma& at(Rank rank) { return *cards_[rank]; }
  void look_after_all() {
    for (const auto& card : cards_) agents_.push_back(std::make_unique<CardAgent>(*card));
  }
  CardMemory exposed(std::uint64_t bytes) { return at(owner).expose(nullptr, bytes).value(); }
  std::vector<std::pair<Rank, std::string>> lost() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lost_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<Rank, std::string>> lost_;
  std::array<std::unique_ptr<UcxRdma>, 2> cards_;
  std::vector<std::unique_ptr<CardAgent>> agents_;
};

std::uint64_t address_of(const CardMemory& memory) { return reinterpret_cast<std::uintptr_t>(memory.memory); }

TEST(UcxRdmaTest, refuses_memory_of_the_program_where_only_ucxs_own_is_reached) {
  for (const char* transports : {"posix", "sysv"}) {
    UcxCardPair pair(transports);
    std::vector<std::byte> memory(100'000, std::byte{0x3c});
    auto made = pair.at(owner).expose(memory.data(), memory.size());
    ASSERT_FALSE(made.is_ok());
    const Status status = made.take_status();
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_THAT(status.text(), HasSubstr("does not reach 100000 bytes of the program's memory by itself"));
    EXPECT_EQ(memory, std::vector<std::byte>(100'000, std::byte{0x3c}));
  }
}

TEST(UcxRdmaTest, reaches_memory_of_the_program_where_ucx_does) {
  UcxCardPair pair("tcp");
  pair.look_after_all();
  std::vector<std::byte> memory(100'000);
  auto made = pair.at(owner).expose(memory.data(), memory.size());
  ASSERT_TRUE(made.is_ok()) << made.take_status().text();
  EXPECT_EQ(made.value().memory, memory.data());
  const Rdma::Reached reached = pair.at(origin).reach(owner, made.value().key);
  const std::vector<std::byte> sent(memory.size(), std::byte{0x5a});
  CardCompletion over;
  ASSERT_TRUE(pair.at(origin).put(reached, address_of(made.value()), sent, over).is_ok());
  ASSERT_TRUE(pair.at(origin).flush(owner, over).is_ok());
  ASSERT_TRUE(pair.at(origin).wait(over, nothing_to_look_for).is_ok());
  EXPECT_EQ(memory, sent);
}

TEST(UcxRdmaTest, says_that_there_is_no_room) {
  UcxCardPair pair("posix");
  auto made = pair.at(owner).expose(nullptr, std::uint64_t{1} << 50);
  ASSERT_FALSE(made.is_ok());
  EXPECT_EQ(made.take_status().code(), Code::no_memory);
}

TEST(UcxRdmaTest, refuses_keys_that_did_not_arrive_whole) {
  UcxCardPair pair("posix");
  const CardMemory memory = pair.exposed(4096);
  const auto answer = [&](const std::vector<std::byte>& key) {
    const Rdma::Reached reached = pair.at(origin).reach(owner, key);
    const Code code = pair.at(origin).update(reached, {address_of(memory), 8}, CardUpdate::add, 1).code();
    pair.at(origin).let_go(reached);
    return code;
  };
  for (std::size_t bytes = 0; bytes < memory.key.size(); ++bytes) {
    EXPECT_EQ(answer({memory.key.begin(), memory.key.begin() + static_cast<std::ptrdiff_t>(bytes)}), Code::argument);
    std::vector<std::byte> damaged = memory.key;
    damaged[bytes] ^= std::byte{0x10};
    EXPECT_EQ(answer(damaged), Code::argument);
  }
  EXPECT_EQ(answer(std::vector<std::byte>(pair.at(owner).address().begin(), pair.at(owner).address().end())),
            Code::argument);
  EXPECT_EQ(answer(memory.key), Code::ok);
}

TEST(UcxRdmaTest, refuses_an_address_that_did_not_arrive_whole) {
  UcxCardPair pair("posix");
  const CardMemory memory = pair.exposed(4096);
  const std::span<const std::byte> address = pair.at(owner).address();
  pair.at(origin).introduce(2, address.first(address.size() - 1));
  const Rdma::Reached reached = pair.at(origin).reach(2, memory.key);
  EXPECT_EQ(pair.at(origin).update(reached, {address_of(memory), 8}, CardUpdate::add, 1).code(), Code::argument);
  const Rdma::Reached stranger = pair.at(origin).reach(3, memory.key);
  EXPECT_EQ(pair.at(origin).update(stranger, {address_of(memory), 8}, CardUpdate::add, 1).code(), Code::argument);
}

TEST(UcxRdmaTest, touches_nothing_outside_of_what_was_exposed) {
  UcxCardPair pair("posix");
  const CardMemory memory = pair.exposed(4096);
  UcxRdma& card = pair.at(origin);
  const Rdma::Reached reached = card.reach(owner, memory.key);
  const std::uint64_t begin = address_of(memory);
  std::vector<std::byte> bytes(4097);
  CardCompletion over;
  EXPECT_EQ(card.put(reached, begin, bytes, over).code(), Code::range);
  EXPECT_EQ(card.put(reached, begin - 1, std::span(bytes).first(1), over).code(), Code::range);
  EXPECT_EQ(card.get(reached, begin + 4096, std::span(bytes).first(1), over).code(), Code::range);
  EXPECT_EQ(card.get(reached, ~std::uint64_t{0}, std::span(bytes).first(2), over).code(), Code::range);
  EXPECT_EQ(card.update(reached, {begin + 4096, 8}, CardUpdate::add, 1).code(), Code::range);
  EXPECT_EQ(card.update(reached, {begin + 4, 8}, CardUpdate::add, 1).code(), Code::alignment);
  EXPECT_EQ(card.update(reached, {begin + 2, 4}, CardUpdate::add, 1).code(), Code::alignment);
  EXPECT_EQ(card.update(reached, {begin, 2}, CardUpdate::add, 1).code(), Code::type);
  EXPECT_EQ(card.update(reached, {begin, 8}, CardUpdate::compare_and_swap, 1).code(), Code::argument);
  card.let_go(reached);
  EXPECT_EQ(card.update(reached, {begin, 8}, CardUpdate::add, 1).code(), Code::argument);
  EXPECT_TRUE(card.put(card.reach(owner, memory.key), begin, std::span(bytes).first(4096), over).is_ok());
}

// Over TCP an operation towards an owner that nobody looks after stays under way.
class UcxRdmaUnattended : public testing::Test {
 protected:
  static constexpr std::uint64_t no_spin = 0;
  UcxRdmaUnattended() : pair_("tcp", no_spin), memory_(pair_.exposed(1 << 16)) {
    reached_ = card().reach(owner, memory_.key);
  }
  UcxRdma& card() { return pair_.at(origin); }
  Status start_fetch(CardCompletion& over, std::uint64_t& result) {
    return card().fetch(reached_, {address_of(memory_), 8}, CardUpdate::add, 1, 0,
                        reinterpret_cast<std::byte*>(&result), over);
  }

  UcxCardPair pair_;
  CardMemory memory_;
  Rdma::Reached reached_ = 0;
};

TEST_F(UcxRdmaUnattended, a_wait_ends_with_what_was_looked_for) {
  CardCompletion over;
  std::uint64_t result = 0;
  ASSERT_TRUE(start_fetch(over, result).is_ok());
  int looks = 0;
  const Status status = card().wait(over, [&looks]() -> Status {
    if (++looks < 3) return {};
    return {Code::peer_failed, "rank 1 died"};
  });
  EXPECT_EQ(status.text(), "rank 1 died");
  EXPECT_EQ(over.pending.load(std::memory_order_acquire), 1u);
  card().abandon();
  EXPECT_EQ(over.pending.load(std::memory_order_acquire), 0u);
}

TEST_F(UcxRdmaUnattended, abandoning_ends_every_wait) {
  constexpr int threads = 4;
  std::array<CardCompletion, threads> over;
  std::array<std::uint64_t, threads> results{};
  std::vector<std::thread> waiting;
  std::latch started(threads);
  for (int i = 0; i < threads; ++i) {
    ASSERT_TRUE(start_fetch(over[i], results[i]).is_ok());
    waiting.emplace_back([&, i] {
      started.count_down();
      EXPECT_TRUE(card().wait(over[i], nothing_to_look_for).is_ok());
      EXPECT_EQ(over[i].failure.load(std::memory_order_relaxed), Code::peer_failed);
    });
  }
  started.wait();
  card().abandon();
  for (std::thread& thread : waiting) thread.join();
  EXPECT_TRUE(pair_.lost().empty());
}

TEST_F(UcxRdmaUnattended, every_sleeper_learns_of_its_own_operations_end) {
  constexpr int threads = 6;
  std::array<std::uint64_t, threads> results{};
  std::vector<std::thread> waiting;
  std::latch started(threads);
  for (int i = 0; i < threads; ++i) {
    waiting.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        CardCompletion over;
        EXPECT_TRUE(start_fetch(over, results[i]).is_ok());
        if (round == 0) started.count_down();
        EXPECT_TRUE(card().wait(over, nothing_to_look_for).is_ok());
        EXPECT_EQ(over.failure.load(std::memory_order_relaxed), Code::ok);
      }
    });
  }
  started.wait();
  pair_.look_after_all();
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(*std::max_element(results.begin(), results.end()), threads * 200 - 1);
}

TEST_F(UcxRdmaUnattended, a_broken_connection_ends_what_was_under_way_and_is_told_once) {
  pair_.look_after_all();
  CardCompletion first;
  std::uint64_t result = 0;
  ASSERT_TRUE(start_fetch(first, result).is_ok());
  ASSERT_TRUE(card().wait(first, nothing_to_look_for).is_ok());
  ASSERT_EQ(first.failure.load(std::memory_order_relaxed), Code::ok);

  ASSERT_GT(break_all_connections(), 0u);
  Code answer = Code::ok;
  while (answer == Code::ok) {
    CardCompletion over;
    answer = start_fetch(over, result).code();
    EXPECT_TRUE(card().wait(over, nothing_to_look_for).is_ok());
    if (over.failure.load(std::memory_order_relaxed) != Code::ok) answer = Code::peer_failed;
  }
  EXPECT_EQ(answer, Code::peer_failed);
  CardCompletion over;
  EXPECT_EQ(start_fetch(over, result).code(), Code::peer_failed);
  EXPECT_EQ(card().flush(owner, over).code(), Code::peer_failed);
  EXPECT_EQ(over.pending.load(std::memory_order_acquire), 0u);
  const auto lost = pair_.lost();
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost.front().first, owner);
  EXPECT_THAT(lost.front().second, HasSubstr("the card's connection to rank 1 broke"));
}

// ---- two processes ----

constexpr const char* peer_socket = "FARSUM_TEST_CARD_SOCKET";
constexpr std::uint64_t adds_of_each = 20'000;
constexpr std::array<std::byte, 1> go_on = {};

void send_bytes(int socket, std::span<const std::byte> bytes) {
  const std::uint64_t count = bytes.size();
  ASSERT_EQ(write(socket, &count, sizeof count), static_cast<ssize_t>(sizeof count));
  ASSERT_EQ(write(socket, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
}

// Nothing where the other end is gone.
std::optional<std::vector<std::byte>> received_bytes(int socket) {
  std::uint64_t count = 0;
  if (recv(socket, &count, sizeof count, MSG_WAITALL) != sizeof count) return std::nullopt;
  std::vector<std::byte> bytes(count);
  if (recv(socket, bytes.data(), count, MSG_WAITALL) != static_cast<ssize_t>(count)) return std::nullopt;
  return bytes;
}

void add_many(Rdma& card, Rdma::Reached reached, std::uint64_t address) {
  for (std::uint64_t i = 0; i < adds_of_each; ++i) {
    ASSERT_TRUE(card.update(reached, {address, 8}, CardUpdate::add, 1).is_ok());
    ASSERT_TRUE(card.update(reached, {address + 8, 4}, CardUpdate::add, 3).is_ok());
  }
  CardCompletion over;
  ASSERT_TRUE(card.flush(owner, over).is_ok());
  ASSERT_TRUE(card.wait(over, nothing_to_look_for).is_ok());
}

// The owner, in a process of its own. Started by the test below.
TEST(UcxRdmaOfTwoProcesses, other_half) {
  const char* given = std::getenv(peer_socket);
  if (given == nullptr) GTEST_SKIP() << "the half of another test";
  const int socket = std::atoi(given);
  auto card = opened("posix");
  ASSERT_TRUE(card.is_ok()) << card.take_status().text();
  auto memory = card.value()->expose(nullptr, 4096);
  ASSERT_TRUE(memory.is_ok()) << memory.take_status().text();
  send_bytes(socket, card.value()->address());
  send_bytes(socket, memory.value().key);
  send_bytes(socket, std::as_bytes(std::span(&memory.value().memory, 1)));
  ASSERT_TRUE(received_bytes(socket));  // the other begins
  card.value()->introduce(owner, card.value()->address());
  add_many(*card.value(), card.value()->reach(owner, memory.value().key), address_of(memory.value()));
  ASSERT_TRUE(received_bytes(socket));  // the other has ended
  std::array<std::uint64_t, 2> there{};
  std::memcpy(there.data(), memory.value().memory, sizeof there);
  send_bytes(socket, std::as_bytes(std::span(there)));
}

TEST(UcxRdmaOfTwoProcesses, update_the_same_words) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::array<std::string, 2> arguments = {self, "--gtest_filter=UcxRdmaOfTwoProcesses.other_half"};
  std::array<char*, 3> pointers = {arguments[0].data(), arguments[1].data(), nullptr};
  setenv(peer_socket, std::to_string(sockets[1]).c_str(), 1);
  pid_t other = 0;
  ASSERT_EQ(posix_spawn(&other, self.c_str(), nullptr, nullptr, pointers.data(), environ), 0);
  unsetenv(peer_socket);
  close(sockets[1]);

  auto card = opened("posix");
  ASSERT_TRUE(card.is_ok()) << card.take_status().text();
  const auto address = received_bytes(sockets[0]), key = received_bytes(sockets[0]), where = received_bytes(sockets[0]);
  ASSERT_TRUE(address && key && where);
  std::uint64_t begin = 0;
  std::memcpy(&begin, where->data(), sizeof begin);
  card.value()->introduce(owner, *address);
  send_bytes(sockets[0], go_on);
  add_many(*card.value(), card.value()->reach(owner, *key), begin);
  send_bytes(sockets[0], go_on);
  const auto there = received_bytes(sockets[0]);
  ASSERT_TRUE(there && there->size() == 16);
  std::array<std::uint64_t, 2> words{};
  std::memcpy(words.data(), there->data(), sizeof words);
  EXPECT_EQ(words[0], 2 * adds_of_each);
  EXPECT_EQ(words[1], 2 * 3 * adds_of_each);
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  close(sockets[0]);
}

TEST(UcxSealedTest, is_opened_only_as_what_it_is) {
  const std::vector<std::byte> content(33, std::byte{7});
  const std::vector<std::byte> made = sealed(UcxSeal::key, content);
  ASSERT_TRUE(unsealed(UcxSeal::key, made));
  EXPECT_TRUE(std::equal(content.begin(), content.end(), unsealed(UcxSeal::key, made)->begin()));
  EXPECT_FALSE(unsealed(UcxSeal::address, made));
  EXPECT_TRUE(unsealed(UcxSeal::key, sealed(UcxSeal::key, {})));
}

}  // namespace
}  // namespace farsum
