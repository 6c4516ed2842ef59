// The contract suite: what src/transport/transport.hpp promises, tested on every transport. A transport joins by
// FARSUM_KEEPS_CONTRACT with factories, each of which says what its set-up cannot do; tests of that are not made for
// it.
//
//   FARSUM_KEEPS_CONTRACT(sim, ContractFactory{"plain", [] { return ...; }, {.deaths = false}});
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

// What a set-up can do, which a test holds against it.
struct Abilities {
  bool late_replies = true;
  bool transfers = true;      // between sender and receiver
  bool own_transfers = true;  // of a rank to itself
  bool bad_addresses = true;  // it knows one, where there are transfers
  bool deaths = true;
  bool letters = true;  // from the sender to the receiver
};

struct ContractFactory {
  std::string name;
  std::function<std::unique_ptr<TransportUnderTest>()> make;
  Abilities can = {};
};

// Those that can all of these.
inline std::vector<ContractFactory> able(std::vector<ContractFactory> factories,
                                         std::initializer_list<bool Abilities::*> wanted) {
  std::erase_if(factories, [&](const ContractFactory& factory) {
    return std::any_of(wanted.begin(), wanted.end(), [&](bool Abilities::*ability) { return !(factory.can.*ability); });
  });
  return factories;
}

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

class LateReplyContract : public TransportContract {};

// Keeps the letters that came to one rank.
class KeptLetters final : public LetterHandler {
 public:
  void on_letter(Rank from, std::span<const std::byte> letter) noexcept override {
    of[from].emplace_back(letter.begin(), letter.end());
  }
  std::map<Rank, std::vector<std::vector<std::byte>>> of;
};

class LetterContract : public TransportContract {
 protected:
  LetterContract() {
    for (Rank rank = 0; rank < contract_ranks; ++rank) at(rank).deliver_letters_to(letters_[rank]);
  }
  // With as many rounds in between as its room takes.
  bool send_letter(Rank from, std::span<const std::byte> letter, RequestHandler& target, ReplyHandler& replies) {
    for (int i = 0; i < most_rounds; ++i) {
      if (at(from).try_letter(receiver, letter, {})) return true;
      round(target, from, replies);
    }
    return false;
  }
  std::vector<std::vector<std::byte>>& came(Rank from = sender) { return letters_[receiver].of[from]; }

  KeptLetters letters_[contract_ranks];
};
class TransferContract : public TransportContract {};
class OwnTransferContract : public TransportContract {};
class BadAddressContract : public TransportContract {};
class DeathContract : public TransportContract {};
class TransferDeathContract : public TransportContract {};

#define FARSUM_KEEPS_PART(prefix, suite, factories, ...) \
  INSTANTIATE_TEST_SUITE_P(prefix, suite, testing::ValuesIn(able(factories, {__VA_ARGS__})), contract_name)

// The factories are the further arguments.
#define FARSUM_KEEPS_CONTRACT(prefix, ...)                                                         \
  static std::vector<ContractFactory> prefix##_factories() { return {__VA_ARGS__}; }               \
  FARSUM_KEEPS_PART(prefix, TransportContract, prefix##_factories());                              \
  FARSUM_KEEPS_PART(prefix, LateReplyContract, prefix##_factories(), &Abilities::late_replies);    \
  FARSUM_KEEPS_PART(prefix, LetterContract, prefix##_factories(), &Abilities::letters);            \
  FARSUM_KEEPS_PART(prefix, TransferContract, prefix##_factories(), &Abilities::transfers);        \
  FARSUM_KEEPS_PART(prefix, OwnTransferContract, prefix##_factories(), &Abilities::own_transfers); \
  FARSUM_KEEPS_PART(prefix, BadAddressContract, prefix##_factories(), &Abilities::transfers,       \
                    &Abilities::bad_addresses);                                                    \
  FARSUM_KEEPS_PART(prefix, DeathContract, prefix##_factories(), &Abilities::deaths);              \
  FARSUM_KEEPS_PART(prefix, TransferDeathContract, prefix##_factories(), &Abilities::transfers, &Abilities::deaths)

}  // namespace farsum
