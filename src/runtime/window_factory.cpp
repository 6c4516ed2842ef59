// Making and unmaking windows: what the ranks agree on, where the memory comes from, and how each rank's part is made
// known to the others.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "os/memory_map.hpp"
#include "runtime/context.hpp"

namespace farsum {
namespace {

enum class Flavour : std::uint8_t { allocated, adopted, dynamic };

// Regions that a rank may attach to a dynamic window at once.
constexpr std::uint32_t most_dynamic_regions = 4096;
// An adopted part is at most an edge, a promoted stretch and an edge.
constexpr std::uint32_t most_adopted_regions = 3;

const char* call_of(Flavour flavour) {
  switch (flavour) {
    case Flavour::allocated:
      return "farsum_window_allocate";
    case Flavour::adopted:
      return "farsum_window_adopt";
    case Flavour::dynamic:
      return "farsum_window_create_dynamic";
  }
  return "farsum_window";
}

// Parts of a stripe or more start on a stripe, so that bulk sums of aligned blocks take as few locks as can be; others
// on a page or a line.
std::uint64_t part_alignment(std::uint64_t bytes) {
  if (bytes >= stripe_bytes) return stripe_bytes;
  return bytes >= page_bytes ? page_bytes : cache_line_bytes;
}

// What every rank tells the others before a window is made.
struct Offer {
  std::uint64_t bytes = 0;
  std::uint32_t promises = 0;
  std::uint32_t notification_slots = 0;
  Flavour flavour = Flavour::allocated;
  Code code = Code::ok;
};

// What the group's first rank answers.
struct Answer {
  HeapExtent extent;
  WindowId id = 0;
  Code code = Code::ok;
  bool bare = false;
  char text[240] = {};
};

void set_note(SharedRegion& region, const std::string& note) {
  std::strncpy(region.note, note.c_str(), sizeof region.note - 1);
}

}  // namespace

// A rank's own wish, and the parts that were agreed on.
struct Context::Creation {
  Flavour flavour = Flavour::allocated;
  std::byte* memory = nullptr;  // adopted
  std::uint64_t bytes = 0;
  bool read_only = false;
  Status refusal;  // what this rank finds wrong with its own part
};

AtomicDomain Context::own_domain(const void* memory) const {
  NodeSegment& segment = *place_.segment;
  if (segment.contains(memory, 1)) return {segment.stripes(), segment.offset_of(memory), node_stripes - 1, false};
  return {segment.rank(place_.rank).stripes, reinterpret_cast<std::uintptr_t>(memory), rank_stripes - 1, false};
}

Region Context::make_region(Rank owner, const SharedRegion& shared) const {
  NodeSegment& segment = *place_.segment;
  Region region;
  region.offset = shared.offset;
  region.bytes = shared.bytes;
  region.owner_address = shared.owner_address;
  region.read_only = (shared.flags & region_read_only) != 0;
  region.promoted = (shared.flags & region_promoted) != 0;
  const bool by_segment = (shared.flags & region_segment_key) != 0;
  region.domain.locks = by_segment ? segment.stripes() : segment.rank(owner).stripes;
  region.domain.mask = (by_segment ? node_stripes : rank_stripes) - 1;
  region.domain.key_base = by_segment ? shared.segment_offset : shared.owner_address;
  region.domain.bare = (shared.flags & region_bare) != 0;
  if (shared.segment_offset != not_in_segment) {
    region.mapped = segment.at(shared.segment_offset);
  } else if (owner == place_.rank) {
    region.mapped = reinterpret_cast<std::byte*>(shared.owner_address);
  }
  const PathChoiceResult paths =
      choose_paths(options_.settings.path, {.mapped = region.mapped != nullptr,
                                            .attach_allowed = transport_->attach_refusal(owner).empty(),
                                            .bare = region.domain.bare,
                                            .attach_refusal = transport_->attach_refusal(owner),
                                            .not_mapped_because = shared.note});
  region.bulk = paths.bulk;
  region.atomic = paths.atomic;
  region.reason = paths.reason;
  if (shared.note[0] != '\0' && region.mapped != nullptr) region.reason += fmt::format(" ({})", shared.note);
  return region;
}

Result<WindowObject*> Context::allocate_window(Group& group, std::uint64_t bytes, const WindowOptions& options) {
  Creation wish;
  wish.flavour = Flavour::allocated;
  wish.bytes = bytes;
  return make_window(group, wish, options);
}

Result<WindowObject*> Context::adopt_window(Group& group, void* memory, std::uint64_t bytes,
                                            const WindowOptions& options) {
  Creation wish;
  wish.flavour = Flavour::adopted;
  wish.memory = static_cast<std::byte*>(memory);
  wish.bytes = bytes;
  if (bytes != 0) {
    const os::MappedRange range = os::classify(memory, bytes);
    wish.read_only = range.readable && !range.writable;
    if (!range.readable) {
      wish.refusal =
          Status(Code::unreachable,
                 fmt::format("farsum_window_adopt: [{:#x}, {:#x}) is {}; memory must be mapped and readable to "
                             "be exposed",
                             reinterpret_cast<std::uintptr_t>(memory), reinterpret_cast<std::uintptr_t>(memory) + bytes,
                             range.describe()));
    }
  }
  return make_window(group, wish, options);
}

Result<WindowObject*> Context::create_dynamic_window(Group& group, const WindowOptions& options) {
  Creation wish;
  wish.flavour = Flavour::dynamic;
  return make_window(group, wish, options);
}

namespace {

// Where each rank's part starts behind the control block, and the bytes of all.
std::vector<std::uint64_t> lay_out(const std::vector<Offer>& offers, std::uint64_t control_bytes,
                                   std::uint64_t& total) {
  std::vector<std::uint64_t> starts;
  total = control_bytes;
  for (const Offer& offer : offers) {
    if (offer.flavour == Flavour::allocated && offer.bytes != 0) {
      total = round_up(total, part_alignment(offer.bytes));
      starts.push_back(total);
      total += round_up(offer.bytes, cache_line_bytes);
    } else {
      starts.push_back(total);
    }
  }
  return starts;
}

Status agree(const std::vector<Offer>& offers, const char* call) {
  WideInteger sum = 0;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    if (offers[rank].code != Code::ok) {
      return {offers[rank].code,
              fmt::format("{}: rank {} of the group cannot take part: its memory is not mapped or not readable", call,
                          rank)};
    }
    if (offers[rank].flavour != offers[0].flavour || offers[rank].promises != offers[0].promises ||
        offers[rank].notification_slots != offers[0].notification_slots) {
      return {
          Code::argument,
          fmt::format("{}: rank {} of the group called with other options, or another call, than rank 0", call, rank)};
    }
    sum += offers[rank].bytes;
  }
  if (offers[0].flavour == Flavour::allocated && sum >> 62 != 0) {
    return {Code::no_memory, fmt::format("{}: the ranks ask for more than 2^62 bytes together", call)};
  }
  return {};
}

}  // namespace

Result<WindowObject*> Context::make_window(Group& group, const Creation& wish, const WindowOptions& options) {
  const char* call = call_of(wish.flavour);
  NodeTeam& team = group.team();
  const std::uint32_t me = group.my_rank();
  Offer offer{wish.bytes, options.promises, options.notification_slots, wish.flavour, wish.refusal.code()};
  std::vector<Offer> offers(group.size());
  if (Status status =
          team.allgather(std::as_bytes(std::span(&offer, 1)), std::as_writable_bytes(std::span(offers)), call);
      !status.is_ok()) {
    return status;
  }
  if (!wish.refusal.is_ok()) return Status(wish.refusal.code(), wish.refusal.text());
  if (Status status = agree(offers, call); !status.is_ok()) return status;

  const std::uint32_t most_regions = wish.flavour == Flavour::dynamic ? most_dynamic_regions : most_adopted_regions;
  const WindowSharedShape shape{group.size(), options.notification_slots, most_regions};
  std::uint64_t total = 0;
  const std::vector<std::uint64_t> starts =
      lay_out(offers, round_up(shape.rank_bytes() * group.size(), page_bytes), total);
  Answer answer;
  if (me == 0) {
    Result<HeapExtent> extent = place_.segment->allocate(total, place_.rank + 1);
    if (extent.is_ok()) {
      answer.extent = extent.value();
      answer.id = place_.segment->next_window_id().fetch_add(1, std::memory_order_relaxed) + 1;
      answer.bare = wish.flavour == Flavour::allocated && (options.promises & promise_single_element) != 0 &&
                    place_.segment->mark_bare(answer.extent, place_.rank + 1);
    } else {
      Status status = extent.take_status();
      answer.code = status.code();
      std::strncpy(answer.text, status.text().c_str(), sizeof answer.text - 1);
    }
  }
  if (Status status = team.broadcast(std::as_writable_bytes(std::span(&answer, 1)), 0, call); !status.is_ok())
    return status;
  if (answer.code != Code::ok) return Status(answer.code, fmt::format("{}: {}", call, answer.text));

  auto object = std::make_unique<WindowObject>();
  object->group = &group;
  object->extent = answer.extent;
  object->dynamic = wish.flavour == Flavour::dynamic;
  object->internal = options.internal;
  std::vector<RankWindow> shared;
  std::vector<std::uint64_t> sizes;
  for (std::uint32_t rank = 0; rank < group.size(); ++rank) {
    shared.emplace_back(place_.segment->at(answer.extent.offset + rank * shape.rank_bytes()), shape);
    sizes.push_back(object->dynamic ? 0 : offers[rank].bytes);
  }

  // This rank's part: what others may do with it, and what the agent serves.
  std::vector<SharedRegion> own_shared;
  std::vector<ExposedRegion> own_exposed;
  if (wish.flavour == Flavour::allocated) {
    const std::uint64_t offset = answer.extent.offset + starts[me];
    object->memory = place_.segment->at(offset);
    SharedRegion region{0,
                        wish.bytes,
                        reinterpret_cast<std::uintptr_t>(object->memory),
                        offset,
                        region_segment_key | (answer.bare ? region_bare : 0),
                        0,
                        {}};
    ExposedRegion exposed{0, wish.bytes, object->memory, own_domain(object->memory), false, false};
    exposed.domain.bare = answer.bare;
    own_shared.push_back(region);
    own_exposed.push_back(exposed);
  } else if (wish.flavour == Flavour::adopted) {
    object->memory = wish.memory;
    std::string refusal = "user memory";
    if (wish.bytes == 0 || (options.promises & promise_no_promotion) != 0 ||
        !promote(wish, *object, own_shared, own_exposed, refusal)) {
      describe_adopted(wish, 0, wish.bytes, refusal, own_shared, own_exposed);
    }
  }
  std::copy(own_shared.begin(), own_shared.end(), shared[me].regions());
  shared[me].head().region_count = static_cast<std::uint32_t>(own_shared.size());
  auto exposure = std::make_shared<Exposure>();
  exposure->regions = own_exposed;
  exposure->notifications = shared[me].notifications();
  exposure->notification_slots = shape.notification_slots;
  exposures_.set(answer.id, exposure);
  if (Status status = team.barrier(call); !status.is_ok()) return status;

  Window::Parts parts;
  parts.id = answer.id;
  parts.name = options.name;
  parts.ranks = group.ranks();
  parts.my_rank = me;
  parts.promises = answer.bare ? options.promises : options.promises & ~std::uint32_t{promise_single_element};
  parts.dynamic = object->dynamic;
  parts.aggregate_limit = options.aggregate_limit != 0 ? options.aggregate_limit : options_.settings.aggregate;
  parts.shape = shape;
  parts.shared = std::move(shared);
  parts.sizes = std::move(sizes);
  parts.settings = options_.settings;
  parts.lock_agent = lock_agent();
  parts.kernels = kernels_;
  if (options.place_views) parts.views = options.place_views(group.size());
  parts.team = &team;
  parts.waiter = waiter_.get();
  parts.engine = engine_.get();
  parts.transport = transport_.get();
  parts.counters = &counters_;
  parts.make_region = [this](Rank owner, const SharedRegion& region) { return make_region(owner, region); };
  parts.wake_rank = [segment = place_.segment.get()](Rank rank) { segment->rank(rank).waiters.notify_all(); };
  object->window = std::make_unique<Window>(std::move(parts));
  group.users().fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  windows_.push_back(std::move(object));
  return windows_.back().get();
}

// [from, to) of adopted memory as it is: reached by attach and agent, or mapped where it lies in the node segment
// anyway.
void Context::describe_adopted(const Creation& wish, std::uint64_t from, std::uint64_t to, const std::string& note,
                               std::vector<SharedRegion>& shared, std::vector<ExposedRegion>& exposed) {
  NodeSegment& segment = *place_.segment;
  std::byte* memory = wish.memory + from;
  const std::uint64_t base = wish.flavour == Flavour::dynamic ? reinterpret_cast<std::uintptr_t>(wish.memory) : 0;
  SharedRegion region{base + from,
                      to - from,
                      reinterpret_cast<std::uintptr_t>(memory),
                      not_in_segment,
                      wish.read_only ? region_read_only : 0,
                      0,
                      {}};
  set_note(region, note);
  ExposedRegion own{base + from, to - from, memory, own_domain(memory), true, wish.read_only};
  if (to != from && segment.contains(memory, to - from)) {
    // Farsum's own memory, exposed once more: same domain, and mapped everywhere.
    region.segment_offset = segment.offset_of(memory);
    region.flags |= region_segment_key;
    own.guarded = false;
    own.domain.bare = segment.overlaps_bare(region.segment_offset, to - from, place_.rank + 1);
    if (own.domain.bare) region.flags |= region_bare;
    set_note(region, "memory of another window");
  }
  shared.push_back(region);
  exposed.push_back(own);
}

os::PromotionRules Context::promotion_rules() const {
  os::PromotionRules rules;
  rules.least_pages = std::max<std::size_t>(options_.settings.promote_least_bytes / page_bytes, 1);
  rules.parked_threads = {agent_->thread_id()};
  return rules;
}

bool Context::promote(const Creation& wish, WindowObject& object, std::vector<SharedRegion>& shared,
                      std::vector<ExposedRegion>& exposed, std::string& refusal) {
  NodeSegment& segment = *place_.segment;
  if (options_.settings.promotion == Permission::refuse) {
    refusal = "user memory, FARSUM_PROMOTION=refuse";
    return false;
  }
  if (wish.bytes < options_.settings.promote_least_bytes || wish.read_only || segment.contains(wish.memory, 1)) {
    refusal = wish.read_only ? "read-only user memory" : "user memory, too small to promote";
    return false;
  }
  // The agent serves nothing while memory moves under it.
  const auto parked = exposures_.pause();
  object.promotion = promotions_.share(wish.memory, wish.bytes);
  if (!object.promotion) {
    const os::Examination stretch = os::examine(wish.memory, wish.bytes, promotion_rules());
    if (!stretch.ok()) {
      refusal = fmt::format("user memory, not promoted: {}", stretch.refusal);
      return false;
    }
    if (exposures_.overlaps(stretch.address, stretch.bytes)) {
      refusal = "user memory, not promoted: another window exposes it";
      return false;
    }
    Result<HeapExtent> extent = segment.allocate(stretch.bytes, place_.rank + 1);
    if (!extent.is_ok()) {
      refusal = "user memory, not promoted: no shared memory left";
      return false;
    }
    os::PromotionOutcome outcome = promotions_.promote(stretch, segment.fd(), extent.value().offset, promotion_rules());
    if (!outcome.ok()) {
      segment.release(extent.value(), place_.rank + 1);
      refusal = fmt::format("user memory, not promoted: {}", outcome.refusal);
      return false;
    }
    object.promotion = std::move(outcome.promotion);
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(wish.memory);
  const std::uint64_t from = object.promotion.address() - begin;
  const std::uint64_t to = from + object.promotion.bytes();
  if (from != 0) describe_adopted(wish, 0, from, "edge of promoted user memory", shared, exposed);
  SharedRegion middle{from, to - from, object.promotion.address(), object.promotion.file_offset(), region_promoted,
                      0,    {}};
  set_note(middle, "promoted user memory");
  shared.push_back(middle);
  exposed.push_back({from, to - from, wish.memory + from, own_domain(wish.memory + from), false, false});
  if (to != wish.bytes) describe_adopted(wish, to, wish.bytes, "edge of promoted user memory", shared, exposed);
  return true;
}

void Context::demote(WindowObject& object) {
  const auto parked = exposures_.pause();
  if (object.promotion) kept_promotions_.push_back(std::move(object.promotion));
  settle_promotions();
}

// Turns back what no window exposes any more; the rest waits for the next window to go. Peers have stopped using the
// windows gone. Called with the exposures paused.
void Context::settle_promotions() {
  os::PromotionRules rules;
  if (agent_ != nullptr) rules = promotion_rules();
  const auto give_back = [this](const os::ReleaseOutcome& outcome) {
    if (outcome.extent_is_free()) place_.segment->release({outcome.file_offset, outcome.bytes}, place_.rank + 1);
  };
  for (const os::ReleaseOutcome& outcome : promotions_.retry_kept(rules)) give_back(outcome);
  std::erase_if(kept_promotions_, [&](os::Promotion& promotion) {
    if (exposures_.overlaps(promotion.address(), promotion.bytes())) return false;
    give_back(promotions_.release(promotion, rules));
    return true;
  });
}

Status Context::free_window(WindowObject* object) {
  NodeTeam& team = object->group->team();
  Status mine = object->window->check_idle("farsum_window_free");
  const Code code = mine.code();
  std::vector<Code> codes(object->group->size());
  if (Status status = team.allgather(std::as_bytes(std::span(&code, 1)), std::as_writable_bytes(std::span(codes)),
                                     "farsum_window_free");
      !status.is_ok()) {
    return status;
  }
  if (!mine.is_ok()) return mine;
  for (std::size_t rank = 0; rank < codes.size(); ++rank) {
    if (codes[rank] == Code::ok) continue;
    return {
        codes[rank],
        fmt::format("farsum_window_free: rank {} of the group has an epoch, a lock or operations open on the window",
                    rank)};
  }
  exposures_.erase(object->window->parts().id);
  demote(*object);
  // Beyond this nobody touches the control block or the memory.
  if (Status status = team.barrier("farsum_window_free"); !status.is_ok()) return status;
  if (object->group->my_rank() == 0) {
    place_.segment->unmark_bare(object->extent, place_.rank + 1);
    place_.segment->release(object->extent, place_.rank + 1);
  }
  object->group->users().fetch_sub(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  retired_hot_operations_ += object->window->hot_operations();
  retired_hot_bytes_ += object->window->hot_bytes();
  std::erase_if(windows_, [object](const auto& other) { return other.get() == object; });
  return {};
}

// ---- dynamic windows ----

void Context::publish(WindowObject& object, const std::vector<SharedRegion>& shared,
                      const std::vector<ExposedRegion>& exposed) {
  const Window::Parts& parts = object.window->parts();
  const RankWindow& own = parts.shared[parts.my_rank];
  RankWindowHead& head = own.head();
  // A reader that died holding it has changed nothing.
  while (
      !head.table_lock.acquire(place_.rank + 1, [this](std::uint32_t holder) { return watch_->is_dead(holder - 1); })) {
    const std::uint32_t holder = head.table_lock.holder();
    if (holder != 0 && watch_->is_dead(holder - 1) && head.table_lock.break_dead(holder, place_.rank + 1)) break;
  }
  std::copy(shared.begin(), shared.end(), own.regions());
  head.region_count = static_cast<std::uint32_t>(shared.size());
  // Release pairs with the acquire load in Window::read_regions.
  head.table_version.fetch_add(1, std::memory_order_release);
  head.table_lock.release();
  auto exposure = std::make_shared<Exposure>();
  exposure->regions = exposed;
  std::sort(exposure->regions.begin(), exposure->regions.end(),
            [](const ExposedRegion& a, const ExposedRegion& b) { return a.offset < b.offset; });
  exposure->notifications = own.notifications();
  exposure->notification_slots = parts.shape.notification_slots;
  exposures_.set(parts.id, exposure);
}

Status Context::attach(WindowObject& object, void* memory, std::uint64_t bytes) {
  if (!object.dynamic)
    return {Code::argument, "farsum_window_attach: the window is not dynamic; its memory was set when it was made"};
  if (bytes == 0) return {};
  const os::MappedRange range = os::classify(memory, bytes);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (!range.readable) {
    return {Code::unreachable,
            fmt::format("farsum_window_attach: [{:#x}, {:#x}) is {}; memory must be mapped and readable to be exposed",
                        begin, begin + bytes, range.describe())};
  }
  const std::lock_guard lock(object.regions_mutex);
  const Window::Parts& parts = object.window->parts();
  const RankWindow& own = parts.shared[parts.my_rank];
  std::vector<SharedRegion> shared(own.regions(), own.regions() + own.head().region_count);
  for (const SharedRegion& region : shared) {
    if (region.offset < begin + bytes && begin < region.offset + region.bytes) {
      return {Code::argument,
              fmt::format("farsum_window_attach: [{:#x}, {:#x}) overlaps [{:#x}, {:#x}), which is attached already",
                          begin, begin + bytes, region.offset, region.offset + region.bytes)};
    }
  }
  if (shared.size() == most_dynamic_regions) {
    return {Code::no_memory,
            fmt::format("farsum_window_attach: {} regions are attached already, the most there can be", shared.size())};
  }
  Creation wish;
  wish.flavour = Flavour::dynamic;
  wish.memory = static_cast<std::byte*>(memory);
  wish.bytes = bytes;
  wish.read_only = !range.writable;
  std::vector<ExposedRegion> exposed = exposures_.regions(parts.id);
  describe_adopted(wish, 0, bytes, "attached user memory", shared, exposed);
  publish(object, shared, exposed);
  return {};
}

Status Context::detach(WindowObject& object, const void* memory) {
  if (!object.dynamic) return {Code::argument, "farsum_window_detach: the window is not dynamic"};
  const std::lock_guard lock(object.regions_mutex);
  const Window::Parts& parts = object.window->parts();
  const RankWindow& own = parts.shared[parts.my_rank];
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  std::vector<SharedRegion> shared(own.regions(), own.regions() + own.head().region_count);
  std::vector<ExposedRegion> exposed = exposures_.regions(parts.id);
  const auto starts_here = [begin](const auto& region) { return region.offset == begin; };
  if (std::erase_if(shared, starts_here) == 0) {
    return {Code::range, fmt::format("farsum_window_detach: no region that starts at {:#x} is attached", begin)};
  }
  std::erase_if(exposed, starts_here);
  publish(object, shared, exposed);
  return {};
}

}  // namespace farsum
