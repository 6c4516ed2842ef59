// What ranks of other hosts send when they meet: their cards, parts of a team's letters, and sealed addresses and keys.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

#include "core/origin_engine.hpp"
#include "hostile.hpp"
#include "runtime/neighbours.hpp"
#include "runtime/network_card.hpp"
#include "runtime/team_exchange.hpp"
#include "targets.hpp"
#include "transport/ucx/ucx_sealed.hpp"

namespace farsum::fuzz {
namespace {

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
  MuteTransport transport;
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

namespace {

constexpr std::uint32_t ranks_of_job = 6;

NetworkCard honest_card(Rank rank) {
  NetworkCard card = versioned_card();
  card.rank = rank;
  card.node.host[0] = 'b';
  card.machine = 7;
  card.hosts[0] = 0x0100000a;
  card.address_bytes = 80;
  return card;
}

// A card that is taken makes sense; of one that is not, the reason is words of a bounded length.
void take_card(Neighbours& neighbours, const NetworkCard& card) {
  const std::string why = why_unreachable(card, ranks_of_job);
  if (!why.empty()) {
    demand(why.size() < 400 && why.find('\0') == std::string::npos);
    return;
  }
  demand(card.rank < ranks_of_job && card.address_bytes <= card.address.size() && card.code == Code::ok);
  const bool was_reached = neighbours.reaches(card.rank);
  demand(neighbours.add(card) == !was_reached);
  demand(neighbours.reaches(card.rank) && !neighbours.add(card));
  demand(neighbours.host_of(card.rank).size() <= card.node.host.size());
  const Rank both[] = {0, card.rank};
  const GroupPlaces places = neighbours.places_of(both);
  demand(places.here.size() + places.elsewhere.size() == 2);
  const std::vector<std::uint32_t> hosts = neighbours.hosts();
  demand(std::find(hosts.begin(), hosts.end(), 0u) == hosts.end());
  demand(hosts.size() <= ranks_of_job * card.hosts.size());
}

}  // namespace

// Each step: a card as it should be of some rank, with some of its bytes changed.
void network_card(Input input) {
  Reader reader(input);
  const NodeRanks here({0, 1});
  Neighbours neighbours(here);
  while (!reader.empty()) {
    NetworkCard card = honest_card(reader.byte() % (ranks_of_job + 2));
    std::byte bytes[sizeof card];
    std::memcpy(bytes, &card, sizeof card);
    for (unsigned changes = reader.byte() % 8; changes != 0; --changes) {
      const std::size_t at = (std::size_t{reader.byte()} + 256u * reader.byte()) % sizeof card;
      bytes[at] = static_cast<std::byte>(reader.byte());
    }
    std::memcpy(&card, bytes, sizeof card);
    take_card(neighbours, card);
  }
}

std::vector<std::vector<std::uint8_t>> network_cards() {
  return {{2, 0, 3, 0, 5, 0}, {2, 1, 4, 0, 1, 3, 0}, {7, 0, 2, 2, 0, 0, 9, 40, 0, 1}};
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
