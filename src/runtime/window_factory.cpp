// Making and unmaking windows: what the ranks agree on, where the memory comes from, and how each rank's part is made
// known to the others.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "os/memory_map.hpp"
#include "runtime/context.hpp"

namespace farsum {
namespace {

enum class Flavour : std::uint8_t { allocated, adopted, dynamic };

// Regions that a rank may attach to a dynamic window at once.
constexpr std::uint32_t most_dynamic_regions = 4096;
// An adopted part is an edge, a promoted stretch and an edge, or what lies around the node segment and stretches of it
// that differ in who may touch them; where there are more of those, the last is taken for one.
constexpr std::uint32_t most_adopted_regions = 16;
// For memory that could not be turned back, which is tried again while other windows are freed.
constexpr std::chrono::milliseconds retry_patience{50};
constexpr std::uint32_t most_frees_between_retries = 256;

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
  bool may_promote = false;
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
  bool unsure = false;  // memory that need not be mapped, such as the whole address space
  Status refusal;       // what this rank finds wrong with its own part
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
  } else if (owner == place_.rank && (shared.flags & region_unsure) == 0) {
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
  // From address 0 on there is always something that is not mapped: MPI programs expose the whole address space so, and
  // each operation finds out whether its bytes are there.
  wish.unsure = memory == nullptr && bytes != 0;
  if (bytes != 0 && !wish.unsure && !place_.segment->contains(memory, bytes)) {
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

// Where each rank's part starts behind the control block, and the bytes of all. Contiguous parts leave no gap, not even
// for the alignment of an element.
std::vector<std::uint64_t> lay_out(const std::vector<Offer>& offers, std::uint64_t control_bytes,
                                   std::uint64_t& total) {
  std::vector<std::uint64_t> starts;
  total = control_bytes;
  if ((offers[0].promises & promise_contiguous_parts) != 0) {
    std::uint64_t sum = 0;
    for (const Offer& offer : offers) sum += offer.bytes;
    total = round_up(total, part_alignment(sum));
    for (const Offer& offer : offers) {
      starts.push_back(total);
      total += offer.bytes;
    }
    return starts;
  }
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

// What another rank, which found it, has told in full.
const char* explain_refusal(Code code) {
  if (code == Code::no_memory) return "it has too many windows already";
  if (code == Code::system) return "it cannot start its agent";
  return "its memory is not mapped or not readable";
}

// Promises that hold where all ranks make them, and demands that hold where one does.
constexpr std::uint32_t promises_of_all = promise_single_element | promise_no_ordering | promise_no_locks;
constexpr std::uint32_t promises_of_one = promise_strict_epochs;

// The promises that hold for this rank, whose own are `mine`.
std::uint32_t agreed_promises(const std::vector<Offer>& offers, std::uint32_t mine) {
  for (const Offer& offer : offers) {
    mine &= offer.promises | ~promises_of_all;
    mine |= offer.promises & promises_of_one;
  }
  return mine;
}

Status agree(const std::vector<Offer>& offers, const char* call) {
  WideInteger sum = 0;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    if (offers[rank].code != Code::ok) {
      return {offers[rank].code, fmt::format("{}: rank {} of the group cannot take part: {}", call, rank,
                                             explain_refusal(offers[rank].code))};
    }
    if (offers[rank].flavour != offers[0].flavour ||
        ((offers[rank].promises ^ offers[0].promises) & promise_contiguous_parts) != 0 ||
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
  note_thread();
  sweep_circles();
  NodeTeam& team = group.team();
  const std::uint32_t me = group.my_rank();
  const Status no_agent = start_agent();
  const Status& refused = !options.refusal.is_ok() ? options.refusal : !wish.refusal.is_ok() ? wish.refusal : no_agent;
  const bool may_promote = wish.flavour == Flavour::adopted && why_not_promoted(wish, options).empty();
  Offer offer{wish.bytes, options.promises, options.notification_slots, wish.flavour, refused.code(), may_promote};
  std::vector<Offer> offers(group.size());
  if (Status status =
          team.allgather(std::as_bytes(std::span(&offer, 1)), std::as_writable_bytes(std::span(offers)), call);
      !status.is_ok()) {
    return status;
  }
  if (!refused.is_ok()) return Status(refused.code(), refused.text());
  if (Status status = agree(offers, call); !status.is_ok()) return status;

  const std::uint32_t promises = agreed_promises(offers, options.promises);
  const WindowSharedShape shape{group.size(), options.notification_slots, most_adopted_regions};
  std::uint64_t total = 0;
  // The control block: what each rank tells of its part, where they meet, and where they part.
  const std::uint64_t team_at = shape.rank_bytes() * group.size();
  const std::uint64_t farewell_at = team_at + round_up(sizeof(NodeTeamBlock), cache_line_bytes);
  const std::uint64_t control_bytes = farewell_at + FarewellBlock::footprint(group.size());
  const std::vector<std::uint64_t> starts = lay_out(offers, round_up(control_bytes, page_bytes), total);
  Answer answer;
  if (me == 0) {
    Result<HeapExtent> extent = place_.segment->allocate(total, place_.rank + 1);
    if (extent.is_ok()) {
      answer.extent = extent.value();
      answer.id = place_.segment->next_window_id().fetch_add(1, std::memory_order_relaxed) + 1;
      answer.bare = wish.flavour == Flavour::allocated && (promises & promise_single_element) != 0 &&
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
  std::byte* const control = place_.segment->at(answer.extent.offset);
  object->team =
      std::make_unique<NodeTeam>(*reinterpret_cast<NodeTeamBlock*>(control + team_at), group.size(), me, *waiter_);
  object->farewell =
      std::make_unique<Farewell>(*reinterpret_cast<FarewellBlock*>(control + farewell_at), group.ranks(), me, *waiter_);
  std::vector<RankWindow> shared;
  std::vector<std::uint64_t> sizes;
  for (std::uint32_t rank = 0; rank < group.size(); ++rank) {
    shared.emplace_back(place_.segment->at(answer.extent.offset + rank * shape.rank_bytes()), shape);
    sizes.push_back(object->dynamic ? 0 : offers[rank].bytes);
  }

  // Where a rank may move memory, every rank of the group is in this call and none runs another runtime meanwhile: an
  // MPI library copies messages into its peers' memory by itself. Nothing waited for here needs that runtime.
  ThreadWaiter::Quiet quiet(*waiter_);
  if (std::any_of(offers.begin(), offers.end(), [](const Offer& other) { return other.may_promote; })) {
    quiet.begin();
    if (Status status = team.barrier(call); !status.is_ok()) return status;
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
    std::string refusal = why_not_promoted(wish, options);
    if (!refusal.empty() || !promote(wish, *object, own_shared, own_exposed, refusal)) {
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
  quiet.end();
  // Other windows have none, and their tables may be under change from here on.
  object->some_promoted =
      wish.flavour == Flavour::adopted && std::any_of(shared.begin(), shared.end(), [](const RankWindow& rank) {
        return std::any_of(rank.regions(), rank.regions() + rank.head().region_count,
                           [](const SharedRegion& region) { return (region.flags & region_promoted) != 0; });
      });

  Window::Parts parts;
  parts.id = answer.id;
  parts.name = options.name;
  parts.ranks = group.ranks();
  parts.my_rank = me;
  parts.promises = answer.bare ? promises : promises & ~std::uint32_t{promise_single_element};
  parts.dynamic = object->dynamic;
  parts.aggregate_limit = options.aggregate_limit != 0 ? options.aggregate_limit : options_.settings.aggregate;
  parts.shape = shape;
  parts.shared = std::move(shared);
  parts.sizes = std::move(sizes);
  parts.settings = options_.settings;
  parts.lock_agent = lock_agent();
  parts.kernels = kernels_;
  if (options.place_views) parts.views = options.place_views(group.size());
  parts.team = object->team.get();
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

// [from, to) of adopted memory as it is: cut where the node segment begins and ends, and inside that where memory that
// only CPU atomics may touch does, so that each stretch is under the locks of whatever else exposes it.
void Context::describe_adopted(const Creation& wish, std::uint64_t from, std::uint64_t to, const std::string& note,
                               std::vector<SharedRegion>& shared, std::vector<ExposedRegion>& exposed) {
  NodeSegment& segment = *place_.segment;
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
    const HeapExtent bare = segment.first_bare(offset, last - at, place_.rank + 1);
    const bool is_bare = bare.bytes != 0 && bare.offset == offset;
    std::uint64_t end = is_bare ? at + bare.bytes : at + (bare.offset - offset);
    if (wish.flavour == Flavour::adopted && shared.size() + 2 >= most_adopted_regions) end = last;
    describe_stretch(wish, at, end, "memory of the node", is_bare, shared, exposed);
    at = end;
  }
  if (last != to) describe_stretch(wish, last, to, note, false, shared, exposed);
}

// A stretch that lies in the node segment, where it is mapped everywhere, or outside, reached by attach and agent.
void Context::describe_stretch(const Creation& wish, std::uint64_t from, std::uint64_t to, const std::string& note,
                               bool bare, std::vector<SharedRegion>& shared, std::vector<ExposedRegion>& exposed) {
  NodeSegment& segment = *place_.segment;
  const auto address = reinterpret_cast<std::uintptr_t>(wish.memory) + from;
  auto* memory = reinterpret_cast<std::byte*>(address);
  const std::uint64_t base = wish.flavour == Flavour::dynamic ? reinterpret_cast<std::uintptr_t>(wish.memory) : 0;
  const std::uint32_t flags = (wish.read_only ? region_read_only : 0) | (wish.unsure ? region_unsure : 0);
  SharedRegion region{base + from, to - from, address, not_in_segment, flags, 0, {}};
  set_note(region, note);
  ExposedRegion own{base + from, to - from, memory, own_domain(memory), true, wish.read_only};
  if (to != from && segment.contains(memory, to - from)) {
    region.segment_offset = segment.offset_of(memory);
    region.flags = region_segment_key | (bare ? region_bare : 0);
    own.guarded = false;
    own.read_only = false;
    own.domain.bare = bare;
  }
  shared.push_back(region);
  exposed.push_back(own);
}

os::PromotionRules Context::promotion_rules() const {
  os::PromotionRules rules;
  rules.least_pages = std::max<std::size_t>(options_.settings.promote_least_bytes / page_bytes, 1);
  if (agent_ != nullptr) rules.parked_threads = {agent_->thread_id()};
  rules.may_hold_threads = options_.settings.hold_threads != Permission::refuse;
  return rules;
}

// What is known without a look at the memory; empty where it may be promoted.
std::string Context::why_not_promoted(const Creation& wish, const WindowOptions& options) const {
  if (wish.bytes == 0 || (options.promises & promise_no_promotion) != 0) return "user memory";
  if (options_.settings.promotion == Permission::refuse) return "user memory, FARSUM_PROMOTION=refuse";
  if (wish.unsure) return "user memory that need not be mapped";
  if (wish.read_only) return "read-only user memory";
  if (wish.bytes < options_.settings.promote_least_bytes || place_.segment->contains(wish.memory, 1))
    return "user memory, too small to promote";
  return {};
}

bool Context::promote(const Creation& wish, WindowObject& object, std::vector<SharedRegion>& shared,
                      std::vector<ExposedRegion>& exposed, std::string& refusal) {
  NodeSegment& segment = *place_.segment;
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

// Of a window that all ranks have agreed to free: between two meetings each is in here and none runs another runtime,
// as in make_window. Where one has left a circle, which all see alike, the memory turns back when the window departs.
void Context::demote_in_quiet(WindowObject& object, const char* call) {
  ThreadWaiter::Quiet quiet(*waiter_);
  quiet.begin();
  Farewell::Answer answer;
  // What fails here is the wait for a rank that has died, which every later wait tells.
  if (!object.farewell->agree(Code::ok, *circle_, call, answer).is_ok()) return;
  object.left_circle = !answer.all_came;
  if (!answer.all_came || answer.some_left) return;
  exposures_.erase(object.window->parts().id);
  if (object.group->size() == place_.size) {
    const auto parked = exposures_.pause();
    os::PromotionRules rules = promotion_rules();
    // Each may cost it, for nothing.
    rules.hold_patience = retry_patience;
    if (--frees_until_retry_ == 0) retry_kept(rules);
  }
  demote(object);
  (void)object.farewell->agree(Code::ok, *circle_, call, answer);
}

// At the end, when no window serves any more.
void Context::demote_all() {
  for (const std::unique_ptr<WindowObject>& object : windows_) exposures_.erase(object->window->parts().id);
  for (const std::unique_ptr<WindowObject>& object : windows_) demote(*object);
  for (const std::unique_ptr<WindowObject>& object : left_circles_) demote(*object);
  const auto parked = exposures_.pause();
  retry_kept(promotion_rules());
}

// Turns back what no window exposes any more; the rest waits for the next promoted window to go. Peers have stopped
// using the windows gone. Called with the exposures paused.
void Context::settle_promotions() {
  const os::PromotionRules rules = promotion_rules();
  std::erase_if(kept_promotions_, [&](os::Promotion& promotion) {
    if (exposures_.overlaps(promotion.address(), promotion.bytes())) return false;
    const os::ReleaseOutcome outcome = promotions_.release(promotion, rules);
    if (outcome.extent_is_free()) place_.segment->release({outcome.file_offset, outcome.bytes}, place_.rank + 1);
    return true;
  });
}

// Once more what could not be turned back, and if that fails again, after twice as many frees. Called as the former.
void Context::retry_kept(const os::PromotionRules& rules) {
  bool has_failed = false;
  for (const os::ReleaseOutcome& outcome : promotions_.retry_kept(rules)) {
    has_failed = has_failed || outcome.demotion == os::Demotion::kept;
    if (outcome.extent_is_free()) place_.segment->release({outcome.file_offset, outcome.bytes}, place_.rank + 1);
  }
  frees_between_retries_ = has_failed ? std::min(2 * frees_between_retries_, most_frees_between_retries) : 1;
  frees_until_retry_ = frees_between_retries_;
}

// Where several threads make and free windows, one of them may be about to do what another rank waits for.
void Context::note_thread() {
  const std::lock_guard lock(mutex_);
  const std::thread::id me = std::this_thread::get_id();
  if (window_thread_ == std::thread::id()) window_thread_ = me;
  if (window_thread_ != me) circle_->take_out();
}

Status Context::prepare_free(WindowObject& object, const char* call) {
  if (object.prepared) return {Code::sync, fmt::format("{}: the window is being freed already", call)};
  note_thread();
  const Status mine = object.window->settle(call);
  Farewell::Answer answer;
  Status status = object.farewell->agree(mine.code(), *circle_, call, answer);
  if (!status.is_ok()) return status;
  if (!mine.is_ok()) return {mine.code(), std::string(mine.text())};
  if (answer.code != Code::ok) {
    return {Code::pending,
            fmt::format("{}: rank {} of the group has an epoch or a lock open on the window, or an operation failed",
                        call, answer.rank)};
  }
  object.prepared = true;
  object.left_circle = !answer.all_came;
  object.window->close();
  if (answer.all_came && object.some_promoted) demote_in_quiet(object, call);
  return {};
}

Status Context::free_window(WindowObject* object) {
  if (!object->prepared) {
    if (Status status = prepare_free(*object, "farsum_window_free"); !status.is_ok()) return status;
  }
  exposures_.erase(object->window->parts().id);
  object->farewell->settle();
  object->group->users().fetch_sub(1, std::memory_order_relaxed);
  sweep_circles();
  std::unique_ptr<WindowObject> gone;
  {
    const std::lock_guard lock(mutex_);
    retired_hot_operations_ += object->window->hot_operations();
    retired_hot_bytes_ += object->window->hot_bytes();
    const auto place =
        std::find_if(windows_.begin(), windows_.end(), [object](const auto& other) { return other.get() == object; });
    gone = std::move(*place);
    std::swap(*place, windows_.back());
    windows_.pop_back();
    if (object->left_circle) {
      // The others may still use this rank's memory: it stays what it is until they have come.
      object->window.reset();
      left_circles_.push_back(std::move(gone));
      return {};
    }
  }
  depart(*gone);
  return {};
}

// Nobody uses this rank's part any more.
void Context::depart(WindowObject& object) {
  if (object.promotion) demote(object);
  place_.segment->release(object.table, place_.rank + 1);
  if (!object.farewell->depart()) return;
  place_.segment->unmark_bare(object.extent, place_.rank + 1);
  place_.segment->release(object.extent, place_.rank + 1);
}

void Context::sweep_circles() {
  std::vector<std::unique_ptr<WindowObject>> settled;
  {
    const std::lock_guard lock(mutex_);
    const auto rest = std::stable_partition(left_circles_.begin(), left_circles_.end(),
                                            [](const auto& object) { return !object->farewell->all_settled(); });
    std::move(rest, left_circles_.end(), std::back_inserter(settled));
    left_circles_.erase(rest, left_circles_.end());
  }
  for (const std::unique_ptr<WindowObject>& object : settled) depart(*object);
}

// ---- dynamic windows ----

// A change of this rank's own table of regions, which others may be reading.
class Context::TableGuard {
 public:
  TableGuard(RankWindowHead& head, const PeerWatch& watch, Rank me) : head_(head) {
    // A reader that died holding it has changed nothing.
    while (!head.table_lock.acquire(me + 1, [&](std::uint32_t holder) { return watch.is_dead(holder - 1); })) {
      const std::uint32_t holder = head.table_lock.holder();
      if (holder != 0 && watch.is_dead(holder - 1) && head.table_lock.break_dead(holder, me + 1)) break;
    }
  }
  ~TableGuard() { head_.table_lock.release(); }
  TableGuard(const TableGuard&) = delete;
  TableGuard& operator=(const TableGuard&) = delete;

 private:
  RankWindowHead& head_;
};

// A table that is full moves to a place of twice the size.
Status Context::make_room_for_regions(WindowObject& object, std::uint64_t count) {
  const Window::Parts& parts = object.window->parts();
  const std::uint64_t now =
      object.table.bytes == 0 ? parts.shape.most_regions * sizeof(SharedRegion) : object.table.bytes;
  if (count * sizeof(SharedRegion) <= now) return {};
  Result<HeapExtent> made = place_.segment->allocate(std::max(2 * now, count * sizeof(SharedRegion)), place_.rank + 1);
  if (!made.is_ok()) return made.take_status();
  const RankWindow& own = parts.shared[parts.my_rank];
  auto* const place = reinterpret_cast<SharedRegion*>(place_.segment->at(made.value().offset));
  {
    const TableGuard guard(own.head(), *watch_, place_.rank);
    std::copy(own.regions(), own.regions() + own.head().region_count, place);
    own.head().moved_table = reinterpret_cast<std::byte*>(place) - reinterpret_cast<std::byte*>(&own.head());
  }
  place_.segment->release(std::exchange(object.table, made.value()), place_.rank + 1);
  return {};
}

void Context::publish(WindowObject& object, const std::vector<SharedRegion>& shared,
                      const std::vector<ExposedRegion>& exposed) {
  const Window::Parts& parts = object.window->parts();
  const RankWindow& own = parts.shared[parts.my_rank];
  RankWindowHead& head = own.head();
  // First what may find no memory.
  auto exposure = std::make_shared<Exposure>();
  exposure->regions = exposed;
  std::sort(exposure->regions.begin(), exposure->regions.end(),
            [](const ExposedRegion& a, const ExposedRegion& b) { return a.offset < b.offset; });
  exposure->notifications = own.notifications();
  exposure->notification_slots = parts.shape.notification_slots;
  exposures_.set(parts.id, exposure);
  const TableGuard guard(head, *watch_, place_.rank);
  std::copy(shared.begin(), shared.end(), own.regions());
  head.region_count = static_cast<std::uint32_t>(shared.size());
  // Release pairs with the acquire load in Window::read_regions.
  head.table_version.fetch_add(1, std::memory_order_release);
}

Status Context::attach(WindowObject& object, void* memory, std::uint64_t bytes) {
  if (!object.dynamic)
    return {Code::argument, "farsum_window_attach: the window is not dynamic; its memory was set when it was made"};
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::lock_guard lock(object.regions_mutex);
  if (bytes == 0) {
    object.attached.emplace(begin, 0);
    return {};
  }
  const bool of_node = place_.segment->contains(memory, bytes);
  bool read_only = false;
  if (!of_node) {
    const os::MappedRange range = os::classify(memory, bytes);
    if (!range.readable) {
      return {
          Code::unreachable,
          fmt::format("farsum_window_attach: [{:#x}, {:#x}) is {}; memory must be mapped and readable to be exposed",
                      begin, begin + bytes, range.describe())};
    }
    read_only = !range.writable;
  }
  // Disjoint as they are, only the last that is not empty can reach into this one.
  for (auto earlier = object.attached.lower_bound(begin + bytes); earlier != object.attached.begin();) {
    --earlier;
    if (earlier->second == 0) continue;
    if (begin >= earlier->first + earlier->second) break;
    return {Code::argument,
            fmt::format("farsum_window_attach: [{:#x}, {:#x}) overlaps [{:#x}, {:#x}), which is attached already",
                        begin, begin + bytes, earlier->first, earlier->first + earlier->second)};
  }
  const Window::Parts& parts = object.window->parts();
  const RankWindow& own = parts.shared[parts.my_rank];
  std::vector<SharedRegion> shared(own.regions(), own.regions() + own.head().region_count);
  Creation wish;
  wish.flavour = Flavour::dynamic;
  wish.memory = static_cast<std::byte*>(memory);
  wish.bytes = bytes;
  wish.read_only = read_only;
  std::vector<ExposedRegion> exposed = exposures_.regions(parts.id);
  describe_adopted(wish, 0, bytes, "attached user memory", shared, exposed);
  if (shared.size() > most_dynamic_regions) {
    return {Code::no_memory, fmt::format("farsum_window_attach: {} regions are attached already, the most there can be",
                                         object.attached.size())};
  }
  if (Status status = make_room_for_regions(object, shared.size()); !status.is_ok())
    return {status.code(), fmt::format("farsum_window_attach: {}", status.text())};
  std::multimap<std::uintptr_t, std::uint64_t> entry = {{begin, bytes}};
  publish(object, shared, exposed);
  object.attached.merge(entry);
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
  const auto attached = object.attached.find(begin);
  if (attached == object.attached.end()) {
    return {Code::range, fmt::format("farsum_window_detach: no region that starts at {:#x} is attached", begin)};
  }
  const std::uint64_t end = begin + attached->second;
  if (begin == end) {
    object.attached.erase(attached);
    return {};
  }
  const auto inside = [begin, end](const auto& region) { return begin <= region.offset && region.offset < end; };
  std::erase_if(shared, inside);
  std::erase_if(exposed, inside);
  publish(object, shared, exposed);
  object.attached.erase(attached);
  return {};
}

}  // namespace farsum
