#include "runtime/window_builder.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "variants/leases/leased_path.hpp"

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

static_assert(sizeof(WindowOffer) <= NodeTeamBlock::slot_bytes, "one meeting tells all offers");

// How many each rank has.
std::vector<std::uint32_t> mutexes_of(std::span<const WindowOffer> offers) {
  std::vector<std::uint32_t> counts;
  for (const WindowOffer& offer : offers) counts.push_back(offer.mutexes);
  return counts;
}

// What this rank's agent serves of a window.
std::shared_ptr<Exposure> make_exposure(const RankWindow& own, std::uint32_t notification_slots,
                                        const std::vector<Rank>& ranks, std::uint32_t promises,
                                        std::vector<ExposedRegion> regions) {
  auto exposure = std::make_shared<Exposure>();
  exposure->regions = std::move(regions);
  std::sort(exposure->regions.begin(), exposure->regions.end(),
            [](const ExposedRegion& a, const ExposedRegion& b) { return a.offset < b.offset; });
  exposure->notifications = own.notifications();
  exposure->notification_slots = notification_slots;
  exposure->own = own;
  exposure->ranks = ranks;
  exposure->has_holes = std::any_of(exposure->regions.begin(), exposure->regions.end(),
                                    [](const ExposedRegion& region) { return region.has_holes; });
  exposure->refuses_locks = (promises & promise_no_locks) != 0;
  return exposure;
}

}  // namespace

WindowBuilder::WindowBuilder(const WindowServices& services, WindowRegistry& registry, Group& group,
                             const WindowWish& wish, const WindowOptions& options)
    : services_(services),
      registry_(registry),
      group_(group),
      wish_(wish),
      options_(options),
      call_(options.mutexes ? "farsum_mutex_create" : call_of(wish.flavour)),
      me_(group.my_rank()),
      offers_(group.offers()) {}

void WindowBuilder::look_at_own() {
  if (!places().is_one_node()) {
    node_answers_.resize(group_.size());
    failures_.resize(group_.size());
  }
  if ((own_promises() & promise_network_only) != 0) card_offers_.resize(group_.size());
  if (wish_.flavour != Flavour::adopted) return;
  refusal_ = services_.promotions.why_not(wish_, options_.promises, places().here.size());
  moves_ = refusal_.empty() ? services_.promotions.ask_balance() : Moves::too_dear;
}

WindowOffer WindowBuilder::own_offer() const {
  const WindowLayer layer = options_.layer != nullptr ? *options_.layer : WindowLayer();
  return {.word = layer.word,
          .bytes = wish_.bytes,
          .alignment = options_.alignment,
          .mutexes = options_.mutexes.value_or(0),
          .promises = own_promises(),
          .notification_slots = options_.notification_slots,
          .refusal = layer.refusal,
          .flavour = wish_.flavour,
          .code = refusal_of_window_.code(),
          .may_promote = moves_ == Moves::allowed,
          .read_only = wish_.read_only,
          .is_for_mutexes = options_.mutexes.has_value(),
          .lacks_memory = thrown_ != nullptr};
}

// A meeting in which all tell all. On one node its last to come decides, and `answer_` is what it then has.
Status WindowBuilder::tell(std::span<const std::byte> mine, std::span<std::byte> all, FunctionRef<void()> decide) {
  if (!places().is_one_node()) return group_.team().allgather(mine, all, call_);
  return group_.team().node().consult(mine, all, std::as_writable_bytes(std::span(&answer_, 1)), decide, call_);
}

// The first meeting.
Status WindowBuilder::exchange_offers() {
  const WindowOffer offer = own_offer();
  Status status =
      tell(std::as_bytes(std::span(&offer, 1)), std::as_writable_bytes(offers_), [this] { answer_offers(); });
  if (!status.is_ok()) return status;
  if (offer.lacks_memory) std::rethrow_exception(thrown_);
  if (!refusal_of_window_.is_ok()) return {refusal_of_window_.code(), refusal_of_window_.text()};
  if (const std::optional<Disagreement> why = find_disagreement(offers_)) {
    tell_layer(*why);
    return in_words(*why, call_);
  }
  promises_ = agreed_promises(offers_, own_promises());
  if ((options_.promises & promise_contiguous_parts) == 0 || places().is_one_node()) return {};
  const Rank remote = places().remote.front().first;
  return {Code::unsupported, fmt::format("{}: parts can be contiguous (FARSUM_CONTIGUOUS_PARTS) on one node only, and "
                                         "rank {} of the job is on host {}",
                                         call_, remote, services_.remote_nodes.host_of(remote))};
}

void WindowBuilder::tell_layer(const Disagreement& why) const {
  if (options_.layer == nullptr || why.kind != Disagreement::Kind::refused_above) return;
  options_.layer->refused_by = static_cast<std::int32_t>(why.rank);
  options_.layer->refused_with = offers_[why.rank].refusal;
}

// Decides for all ranks of the node, while they wait.
void WindowBuilder::answer_offers() noexcept {
  if (find_disagreement(offers_)) return;
  promises_ = agreed_promises(offers_, own_promises());
  // What cards have made of the parts is not known yet.
  if (!are_for_cards()) cut_extent();
}

// A path that is forced comes before the declaration.
std::uint32_t WindowBuilder::own_promises() const {
  const PathChoice path = services_.settings.path;
  const bool may = path == PathChoice::automatic || path == PathChoice::offload;
  return may ? options_.promises : options_.promises & ~std::uint32_t{promise_network_only};
}

// Agrees on cards where the window is declared for them alone: all ranks can use them, or none does.
Status WindowBuilder::agree_on_cards() {
  if (!are_for_cards()) {
    if ((options_.promises & promise_network_only) == 0) return {};
    attempt([this] {
      no_cards_ = own_promises() == options_.promises ? "declared network-only, but not by every rank"
                                                      : "declared network-only, but FARSUM_PATH has another path";
    });
    return {};
  }
  CardOffer mine;
  attempt([&] { mine = expose_to_cards(); });
  if (thrown_ != nullptr) mine.refuse(Code::no_memory, "it has no memory left");
  Status status = tell(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(card_offers_)),
                       [this] { answer_cards(); });
  if (!status.is_ok()) return status;
  const auto refused = std::find_if(card_offers_.begin(), card_offers_.end(),
                                    [](const CardOffer& offer) { return offer.code != Code::ok; });
  if (refused == card_offers_.end()) {
    attempt([&] { cards_->reach(group_.ranks(), card_offers_); });
    return {};
  }
  do_without_cards();
  attempt([&] {
    const Rank rank = group_.ranks()[static_cast<std::size_t>(refused - card_offers_.begin())];
    no_cards_ = fmt::format("declared network-only, but rank {} of the job: {}", rank, refused->refusal());
  });
  return {};
}

// Called before the extent is cut, on the rank that cuts it.
void WindowBuilder::answer_cards() noexcept {
  if (std::any_of(card_offers_.begin(), card_offers_.end(),
                  [](const CardOffer& offer) { return offer.code != Code::ok; })) {
    do_without_cards();
  }
  cut_extent();
}

void WindowBuilder::do_without_cards() {
  cards_.reset();
  promises_ &= ~std::uint32_t{promise_network_only};
}

CardOffer WindowBuilder::expose_to_cards() {
  CardOffer offer;
  Result<Rdma*> card = services_.card.open();
  if (!card.is_ok()) {
    const Status why = card.take_status();
    offer.refuse(why.code(), why.text());
    return offer;
  }
  if (wish_.flavour == Flavour::dynamic || wish_.unsure || wish_.read_only || !wish_.parts.empty()) {
    offer.refuse(Code::unsupported, wish_.flavour == Flavour::dynamic
                                        ? "cards reach the memory of windows that is known when they are made"
                                        : "its memory need not be mapped, or is only read");
    return offer;
  }
  cards_ = std::make_unique<CardParts>(*card.value());
  // Who exposes nothing is operated on by nobody, but must be found.
  const bool adopts = wish_.flavour == Flavour::adopted && wish_.bytes != 0;
  if (Status status = cards_->expose(adopts ? wish_.memory : nullptr, std::max<std::uint64_t>(wish_.bytes, 1));
      !status.is_ok()) {
    offer.refuse(status.code(), status.text());
    return offer;
  }
  return cards_->offer();
}

// Learns the extent that one rank of the node has cut; over several nodes it is cut only now, by the first rank of
// each.
Status WindowBuilder::agree_on_extent() {
  attempt([this] { lay_out(); });
  if (!places().is_one_node()) {
    NodeTeam& node = group_.team().node();
    if (node.rank() == 0) cut_extent();
    if (Status status = node.broadcast(std::as_writable_bytes(std::span(&answer_, 1)), 0, call_); !status.is_ok())
      return status;
    if (Status status = agree_over_nodes(); !status.is_ok()) return status;
  }
  if (answer_.code == Code::ok) return {};
  if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  return {answer_.code, fmt::format("{}: {}", call_, answer_.text)};
}

// All nodes or none have the room; and memory is for CPU atomics alone on all or on none.
Status WindowBuilder::agree_over_nodes() {
  const NodeAnswer mine{answer_.id, answer_.code, answer_.atomics_only};
  std::vector<NodeAnswer>& all = node_answers_;
  if (Status status =
          group_.team().allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), call_);
      !status.is_ok()) {
    return status;
  }
  answer_.id = all[0].id;
  const bool all_atomics_only =
      std::all_of(all.begin(), all.end(), [](const NodeAnswer& answer) { return answer.atomics_only; });
  if (answer_.atomics_only && !all_atomics_only) {
    if (group_.team().is_first_here()) segment().unmark_atomics_only(answer_.extent, services_.node.id_in_segment());
    answer_.atomics_only = false;
  }
  const auto refused =
      std::find_if(all.begin(), all.end(), [](const NodeAnswer& answer) { return answer.code != Code::ok; });
  if (refused == all.end() || answer_.code != Code::ok) return {};
  if (group_.team().is_first_here()) give_extent_back();
  const Rank rank = group_.ranks()[static_cast<std::size_t>(refused - all.begin())];
  return {refused->code, fmt::format("{}: the node of rank {} of the job (host {}) has no room for its ranks' parts",
                                     call_, rank, services_.remote_nodes.host_of(rank))};
}

void WindowBuilder::give_extent_back() {
  segment().unmark_atomics_only(answer_.extent, services_.node.id_in_segment());
  segment().release(answer_.extent, services_.node.id_in_segment());
}

void WindowBuilder::lay_out() {
  // The rank that has cut the extent has done it.
  if (layout_.starts.empty()) layout_.lay_out(offers_, places().here, cards_ != nullptr);
}

void WindowBuilder::cut_extent() noexcept {
  attempt([this] {
    lay_out();
    Result<HeapExtent> extent = segment().allocate(layout_.total_bytes, services_.node.id_in_segment());
    if (!extent.is_ok()) {
      const Status status = extent.take_status();
      std::strncpy(answer_.text, status.text().c_str(), sizeof answer_.text - 1);
      answer_.code = status.code();
      return;
    }
    answer_.extent = extent.value();
    // Relaxed: counters.
    answer_.id = places().is_one_node() ? segment().next_window_id().fetch_add(1, std::memory_order_relaxed) + 1
                                        : WindowId{services_.node.rank() + 1} << 32 | registry_.next_number();
    answer_.atomics_only = wish_.flavour == Flavour::allocated && cards_ == nullptr &&
                           (promises_ & promise_single_element) != 0 &&
                           segment().mark_atomics_only(answer_.extent, services_.node.id_in_segment());
  });
  if (thrown_ == nullptr) return;
  answer_.code = Code::no_memory;
  std::snprintf(answer_.text, sizeof answer_.text, "rank %u of the group has no memory left", me_);
}

// Makes what is left, up to the last meeting, behind which nothing can fail.
Result<WindowObject*> WindowBuilder::make_parts() {
  attempt([this] { reach_own(); });
  attempt([this] { begin_object(); });
  // Where a rank may move memory, every rank of the group is in this call and none runs another runtime meanwhile: an
  // MPI library copies messages into its peers' memory by itself. Nothing waited for here needs that runtime.
  ThreadWaiter::Quiet quiet(services_.waiter);
  if (std::any_of(offers_.begin(), offers_.end(), [](const WindowOffer& other) { return other.may_promote; })) {
    quiet.begin();
    if (Status status = group_.team().barrier(call_); !status.is_ok()) return status;
  }
  attempt([this] { describe_part(); });
  attempt([this] { expose_part(); });
  attempt([this] { begin_window(); });
  if (Status status = meet_again(); !status.is_ok()) return status;
  if (failed_ != 0) return give_up();
  if (object_->post != nullptr) object_->post->open();
  quiet.end();
  // Other windows have none, and their tables may be under change from here on.
  const std::vector<RankWindow>& shared = object_->window->parts().shared;
  object_->some_promoted =
      wish_.flavour == Flavour::adopted && std::any_of(shared.begin(), shared.end(), [](const RankWindow& rank) {
        return rank.is_here() &&
               std::any_of(rank.regions(), rank.regions() + rank.head().region_count,
                           [](const SharedRegion& region) { return (region.flags & region_promoted) != 0; });
      });
  object_->window->refresh_views();
  if (options_.layer != nullptr && options_.layer->words != nullptr) {
    std::transform(offers_.begin(), offers_.end(), options_.layer->words,
                   [](const WindowOffer& offer) { return offer.word; });
  }
  group_.users().fetch_add(1, std::memory_order_relaxed);
  return registry_.add(std::move(object_));
}

// The last meeting: who could not go on?
Status WindowBuilder::meet_again() {
  if (places().is_one_node()) {
    NodeTeam& team = group_.team().node();
    // One node's windows have numbers of 32 bits.
    const auto number = static_cast<std::uint32_t>(answer_.id);
    if (has_failed()) team.give_up(number);
    if (Status status = team.barrier(call_); !status.is_ok()) return status;
    failed_ = team.who_gave_up(number);
    return {};
  }
  const std::uint32_t mine = has_failed() ? me_ + 1 : 0;
  if (Status status = group_.team().allgather(std::as_bytes(std::span(&mine, 1)),
                                              std::as_writable_bytes(std::span(failures_)), call_);
      !status.is_ok()) {
    return status;
  }
  failed_ = *std::max_element(failures_.begin(), failures_.end());
  return {};
}

// Maps the control block and this rank's part. Others' parts are reached some other way where they cannot be mapped.
void WindowBuilder::reach_own() {
  refused_ = segment().reach({answer_.extent.offset, layout_.control_bytes});
  if (!refused_.is_ok() || wish_.flavour != Flavour::allocated || cards_ != nullptr) return;
  // The program loads and stores in others' parts itself.
  if ((options_.promises & promise_contiguous_parts) != 0) {
    refused_ = segment().reach(answer_.extent);
    return;
  }
  const WindowOffer& mine = offers_[me_];
  refused_ = segment().reach(
      {answer_.extent.offset + layout_.starts[places().place_of(me_)], mine.bytes + room_to_align(mine)});
}

void WindowBuilder::begin_object() {
  object_ = std::make_unique<WindowObject>();
  object_->group = &group_;
  object_->extent = answer_.extent;
  object_->control_bytes = layout_.control_bytes;
  object_->dynamic = wish_.flavour == Flavour::dynamic;
  object_->internal = options_.internal;
  if (options_.mutexes) object_->mutexes = std::make_unique<Mutexes>(*object_, mutexes_of(offers_));
  object_->post = services_.maker.make_post(places(), me_, LetterPost::Use::window);
  object_->team = std::make_unique<GroupTeam>(places(), me_, object_->post.get(), services_.waiter);
  object_->team->begin(*reinterpret_cast<NodeTeamBlock*>(control() + layout_.team_at), answer_.id);
  // Who hears first, in the last meeting, that there is a window may fence it at once.
  if (object_->post != nullptr) object_->post->begin(answer_.id);
  std::vector<Rank> ranks_here;
  for (const std::uint32_t rank : places().here) ranks_here.push_back(group_.ranks()[rank]);
  object_->teardown = std::make_unique<Teardown>(*reinterpret_cast<TeardownBlock*>(control() + layout_.teardown_at),
                                                 std::move(ranks_here), places().place_of(me_), services_.waiter);
  shared_.resize(group_.size());
  LockBias bias;
  if (layout_.bias_at != 0)
    bias = LockBias(*reinterpret_cast<LockBiasState*>(control() + layout_.bias_at),
                    static_cast<std::uint32_t>(places().here.size()));
  std::uint64_t at = 0;
  for (const std::uint32_t rank : places().here) {
    shared_[rank] = RankWindow(control() + at, shape_of(rank), bias);
    at += shape_of(rank).rank_bytes();
  }
  object_->own = shared_[me_];
  object_->counts_traffic = wish_.flavour == Flavour::adopted;
  if (!places().is_one_node()) object_->teardown_answers.resize(group_.size());
}

// What is known of the part of a rank of another node: all of it goes to its agent, who knows what is exposed.
RegionTable WindowBuilder::remote_region(std::uint32_t rank) const {
  Region region;
  region.bytes = wish_.flavour == Flavour::dynamic ? ~std::uint64_t{0} : offers_[rank].bytes;
  region.read_only = offers_[rank].read_only;
  region.domain.atomics_only = answer_.atomics_only;
  services_.reach.choose_remote(group_.ranks()[rank], region);
  return std::make_shared<const std::vector<Region>>(1, region);
}

// The region of any rank's part, the own one included.
RegionTable WindowBuilder::region_for_cards(std::uint32_t rank) const {
  Region region;
  region.bytes = offers_[rank].bytes;
  region.owner_address = cards_->address_of(rank);
  region.mapped = rank == me_ ? object_->memory : nullptr;
  region.bulk = region.atomic = Path::offload;
  return std::make_shared<const std::vector<Region>>(1, region);
}

// Explains the window's regions to whoever asks while it lives.
std::function<std::string(std::uint32_t, const Region&)> WindowBuilder::explain_regions() const {
  const std::uint64_t age_ms = wish_.flavour == Flavour::dynamic ? 0 : read_age_ms();
  return [&object = *object_, &reach = services_.reach, no_cards = no_cards_, age_ms](std::uint32_t rank,
                                                                                      const Region& region) {
    if (object.cards != nullptr) return fmt::format("declared network-only: {}", object.cards->description());
    const Rank owner = object.group->ranks()[rank];
    if (object.window->parts().shared[rank].is_here()) return reach.explain_neighbour(owner, region);
    // First what the program has asked for: a reason may be cut short where it is told.
    std::string reason = no_cards.empty() ? "" : no_cards + "; ";
    reason += reach.explain_remote(owner, region);
    if (age_ms != 0) reason += fmt::format("; what is read may be {} ms old (read_age_ms, FARSUM_READ_AGE)", age_ms);
    return reason;
  };
}

// This rank's part: what others may do with it, and what the agent serves.
void WindowBuilder::describe_part() {
  if (cards_ != nullptr) {
    object_->memory = wish_.flavour == Flavour::adopted ? wish_.memory : cards_->memory();
    own_.exposed.push_back({0, wish_.bytes, object_->memory, {}, false, false, true});
    return;
  }
  if (wish_.flavour == Flavour::allocated) {
    std::uint64_t offset = answer_.extent.offset + layout_.starts[places().place_of(me_)];
    auto address = reinterpret_cast<std::uintptr_t>(segment().at(offset));
    if (wish_.bytes != 0 && (options_.promises & promise_contiguous_parts) == 0) {
      const std::uint64_t gap = round_up(address, options_.alignment) - address;
      offset += gap;
      address += gap;
    }
    object_->memory = segment().at(offset);
    own_.shared.push_back({0,
                           wish_.bytes,
                           address,
                           offset,
                           region_segment_key | (answer_.atomics_only ? region_atomics_only : 0),
                           0,
                           {}});
    own_.exposed.push_back(
        {0, wish_.bytes, object_->memory, services_.descriptions.domain_of(object_->memory), false, false});
    own_.exposed.back().domain.atomics_only = answer_.atomics_only;
    set_note(own_.shared.back(), no_cards_);
  } else if (wish_.flavour == Flavour::adopted) {
    describe_adopted();
  }
}

void WindowBuilder::describe_adopted() {
  object_->memory = wish_.memory;
  std::string refusal = refusal_;
  if (refusal.empty()) {
    object_->in_balance = true;
    object_->promotion = services_.promotions.promote(wish_, moves_, refusal);
    if (object_->promotion) return services_.descriptions.describe_promoted(wish_, object_->promotion, own_);
  }
  if (!no_cards_.empty()) refusal = fmt::format("{}; {}", no_cards_, refusal);
  services_.descriptions.describe(wish_, refusal, own_);
}

void WindowBuilder::expose_part() {
  const RankWindow& own = shared_[me_];
  std::copy(own_.shared.begin(), own_.shared.end(), own.regions());
  own.head().region_count = static_cast<std::uint32_t>(own_.shared.size());
  own.begin_bias();
  auto exposure =
      make_exposure(own, layout_.shape.notification_slots, group_.ranks(), promises_, std::move(own_.exposed));
  services_.exposures.set(answer_.id, exposure);
}

void WindowBuilder::begin_window() {
  Window::Parts parts;
  parts.id = answer_.id;
  parts.name = options_.name;
  parts.ranks = group_.ranks();
  parts.my_rank = me_;
  parts.promises = answer_.atomics_only ? promises_ : promises_ & ~std::uint32_t{promise_single_element};
  parts.dynamic = object_->dynamic;
  parts.aggregate_limit = options_.aggregate_limit != 0 ? options_.aggregate_limit : services_.settings.aggregate;
  parts.shape = layout_.shape;
  parts.shared = std::move(shared_);
  if (!places().is_one_node() || cards_ != nullptr) {
    parts.remote_regions.resize(group_.size());
    for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
      if (cards_ != nullptr)
        parts.remote_regions[rank] = region_for_cards(rank);
      else if (!parts.shared[rank].is_here())
        parts.remote_regions[rank] = remote_region(rank);
    }
  }
  if (cards_ != nullptr) parts.make_cards = make_card_path(cards_->found());
  parts.make_leases = make_leased_path(services_.engine, services_.route);
  object_->cards = std::move(cards_);
  for (const WindowOffer& offer : offers_) parts.sizes.push_back(object_->dynamic ? 0 : offer.bytes);
  parts.settings = services_.settings;
  parts.lock_agent = services_.locks.agent();
  parts.kernels = &services_.kernels;
  if (options_.place_views) parts.views = options_.place_views(group_.size());
  parts.team = object_->team.get();
  parts.waiter = &services_.waiter;
  parts.engine = &services_.engine;
  parts.transport = &services_.route;
  parts.counters = &services_.counters;
  parts.hearing = &services_.hearing;
  parts.read_copies = &services_.read_copies;
  parts.read_age_ns = std::uint64_t{1'000'000} * read_age_ms();
  parts.now_ns = monotonic_ns;
  parts.make_region = [&reach = services_.reach](Rank owner, const SharedRegion& region) {
    return reach.of_neighbour(owner, region);
  };
  parts.explain_region = explain_regions();
  parts.reach = [&reach = services_.reach](const void* begin, std::uint64_t bytes) { return reach.map(begin, bytes); };
  parts.wake_rank = [&segment = segment(), &here = services_.node.here()](Rank rank) {
    segment.rank(here.place_of(rank)).waiters.notify_all();
  };
  object_->window = std::make_unique<Window>(std::move(parts));
}

// Some rank has failed, which all know.
Status WindowBuilder::give_up() {
  services_.exposures.erase(answer_.id);
  try {
    if (object_ != nullptr && object_->promotion) services_.promotions.turn_back(object_->promotion);
  } catch (const std::bad_alloc&) {
    // What could not be turned back now is tried again when other windows are freed.
  }
  // The control block is the node's, and goes with the whole extent once nobody looks at it.
  services_.extents.leave(
      {answer_.extent.offset + layout_.control_bytes, answer_.extent.bytes - layout_.control_bytes});
  // From here on nobody looks at the extent, and no memory moves.
  if (Status status = group_.team().barrier(call_); !status.is_ok()) return status;
  if (group_.team().is_first_here()) give_extent_back();
  if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  if (!refused_.is_ok()) return {refused_.code(), fmt::format("{}: {}", call_, refused_.text())};
  return {Code::no_memory, fmt::format("{}: rank {} of the group has no memory left, or no room to map the window's",
                                       call_, failed_ - 1)};
}

}  // namespace farsum
