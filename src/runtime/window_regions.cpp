// The regions of windows: how memory of this rank is described to the others, and how a rank reaches what another has
// described.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "runtime/window_creation.hpp"

namespace farsum {
namespace {

// One window or attachment has so many parts at most: as many as there is room for regions of adopted memory.
constexpr std::size_t most_parts_with_holes = most_adopted_regions;

}  // namespace

AtomicDomain Context::own_domain(const void* memory) const {
  NodeSegment& segment = *membership_.segment;
  if (segment.contains(memory, 1)) return {segment.stripes(), segment.offset_of(memory), node_stripes - 1, false};
  return {segment.rank(node_.place()).stripes, reinterpret_cast<std::uintptr_t>(memory), rank_stripes - 1, false};
}

const PathModel* Context::known_path_model(std::uint32_t machine) const {
  const std::lock_guard lock(path_models_mutex_);
  const auto known = path_models_.find(machine);
  return known != path_models_.end() ? &known->second : nullptr;
}

// Files are read without the lock. Of two threads that read them at once the first decides.
const PathModel& Context::path_model(std::uint32_t machine) const {
  if (const PathModel* const known = known_path_model(machine)) return *known;
  const auto environment = [](const char* name) -> const char* { return std::getenv(name); };
  PathModel model = read_path_model(options_.settings, environment, machine);
  if (!model.note.empty()) model.note = "; " + model.note;
  const std::lock_guard lock(path_models_mutex_);
  return path_models_.emplace(machine, std::move(model)).first->second;
}

// An extent that nobody has is mapped by nobody: what the owner has there is then its own, if anything.
bool Context::reach(const void* begin, std::uint64_t bytes) const {
  NodeSegment& segment = *membership_.segment;
  const HeapExtent extent{segment.offset_of(begin), bytes};
  if (!segment.has_place_for(begin, bytes)) return false;
  return segment.is_reached(extent) ||
         (segment.is_allocated(extent, node_.id_in_segment()) && segment.reach(extent).is_ok());
}

Region Context::make_region(Rank owner, const SharedRegion& shared) const {
  NodeSegment& segment = *membership_.segment;
  Region region;
  region.offset = shared.offset;
  region.bytes = shared.bytes;
  region.owner_address = shared.owner_address;
  region.read_only = (shared.flags & region_read_only) != 0;
  region.promoted = (shared.flags & region_promoted) != 0;
  const bool by_segment = (shared.flags & region_segment_key) != 0;
  region.domain.locks = by_segment ? segment.stripes() : segment.rank(membership_.here.place_of(owner)).stripes;
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
  } else if (owner == membership_.rank && (shared.flags & region_unsure) == 0) {
    region.mapped = reinterpret_cast<std::byte*>(shared.owner_address);
  }
  const PathChoiceResult paths =
      choose_paths(options_.settings.path, reach_here(owner, region), path_model(own_machine_number()).thresholds);
  region.bulk = paths.bulk;
  region.atomic = paths.atomic;
  return region;
}

// How this rank reaches a region of a rank of its node; as long as that lives.
Reach Context::reach_here(Rank owner, const Region& region) const {
  const std::string& attach_refusal = transport_->attach_refusal(membership_.here.place_of(owner));
  return {.mapped = region.mapped != nullptr,
          .attach_allowed = attach_refusal.empty(),
          .atomics_only = region.domain.atomics_only,
          .attach_refusal = attach_refusal,
          .not_mapped_because = region.reason.empty() ? std::string_view(region.note) : region.reason};
}

std::string Context::explain_region_here(Rank owner, const Region& region) const {
  const PathModel& model = path_model(own_machine_number());
  std::string reason = explain_choice(options_.settings.path, reach_here(owner, region), model.thresholds);
  if (region.mapped == nullptr) return reason + model.note;
  return region.note[0] != '\0' ? fmt::format("{} ({})", reason, region.note) : reason;
}

Reach Context::remote_reach(const Region& region) {
  return {.mapped = false,
          .attach_allowed = false,
          .atomics_only = region.domain.atomics_only,
          .leases = true,
          .attach_refusal = "messages to the owner's agent over the network",
          .not_mapped_because = {}};
}

std::string Context::explain_remote_region(Rank owner, const Region& region) const {
  const PathModel& model = path_model(remote_nodes_->machine_of(owner));
  const std::string because = fmt::format("on host {}", remote_nodes_->host_of(owner));
  Reach reach = remote_reach(region);
  reach.not_mapped_because = because;
  return explain_choice(options_.settings.path, reach, model.thresholds) + model.note;
}

// Finds out what is there of memory that a program exposes. It refuses only what nobody could read a byte of: libraries
// take any range, and programs make pages accessible when they need them.
Status Context::look_at_memory(Creation& wish, const char* call) const {
  NodeSegment& segment = *membership_.segment;
  if (segment.contains(wish.memory, wish.bytes)) return {};
  const os::MapReader& maps = promotions_.maps();
  const os::MapReader::Access access = maps.access(wish.memory, wish.bytes);
  wish.read_only = access.readable && !access.writable;
  if (access.readable) return {};
  const auto begin = reinterpret_cast<std::uintptr_t>(wish.memory);
  bool any_readable = false;
  for (const os::MapReader::Part& part : maps.parts(wish.memory, wish.bytes)) {
    any_readable = any_readable || part.readable;
    // The last that there is room for is all that is left.
    const bool is_last = wish.parts.size() + 1 == most_parts_with_holes;
    const std::uint64_t offset = part.begin - begin;
    wish.parts.push_back({offset, is_last ? wish.bytes - offset : part.end - part.begin, part.writable && !is_last});
    if (is_last) break;
  }
  if (any_readable) return {};
  return {Code::unreachable,
          fmt::format("{}: [{:#x}, {:#x}) is {}; some of the memory must be mapped and readable to be "
                      "exposed",
                      call, begin, begin + wish.bytes, maps.classify(wish.memory, wish.bytes).describe())};
}

// Describes all of the memory. What is there now is as other memory; what is not, nobody touches but through the
// kernel.
void Context::describe_parts(const Creation& wish, const std::string& note, std::vector<SharedRegion>& shared,
                             std::vector<ExposedRegion>& exposed) {
  if (wish.parts.empty()) return describe_adopted(wish, 0, wish.bytes, note, shared, exposed);
  Creation part_wish;
  part_wish.flavour = wish.flavour;
  part_wish.memory = wish.memory;
  part_wish.bytes = wish.bytes;
  part_wish.parts = wish.parts;
  const NodeSegment& segment = *membership_.segment;
  const bool meets_segment =
      wish.memory < segment.begin() + segment.bytes() && segment.begin() < wish.memory + wish.bytes;
  if (meets_segment) {
    part_wish.unsure = true;
    return describe_adopted(part_wish, 0, wish.bytes, note, shared, exposed);
  }
  for (const Creation::Part& part : wish.parts) {
    part_wish.unsure = !part.is_there;
    describe_stretch(part_wish, part.offset, part.offset + part.bytes,
                     part.is_there ? note : "user memory that was not there, or not writable, when it was exposed",
                     false, shared, exposed);
  }
}

// Describes [from, to) of adopted memory as it is: cut where the node segment begins and ends, and inside that where
// memory that only CPU atomics may touch does, so that each stretch is under the locks of whatever else exposes it.
void Context::describe_adopted(const Creation& wish, std::uint64_t from, std::uint64_t to, const std::string& note,
                               std::vector<SharedRegion>& shared, std::vector<ExposedRegion>& exposed) {
  NodeSegment& segment = *membership_.segment;
  const auto base = reinterpret_cast<std::uintptr_t>(wish.memory);
  const auto within = [&](std::uintptr_t address) {
    return address <= base + from ? from : std::min<std::uint64_t>(address - base, to);
  };
  const auto segment_begin = reinterpret_cast<std::uintptr_t>(segment.begin());
  const std::uint64_t first = within(segment_begin);
  const std::uint64_t last = within(segment_begin + segment.bytes());
  if (first >= last) return describe_stretch(wish, from, to, note, false, shared, exposed);
  if (from != first) describe_stretch(wish, from, first, note, false, shared, exposed);
  // Two more follow: what is left of the segment, and what lies behind it.
  for (std::uint64_t at = first; at < last;) {
    const std::uint64_t offset = base + at - segment_begin;
    const HeapExtent marked = segment.first_atomics_only(offset, last - at, node_.id_in_segment());
    const bool is_atomics_only = marked.bytes != 0 && marked.offset == offset;
    std::uint64_t end = is_atomics_only ? at + marked.bytes : at + (marked.offset - offset);
    if (wish.flavour == Flavour::adopted && shared.size() + 2 >= most_adopted_regions) end = last;
    describe_stretch(wish, at, end, "memory of the node", is_atomics_only, shared, exposed);
    at = end;
  }
  if (last != to) describe_stretch(wish, last, to, note, false, shared, exposed);
}

// Describes a stretch that lies in the node segment, which all ranks can map, or outside, reached by attach and agent.
void Context::describe_stretch(const Creation& wish, std::uint64_t from, std::uint64_t to, const std::string& note,
                               bool atomics_only, std::vector<SharedRegion>& shared,
                               std::vector<ExposedRegion>& exposed) {
  NodeSegment& segment = *membership_.segment;
  const auto address = reinterpret_cast<std::uintptr_t>(wish.memory) + from;
  auto* memory = reinterpret_cast<std::byte*>(address);
  const std::uint64_t base = wish.flavour == Flavour::dynamic ? reinterpret_cast<std::uintptr_t>(wish.memory) : 0;
  const std::uint32_t flags = (wish.read_only ? region_read_only : 0) | (wish.unsure ? region_unsure : 0);
  SharedRegion region{base + from, to - from, address, not_in_segment, flags, 0, {}};
  set_note(region, note);
  ExposedRegion own{base + from, to - from, memory, own_domain(memory), true, wish.read_only};
  own.has_holes = wish.unsure && !wish.parts.empty();
  const bool is_sparse = wish.unsure && segment.has_place_for(memory, to - from);
  if (to != from && (is_sparse || segment.contains(memory, to - from))) {
    region.segment_offset = segment.offset_of(memory);
    region.flags = region_segment_key | (atomics_only ? region_atomics_only : 0) | (is_sparse ? region_unsure : 0);
    own.has_holes = false;
    own.read_only = false;
    own.domain = {segment.stripes(), region.segment_offset, node_stripes - 1, atomics_only};
    // CPU atomics are the agent's then.
    own.guarded = is_sparse && !(atomics_only && segment.reach({region.segment_offset, to - from}).is_ok());
  }
  shared.push_back(region);
  exposed.push_back(own);
}

}  // namespace farsum
