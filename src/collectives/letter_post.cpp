#include "collectives/letter_post.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

namespace farsum {
namespace {

// What a team's slots may take up together; a slot, at least and at most, as the transport carries it.
constexpr std::size_t slots_bytes = 128 << 10;
constexpr std::size_t shortest_slot = 192;
constexpr std::size_t longest_slot = 4032;

constexpr std::uint32_t only_place = 0;

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
  const std::size_t bytes = slots_bytes / (std::size_t{neighbours} * slots) / cache_line_bytes * cache_line_bytes;
  return {.neighbours = neighbours, .slots = slots, .slot_bytes = std::clamp(bytes, shortest_slot, longest_slot)};
}

LetterPost::LetterPost(LetterDesk& desk, TeamPost& others, const GroupPlaces& places, Use use, EventCount& events,
                       std::uint32_t reduce_degree)
    : LetterPost(desk, others, neighbours_at(places, reduce_degree), use, events) {}

LetterPost::LetterPost(LetterDesk& desk, TeamPost& others, LetterNeighbours neighbours, Use use, EventCount& events)
    : desk_(desk),
      others_(others),
      shape_(shape_of(static_cast<std::uint32_t>(neighbours.ranks.size()), use)),
      block_(make_block(shape_)),
      entry_(std::move(neighbours), block_.get(), shape_, events),
      most_letter_bytes_(desk.most_content(entry_)) {}

// The slots are touched when letters come that need them.
LetterPost::Block LetterPost::make_block(const Letters::Shape& shape) {
  constexpr std::size_t alignment = 2 * cache_line_bytes;
  Block block(static_cast<std::byte*>(std::aligned_alloc(alignment, round_up(Letters::footprint(shape), alignment))));
  if (block == nullptr) throw std::bad_alloc();
  std::memset(block.get(), 0, Letters::zeroed_bytes(shape));
  return block;
}

bool LetterPost::try_send(Rank to, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                          std::size_t& sent) {
  const std::uint32_t neighbour =
      goes_by_letter(bytes.size()) ? entry_.neighbours().of_rank(to) : LetterNeighbours::none;
  if (neighbour == LetterNeighbours::none) return others_.try_send(to, team, round, bytes, sent);
  if (desk_.send(entry_, neighbour, only_place, {round, bytes}) != LetterDesk::Sent::yes) return false;
  sent = bytes.size();
  return true;
}

// Rounds only grow: what is left of an earlier one is of a call that has failed, and stands in the way. So does one
// that is further ahead than a neighbour may be, who is in the meeting behind the most rounds that follow this one.
bool LetterPost::take(Rank from, std::uint64_t team, std::uint64_t round,
                      FunctionRef<void(std::span<const std::byte>)> use) {
  const std::uint32_t neighbour = entry_.neighbours().of_rank(from);
  if (neighbour == LetterNeighbours::none) return others_.take(from, team, round, use);
  while (const std::optional<LetterDesk::Letter> letter = desk_.take(entry_, neighbour, only_place)) {
    if (letter->round > round + TeamPost::most_rounds_ahead + 1) {
      desk_.refuse(entry_, neighbour, only_place);
      continue;
    }
    if (letter->round > round) break;
    const bool is_it = letter->round == round;
    if (is_it) use(letter->content);
    desk_.consumed(entry_, neighbour, only_place);
    if (is_it) return true;
  }
  return others_.take(from, team, round, use);
}

}  // namespace farsum
