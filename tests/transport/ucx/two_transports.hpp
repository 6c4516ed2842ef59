// Two or more ranks' transports in one process over TCP, a clock that is moved by hand, and both ends of a conversation
// whose answers can be checked.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "transport/ucx/two_workers.hpp"
#include "transport/ucx/ucx_transport.hpp"

namespace farsum {

inline const UcxOptions over_tcp{.transports = "tcp", .devices = "all"};

inline std::span<const std::byte> word_bytes(const std::uint64_t& value) { return std::as_bytes(std::span(&value, 1)); }

inline link::Secret secret(unsigned seed) {
  link::Secret made{};
  for (std::byte& byte : made.bytes) byte = static_cast<std::byte>(seed++);
  return made;
}

// Adds up what comes, and answers with what it had before.
class Adder final : public RequestHandler {
 public:
  Served on_request(Rank, std::span<const std::byte> message, std::span<std::byte> reply_room, ReplyToken) override {
    std::uint64_t value = 0;
    std::memcpy(&value, message.data(), sizeof value);
    std::memcpy(reply_room.data(), &sum, sizeof sum);
    in_order = in_order && value == ++calls;
    sum += value;
    return {.reply_bytes = sizeof sum};
  }
  std::uint64_t sum = 0, calls = 0;
  bool in_order = true;
};

class Sums final : public ReplyHandler {
 public:
  void on_reply(Rank, std::uint64_t ticket, Code code, std::span<const std::byte> reply) override {
    ++count;
    codes[code]++;
    std::uint64_t value = 0;
    if (reply.size() == sizeof value) std::memcpy(&value, reply.data(), sizeof value);
    // The n-th request, which brings n, finds the sum of all before it.
    right = right && code == Code::ok && value == ticket * (ticket + 1) / 2;
  }
  std::uint64_t count = 0;
  std::map<Code, std::uint64_t> codes;
  bool right = true;
};

class UcxTransportTest : public testing::Test {
 protected:
  static constexpr Rank origin = 0, target = 1, other_target = 2;

  explicit UcxTransportTest(std::uint32_t size = 2) : size_(size) {}

  void SetUp() override {
    for (Rank rank = 0; rank < size_; ++rank) {
      ranks_.push_back(make(rank, secret(1)));
      if (!ranks_.back()) GTEST_SKIP() << refusal_;
    }
    for (Rank rank = target; rank < size_; ++rank) ranks_[origin]->introduce(rank, ranks_[rank]->address());
  }

  std::unique_ptr<UcxTransport> make(Rank rank, const link::Secret& known, const UcxOptions& ucx = over_tcp) {
    UcxTransport::Options options;
    options.rank = rank;
    options.ranks = size_;
    options.secret = known;
    options.ucx = ucx;
    options.library = ucx_library_for_tests();
    options.now_ns = [this] { return now_ns_.load(std::memory_order_relaxed); };
    options.on_lost = [this, rank](Rank peer, const std::string& why) { lost_[rank].push_back({peer, why}); };
    options.on_hand_over = [this, rank] { ++handed_over_[rank]; };
    auto made = UcxTransport::create(options);
    if (made.is_ok()) return std::move(made.value());
    refusal_ = made.take_status().text();
    return nullptr;
  }

  UcxTransport& at(Rank rank) { return *ranks_[rank]; }
  void pass(std::uint64_t ns) { now_ns_.fetch_add(ns, std::memory_order_relaxed); }

  // One round of both, in which a little time passes.
  void round(Adder& adder, Sums& sums) {
    pass(100'000);
    at(origin).tick();
    at(target).poll_requests(adder, 64);
    at(origin).poll_replies(target, sums);
  }

  // Until `done`, with all that was handed over looked after as an agent does.
  template <class Done>
  void rounds_until(Adder& adder, Sums& sums, Done done) {
    while (!done()) round(adder, sums);
  }
  void connect(Adder& adder, Sums& sums) {
    at(origin).open(target);
    rounds_until(adder, sums, [&] { return at(origin).state(target) == link::LinkState::open; });
  }
  // A request is on its way, and nothing is heard for longer than may be.
  void ask_in_vain() {
    Adder adder;
    Sums sums;
    const std::uint64_t value = 1;
    connect(adder, sums);
    ASSERT_TRUE(at(origin).try_post(target, word_bytes(value), {}, {.reply_capacity = 8}));
    pass(31'000'000'000);
  }
  // Nothing of the origin's is under way and its agent has seen that.
  void settle(Adder& adder, Sums& sums) {
    rounds_until(adder, sums, [&] { return at(origin).next_deadline_ns() == link::LinkSender::never; });
    at(origin).is_unattended(Network::Threads::away);
    handed_over_[origin] = 0;
  }

  using Lost = std::vector<std::pair<Rank, std::string>>;
  std::uint32_t size_;
  Lost lost_[3];  // as each rank was told
  std::uint64_t handed_over_[3] = {};
  std::string refusal_;
  std::atomic<std::uint64_t> now_ns_{1};  // moved on by hand
  std::vector<std::unique_ptr<UcxTransport>> ranks_;
};

}  // namespace farsum
