// The transport within a node keeps the transport contract. Its ranks live in one process here, which the kernel takes
// for a process that copies to and from itself.
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "transport/contract_suite.hpp"
#include "transport/shm/node_segment.hpp"
#include "transport/shm/shm_transport.hpp"

namespace farsum {
namespace {

class ShmUnderTest final : public TransportUnderTest {
 public:
  explicit ShmUnderTest(ShmTransport::Options options) : segment_(NodeSegment::create({.ranks = contract_ranks})) {
    if (!segment_.is_ok()) {
      ADD_FAILURE() << segment_.take_status().text();
      std::abort();
    }
    NodeSegment& segment = *segment_.value();
    for (Rank rank = 0; rank < contract_ranks; ++rank) {
      RankBlock& block = segment.rank(rank);
      block.nonce_address.store(reinterpret_cast<std::uintptr_t>(&nonce_));
      block.nonce.store(nonce_);
      block.pid.store(getpid());
      options.rank = rank;
      transports_.push_back(std::make_unique<ShmTransport>(segment, options));
    }
    for (const auto& transport : transports_) transport->probe_peers();
  }

  Transport& at(Rank rank) override { return *transports_[rank]; }
  void settle() override {}
  std::span<std::byte> memory(Rank, std::size_t bytes) override {
    memory_.push_back(std::make_unique<std::byte[]>(bytes));
    return {memory_.back().get(), bytes};
  }
  std::uint64_t bad_address(Rank) override {
    void* const page = mmap(nullptr, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(page);
  }
  std::optional<Transfer> transfer_end(Rank, std::uint64_t) override { return std::nullopt; }
  // Who is dead is found out by PeerWatch, upon which OriginEngine::fail_peer() is called to fail what waits for them.
  bool kill(Rank) override { return false; }

 private:
  const std::uint64_t nonce_ = 0x5eed'5eed'5eed'5eed;
  Result<std::unique_ptr<NodeSegment>> segment_;
  std::vector<std::unique_ptr<ShmTransport>> transports_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

ContractFactory shm(const char* name, const ShmTransport::Options& options) {
  return {name,
          [options] { return std::make_unique<ShmUnderTest>(options); },
          {.late_replies = false, .transfers = options.allow_attach, .deaths = false, .letters = false}};
}

class NotingSenders final : public RequestHandler {
 public:
  Served on_request(Rank from, std::span<const std::byte>, std::span<std::byte>, ReplyToken) override {
    senders += std::to_string(from);
    return {};
  }
  std::string senders;
};

TEST(ShmTurns, begin_with_those_whose_turn_has_not_come) {
  ShmUnderTest job({});
  for (int i = 0; i < 4; ++i) {
    for (const Rank from : {Rank{0}, Rank{1}, Rank{3}}) ASSERT_TRUE(job.at(from).try_post(2, {}, {}, {}));
  }
  NotingSenders handler;
  for (int turn = 0; turn < 6; ++turn) {
    EXPECT_EQ(job.at(2).poll_requests(handler, 2), 2u);
    EXPECT_TRUE(job.at(2).has_unfinished_request() || turn == 5);
  }
  EXPECT_EQ(handler.senders, "001133001133");
}

FARSUM_KEEPS_CONTRACT(shm, shm("plain", {}), shm("small_channels", {.channel_bytes = 4096}),
                      shm("attach_refused", {.allow_attach = false}));

}  // namespace
}  // namespace farsum
