// What ranks of other hosts send when they meet: their cards, parts of a team's letters, and sealed addresses and keys.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

#include "hostile.hpp"
#include "liveness/network_card.hpp"
#include "liveness/remote_nodes.hpp"
#include "protocol/origin/engine.hpp"
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
  Status wait_for_grant(LockGrant&, const char*) override { return {}; }
  Status looked_in_vain(const char*) override { return {}; }
  EventCount& own_events() override { return events_; }

 private:
  EventCount events_;
};

// What a rank has to have, told apart from how it is kept: no more rounds of a sender than it can be ahead, none longer
// than a round is, nothing behind a last part, and of no round before one that was asked for.
class Expected {
 public:
  Code take(std::uint64_t team, Rank from, std::uint64_t round, std::span<const std::byte> bytes, bool is_last) {
    auto& rounds = rounds_[{team, from}];
    const auto found = rounds.find(round);
    if (found == rounds.end() && rounds.size() == TeamPost::most_waiting_of_a_sender) return Code::argument;
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
    rounds.erase(rounds.begin(), rounds.lower_bound(round));
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

// No length that parts have is a multiple of it.
constexpr std::size_t different_bytes = 251;

// Each byte unlike its neighbours. Parts that begin less than different_bytes apart differ everywhere.
std::vector<std::byte> numbered_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t at = 0; at < count; ++at) bytes[at] = static_cast<std::byte>(at % different_bytes);
  return bytes;
}

}  // namespace

// Each four bytes: a part, or a look for what is whole. Lengths are of a longest letter's eighths, or short. Each
// step's part begins elsewhere in the text, so that letters of one length, and the parts of a letter, are not alike.
void team_letter(Input input) {
  MuteTransport transport;
  OneLook waiter;
  OriginEngine::Options options;
  options.peers = 4;
  OriginEngine engine(options, transport);
  TeamExchange exchange(engine, waiter);
  Expected expected;
  static const std::vector<std::byte> text = numbered_bytes(different_bytes + TeamPost::most_bytes + 8);
  for (std::size_t step = 0; input.size() >= 4; input = input.subspan(4), ++step) {
    const Rank from = input[1] % 4;
    const std::uint64_t team = input[1] / 4 % 3, round = input[2] % 128 % 13;
    if (input[0] % 4 == 0) {
      std::vector<std::byte> got;
      const std::optional<std::vector<std::byte>> wanted = expected.give(team, from, round);
      const auto keep = [&](std::span<const std::byte> letter) { got.assign(letter.begin(), letter.end()); };
      const bool has_got = exchange.take(from, team, round, keep);
      demand(has_got == wanted.has_value());
      demand(!has_got || got == *wanted);
      continue;
    }
    const std::size_t eighths = input[3] % 9 * (TeamPost::most_bytes / 8), few = input[3] / 9 % 8;
    const std::span<const std::byte> part =
        std::span(text).subspan(step % different_bytes, input[0] % 16 == 1 ? eighths + few : few);
    const bool is_last = input[2] >= 128;
    const Code wanted =
        part.size() > TeamPost::most_bytes ? Code::argument : expected.take(team, from, round, part, is_last);
    demand(exchange.on_team_message(from, team, round, part, is_last) == wanted);
  }
}

std::vector<std::vector<std::uint8_t>> team_letters() {
  // part or look, team and sender, round (from 128 on the last part), length
  return {{2, 0, 128, 27, 0, 0, 0, 0},
          // two halves
          {1, 1, 0, 4, 1, 1, 128, 4, 0, 1, 0, 0},
          // ten rounds and one that is refused; the second is a whole letter's length
          {2, 5, 0, 1, 2, 5, 1, 1, 2, 5, 2, 1, 2, 5, 3, 1, 2,  5, 4, 1, 2,   5, 5, 1, 2, 5,
           6, 1, 2, 5, 7, 1, 2, 5, 8, 1, 2, 5, 9, 1, 2, 5, 10, 1, 1, 5, 129, 8, 0, 5, 1, 0},
          // two teams of one sender in turn, with letters of one length
          {2, 0, 0, 27, 2, 4, 0, 27, 2, 0, 128, 18, 2, 4, 128, 18, 0, 4, 0, 0, 0, 0, 0, 0}};
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

// To its last byte: a zero is in it only where the input has one.
void fill_address(NetworkCard& card, Reader& reader) {
  card.address.fill(std::byte{reader.byte()});
  const std::vector<std::byte> front = reader.bytes(reader.byte());
  static_assert(sizeof card.address >= 0xff);
  std::copy(front.begin(), front.end(), card.address.begin());
}

// What a card says where its address would be: to the first zero, or all of it.
std::string words_of(const NetworkCard& card) {
  const auto end = std::find(card.address.begin(), card.address.end(), std::byte{0});
  return {reinterpret_cast<const char*>(card.address.data()), static_cast<std::size_t>(end - card.address.begin())};
}

// A card that is taken makes sense; of a rank without a network the reason is in its own words, where it has any.
void take_card(RemoteNodes& remote_nodes, const NetworkCard& card) {
  const std::string why = why_unreachable(card, ranks_of_job);
  if (card.layout == NetworkCard().layout && card.code != Code::ok) {
    const std::string words = words_of(card);
    demand(words.empty() ? !why.empty() : why == words);
  }
  if (!why.empty()) return;
  demand(card.rank < ranks_of_job && card.address_bytes <= card.address.size() && card.code == Code::ok);
  const bool was_reached = remote_nodes.reaches(card.rank);
  demand(remote_nodes.add(card) == !was_reached);
  demand(remote_nodes.reaches(card.rank) && !remote_nodes.add(card));
  demand(remote_nodes.host_of(card.rank).size() <= card.node.host.size());
  const Rank both[] = {0, card.rank};
  const GroupPlaces places = remote_nodes.places_of(both);
  demand(places.here.size() + places.remote.size() == 2);
  const std::vector<std::uint32_t> hosts = remote_nodes.hosts();
  demand(std::find(hosts.begin(), hosts.end(), 0u) == hosts.end());
  demand(hosts.size() <= ranks_of_job * card.hosts.size());
}

}  // namespace

// Each step: a card as it should be of some rank, which may have no network or a full address, with some of its bytes
// changed.
void network_card(Input input) {
  Reader reader(input);
  const NodeRanks here({0, 1});
  RemoteNodes remote_nodes(here);
  while (!reader.empty()) {
    NetworkCard card = honest_card(reader.byte() % (ranks_of_job + 2));
    const std::uint8_t how = reader.byte();
    if ((how & 8) != 0) fill_address(card, reader);
    if ((how & 16) != 0) card.code = Code::unsupported;
    std::byte bytes[sizeof card];
    std::memcpy(bytes, &card, sizeof card);
    for (unsigned changes = how % 8; changes != 0; --changes) {
      const std::size_t at = (std::size_t{reader.byte()} + 256u * reader.byte()) % sizeof card;
      bytes[at] = static_cast<std::byte>(reader.byte());
    }
    std::memcpy(&card, bytes, sizeof card);
    take_card(remote_nodes, card);
  }
}

std::vector<std::vector<std::uint8_t>> network_cards() {
  // rank, how many changes, with 8 an address: what fills it, then its front; with 16 no network; place, byte of each
  return {{2, 0, 3, 0, 5, 0},
          {2, 1, 4, 0, 1, 3, 0},
          {7, 0, 2, 2, 0, 0, 9, 40, 0, 1},
          // full addresses
          {4, 8, 255, 0, 5, 8, 0, 3, 1, 2, 3},
          // without a network: a reason that nothing ends, one that a zero ends, and none
          {2, 24, 110, 0, 3, 24, 0, 4, 100, 111, 119, 110, 4, 16}};
}

namespace {

std::vector<std::byte> damaged(std::vector<std::byte> seal, unsigned how, unsigned where) {
  switch (how % 3) {
    case 0:
      seal[where / 8 % seal.size()] ^= static_cast<std::byte>(1u << where % 8);
      return seal;
    case 1:  // anew, so that a sanitizer sees who reads past its end
      return {seal.begin(), seal.begin() + where % seal.size()};
    default:
      seal.insert(seal.end(), 1 + where / 256, static_cast<std::byte>(where % 256));
      return seal;
  }
}

}  // namespace

// The bytes behind the first three come as they are, and are sealed: a whole seal gives them back, a damaged one, or
// one of the other kind, nothing.
void ucx_seal(Input input) {
  if (input.size() < 3) return;
  const UcxSeal kind = input[0] % 2 == 0 ? UcxSeal::address : UcxSeal::key;
  const UcxSeal other = kind == UcxSeal::key ? UcxSeal::address : UcxSeal::key;
  const std::span<const std::byte> bytes = std::as_bytes(input.subspan(3));
  if (const auto content = unsealed(kind, bytes)) {
    const std::vector<std::byte> made = sealed(kind, *content);
    demand(std::equal(made.begin(), made.end(), bytes.begin(), bytes.end()));
  }
  const std::vector<std::byte> seal = sealed(kind, bytes);
  const auto content = unsealed(kind, seal);
  demand(content && std::equal(content->begin(), content->end(), bytes.begin(), bytes.end()));
  demand(content->data() == seal.data() + ucx_seal_bytes);
  demand(!unsealed(other, seal));
  demand(!unsealed(kind, damaged(seal, input[0] / 2u, input[1] + 256u * input[2])));
}

std::vector<std::vector<std::uint8_t>> ucx_seals() {
  std::vector<std::vector<std::uint8_t>> inputs;
  for (const UcxSeal kind : {UcxSeal::address, UcxSeal::key}) {
    for (const std::size_t length : {0u, 1u, 79u}) {
      const std::vector<std::byte> made = sealed(kind, std::vector<std::byte>(length, std::byte{3}));
      for (const unsigned damage : {0u, 1u, 2u}) {
        const unsigned how = 2 * damage + (kind == UcxSeal::address ? 0 : 1);
        std::vector<std::uint8_t> input = {static_cast<std::uint8_t>(how), 130, 0};
        for (const std::byte one : made) input.push_back(static_cast<std::uint8_t>(one));
        inputs.push_back(std::move(input));
      }
    }
  }
  return inputs;
}

}  // namespace farsum::fuzz
