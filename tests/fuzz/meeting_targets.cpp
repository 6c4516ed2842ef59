// What ranks of other hosts send when they meet: parts of a team's letters, and sealed addresses and keys.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "core/origin_engine.hpp"
#include "runtime/team_exchange.hpp"
#include "targets.hpp"
#include "transport/ucx/ucx_sealed.hpp"

namespace farsum::fuzz {
namespace {

// Nothing is sent: the letters come from the input.
class NoTransport final : public Transport {
 public:
  Capabilities capabilities(Rank) const override { return {}; }
  std::optional<std::uint64_t> try_post(Rank, std::span<const std::byte>, std::span<const std::byte>,
                                        const PostOptions&) override {
    return std::nullopt;
  }
  std::size_t poll_replies(Rank, ReplyHandler&) override { return 0; }
  std::size_t poll_requests(RequestHandler&, std::size_t) override { return 0; }
  void complete(ReplyToken, Code, std::span<const std::byte>) override {}
  Transfer read(Rank, std::uint64_t, std::span<std::byte>, std::uint64_t) override { return Transfer::refused; }
  Transfer write(Rank, std::uint64_t, std::span<const std::byte>, std::uint64_t) override { return Transfer::refused; }
};

// Looks once.
class OneLook final : public Waiter {
 public:
  Status wait(EventCount&, FunctionRef<bool()> done, const char*) override {
    return done() ? Status() : Status(Code::pending, "it has not come");
  }
  Status wait_word(std::atomic<std::uint32_t>&, std::uint32_t, const char*) override { return {}; }
  Status looked_in_vain(const char*) override { return {}; }
  EventCount& own_events() override { return events_; }

 private:
  EventCount events_;
};

// What a rank has to have, told apart from how it is kept: at most two rounds of a sender, none longer than a round is,
// and nothing behind a last part.
class Expected {
 public:
  Code take(std::uint64_t team, Rank from, std::uint64_t round, std::span<const std::byte> bytes, bool is_last) {
    auto& rounds = rounds_[{team, from}];
    const auto found = rounds.find(round);
    if (found == rounds.end() && rounds.size() == 2) return Code::argument;
    if (found != rounds.end() && found->second.second) return Code::argument;
    const std::size_t before = found == rounds.end() ? 0 : found->second.first.size();
    if (before + bytes.size() > TeamPost::most_bytes) return Code::argument;
    auto& [text, is_whole] = rounds[round];
    text.insert(text.end(), bytes.begin(), bytes.end());
    is_whole = is_last;
    return Code::ok;
  }
  std::optional<std::vector<std::byte>> give(std::uint64_t team, Rank from, std::uint64_t round) {
    auto& rounds = rounds_[{team, from}];
    const auto found = rounds.find(round);
    if (found == rounds.end() || !found->second.second) return std::nullopt;
    std::vector<std::byte> text = std::move(found->second.first);
    rounds.erase(found);
    return text;
  }

 private:
  using Letter = std::pair<std::vector<std::byte>, bool>;
  std::map<std::tuple<std::uint64_t, Rank>, std::map<std::uint64_t, Letter>> rounds_;
};

}  // namespace

// Each four bytes: a part, or a look for what is whole. Lengths are of a longest letter's eighths, or short.
void team_letter(Input input) {
  NoTransport transport;
  OneLook waiter;
  OriginEngine::Options options;
  options.peers = 4;
  OriginEngine engine(options, transport);
  TeamExchange exchange(engine, waiter);
  Expected expected;
  const std::vector<std::byte> text(TeamPost::most_bytes + 8, std::byte{7});
  for (; input.size() >= 4; input = input.subspan(4)) {
    const Rank from = input[1] % 4;
    const std::uint64_t team = input[1] / 4 % 3, round = input[2] % 5;
    if (input[0] % 4 == 0) {
      std::vector<std::byte> got;
      const std::optional<std::vector<std::byte>> wanted = expected.give(team, from, round);
      const bool has_got = exchange.receive(from, team, round, got, "fuzz").is_ok();
      demand(has_got == wanted.has_value());
      demand(!has_got || got == *wanted);
      continue;
    }
    const std::size_t eighths = input[3] % 9 * (TeamPost::most_bytes / 8), few = input[3] / 9 % 8;
    const std::span<const std::byte> part = std::span(text).first(input[0] % 16 == 1 ? eighths + few : few);
    const bool is_last = input[2] >= 128;
    const Code wanted =
        part.size() > TeamPost::most_bytes ? Code::argument : expected.take(team, from, round, part, is_last);
    demand(exchange.on_team_message(from, team, round, part, is_last) == wanted);
  }
}

std::vector<std::vector<std::uint8_t>> team_letters() {
  return {{2, 0, 128, 3, 0, 0, 0, 0}, {1, 1, 0, 4, 1, 1, 128, 4, 0, 1, 0, 0}, {2, 5, 0, 1, 2,   5, 1, 1, 2, 5,
                                                                               2, 1, 1, 5, 129, 8, 0, 5, 1, 0}};
}

// What is let through is what sealed() makes of it, whole and of that kind.
void ucx_seal(Input input) {
  if (input.empty()) return;
  const UcxSeal kind = input[0] % 2 == 0 ? UcxSeal::address : UcxSeal::key;
  const UcxSeal other = kind == UcxSeal::key ? UcxSeal::address : UcxSeal::key;
  const std::span<const std::byte> bytes = std::as_bytes(input.subspan(1));
  const std::optional<std::span<const std::byte>> content = unsealed(kind, bytes);
  if (!content) return;
  const std::vector<std::byte> made = sealed(kind, *content);
  demand(std::equal(made.begin(), made.end(), bytes.begin(), bytes.end()));
  demand(!unsealed(other, bytes));
  if (!bytes.empty()) demand(!unsealed(kind, bytes.first(bytes.size() - 1)));
}

std::vector<std::vector<std::uint8_t>> ucx_seals() {
  std::vector<std::vector<std::uint8_t>> inputs;
  for (const UcxSeal kind : {UcxSeal::address, UcxSeal::key}) {
    for (const std::size_t length : {0u, 1u, 79u}) {
      const std::vector<std::byte> made = sealed(kind, std::vector<std::byte>(length, std::byte{3}));
      std::vector<std::uint8_t> input = {static_cast<std::uint8_t>(kind == UcxSeal::address ? 0 : 1)};
      for (const std::byte one : made) input.push_back(static_cast<std::uint8_t>(one));
      inputs.push_back(std::move(input));
    }
  }
  return inputs;
}

}  // namespace farsum::fuzz
