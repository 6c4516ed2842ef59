// What the ranks of a group tell each other before a window is made, and what follows from that alone, which each of
// them finds out for itself. Nothing here allocates but words and the starts of parts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "protocol/window_shared.hpp"

namespace farsum {

enum class Flavour : std::uint8_t { allocated, adopted, dynamic };

// What one rank offers.
struct WindowOffer {
  std::uint64_t word = 0;  // of the layer above, as its refusal
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 1;
  std::uint32_t mutexes = 0;
  std::uint32_t promises = 0;
  std::uint32_t notification_slots = 0;
  std::int32_t refusal = 0;
  Flavour flavour = Flavour::allocated;
  Code code = Code::ok;
  bool may_promote = false;
  bool read_only = false;
  bool is_for_mutexes = false;
  bool lacks_memory = false;  // it found none before the ranks met
};

// Why no rank makes the window, and the first rank of the group that is to blame.
struct Disagreement {
  enum class Kind : std::uint8_t { lacks_memory, refused_above, cannot, other_options, too_many_bytes };
  Kind kind = Kind::cannot;
  std::uint32_t rank = 0;
  Code code = Code::ok;
};

std::optional<Disagreement> find_disagreement(std::span<const WindowOffer> offers);
Status in_words(const Disagreement& disagreement, const char* call);

// The promises that hold for a rank whose own are `mine`.
std::uint32_t agreed_promises(std::span<const WindowOffer> offers, std::uint32_t mine);

// An extent begins on a page, in every process. For a part that shall begin on a multiple of more there is as much room
// as its owner may need to get there.
inline std::uint64_t room_to_align(const WindowOffer& offer) {
  return offer.alignment > page_bytes ? offer.alignment - page_bytes : 0;
}

// An adopted part is an edge, a promoted stretch and an edge, or what lies around the node segment and stretches of it
// that differ in who may touch them; where there are more of those, the last is told of as one.
constexpr std::uint32_t most_adopted_regions = 16;

// Where everything lies in the extent of a node's ranks: the control block, in which each tells of its part and they
// meet and part, and behind it the parts.
struct WindowLayout {
  WindowSharedShape shape;
  std::uint64_t team_at = 0;
  std::uint64_t teardown_at = 0;
  std::uint64_t bias_at = 0;  // 0: the window's locks have none
  std::uint64_t control_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::vector<std::uint64_t> starts;  // by place on the node

  WindowSharedShape shape_of(const WindowOffer& offer) const {
    WindowSharedShape of_rank = shape;
    of_rank.locks += offer.mutexes;
    return of_rank;
  }
  // `here` are the ranks of this node. Lays the control block out first: where there is no memory for the rest, a rank
  // still knows where the others meet.
  void lay_out(std::span<const WindowOffer> offers, std::span<const std::uint32_t> here, bool parts_are_of_cards);

 private:
  void lay_out_parts(std::span<const WindowOffer> offers, std::span<const std::uint32_t> here, bool parts_are_of_cards);
};

}  // namespace farsum
