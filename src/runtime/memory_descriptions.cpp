#include "runtime/memory_descriptions.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace farsum {
namespace {

// One window or attachment has so many parts at most: as many as there is room for regions of adopted memory.
constexpr std::size_t most_parts_with_holes = most_adopted_regions;

// The last region that there is room for becomes all that is left of them; they touch. The owner, to whom each of them
// is exposed, looks up under whose locks an atomic there is.
void take_for_one(std::vector<SharedRegion>& regions, std::size_t most) {
  if (regions.size() <= most) return;
  SharedRegion& rest = regions[most - 1];
  rest.bytes = regions.back().offset + regions.back().bytes - rest.offset;
  rest.flags = (rest.flags & ~region_atomics_only) | region_mixed_locks;
  regions.resize(most);
}

}  // namespace

void set_note(SharedRegion& region, const std::string& note) {
  std::strncpy(region.note, note.c_str(), sizeof region.note - 1);
}

AtomicDomain MemoryDescriptions::domain_of(const void* memory) const {
  NodeSegment& segment = node_.segment();
  if (segment.contains(memory, 1)) return {segment.stripes(), segment.offset_of(memory), node_stripes - 1, false};
  return {node_.block().stripes, reinterpret_cast<std::uintptr_t>(memory), rank_stripes - 1, false};
}

Status MemoryDescriptions::look_at(WindowWish& wish, const char* call) const {
  NodeSegment& segment = node_.segment();
  if (segment.contains(wish.memory, wish.bytes)) return {};
  const os::MapReader::Access access = maps_.access(wish.memory, wish.bytes);
  wish.read_only = access.readable && !access.writable;
  if (access.readable) return {};
  const auto begin = reinterpret_cast<std::uintptr_t>(wish.memory);
  bool any_readable = false;
  for (const os::MapReader::Part& part : maps_.parts(wish.memory, wish.bytes)) {
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
                      call, begin, begin + wish.bytes, maps_.classify(wish.memory, wish.bytes).describe())};
}

void MemoryDescriptions::describe(const WindowWish& wish, const std::string& note, DescribedMemory& all) const {
  if (wish.parts.empty()) return describe_adopted(wish, {0, wish.bytes, note}, all);
  WindowWish part_wish;
  part_wish.flavour = wish.flavour;
  part_wish.memory = wish.memory;
  part_wish.bytes = wish.bytes;
  part_wish.parts = wish.parts;
  const NodeSegment& segment = node_.segment();
  const std::string not_there = "user memory that was not there, or not writable, when it was exposed";
  const bool meets_segment =
      wish.memory < segment.begin() + segment.bytes() && segment.begin() < wish.memory + wish.bytes;
  if (meets_segment) {
    part_wish.unsure = true;
    return describe_adopted(part_wish, {0, wish.bytes, note}, all);
  }
  for (const WindowWish::Part& part : wish.parts) {
    part_wish.unsure = !part.is_there;
    describe_stretch(part_wish, {part.offset, part.offset + part.bytes, part.is_there ? note : not_there}, all);
  }
}

void MemoryDescriptions::describe_promoted(const WindowWish& wish, const os::Promotion& promotion,
                                           DescribedMemory& all) const {
  const std::string edge = "edge of promoted user memory";
  const std::uint64_t from = promotion.address() - reinterpret_cast<std::uintptr_t>(wish.memory);
  const std::uint64_t to = from + promotion.bytes();
  if (from != 0) describe_adopted(wish, {0, from, edge}, all);
  SharedRegion middle{from, to - from, promotion.address(), promotion.file_offset(), region_promoted, 0, {}};
  set_note(middle, "promoted user memory");
  all.shared.push_back(middle);
  all.exposed.push_back({from, to - from, wish.memory + from, domain_of(wish.memory + from), false, false});
  if (to != wish.bytes) describe_adopted(wish, {to, wish.bytes, edge}, all);
}

// Describes adopted memory as it is: cut where the node segment begins and ends, and inside that where
// memory that only CPU atomics may touch does, so that each stretch is under the locks of whatever else exposes it.
void MemoryDescriptions::describe_adopted(const WindowWish& wish, const Stretch& stretch, DescribedMemory& all) const {
  const std::uint64_t from = stretch.from, to = stretch.to;
  const std::string& note = stretch.note;
  const std::string of_the_node = "memory of the node";
  NodeSegment& segment = node_.segment();
  const auto base = reinterpret_cast<std::uintptr_t>(wish.memory);
  const auto within = [&](std::uintptr_t address) {
    return address <= base + from ? from : std::min<std::uint64_t>(address - base, to);
  };
  const auto segment_begin = reinterpret_cast<std::uintptr_t>(segment.begin());
  const std::uint64_t first = within(segment_begin);
  const std::uint64_t last = within(segment_begin + segment.bytes());
  if (first >= last) return describe_stretch(wish, {from, to, note}, all);
  if (from != first) describe_stretch(wish, {from, first, note}, all);
  DescribedMemory of_segment;
  for (std::uint64_t at = first; at < last;) {
    const std::uint64_t offset = base + at - segment_begin;
    const HeapExtent marked = segment.first_atomics_only(offset, last - at, node_.id_in_segment());
    const bool is_atomics_only = marked.bytes != 0 && marked.offset == offset;
    const std::uint64_t end = is_atomics_only ? at + marked.bytes : at + (marked.offset - offset);
    describe_stretch(wish, {at, end, of_the_node, is_atomics_only}, of_segment);
    at = end;
  }
  if (wish.flavour == Flavour::adopted) {
    // What else a window tells of is an edge or two of promoted memory: shorter than a page, and in no segment.
    const std::size_t others = all.shared.size() + (last != to ? 1 : 0);
    take_for_one(of_segment.shared, most_adopted_regions - std::min<std::size_t>(others, most_adopted_regions - 1));
  }
  all.shared.insert(all.shared.end(), of_segment.shared.begin(), of_segment.shared.end());
  all.exposed.insert(all.exposed.end(), of_segment.exposed.begin(), of_segment.exposed.end());
  if (last != to) describe_stretch(wish, {last, to, note}, all);
}

// Describes a stretch that lies in the node segment, which all ranks can map, or outside, reached by attach and agent.
void MemoryDescriptions::describe_stretch(const WindowWish& wish, const Stretch& stretch, DescribedMemory& all) const {
  const std::uint64_t from = stretch.from, to = stretch.to;
  NodeSegment& segment = node_.segment();
  const auto address = reinterpret_cast<std::uintptr_t>(wish.memory) + from;
  auto* memory = reinterpret_cast<std::byte*>(address);
  const std::uint64_t base = wish.flavour == Flavour::dynamic ? reinterpret_cast<std::uintptr_t>(wish.memory) : 0;
  const std::uint32_t flags = (wish.read_only ? region_read_only : 0) | (wish.unsure ? region_unsure : 0);
  SharedRegion region{base + from, to - from, address, not_in_segment, flags, 0, {}};
  set_note(region, stretch.note);
  ExposedRegion own{base + from, to - from, memory, domain_of(memory), true, wish.read_only};
  own.has_holes = wish.unsure && !wish.parts.empty();
  const bool is_sparse = wish.unsure && segment.has_place_for(memory, to - from);
  if (to != from && (is_sparse || segment.contains(memory, to - from))) {
    region.segment_offset = segment.offset_of(memory);
    region.flags =
        region_segment_key | (stretch.atomics_only ? region_atomics_only : 0) | (is_sparse ? region_unsure : 0);
    own.has_holes = false;
    own.read_only = false;
    own.domain = {segment.stripes(), region.segment_offset, node_stripes - 1, stretch.atomics_only};
    // CPU atomics are the agent's then.
    own.guarded = is_sparse && !(stretch.atomics_only && segment.reach({region.segment_offset, to - from}).is_ok());
  }
  all.shared.push_back(region);
  all.exposed.push_back(own);
}

}  // namespace farsum
