#include "collectives/carried_walks.hpp"

#include <span>

namespace farsum {

CarriedWalks::CarriedWalks(const Parts& parts)
    : memory_(parts.memory),
      bells_(parts.bells),
      help_(parts.help),
      lists_(parts.team, parts.kernels, parts.degree, parts.order),
      parts_(CarriedMemory::places * parts.memory.ranks()) {
  walks_.reserve(CarriedMemory::places);
  for (std::uint64_t place = 0; place < CarriedMemory::places; ++place)
    walks_.emplace_back(lists_, parts.post, carried_team(parts.team.key(), place));
}

bool CarriedWalks::walk() noexcept {
  if (!walking_.try_claim()) return false;
  bool has_ended = false;
  bool awaits_answers = false;
  do {
    bool is_refused = false;
    for (std::uint64_t at = 0; at < CarriedMemory::places; ++at) {
      has_ended |= walk_place(at);
      is_refused |= !walks_[at].is_over() && walks_[at].has_refused();
      awaits_answers |= walks_[at].take_awaits_answers();
    }
    // Relaxed: the agent is rung behind it, and tries again for as long as it is so.
    if (!is_refused_.exchange(is_refused, std::memory_order_relaxed) && is_refused) help_.ring(0);
  } while (!walking_.release());
  if (awaits_answers) help_.hand_over();
  return has_ended;
}

bool CarriedWalks::walk_place(std::uint64_t of_place) {
  CarriedPlace& here = memory_.place(of_place);
  // Acquire pairs with the release in CarriedFolds::end(), of which each is followed by a walk.
  const std::uint64_t tag = here.is_folded.load(std::memory_order_acquire);
  CarriedWalk& walk = walks_[of_place];
  const std::uint64_t number = (tag - 1) * CarriedMemory::places + of_place;
  if (tag == 0 || (tag == walked_[of_place] && walk.is_over())) return false;
  if (tag != walked_[of_place]) {
    walked_[of_place] = tag;
    if (const auto found = memory_.broken().found()) {
      here.found = *found;
      bells_.conclude(number);
      return true;
    }
    begin(number);
  }
  if (!walk.go_on()) return false;
  if (here.found.breaks_group() && !memory_.broken().found()) bells_.break_group(here.found);
  bells_.conclude(number);
  return true;
}

void CarriedWalks::begin(std::uint64_t number) {
  const std::uint64_t of_place = number % CarriedMemory::places;
  CarriedPlace& here = memory_.place(number);
  const SaidOfCall& said = memory_.part(number, 0).said;
  const CarriedCall call = call_in(said).value_or(CarriedCall{});
  if (here.found.what == CarriedFinding::What::the_same && !reach_parts(number, call))
    here.found = {memory_.my_rank(), CarriedFinding::What::lacks_memory, {}, {}};
  walks_[of_place].begin(said, memory_.my_rank(), memory_.size(), memory_.answer_of(number, call), here.found,
                         std::span(parts_).subspan(of_place * memory_.ranks(), memory_.ranks()));
}

// What the walk reads of each rank here where ranks decide the order. False: this process has no room to map it.
bool CarriedWalks::reach_parts(std::uint64_t number, const CarriedCall& call) {
  if (!call.reduces_by_ranks()) return true;
  for (std::uint32_t member = 0; member < memory_.ranks(); ++member) {
    const std::size_t bytes = memory_.part_bytes(call, member);
    const std::byte* const data = bytes == 0 ? nullptr : memory_.data_of(number, member, bytes);
    if (bytes != 0 && data == nullptr) return false;
    parts_[number % CarriedMemory::places * memory_.ranks() + member] = data;
  }
  return true;
}

}  // namespace farsum
