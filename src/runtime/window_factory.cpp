// Making windows: what the ranks agree on, where the memory comes from, and how each rank's part is made known to the
// others.
#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "os/memory_map.hpp"
#include "runtime/window_creation.hpp"

namespace farsum {
namespace {

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

}  // namespace farsum
