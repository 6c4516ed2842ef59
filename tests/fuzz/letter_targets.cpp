// What a rank of another host sends as letters: every field of their front may be anything, and nothing but counts
// changes where it breaks the rules.
#include <array>
#include <cstring>
#include <map>
#include <optional>

#include "collectives/letter_desk.hpp"
#include "hostile.hpp"
#include "targets.hpp"

namespace farsum::fuzz {
namespace of_desk {
namespace {

constexpr std::uint32_t nodes = 3;
constexpr Letters::Shape fuzz_shape{.neighbours = nodes - 1, .slots = 3, .slot_bytes = 64, .places = 2};
constexpr std::uint64_t names[] = {5, 6};

// Takes letters, but each third.
class FullNowAndThen final : public MuteTransport {
 public:
  Capabilities capabilities(Rank) const override {
    Capabilities found;
    found.max_letter_bytes = 4096;
    return found;
  }
  bool try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte>) override {
    demand(to == 1 || to == 2);
    demand(header.size() >= sizeof(LetterAddress) + sizeof(LetterHead));
    return ++tries_ % 3 != 0;
  }

 private:
  unsigned tries_ = 0;
};

struct Block {
  alignas(2 * cache_line_bytes) std::array<std::byte, 8192> bytes{};
};

// The job's ranks are the nodes, of which this is 0.
LetterNeighbours neighbours_here() {
  LetterNeighbours found = LetterNeighbours::of(nodes, 0);
  for (std::uint32_t node = 1; node < nodes; ++node) found.ranks[found.by_node[node]] = node;
  return found;
}

class Team final : private Block, public LetterDesk::Entry {
 public:
  Team() : Entry(neighbours_here(), bytes.data(), fuzz_shape) {
    demand(Letters::footprint(fuzz_shape) <= bytes.size());
  }

 private:
  void look_again() noexcept override {}
};

// What a channel has to have, told apart from how it is kept.
class Expected {
 public:
  // False: it is refused.
  bool file(const LetterHead& head, std::span<const std::byte> content) {
    const bool is_credit = head.number == LetterHead::credit_alone;
    if (head.consumed > credited + fuzz_shape.slots) return false;
    if (is_credit && !content.empty()) return false;
    if (!is_credit) {
      if (head.number < consumed || head.number >= consumed + fuzz_shape.slots) return false;
      if (filed.contains(head.number) || content.size() < 8 || content.size() > fuzz_shape.slot_bytes) return false;
      filed[head.number].assign(content.begin(), content.end());
    }
    credited = std::max(credited, head.consumed);
    return true;
  }

  std::map<std::uint64_t, std::vector<std::byte>> filed;
  std::uint64_t consumed = 0, credited = 0, sent = 0;
};

class Judged {
 public:
  Judged() {
    for (std::size_t which = 0; which < 2; ++which) desk_.add(teams_[which], names[which]);
  }
  ~Judged() {
    for (Team& team : teams_) desk_.remove(team);
  }
  Judged(const Judged&) = delete;
  Judged& operator=(const Judged&) = delete;

  void come(Rank from, const LetterAddress& address, const LetterHead& head, std::span<const std::byte> content,
            std::size_t cut) {
    std::vector<std::byte> letter(sizeof address + sizeof head + content.size());
    std::memcpy(letter.data(), &address, sizeof address);
    std::memcpy(letter.data() + sizeof address, &head, sizeof head);
    if (!content.empty()) std::memcpy(letter.data() + sizeof address + sizeof head, content.data(), content.size());
    // Anew, so that a sanitizer sees who reads past its end.
    const std::vector<std::byte> arrived(letter.begin(),
                                         letter.end() - static_cast<std::ptrdiff_t>(std::min(cut, letter.size())));
    if (arrived.size() < sizeof address + sizeof head) {
      ++refused_;
    } else if (address.team != names[0] && address.team != names[1]) {
      if (head.number != LetterHead::credit_alone) ++unknown_;
    } else if (!would_file(from, address, head, std::span(arrived).subspan(sizeof address + sizeof head))) {
      ++refused_;
    }
    desk_.on_letter(from, arrived);
    check();
  }
  void take(std::size_t which, std::uint32_t neighbour, std::uint32_t place) {
    Expected& expected = channels_[which][place][neighbour];
    const auto letter = desk_.take(teams_[which], neighbour, place);
    const auto wanted = expected.filed.find(expected.consumed);
    demand(letter.has_value() == (wanted != expected.filed.end()));
    if (!letter) return;
    demand(std::memcmp(&letter->round, wanted->second.data(), sizeof letter->round) == 0);
    demand(
        std::equal(letter->content.begin(), letter->content.end(), wanted->second.begin() + 8, wanted->second.end()));
    expected.filed.erase(wanted);
    ++expected.consumed;
    desk_.consumed(teams_[which], neighbour, place);
  }
  void send(std::size_t which, std::uint32_t neighbour, std::uint32_t place) {
    Expected& expected = channels_[which][place][neighbour];
    const bool has_slot = expected.sent < expected.credited + fuzz_shape.slots;
    const LetterDesk::Sent sent = desk_.send(teams_[which], neighbour, place, {.round = 1, .content = {}});
    demand(has_slot == (sent != LetterDesk::Sent::no_slot));
    // Whatever came, the first letters find the slots that a fresh channel has.
    demand(expected.sent >= fuzz_shape.slots || sent != LetterDesk::Sent::no_slot);
    if (sent == LetterDesk::Sent::yes) ++expected.sent;
  }
  void turn() {
    desk_.wake_touched();
    desk_.retry_refused();
  }

 private:
  bool would_file(Rank from, const LetterAddress& address, const LetterHead& head, std::span<const std::byte> content) {
    if (address.kind != LetterAddress::Kind::of_call || address.place >= fuzz_shape.places) return false;
    if (address.from_node == 0 || address.from_node >= nodes || address.from_node != from) return false;
    const std::size_t which = address.team == names[0] ? 0 : 1;
    return channels_[which][address.place][address.from_node - 1].file(head, content);
  }
  void check() const { demand(desk_.unknown() == unknown_ && desk_.refused() == refused_); }

  FullNowAndThen transport_;
  LetterDesk desk_{transport_, [] {}};
  Team teams_[2];
  Expected channels_[2][2][nodes - 1];
  std::uint64_t unknown_ = 0, refused_ = 0;
};

// Mostly what the field may be, sometimes anything.
std::uint64_t field(Reader& reader, std::uint64_t most) {
  const std::uint8_t how = reader.byte();
  return how < 240 ? how % most : reader.number();
}

}  // namespace
}  // namespace of_desk

void desk_letter(Input input) {
  using of_desk::field;
  Reader reader(input);
  of_desk::Judged judged;
  while (!reader.empty()) {
    const std::uint8_t what = reader.byte();
    const std::uint32_t neighbour = what / 8 % 2, place = what / 16 % 2;
    const std::size_t which = what / 32 % 2;
    if (what % 8 == 0) {
      judged.take(which, neighbour, place);
    } else if (what % 8 == 1) {
      judged.send(which, neighbour, place);
    } else if (what % 8 == 2) {
      judged.turn();
    } else {
      const Rank from = what % 8 == 3 ? static_cast<Rank>(reader.byte() % 4) : neighbour + 1;
      LetterAddress address{of_desk::names[which], neighbour + 1, static_cast<std::uint16_t>(place), {}};
      if (what % 8 == 4) {
        address.team = field(reader, 8);
        address.from_node = static_cast<std::uint32_t>(field(reader, 4));
        address.place = static_cast<std::uint16_t>(field(reader, 3));
        address.kind = static_cast<LetterAddress::Kind>(field(reader, 2));
      }
      LetterHead head{field(reader, 12), field(reader, 6)};
      if (what >= 192) head.number = LetterHead::credit_alone;
      const std::vector<std::byte> content = reader.padded_bytes(reader.byte() % 80);
      judged.come(from, address, head, content, what % 8 == 5 ? reader.byte() % 96 : 0);
    }
  }
}

std::vector<std::vector<std::uint8_t>> desk_letters() {
  // what, then of a letter: number, consumed, length, content
  return {{6, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 2},
          // the second before the first; both are taken
          {6, 1, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 6, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 2},
          // three are sent, a fourth has to wait for credit
          {1, 1, 1, 1, 1, 198, 0, 1, 0, 1, 2},
          // credit for more than was sent, and then a letter of one's own
          {198, 0, 3, 0, 1, 1},
          // all fields anything, a foreign sender, and one that is cut
          {4, 250, 8, 255, 3, 1, 0, 0, 0, 0, 8, 3, 2, 0, 0, 8, 1, 1, 1,
           1, 1,   1, 1,   1, 5, 0, 0, 8, 1, 1, 1, 1, 1, 1, 1, 1, 40}};
}

}  // namespace farsum::fuzz
