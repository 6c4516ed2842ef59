// Making windows: what the ranks agree on, where the memory comes from, and how each rank's part is made known to the
// others.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "os/memory_map.hpp"
#include "runtime/window_creation.hpp"
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

// What one rank of a node, which cuts the extent, answers all there.
struct Answer {
  HeapExtent extent;
  WindowId id = 0;
  Code code = Code::ok;
  bool atomics_only = false;
  char text[240] = {};
};

// What the first ranks of nodes tell each other of these.
struct NodeAnswer {
  WindowId id = 0;
  Code code = Code::ok;
  bool atomics_only = false;
};

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
  return make_window(group, wish, options);
}

Result<WindowObject*> Context::create_dynamic_window(Group& group, const WindowOptions& options) {
  Creation wish;
  wish.flavour = Flavour::dynamic;
  return make_window(group, wish, options);
}

// A window on its way, on one rank. The ranks of one node meet twice: the last to come to the first meeting cuts the
// extent, and in the second all learn whether each could go on. They meet once more where memory may be promoted, or
// where the window is declared network-only; ranks of several nodes meet for the extent by itself. Whoever calls comes
// to all of them: what a rank throws (it finds no memory), before the first meeting or later, is kept, told in the
// next, and the window is made nowhere.
class Context::Making {
 public:
  Making(Context& context, Group& group, const Creation& wish, const WindowOptions& options)
      : context_(context),
        group_(group),
        wish_(wish),
        options_(options),
        call_(options.mutexes ? "farsum_mutex_create" : call_of(wish.flavour)),
        me_(group.my_rank()),
        offers_(group.offers()) {}
  ~Making() {
    if (has_place_) context_.give_place_for_window_back();
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  // Runs what this rank has to do before the ranks meet.
  template <class Step>
  void prepare(Step&& step) noexcept;
  Status tell(std::span<const std::byte> mine, std::span<std::byte> all, FunctionRef<void()> decide);
  Status exchange_offers();
  Status agree_on_cards();
  Status agree_on_extent();
  Result<WindowObject*> make_parts();

 private:
  // Runs a step unless one before it has thrown.
  template <class Step>
  void attempt(Step&& step) noexcept;
  NodeSegment& segment() const { return *context_.membership_.segment; }
  std::uint32_t id_in_segment() const { return context_.node_.id_in_segment(); }
  const GroupPlaces& places() const { return group_.places(); }
  std::uint32_t members_here() const { return static_cast<std::uint32_t>(places().here.size()); }
  bool are_for_cards() const { return (promises_ & promise_network_only) != 0; }
  std::byte* control() const { return segment().at(answer_.extent.offset); }
  WindowSharedShape shape_of(std::uint32_t rank) const { return layout_.shape_of(offers_[rank]); }
  std::unique_ptr<Mutexes> make_mutexes() const;
  void look_at_own();
  WindowOffer own_offer() const;
  void tell_layer(const Disagreement& why) const;
  void answer_offers() noexcept;
  void answer_cards() noexcept;
  void do_without_cards();
  void lay_out();
  void cut_extent() noexcept;
  Status agree_over_nodes();
  void give_extent_back();
  Status meet_again();
  std::uint32_t own_promises() const;
  CardOffer expose_to_cards();
  RegionTable region_for_cards(std::uint32_t rank) const;
  RegionTable remote_region(std::uint32_t rank) const;
  std::function<std::string(std::uint32_t, const Region&)> explain_regions() const;
  std::uint64_t read_age_ms() const {
    return options_.internal ? 0 : options_.read_age_ms.value_or(context_.options_.settings.read_age_ms);
  }
  void reach_own();
  bool has_failed() const { return thrown_ != nullptr || !refused_.is_ok(); }
  void begin_object();
  void describe_part();
  void expose_part();
  void begin_window();
  Status give_up();

  Context& context_;
  Group& group_;
  const Creation& wish_;
  const WindowOptions& options_;
  const char* call_;
  std::uint32_t me_;
  std::exception_ptr thrown_;
  bool has_place_ = false;
  Status refusal_of_window_;  // why this rank cannot take part
  // Why this rank's memory cannot be promoted, empty where it can; and whether it would move for that. Asked once: what
  // was offered holds.
  std::string refusal_;
  Moves moves_ = Moves::too_dear;
  // By rank; they lie in the group's room, so that a rank that has no memory left takes part in the first meeting.
  std::span<WindowOffer> offers_;
  std::vector<CardOffer> card_offers_;  // room for them where this rank declares the window network-only
  // The same where the ranks are of several nodes: what each says of its node's extent, and its rank + 1 if it failed.
  std::vector<NodeAnswer> node_answers_;
  std::vector<std::uint32_t> failures_;
  std::uint32_t promises_ = 0;
  std::unique_ptr<CardParts> cards_;  // null: not for cards
  std::string no_cards_;              // why not, where this rank has declared it
  WindowLayout layout_;
  Answer answer_;
  Status refused_;  // why this rank cannot map what it needs; then no step is done, as where one has thrown
  std::unique_ptr<WindowObject> object_;
  std::vector<RankWindow> shared_;  // by rank of the group; empty where a rank is remote
  std::uint32_t failed_ = 0;        // rank of the group plus one that could not go on; 0: none
  std::vector<SharedRegion> own_shared_;
  std::vector<ExposedRegion> own_exposed_;
};

template <class Step>
void Context::Making::attempt(Step&& step) noexcept {
  if (has_failed()) return;
  try {
    step();
  } catch (...) {
    thrown_ = std::current_exception();
  }
}

template <class Step>
void Context::Making::prepare(Step&& step) noexcept {
  attempt([&] {
    step(refusal_of_window_);
    context_.keep_place_for_window();
    has_place_ = true;
    look_at_own();
  });
}

void Context::Making::look_at_own() {
  if (!places().is_one_node()) {
    node_answers_.resize(group_.size());
    failures_.resize(group_.size());
  }
  if ((own_promises() & promise_network_only) != 0) card_offers_.resize(group_.size());
  if (wish_.flavour != Flavour::adopted) return;
  refusal_ = context_.why_not_promoted(wish_, options_, places());
  moves_ = refusal_.empty() ? context_.ask_balance() : Moves::too_dear;
}

WindowOffer Context::Making::own_offer() const {
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
Status Context::Making::tell(std::span<const std::byte> mine, std::span<std::byte> all, FunctionRef<void()> decide) {
  if (!places().is_one_node()) return group_.team().allgather(mine, all, call_);
  return group_.team().node().consult(mine, all, std::as_writable_bytes(std::span(&answer_, 1)), decide, call_);
}

// The first meeting.
Status Context::Making::exchange_offers() {
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
                                         call_, remote, context_.remote_nodes_->host_of(remote))};
}

void Context::Making::tell_layer(const Disagreement& why) const {
  if (options_.layer == nullptr || why.kind != Disagreement::Kind::refused_above) return;
  options_.layer->refused_by = static_cast<std::int32_t>(why.rank);
  options_.layer->refused_with = offers_[why.rank].refusal;
}

// Decides for all ranks of the node, while they wait.
void Context::Making::answer_offers() noexcept {
  if (find_disagreement(offers_)) return;
  promises_ = agreed_promises(offers_, own_promises());
  // What cards have made of the parts is not known yet.
  if (!are_for_cards()) cut_extent();
}

// A path that is forced comes before the declaration.
std::uint32_t Context::Making::own_promises() const {
  const PathChoice path = context_.options_.settings.path;
  const bool may = path == PathChoice::automatic || path == PathChoice::offload;
  return may ? options_.promises : options_.promises & ~std::uint32_t{promise_network_only};
}

// Agrees on cards where the window is declared for them alone: all ranks can use them, or none does.
Status Context::Making::agree_on_cards() {
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
void Context::Making::answer_cards() noexcept {
  if (std::any_of(card_offers_.begin(), card_offers_.end(),
                  [](const CardOffer& offer) { return offer.code != Code::ok; })) {
    do_without_cards();
  }
  cut_extent();
}

void Context::Making::do_without_cards() {
  cards_.reset();
  promises_ &= ~std::uint32_t{promise_network_only};
}

CardOffer Context::Making::expose_to_cards() {
  CardOffer offer;
  Result<Rdma*> card = context_.card_->open();
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
Status Context::Making::agree_on_extent() {
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
Status Context::Making::agree_over_nodes() {
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
    if (group_.team().is_first_here()) segment().unmark_atomics_only(answer_.extent, id_in_segment());
    answer_.atomics_only = false;
  }
  const auto refused =
      std::find_if(all.begin(), all.end(), [](const NodeAnswer& answer) { return answer.code != Code::ok; });
  if (refused == all.end() || answer_.code != Code::ok) return {};
  if (group_.team().is_first_here()) give_extent_back();
  const Rank rank = group_.ranks()[static_cast<std::size_t>(refused - all.begin())];
  return {refused->code, fmt::format("{}: the node of rank {} of the job (host {}) has no room for its ranks' parts",
                                     call_, rank, context_.remote_nodes_->host_of(rank))};
}

void Context::Making::give_extent_back() {
  segment().unmark_atomics_only(answer_.extent, id_in_segment());
  segment().release(answer_.extent, id_in_segment());
}

void Context::Making::lay_out() {
  // The rank that has cut the extent has done it.
  if (layout_.starts.empty()) layout_.lay_out(offers_, places().here, cards_ != nullptr);
}

void Context::Making::cut_extent() noexcept {
  attempt([this] {
    lay_out();
    Result<HeapExtent> extent = segment().allocate(layout_.total_bytes, id_in_segment());
    if (!extent.is_ok()) {
      const Status status = extent.take_status();
      std::strncpy(answer_.text, status.text().c_str(), sizeof answer_.text - 1);
      answer_.code = status.code();
      return;
    }
    answer_.extent = extent.value();
    // Relaxed: counters.
    answer_.id = places().is_one_node() ? segment().next_window_id().fetch_add(1, std::memory_order_relaxed) + 1
                                        : WindowId{context_.membership_.rank + 1} << 32 | ++context_.windows_numbered_;
    answer_.atomics_only = wish_.flavour == Flavour::allocated && cards_ == nullptr &&
                           (promises_ & promise_single_element) != 0 &&
                           segment().mark_atomics_only(answer_.extent, id_in_segment());
  });
  if (thrown_ == nullptr) return;
  answer_.code = Code::no_memory;
  std::snprintf(answer_.text, sizeof answer_.text, "rank %u of the group has no memory left", me_);
}

// Makes what is left, up to the last meeting, behind which nothing can fail.
Result<WindowObject*> Context::Making::make_parts() {
  attempt([this] { reach_own(); });
  attempt([this] { begin_object(); });
  // Where a rank may move memory, every rank of the group is in this call and none runs another runtime meanwhile: an
  // MPI library copies messages into its peers' memory by itself. Nothing waited for here needs that runtime.
  ThreadWaiter::Quiet quiet(*context_.waiter_);
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
  const std::lock_guard lock(context_.mutex_);
  context_.windows_.push_back(std::move(object_));
  return context_.windows_.back().get();
}

// The last meeting: who could not go on?
Status Context::Making::meet_again() {
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
void Context::Making::reach_own() {
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

void Context::Making::begin_object() {
  object_ = std::make_unique<WindowObject>();
  object_->group = &group_;
  object_->extent = answer_.extent;
  object_->control_bytes = layout_.control_bytes;
  object_->dynamic = wish_.flavour == Flavour::dynamic;
  object_->internal = options_.internal;
  if (options_.mutexes) object_->mutexes = make_mutexes();
  object_->post = context_.make_post(places(), me_, LetterPost::Use::window);
  object_->team = std::make_unique<GroupTeam>(places(), me_, object_->post.get(), *context_.waiter_);
  object_->team->begin(*reinterpret_cast<NodeTeamBlock*>(control() + layout_.team_at), answer_.id);
  // Who hears first, in the last meeting, that there is a window may fence it at once.
  if (object_->post != nullptr) object_->post->begin(answer_.id);
  std::vector<Rank> ranks_here;
  for (const std::uint32_t rank : places().here) ranks_here.push_back(group_.ranks()[rank]);
  object_->teardown = std::make_unique<Teardown>(*reinterpret_cast<TeardownBlock*>(control() + layout_.teardown_at),
                                                 std::move(ranks_here), places().place_of(me_), *context_.waiter_);
  shared_.resize(group_.size());
  LockBias bias;
  if (layout_.bias_at != 0)
    bias = LockBias(*reinterpret_cast<LockBiasState*>(control() + layout_.bias_at), members_here());
  std::uint64_t at = 0;
  for (const std::uint32_t rank : places().here) {
    shared_[rank] = RankWindow(control() + at, shape_of(rank), bias);
    at += shape_of(rank).rank_bytes();
  }
  object_->own = shared_[me_];
  object_->counts_traffic = wish_.flavour == Flavour::adopted;
  if (!places().is_one_node()) object_->teardown_answers.resize(group_.size());
}

std::unique_ptr<Mutexes> Context::Making::make_mutexes() const {
  std::vector<std::uint32_t> counts;
  for (const WindowOffer& offer : offers_) counts.push_back(offer.mutexes);
  return std::make_unique<Mutexes>(*object_, std::move(counts));
}

// What is known of the part of a rank of another node: all of it goes to its agent, who knows what is exposed.
RegionTable Context::Making::remote_region(std::uint32_t rank) const {
  Region region;
  region.bytes = wish_.flavour == Flavour::dynamic ? ~std::uint64_t{0} : offers_[rank].bytes;
  region.read_only = offers_[rank].read_only;
  region.domain.atomics_only = answer_.atomics_only;
  const Rank owner = group_.ranks()[rank];
  const PathModel& model = context_.path_model(context_.remote_nodes_->machine_of(owner));
  const PathChoiceResult paths = choose_paths(context_.options_.settings.path, remote_reach(region), model.thresholds);
  region.bulk = paths.bulk;
  region.atomic = paths.atomic;
  region.caller_from_bytes = paths.caller_from_bytes;
  return std::make_shared<const std::vector<Region>>(1, region);
}

// The region of any rank's part, the own one included.
RegionTable Context::Making::region_for_cards(std::uint32_t rank) const {
  Region region;
  region.bytes = offers_[rank].bytes;
  region.owner_address = cards_->address_of(rank);
  region.mapped = rank == me_ ? object_->memory : nullptr;
  region.bulk = region.atomic = Path::offload;
  return std::make_shared<const std::vector<Region>>(1, region);
}

// Explains the window's regions to whoever asks while it lives.
std::function<std::string(std::uint32_t, const Region&)> Context::Making::explain_regions() const {
  const std::uint64_t age_ms = wish_.flavour == Flavour::dynamic ? 0 : read_age_ms();
  return [&object = *object_, &context = context_, no_cards = no_cards_, age_ms](std::uint32_t rank,
                                                                                 const Region& region) {
    if (object.cards != nullptr) return fmt::format("declared network-only: {}", object.cards->description());
    const Rank owner = object.group->ranks()[rank];
    if (object.window->parts().shared[rank].is_here()) return context.explain_region_here(owner, region);
    // First what the program has asked for: a reason may be cut short where it is told.
    std::string reason = no_cards.empty() ? "" : no_cards + "; ";
    reason += context.explain_remote_region(owner, region);
    if (age_ms != 0) reason += fmt::format("; what is read may be {} ms old (read_age_ms, FARSUM_READ_AGE)", age_ms);
    return reason;
  };
}

// This rank's part: what others may do with it, and what the agent serves.
void Context::Making::describe_part() {
  if (cards_ != nullptr) {
    object_->memory = wish_.flavour == Flavour::adopted ? wish_.memory : cards_->memory();
    own_exposed_.push_back({0, wish_.bytes, object_->memory, {}, false, false, true});
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
    own_shared_.push_back({0,
                           wish_.bytes,
                           address,
                           offset,
                           region_segment_key | (answer_.atomics_only ? region_atomics_only : 0),
                           0,
                           {}});
    own_exposed_.push_back({0, wish_.bytes, object_->memory, context_.own_domain(object_->memory), false, false});
    own_exposed_.back().domain.atomics_only = answer_.atomics_only;
    set_note(own_shared_.back(), no_cards_);
  } else if (wish_.flavour == Flavour::adopted) {
    object_->memory = wish_.memory;
    std::string refusal = refusal_;
    if (!refusal.empty() || !context_.promote(wish_, moves_, *object_, own_shared_, own_exposed_, refusal)) {
      if (!no_cards_.empty()) refusal = fmt::format("{}; {}", no_cards_, refusal);
      context_.describe_parts(wish_, refusal, own_shared_, own_exposed_);
    }
  }
}

void Context::Making::expose_part() {
  const RankWindow& own = shared_[me_];
  std::copy(own_shared_.begin(), own_shared_.end(), own.regions());
  own.head().region_count = static_cast<std::uint32_t>(own_shared_.size());
  own.begin_bias();
  auto exposure =
      make_exposure(own, layout_.shape.notification_slots, group_.ranks(), promises_, std::move(own_exposed_));
  context_.exposures_.set(answer_.id, exposure);
}

void Context::Making::begin_window() {
  Window::Parts parts;
  parts.id = answer_.id;
  parts.name = options_.name;
  parts.ranks = group_.ranks();
  parts.my_rank = me_;
  parts.promises = answer_.atomics_only ? promises_ : promises_ & ~std::uint32_t{promise_single_element};
  parts.dynamic = object_->dynamic;
  parts.aggregate_limit =
      options_.aggregate_limit != 0 ? options_.aggregate_limit : context_.options_.settings.aggregate;
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
  parts.make_leases = make_leased_path(*context_.engine_, *context_.route_);
  object_->cards = std::move(cards_);
  for (const WindowOffer& offer : offers_) parts.sizes.push_back(object_->dynamic ? 0 : offer.bytes);
  parts.settings = context_.options_.settings;
  parts.lock_agent = context_.lock_agent();
  parts.kernels = context_.kernels_;
  if (options_.place_views) parts.views = options_.place_views(group_.size());
  parts.team = object_->team.get();
  parts.waiter = context_.waiter_.get();
  parts.engine = context_.engine_.get();
  parts.transport = context_.route_.get();
  parts.counters = &context_.counts_.paths();
  parts.hearing = &context_.hearing_;
  parts.read_copies = &context_.read_copies_;
  parts.read_age_ns = std::uint64_t{1'000'000} * read_age_ms();
  parts.now_ns = monotonic_ns;
  parts.make_region = [&context = context_](Rank owner, const SharedRegion& region) {
    return context.make_region(owner, region);
  };
  parts.explain_region = explain_regions();
  parts.reach = [&context = context_](const void* begin, std::uint64_t bytes) { return context.reach(begin, bytes); };
  parts.wake_rank = [&segment = segment(), &here = context_.membership_.here](Rank rank) {
    segment.rank(here.place_of(rank)).waiters.notify_all();
  };
  object_->window = std::make_unique<Window>(std::move(parts));
}

// Some rank has failed, which all know.
Status Context::Making::give_up() {
  context_.exposures_.erase(answer_.id);
  try {
    if (object_ != nullptr && object_->promotion) context_.demote(*object_);
  } catch (const std::bad_alloc&) {
    // What could not be turned back now is tried again when other windows are freed.
  }
  // The control block is the node's, and goes with the whole extent once nobody looks at it.
  context_.leave({answer_.extent.offset + layout_.control_bytes, answer_.extent.bytes - layout_.control_bytes});
  // From here on nobody looks at the extent, and no memory moves.
  if (Status status = group_.team().barrier(call_); !status.is_ok()) return status;
  if (group_.team().is_first_here()) give_extent_back();
  if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  if (!refused_.is_ok()) return {refused_.code(), fmt::format("{}: {}", call_, refused_.text())};
  return {Code::no_memory, fmt::format("{}: rank {} of the group has no memory left, or no room to map the window's",
                                       call_, failed_ - 1)};
}

Result<WindowObject*> Context::make_window(Group& group, Creation& wish, const WindowOptions& options) {
  Making making(*this, group, wish, options);
  making.prepare([&](Status& refusal) {
    if (options.lacks_memory) throw std::bad_alloc();
    // First of all: a thread's stack may be mapped where the program has nothing.
    if (wish.flavour == Flavour::adopted && wish.bytes != 0 && !wish.unsure)
      wish.refusal = look_at_memory(wish, "farsum_window_adopt");
    note_thread();
    sweep_circles();
    // The network has one started.
    Status no_agent = options.mutexes ? Status() : agent_->start();
    // Files are read here, not while other ranks wait.
    path_model(own_machine_number());
    for (const std::uint32_t machine : remote_nodes_->machines()) path_model(machine);
    const Status& refused = !options.refusal.is_ok() ? options.refusal : wish.refusal;
    refusal = refused.is_ok() ? std::move(no_agent) : Status(refused.code(), refused.text());
  });
  if (Status status = making.exchange_offers(); !status.is_ok()) return status;
  if (Status status = making.agree_on_cards(); !status.is_ok()) return status;
  if (Status status = making.agree_on_extent(); !status.is_ok()) return status;
  return making.make_parts();
}

// So that a window that all ranks have made finds its place in the list.
void Context::keep_place_for_window() {
  const std::lock_guard lock(mutex_);
  const std::size_t needed = windows_.size() + windows_being_made_ + 1;
  if (windows_.capacity() < needed) windows_.reserve(std::max(needed, 2 * windows_.capacity()));
  ++windows_being_made_;
}

void Context::give_place_for_window_back() {
  const std::lock_guard lock(mutex_);
  --windows_being_made_;
}

}  // namespace farsum
