#include "collectives/letter_post.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "collectives/carried_block.hpp"

namespace farsum {
namespace {

// What a team's slots may take up together, and those of all places of its carried calls; a slot, at least and at most,
// as the transport carries it.
constexpr std::size_t slots_bytes = 128 << 10;
constexpr std::size_t carried_slots_bytes = 256 << 10;
constexpr std::size_t shortest_slot = 192;
constexpr std::size_t longest_slot = 4032;

LetterNeighbours neighbours_at(const GroupPlaces& places, std::uint32_t degree) {
  const std::uint32_t my_node = places.my_node();
  LetterNeighbours neighbours = LetterNeighbours::of(places.nodes(), my_node, degree);
  for (std::uint32_t node = 0; node < places.nodes(); ++node) {
    const std::uint32_t neighbour = neighbours.by_node[node];
    if (neighbour != LetterNeighbours::none) neighbours.ranks[neighbour] = places.node(node, my_node).first;
  }
  return neighbours;
}

}  // namespace

Letters::Shape LetterPost::shape_of(std::uint32_t neighbours, Use use) {
  if (use == Use::window) return {.neighbours = neighbours, .slots = slots_of_window, .slot_bytes = shortest_slot};
  const bool is_carried = use == Use::carried;
  Letters::Shape shape = {.neighbours = neighbours, .slots = is_carried ? slots_of_carried : slots};
  if (is_carried) shape.places = CarriedPlace::most_under_way;
  const std::size_t all = std::size_t{shape.channels()} * shape.slots;
  const std::size_t bytes = (is_carried ? carried_slots_bytes : slots_bytes) / all / cache_line_bytes;
  shape.slot_bytes = std::clamp(bytes * cache_line_bytes, shortest_slot, longest_slot);
  return shape;
}

LetterPost::LetterPost(LetterDesk& desk, TeamPost& others, const GroupPlaces& places, Use use, EventCount& events,
                       std::uint32_t reduce_degree)
    : LetterPost(desk, others, neighbours_at(places, reduce_degree), use, events) {}

LetterPost::LetterPost(LetterDesk& desk, TeamPost& others, LetterNeighbours neighbours, Use use, EventCount& events)
    : desk_(desk),
      others_(others),
      shape_(shape_of(static_cast<std::uint32_t>(neighbours.ranks.size()), use)),
      block_(make_block(shape_)),
      entry_(std::move(neighbours), block_.get(), shape_, use == Use::carried ? nullptr : &events),
      most_letter_bytes_(desk.most_content(entry_)),
      team_of_place_(shape_.places) {}

// The slots are touched when letters come that need them.
LetterPost::Block LetterPost::make_block(const Letters::Shape& shape) {
  constexpr std::size_t alignment = 2 * cache_line_bytes;
  Block block(static_cast<std::byte*>(std::aligned_alloc(alignment, round_up(Letters::footprint(shape), alignment))));
  if (block == nullptr) throw std::bad_alloc();
  std::memset(block.get(), 0, Letters::zeroed_bytes(shape));
  return block;
}

void LetterPost::begin(std::uint64_t team) noexcept {
  const bool is_carried = team_of_place_.size() > 1;
  for (std::uint64_t place = 0; place < team_of_place_.size(); ++place)
    team_of_place_[place] = is_carried ? carried_team(team, place) : team;
  desk_.add(entry_, team_of_place_.front());
}

std::uint32_t LetterPost::place_of(std::uint64_t team) const {
  std::uint32_t place = shape_.places - 1;
  while (place > 0 && team_of_place_[place] != team) --place;
  return place;
}

bool LetterPost::try_send(Rank to, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                          std::size_t& sent) {
  const std::uint32_t neighbour =
      goes_by_letter(bytes.size()) ? entry_.neighbours().of_rank(to) : LetterNeighbours::none;
  if (neighbour == LetterNeighbours::none) {
    const std::size_t before = sent;
    const bool has_left = others_.try_send(to, team, round, bytes, sent);
    awaits_answers_ |= has_left || sent != before;
    return has_left;
  }
  if (desk_.send(entry_, neighbour, place_of(team), {round, bytes}) != LetterDesk::Sent::yes) return false;
  sent = bytes.size();
  return true;
}

// Rounds only grow: what is left of an earlier one is of a call that has failed, and stands in the way. So does one
// that is further ahead than a neighbour may be, who is in the meeting behind the most rounds that follow this one.
bool LetterPost::take(Rank from, std::uint64_t team, std::uint64_t round,
                      FunctionRef<void(std::span<const std::byte>)> use) {
  const std::uint32_t neighbour = entry_.neighbours().of_rank(from);
  if (neighbour == LetterNeighbours::none) return others_.take(from, team, round, use);
  const std::uint32_t place = place_of(team);
  while (const std::optional<LetterDesk::Letter> letter = desk_.take(entry_, neighbour, place)) {
    if (letter->round > round + TeamPost::most_rounds_ahead + 1) {
      desk_.refuse(entry_, neighbour, place);
      continue;
    }
    if (letter->round > round) break;
    const bool is_it = letter->round == round;
    if (is_it) use(letter->content);
    desk_.consumed(entry_, neighbour, place);
    if (is_it) return true;
  }
  return others_.take(from, team, round, use);
}

}  // namespace farsum
