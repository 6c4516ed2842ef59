// The contract suite: what src/transport/transport.hpp promises, tested on every transport. A transport joins by
// instantiating TransportContract with a factory; what it cannot do is a reported skip.
//
//   INSTANTIATE_TEST_SUITE_P(sim, TransportContract, testing::Values(ContractFactory{"plain", [] { return ...; }}),
//   contract_name);
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "transport/transport.hpp"

namespace farsum {

inline constexpr Rank contract_ranks = 4;

// Some ranks of one job, all within this process, and what a test needs besides the transport itself. The suite drives
// both halves of every rank from one thread: nothing may serve requests or hand over replies by itself.
class TransportUnderTest {
 public:
  virtual ~TransportUnderTest() = default;

  virtual Transport& at(Rank rank) = 0;
  // Lets what is on its way arrive. Nothing to do where posting is arriving.
  virtual void settle() = 0;

  // Memory of `rank` that its peers may read and write.
  virtual std::span<std::byte> memory(Rank rank, std::size_t bytes) = 0;
  // An address where `rank` has no memory; 0 where there is no way to know one.
  virtual std::uint64_t bad_address(Rank rank) = 0;
  // How the transfer ended that `rank` asked for and was told `started`; nothing while it has not.
  virtual std::optional<Transfer> transfer_end(Rank rank, std::uint64_t cookie) = 0;

  // Ends a rank as a crash would, and lets the others learn of it; false when this set-up cannot.
  virtual bool kill(Rank rank) = 0;
};

struct ContractFactory {
  std::string name;
  std::function<std::unique_ptr<TransportUnderTest>()> make;
};

inline std::string contract_name(const testing::TestParamInfo<ContractFactory>& info) { return info.param.name; }
inline void PrintTo(const ContractFactory& factory, std::ostream* out) {
  *out << factory.name;
}  // NOLINT: googletest's name

class TransportContract : public testing::TestWithParam<ContractFactory> {
 protected:
  // Two senders and a bystander around one receiver, whose target half the test drives.
  static constexpr Rank sender = 0;
  static constexpr Rank other_sender = 1;
  static constexpr Rank receiver = 2;
  static constexpr Rank bystander = 3;

  // Far more rounds than anything here needs: a transport that uses them up is stuck.
  static constexpr int most_rounds = 20'000;

  TransportContract() : job_(GetParam().make()) {}

  Transport& at(Rank rank) { return job_->at(rank); }

  // What is on its way reaches the receiver and is served, and the replies go back.
  std::size_t serve(RequestHandler& target, std::size_t budget = 64) {
    job_->settle();
    const std::size_t finished = at(receiver).poll_requests(target, budget);
    job_->settle();
    return finished;
  }
  void round(RequestHandler& target, Rank from, ReplyHandler& replies) {
    serve(target);
    at(from).poll_replies(receiver, replies);
  }

  // Posts, with as many rounds in between as its room takes.
  std::uint64_t post(Rank from, std::span<const std::byte> head, std::span<const std::byte> body,
                     std::size_t reply_capacity, RequestHandler& target, ReplyHandler& replies) {
    for (int i = 0; i < most_rounds; ++i) {
      if (const auto ticket = at(from).try_post(receiver, head, body, {.reply_capacity = reply_capacity}))
        return *ticket;
      round(target, from, replies);
    }
    ADD_FAILURE() << "no room was ever found";
    return 0;
  }

  template <class Condition>
  bool rounds_until(RequestHandler& target, Rank from, ReplyHandler& replies, Condition condition) {
    for (int i = 0; i < most_rounds && !condition(); ++i) round(target, from, replies);
    return condition();
  }

  // How a transfer ends, told at once or later.
  Transfer end_of(Rank rank, std::uint64_t cookie, Transfer answer) {
    for (int i = 0; answer == Transfer::started && i < most_rounds; ++i) {
      job_->settle();
      if (const auto end = job_->transfer_end(rank, cookie)) answer = *end;
    }
    return answer;
  }

  std::unique_ptr<TransportUnderTest> job_;
};

}  // namespace farsum
