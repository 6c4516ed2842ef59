#include "runtime/region_reach.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace farsum {

// An extent that nobody has is mapped by nobody: what the owner has there is then its own, if anything.
bool RegionReach::map(const void* begin, std::uint64_t bytes) const {
  NodeSegment& segment = parts_.node.segment();
  const HeapExtent extent{segment.offset_of(begin), bytes};
  if (!segment.has_place_for(begin, bytes)) return false;
  return segment.is_reached(extent) ||
         (segment.is_allocated(extent, parts_.node.id_in_segment()) && segment.reach(extent).is_ok());
}

Region RegionReach::of_neighbour(Rank owner, const SharedRegion& shared) const {
  NodeSegment& segment = parts_.node.segment();
  Region region;
  region.offset = shared.offset;
  region.bytes = shared.bytes;
  region.owner_address = shared.owner_address;
  region.read_only = (shared.flags & region_read_only) != 0;
  region.promoted = (shared.flags & region_promoted) != 0;
  const bool by_segment = (shared.flags & region_segment_key) != 0;
  region.mixed_locks = (shared.flags & region_mixed_locks) != 0;
  region.domain.locks = by_segment ? segment.stripes() : parts_.node.block_of(owner).stripes;
  region.domain.mask = (by_segment ? node_stripes : rank_stripes) - 1;
  region.domain.key_base = by_segment ? shared.segment_offset : shared.owner_address;
  region.domain.atomics_only = (shared.flags & region_atomics_only) != 0;
  std::copy(std::begin(shared.note), std::end(shared.note), region.note);
  if (shared.segment_offset != not_in_segment) {
    // Where the whole address space is exposed, what nobody uses is not mapped for it.
    region.is_sparse = (shared.flags & region_unsure) != 0;
    const Status reached = region.is_sparse ? Status() : segment.reach({shared.segment_offset, shared.bytes});
    if (reached.is_ok())
      region.mapped = segment.at(shared.segment_offset);
    else
      region.reason = reached.text();
  } else if (owner == parts_.node.rank() && (shared.flags & region_unsure) == 0) {
    region.mapped = reinterpret_cast<std::byte*>(shared.owner_address);
  }
  const PathChoiceResult paths =
      choose_paths(parts_.settings.path, reach_here(owner, region), parts_.models.at(own_machine_number()).thresholds);
  region.bulk = paths.bulk;
  region.atomic = paths.atomic;
  return region;
}

void RegionReach::choose_remote(Rank owner, Region& region) const {
  const PathModel& model = parts_.models.at(parts_.remote_nodes.machine_of(owner));
  const PathChoiceResult paths = choose_paths(parts_.settings.path, reach_remote(region), model.thresholds);
  region.bulk = paths.bulk;
  region.atomic = paths.atomic;
}

// How this rank reaches a region of a rank of its node; as long as that lives.
Reach RegionReach::reach_here(Rank owner, const Region& region) const {
  const std::string& attach_refusal = parts_.transport.attach_refusal(parts_.node.here().place_of(owner));
  return {.mapped = region.mapped != nullptr,
          .attach_allowed = attach_refusal.empty(),
          .atomics_only = region.domain.atomics_only,
          .mixed_locks = region.mixed_locks,
          .attach_refusal = attach_refusal,
          .not_mapped_because = region.reason.empty() ? std::string_view(region.note) : region.reason};
}

std::string RegionReach::explain_neighbour(Rank owner, const Region& region) const {
  const PathModel& model = parts_.models.at(own_machine_number());
  std::string reason = explain_choice(parts_.settings.path, reach_here(owner, region), model.thresholds);
  if (region.mapped == nullptr) return reason + model.note;
  return region.note[0] != '\0' ? fmt::format("{} ({})", reason, region.note) : reason;
}

Reach RegionReach::reach_remote(const Region& region) {
  return {.mapped = false,
          .attach_allowed = false,
          .atomics_only = region.domain.atomics_only,
          .leases = true,
          .attach_refusal = "messages to the owner's agent over the network",
          .not_mapped_because = {}};
}

std::string RegionReach::explain_remote(Rank owner, const Region& region) const {
  const PathModel& model = parts_.models.at(parts_.remote_nodes.machine_of(owner));
  const std::string because = fmt::format("on host {}", parts_.remote_nodes.host_of(owner));
  Reach reach = reach_remote(region);
  reach.not_mapped_because = because;
  return explain_choice(parts_.settings.path, reach, model.thresholds) + model.note;
}

}  // namespace farsum
