#include "runtime/window_offer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "collectives/node_team.hpp"
#include "collectives/teardown.hpp"
#include "window/window.hpp"

namespace farsum {
namespace {

// Promises that hold where all ranks make them, and demands that hold where one does.
constexpr std::uint32_t promises_of_all =
    promise_single_element | promise_no_ordering | promise_no_locks | promise_network_only;
constexpr std::uint32_t promises_of_one = promise_strict_epochs;

// What to say of a refusal that another rank, which found it, has told in full.
const char* explain_refusal(Code code) {
  if (code == Code::no_memory) return "it has too many windows already";
  if (code == Code::system) return "it cannot start its agent";
  return "its memory is not mapped or not readable";
}

// Parts of a stripe or more start on a stripe, so that bulk sums of aligned blocks take as few locks as can be; others
// on a page or a line.
std::uint64_t part_alignment(std::uint64_t bytes) {
  if (bytes >= stripe_bytes) return stripe_bytes;
  return bytes >= page_bytes ? page_bytes : cache_line_bytes;
}

bool asks_as(const WindowOffer& offer, const WindowOffer& first) {
  return offer.flavour == first.flavour && ((offer.promises ^ first.promises) & promise_contiguous_parts) == 0 &&
         offer.notification_slots == first.notification_slots && offer.is_for_mutexes == first.is_for_mutexes;
}

}  // namespace

std::optional<Disagreement> find_disagreement(std::span<const WindowOffer> offers) {
  WideInteger sum = 0;
  for (std::uint32_t rank = 0; rank < offers.size(); ++rank) {
    const WindowOffer& offer = offers[rank];
    if (offer.lacks_memory) return Disagreement{Disagreement::Kind::lacks_memory, rank, Code::no_memory};
    if (offer.refusal != 0) return Disagreement{Disagreement::Kind::refused_above, rank, Code::argument};
    if (offer.code != Code::ok) return Disagreement{Disagreement::Kind::cannot, rank, offer.code};
    if (!asks_as(offer, offers[0])) return Disagreement{Disagreement::Kind::other_options, rank, Code::argument};
    sum += offer.bytes;
  }
  if (offers[0].flavour != Flavour::allocated || sum >> 62 == 0) return {};
  return Disagreement{Disagreement::Kind::too_many_bytes, 0, Code::no_memory};
}

Status in_words(const Disagreement& disagreement, const char* call) {
  switch (disagreement.kind) {
    case Disagreement::Kind::lacks_memory:
      return {disagreement.code, fmt::format("{}: rank {} of the group has no memory left", call, disagreement.rank)};
    case Disagreement::Kind::refused_above:
      return {disagreement.code,
              fmt::format("{}: the layer above refuses the window on rank {} of the group", call, disagreement.rank)};
    case Disagreement::Kind::cannot:
      return {disagreement.code, fmt::format("{}: rank {} of the group cannot take part: {}", call, disagreement.rank,
                                             explain_refusal(disagreement.code))};
    case Disagreement::Kind::other_options:
      return {disagreement.code,
              fmt::format("{}: rank {} of the group called with other options, or another call, than rank 0", call,
                          disagreement.rank)};
    case Disagreement::Kind::too_many_bytes:
      return {disagreement.code, fmt::format("{}: the ranks ask for more than 2^62 bytes together", call)};
  }
  return {disagreement.code, call};
}

std::uint32_t agreed_promises(std::span<const WindowOffer> offers, std::uint32_t mine) {
  for (const WindowOffer& offer : offers) {
    mine &= offer.promises | ~promises_of_all;
    mine |= offer.promises & promises_of_one;
  }
  return mine;
}

void WindowLayout::lay_out(std::span<const WindowOffer> offers, std::span<const std::uint32_t> here,
                           bool parts_are_of_cards) {
  // An allocated part is one region.
  const std::uint32_t most_regions = offers[0].flavour == Flavour::allocated ? 1 : most_adopted_regions;
  shape = {static_cast<std::uint32_t>(offers.size()), offers[0].notification_slots, most_regions};
  const auto members = static_cast<std::uint32_t>(here.size());
  team_at = 0;
  for (const std::uint32_t rank : here) team_at += shape_of(offers[rank]).rank_bytes();
  // On one node the ranks meet there without telling each other anything.
  const bool is_one_node = here.size() == offers.size();
  const std::size_t team_bytes =
      is_one_node ? NodeTeamBlock::meeting_bytes(members) : NodeTeamBlock::footprint(members);
  teardown_at = team_at + round_up(team_bytes, cache_line_bytes);
  control_bytes = teardown_at + TeardownBlock::footprint(members);
  bias_at = 0;
  // Who locks all of one rank has one lock to take, and who locks all of several nodes waits for messages.
  if (is_one_node && members > 1 && !offers[0].is_for_mutexes) {
    bias_at = round_up(control_bytes, alignof(LockBiasState));
    control_bytes = bias_at + LockBias::footprint(members);
  }
  control_bytes = round_up(control_bytes, page_bytes);
  lay_out_parts(offers, here, parts_are_of_cards);
}

// Contiguous parts leave no gap, not even for the alignment of an element.
void WindowLayout::lay_out_parts(std::span<const WindowOffer> offers, std::span<const std::uint32_t> here,
                                 bool parts_are_of_cards) {
  starts.clear();
  starts.reserve(here.size());
  const auto bytes_of = [&](std::uint32_t rank) { return parts_are_of_cards ? 0 : offers[rank].bytes; };
  total_bytes = control_bytes;
  if ((offers[0].promises & promise_contiguous_parts) != 0) {
    std::uint64_t sum = 0;
    for (const std::uint32_t rank : here) sum += bytes_of(rank);
    total_bytes = round_up(total_bytes, part_alignment(sum));
    for (const std::uint32_t rank : here) {
      starts.push_back(total_bytes);
      total_bytes += bytes_of(rank);
    }
    return;
  }
  for (const std::uint32_t rank : here) {
    const WindowOffer& offer = offers[rank];
    if (offer.flavour != Flavour::allocated || bytes_of(rank) == 0) {
      starts.push_back(total_bytes);
      continue;
    }
    total_bytes = round_up(total_bytes, std::max(part_alignment(offer.bytes), std::min(offer.alignment, page_bytes)));
    starts.push_back(total_bytes);
    total_bytes += round_up(offer.bytes, cache_line_bytes) + room_to_align(offer);
  }
}

}  // namespace farsum
