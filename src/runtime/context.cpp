#include "runtime/context.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <new>
#include <numeric>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "os/attach.hpp"
#include "os/process_barrier.hpp"
#include "progress/agenda.hpp"
#include "runtime/reduction_models.hpp"

namespace farsum {
namespace {

// The agent bumped a notification of this rank: its sleepers look again.
class WakeOwnThreads : public NotificationListener {
 public:
  explicit WakeOwnThreads(EventCount& events) : events_(events) {}
  void on_notified() override { events_.notify_all(); }

 private:
  EventCount& events_;
};

// What the agent does beside serving; what it comes back for by the clock is on its agenda. The network is looked after
// while threads sleep for what comes over it, or have gone on to other work.
class Chores : public AgentChores {
 public:
  Chores(TargetService& service, LetterDesk& desk, NetworkSide& network, WakeSources& sources, Attendance& attendance,
         RankBell& bell, const ThreadWaiter& waiter, Carries& carries)
      : service_(service),
        desk_(desk),
        network_(network),
        carries_(carries),
        sources_(sources),
        attendance_(attendance),
        bell_(bell),
        waiter_(waiter) {}
  std::uint64_t run(bool has_unfinished) override {
    // This comes before anything is looked at: what is asked for from here on is looked at by the next run.
    const bool is_look_due = bell_.watch_has_ended();
    if (is_look_due) agenda_.strike("network");
    desk_.wake_touched();
    sources_.look_after_card();
    go_on_serving(has_unfinished);
    go_on_carrying();
    const bool is_coalescing = network_.is_coalescing();
    std::uint64_t now_ns = 0;
    bool is_network_due = is_look_due;
    if (is_coalescing || desk_.has_refused() || agenda_.needs_clock()) {
      now_ns = monotonic_ns();
      desk_.look_after_refused(agenda_, now_ns);
      now_ns = send_kept_back(is_coalescing, now_ns);
      is_network_due |= agenda_.take_due("network", now_ns);
    }
    if (!is_network_due) return agenda_.sleep_ns(now_ns);
    look_after_network();
    return agenda_.sleep_ns(agenda_.needs_clock() ? monotonic_ns() : 0);
  }

 private:
  void go_on_serving(bool has_unfinished) {
    const std::lock_guard lock(attendance_.serving());
    attendance_.look();
    service_.grant_waiting();
    // A thread that attended may have left some since the agent asked.
    const bool is_left = has_unfinished || service_.has_unfinished() || attendance_.has_left_unfinished();
    const bool is_awaited = service_.has_waiting();
    agenda_.come_back_for("unfinished requests", is_left);
    agenda_.come_back_for("awaited grants", is_awaited);
  }

  // What was served may have been a letter for which a collective waits.
  void go_on_carrying() {
    const Carry::Turn turn = carries_.take_turns();
    agenda_.come_back_for("carried calls", turn.is_unfinished);
    agenda_.come_back_for("carried letters", turn.is_refused);
  }

  // Returns what time it is then: it may have sent to many.
  std::uint64_t send_kept_back(bool is_coalescing, std::uint64_t now_ns) {
    if (!is_coalescing) {
      agenda_.strike("kept back");
      return now_ns;
    }
    if (agenda_.take_due("kept back", now_ns)) {
      network_.send_coalesced();
      now_ns = monotonic_ns();
    }
    agenda_.come_back_for("kept back", now_ns);
    return now_ns;
  }

  void look_after_network() {
    network_.look_after();
    if (network_.is_unattended(threads())) return bell_.watch_replies();
    // Threads look after it at the moment. Will they go on?
    agenda_.come_back_at("network", network_.next_deadline_ns());
  }
  Network::Threads threads() const {
    return waiter_.sleepers() != 0  ? Network::Threads::sleep
           : waiter_.lookers() != 0 ? Network::Threads::look
                                    : Network::Threads::away;
  }

  TargetService& service_;
  LetterDesk& desk_;
  NetworkSide& network_;
  Carries& carries_;
  WakeSources& sources_;
  Attendance& attendance_;
  RankBell& bell_;
  const ThreadWaiter& waiter_;
  Agenda agenda_;
};

// A lock was granted to a rank of another node, for which its owner's agent waits.
class RingOwner : public Ringer {
 public:
  RingOwner(ShmTransport& transport, const NodeRanks& here) : transport_(transport), here_(here) {}
  void ring(std::uint32_t owner) const override { transport_.ring(here_.place_of(owner)); }

 private:
  ShmTransport& transport_;
  const NodeRanks& here_;
};

const ops::KernelSet& choose_kernels(const std::string& isa) {
  const auto available = ops::available_isas();
  const auto named = [&](ops::Isa wanted) {
    return std::find(available.begin(), available.end(), wanted) != available.end();
  };
  if (isa == "baseline") return ops::kernels(ops::Isa::baseline);
  if (isa == "avx2" && named(ops::Isa::avx2)) return ops::kernels(ops::Isa::avx2);
  return ops::kernels_for_this_machine();
}

// A first guess, until the ranks of the node have told each other what else bounds them.
bool has_too_few_online(const os::ProcessorBounds& bounds, std::uint32_t ranks) {
  return bounds.online != 0 && ranks > bounds.online;
}

// Nobody waits for such a letter, so that no call can return its fault.
void tell_of_odd_letter(Rank me, const OddLetter& letter) {
  const bool is_unknown = letter.fault == OddLetter::Fault::unknown_team;
  std::fprintf(stderr, "farsum: rank %u has dropped a letter of rank %u to team %#llx, %s; it says so once\n", me,
               letter.from, static_cast<unsigned long long>(letter.team),
               is_unknown ? "which is not here" : "which breaks the rules");
}

void tell_of_wait(Rank me, const char* doing, std::uint64_t waited_ns) {
  std::fprintf(stderr,
               "farsum: %s: rank %u of the job has waited for others for %llu s (FARSUM_WAIT_NOTICE); where they are "
               "not late, but have called something else or in another order, it waits for ever\n",
               doing, me, static_cast<unsigned long long>(waited_ns / 1'000'000'000));
}

static_assert(Agenda::never == Network::never);

// The key of the team of a job over nodes; groups' keys are higher, and windows' numbers lower.
constexpr std::uint64_t world_team_key = std::uint64_t{1} << 62;

}  // namespace

Context::Context(Membership membership, Options options)
    : membership_(std::move(membership)),
      options_(std::move(options)),
      kernels_(&choose_kernels(options_.settings.isa)) {}

Result<std::unique_ptr<Context>> Context::create(Membership membership, Options options) {
  // Here the other ranks of the node learn from one that cannot go on that they would wait in vain.
  const std::shared_ptr<NodeSegment> segment = membership.segment;
  const std::uint32_t my_place =
      membership.here.count() == 0 ? membership.rank : membership.here.place_of(membership.rank);
  auto& meeting = *reinterpret_cast<NodeTeamBlock*>(segment->world_team());
  try {
    if (options.lacks_memory) throw std::bad_alloc();
    if (membership.here.count() == 0) membership.here = NodeRanks::of_all(segment->ranks());
    std::unique_ptr<Context> context(new Context(std::move(membership), std::move(options)));
    Status status = context->join();
    if (status.is_ok()) return context;
    // All learn of a death by themselves.
    if (status.code() != Code::peer_failed) NodeTeam::stay_away(meeting, my_place, status.code());
    return status;
  } catch (...) {
    NodeTeam::stay_away(meeting, my_place, Code::no_memory);
    throw;
  }
}

Status Context::join() {
  RankBlock& block = node_.block();
  (void)getrandom(&nonce_, sizeof nonce_, 0);
  (void)os::allow_peers();
  // Relaxed: the meeting of the node orders them for all others.
  block.nonce_address.store(reinterpret_cast<std::uintptr_t>(&nonce_), std::memory_order_relaxed);
  block.nonce.store(nonce_, std::memory_order_relaxed);
  block.pid.store(getpid(), std::memory_order_relaxed);
  block.processors = os::read_processor_bounds();

  for (std::uint32_t place = 0; place < membership_.here.count(); ++place)
    permits_.of_ranks.push_back(&membership_.segment->rank(place).permit);
  if (os::join_process_barriers()) own_permit().make_ready();
  promotions_.leave_out(membership_.segment->begin(), membership_.segment->bytes());
  make_parts();
  const Settings& settings = options_.settings;
  if (Status status = agent_->prepare(); !status.is_ok()) return status;
  if (settings.agent == AgentMode::dedicated) block.processors.spinning_agent = os::processor_set_of(agent_->cpus());
  if (Status status = meet_the_node(); !status.is_ok()) return status;
  if (Status status = meet_the_job(); !status.is_ok()) return status;
  // The caller's, for as long as the job begins.
  membership_.allgather = nullptr;
  return begin_world();
}

void Context::make_parts() {
  NodeSegment& segment = *membership_.segment;
  group_rounds_.keep_room();
  const Settings& settings = options_.settings;
  RankBlock& block = node_.block();
  remote_nodes_ = std::make_unique<RemoteNodes>(membership_.here);
  watch_ = std::make_unique<PeerWatch>(segment, membership_.here, *remote_nodes_, membership_.rank);
  ThreadWaiter::Options waiting{settings.spin_ns, settings.wait_gap_ns, options_.idle, options_.idle_gap_ns,
                                has_too_few_online(block.processors, membership_.here.count())};
  waiting.told_after_ns = settings.wait_notice_s * 1'000'000'000;
  waiting.tell_of_wait = [rank = membership_.rank](const char* doing, std::uint64_t waited_ns) {
    tell_of_wait(rank, doing, waited_ns);
  };
  waiter_ = std::make_unique<ThreadWaiter>(std::move(waiting), *watch_, block.waiters);
  transport_ = std::make_unique<ShmTransport>(
      segment, ShmTransport::Options{node_.place(), settings.channel_bytes, settings.attach != Permission::refuse});
  peer_memory_ = std::make_unique<AttachedMemory>(*transport_, promotions_, node_.place());
  route_ = std::make_unique<RouteTransport>(*transport_, membership_.here);
  circle_ = std::make_unique<TeardownCircle>(
      [this](Rank rank) -> AwaitedRank& { return membership_.segment->rank(membership_.here.place_of(rank)).awaited; },
      TeardownCircle::Words{segment.begin(), [&segment](std::uint64_t offset) { return segment.read_word(offset); }},
      segment.ranks(), membership_.rank);
  if (options_.many_threads) circle_->take_out();
  listener_ = std::make_unique<WakeOwnThreads>(block.waiters);
  engine_ =
      std::make_unique<OriginEngine>(OriginEngine::Options{.peers = membership_.size,
                                                           .inline_bytes = settings.inline_bytes,
                                                           .pull = settings.attach != Permission::refuse,
                                                           .on_coalescing = [this] { bell_->ask_for_look(); },
                                                           .on_progress = [&block] { block.waiters.notify_all(); },
                                                           .hearing = &hearing_},
                                     *route_);
  exchange_ = std::make_unique<TeamExchange>(*engine_, *waiter_);
  desk_ = std::make_unique<LetterDesk>(
      *route_, [this] { bell_->ask_for_look(); },
      [me = membership_.rank](const OddLetter& letter) { tell_of_odd_letter(me, letter); });
  route_->deliver_letters_to(*desk_);
  TargetService::Options service;
  service.rank = membership_.rank;
  service.pull_bytes = settings.pull_bytes;
  service.kernels = kernels_;
  service.liveness = watch_.get();
  service.listener = listener_.get();
  service.permits = &permits_;
  service.team_mail = exchange_.get();
  service.known_dead = [this] { return watch_->look(); };
  service.now_ns = monotonic_ns;
  service_ = std::make_unique<TargetService>(std::move(service), exposures_);
  service_->attach(*route_);

  NetworkSide::Parts network;
  network.rank = membership_.rank;
  network.ranks = membership_.size;
  network.secret = membership_.secret;
  network.settings = &options_.settings;
  network.node = identify_node(settings.node_name);
  network.route = route_.get();
  network.remote_nodes = remote_nodes_.get();
  network.engine = engine_.get();
  network.watch = watch_.get();
  network.waiters = &block.waiters;
  network.started = [this](Network& started) { return serve_network(started); };
  network.look_after = [this] { bell_->ask_for_look(); };
  network_ = std::make_unique<NetworkSide>(std::move(network));
  card_ = std::make_unique<CardSide>(CardSide::Parts{membership_.rank, &options_.settings,
                                                     [this](Rank rank, const std::string& why) {
                                                       remote_nodes_->lose(rank, why);
                                                       watch_->declare_dead(rank);
                                                     },
                                                     [this](Rdma& card) { return serve_card(card); }});
  ringer_ = std::make_unique<RingOwner>(*transport_, membership_.here);
  bell_ = std::make_unique<RankBell>(block.doorbell, transport_->wake_name(node_.place()));
  Attendance::Parts attendance;
  attendance.handler = service_.get();
  attendance.grant = [this] { service_->grant_waiting(); };
  attendance.needs_agent = [this] { return service_->has_unfinished() || service_->has_waiting(); };
  attendance.rouse = [this] { bell_->ask_for_look(); };
  attendance.after_serving = [this] { desk_->wake_touched(); };
  attendance_ = std::make_unique<Attendance>(std::move(attendance));
  wake_sources_ = std::make_unique<WakeSources>(*attendance_);
  chores_ =
      std::make_unique<Chores>(*service_, *desk_, *network_, *wake_sources_, *attendance_, *bell_, *waiter_, carries_);
  agent_ = std::make_unique<AgentSide>(settings, AgentSide::Parts{*route_, *service_, *bell_, *chores_, *attendance_});
  waiter_->before_sleep([this] { network_->hand_over(); });
  waiter_->before_look([this] { network_->ask_remote_nodes(); });
  if (options_.settings.agent != AgentMode::dedicated)
    waiter_->attend_by({.begin = [this] { return attendance_->begin() == Code::ok; },
                        .attend = [this] { return attend(); },
                        .end = [this] { end_attending(); }});
}

Status Context::meet_the_node() {
  // Nobody reduces over it: where world_ has its rounds it has none of its own, and each group counts them by itself.
  home_ = group_of_the_node();
  if (node_.is_whole_job()) world_ = group_of_the_node();
  std::vector<os::ProcessorBounds> bounds(membership_.here.count());
  if (Status status = home_->team().barrier("farsum_init"); !status.is_ok()) return status;
  share_processors(bounds);
  transport_->probe_peers();
  return home_->team().barrier("farsum_init");
}

// All ranks have published what bounds theirs, and nobody changes it: so all come to the same.
void Context::share_processors(std::span<os::ProcessorBounds> bounds) {
  for (std::uint32_t place = 0; place < bounds.size(); ++place)
    bounds[place] = membership_.segment->rank(place).processors;
  processors_ = os::scarcest_share(bounds);
  waiter_->be_crowded(processors_.is_crowded());
  agent_->be_crowded(processors_.is_crowded());
}

std::unique_ptr<Group> Context::group_of_the_node() {
  GroupPlaces places;
  places.here.resize(membership_.here.count());
  std::iota(places.here.begin(), places.here.end(), 0u);
  auto group = std::make_unique<Group>(membership_.here.ranks(), node_.place());
  Group::Means means = make_means(std::move(places), node_.place());
  std::byte* const block = membership_.segment->world_team();
  means.team->begin(*reinterpret_cast<NodeTeamBlock*>(block), 0);
  group->begin({}, block, std::move(means));
  return group;
}

// Reaches the ranks of other nodes, where they are known already, and hears what rank 0 decides for all: before any
// group is made, so that nobody reduces otherwise. Where they are not, each has what is built in.
Status Context::meet_the_job() {
  if (node_.is_whole_job() || !membership_.allgather) return {};
  struct Told {
    NetworkCard card;
    cost::TreeRule trees;
  };
  Told mine = {network_->card(), {}};
  const auto environment = [](const char* name) -> const char* { return std::getenv(name); };
  if (rank() == 0) mine.trees = read_tree_rule(settings(), environment);
  std::vector<Told> all(membership_.size);
  if (Status status = membership_.allgather(&mine, all.data(), sizeof mine); !status.is_ok()) return status;
  std::vector<NetworkCard> cards;
  std::ranges::transform(all, std::back_inserter(cards), &Told::card);
  Status status = introduce(cards);
  // What another build has told is refused there.
  if (!status.is_ok()) return {status.code(), fmt::format("farsum_init: {}", status.text())};
  tree_rule_ = cost::rule_as_told(all.front().trees);
  return {};
}

Status Context::begin_world() {
  if (node_.is_whole_job()) return {};
  std::vector<Rank> all(membership_.size);
  std::iota(all.begin(), all.end(), Rank{0});
  const bool meets = std::all_of(all.begin(), all.end(), [this](Rank rank) { return remote_nodes_->reaches(rank); });
  world_ = std::make_unique<Group>(std::move(all), membership_.rank);
  if (!meets) return {};
  Group::Means means = make_means(remote_nodes_->places_of(world_->ranks()), membership_.rank);
  const std::uint32_t here = membership_.here.count();
  Result<HeapExtent> met =
      membership_.segment->meet({{world_team_key, here}}, here, GroupBlock::footprint(here), node_.id_in_segment());
  if (!met.is_ok()) return met.take_status();
  if (Status status = membership_.segment->reach(met.value()); !status.is_ok()) return status;
  means.begin_letters(world_team_key);
  // Who has failed up to here has said so at this meeting of the node's ranks, and nowhere else.
  if (Status status = home_->team().barrier("farsum_init"); !status.is_ok()) return status;
  std::byte* const block = membership_.segment->at(met.value().offset);
  means.team->begin(*reinterpret_cast<NodeTeamBlock*>(block), world_team_key);
  world_->begin(met.value(), block, std::move(means));
  if (Status status = world_->team().barrier("farsum_init"); !status.is_ok()) return status;
  world_->open_letters();
  return {};
}

std::uint32_t Context::reduce_degree(std::uint32_t nodes) const { return cost::usual_degree(tree_rule_, nodes); }

Group::Means Context::make_means(GroupPlaces places, std::uint32_t my_rank) const {
  Group::Means means;
  const std::uint32_t degree = reduce_degree(places.nodes());
  means.post = make_post(places, my_rank, LetterPost::Use::group);
  means.carried_post = make_post(places, my_rank, LetterPost::Use::carried);
  means.team = std::make_unique<GroupTeam>(std::move(places), my_rank, means.post.get(), *waiter_);
  const ReductionMeans of_reductions{.kernels = *kernels_,
                                     .order = settings().reduce_order,
                                     .peers = peer_memory_.get(),
                                     .degree = degree,
                                     .splits = tree_rule_.splits,
                                     .pieces = &tree_rule_};
  means.reductions = std::make_unique<GroupReductions>(*means.team, my_rank, of_reductions, *waiter_);
  return means;
}

std::unique_ptr<LetterPost> Context::make_post(const GroupPlaces& places, std::uint32_t my_rank,
                                               LetterPost::Use use) const {
  if (places.is_one_node() || places.here.front() != my_rank) return nullptr;
  return std::make_unique<LetterPost>(*desk_, *exchange_, places, use, waiter_->own_events(),
                                      use == LetterPost::Use::window ? 0 : reduce_degree(places.nodes()));
}

Status Context::serve_network(Network& network) {
  wake_sources_->add(network);
  waiter_->expect_remote_replies();
  if (Status status = bell_->add_network(*wake_sources_); !status.is_ok()) return status;
  // A thread may have handed something over before the bell knew of the network.
  bell_->ask_for_look();
  return agent_->start();
}

Status Context::serve_card(Rdma& card) {
  wake_sources_->add(card);
  return bell_->add_network(*wake_sources_);
}

Result<NetworkCard> Context::network_card() { return network_->card(); }

Status Context::introduce(std::span<const NetworkCard> cards) { return network_->introduce(cards); }

Status Context::begin_attending() {
  if (options_.settings.agent == AgentMode::dedicated)
    return {Code::unsupported, "farsum_attend_begin: the agent never sleeps (FARSUM_AGENT)"};
  switch (const Code code = attendance_->begin()) {
    case Code::ok:
      return {};
    case Code::unsupported:
      return {code, "farsum_attend_begin: no rank of another node is reached over a network"};
    default:
      return {code, "farsum_attend_begin: another thread attends, or the agent serves at the moment"};
  }
}

bool Context::attend() {
  const bool attends = attendance_->attend();
  go_on_carrying();
  return attends;
}

void Context::end_attending() {
  attendance_->end();
  go_on_carrying();
}

// What a thread has served may have been a letter for which a collective waits.
void Context::go_on_carrying() {
  const Carry::Turn turn = carries_.take_turns();
  if (turn.is_unfinished || turn.is_refused) transport_->ring(node_.place());
}

Context::~Context() {
  if (agent_ != nullptr) agent_->stop();
  if (left_) return;
  demote_all();
  leave();
}

// The agent has ended.
void Context::leave() {
  left_ = true;
  // What could not be turned back (a thread of the program may be using it) stays the program's memory and lies in the
  // file.
  membership_.segment->leave(node_.place(), promotions_.promoted_bytes() != 0);
}

Status Context::find_open_requests() {
  const std::lock_guard lock(mutex_);
  std::size_t open = world_->open_requests();
  for (const std::unique_ptr<Group>& group : groups_) open += group->open_requests();
  if (open == 0) return {};
  return {Code::pending, fmt::format("farsum_finalize: nobody has waited for {} of this rank's requests of "
                                     "farsum_collect; pass them to farsum_wait first",
                                     open)};
}

// What this rank has open.
Status Context::find_open() {
  if (Status status = find_open_requests(); !status.is_ok()) return status;
  for (const std::unique_ptr<WindowObject>& object : windows_) {
    if (object->mutexes != nullptr) {
      if (Status held = object->mutexes->find_held(); !held.is_ok()) return held;
    }
    if (object->internal || object->prepared) continue;
    Status status = object->window->settle("farsum_finalize");
    if (!status.is_ok()) return {Code::pending, std::string(status.text())};
  }
  return {};
}

// What this rank has open ends, as far as it goes.
void Context::abandon_all() {
  for (const std::unique_ptr<WindowObject>& object : windows_) {
    if (object->mutexes != nullptr) object->mutexes->unlock_all();
    object->window->abandon("farsum_finalize_forced");
  }
}

Status Context::finalize(Insistence insistence) {
  // What the ranks tell each other.
  constexpr std::byte ready{0}, pending{1}, forced{2};
  Status mine;
  std::exception_ptr thrown;  // this rank has found no memory to see what it has open
  std::byte word = forced;
  if (insistence == Insistence::none) {
    try {
      mine = find_open();
    } catch (...) {
      thrown = std::current_exception();
    }
    word = mine.is_ok() && thrown == nullptr ? ready : pending;
  } else {
    abandon_all();
  }
  // Where not all ranks are reached, whoever brought some together sees to it that all leave together.
  Group& leaving = world_->meets() ? *world_ : *home_;
  const std::span<std::byte> words = leaving.words();
  Status status = leaving.team().allgather(std::span(&word, 1), words, "farsum_finalize");
  const bool some_forced = std::find(words.begin(), words.end(), forced) != words.end();
  if (status.is_ok() && !some_forced) {
    if (thrown != nullptr) std::rethrow_exception(thrown);
    if (!mine.is_ok()) return mine;
    const auto first = std::find(words.begin(), words.end(), pending);
    if (first != words.end()) {
      return {Code::pending,
              fmt::format("farsum_finalize: rank {} of the job has a lock, a mutex, an epoch or a request open",
                          leaving.ranks()[first - words.begin()])};
    }
  }
  if (!mine.is_ok() || thrown != nullptr) abandon_all();
  // Every rank is in here now and none runs another runtime from here on: see make_window.
  ThreadWaiter::Quiet quiet(*waiter_);
  quiet.begin();
  // Nobody serves or sends after this.
  if (status.is_ok()) status = leaving.team().barrier("farsum_finalize");
  attendance_->shut();
  agent_->stop();
  card_->abandon();
  network_->close(*service_);
  try {
    demote_all();
  } catch (const std::bad_alloc&) {
    // What could not be turned back stays as leave() has it; the others wait in the barrier.
  }
  if (status.is_ok()) status = home_->team().barrier("farsum_finalize");
  leave();
  return status;
}

// ---- mutexes ----

Result<Mutexes*> Context::create_mutexes(Group& group, std::uint32_t count, bool lacks_memory) {
  WindowOptions options;
  options.name = "mutexes";
  options.notification_slots = 1;
  options.internal = true;
  options.lacks_memory = lacks_memory;
  options.mutexes = count;
  Result<WindowObject*> object = allocate_window(group, 0, options);
  if (!object.is_ok()) return object.take_status();
  return object.value()->mutexes.get();
}

Status Context::free_mutexes(Mutexes* mutexes) {
  GroupTeam& team = mutexes->object().group->team();
  // The ranks agree, so that nobody waits for one that refuses.
  const std::span<std::byte> held = mutexes->object().group->words();
  const std::byte mine{mutexes->are_in_use()};
  if (Status status = team.allgather(std::span(&mine, 1), held, "farsum_mutex_free"); !status.is_ok()) return status;
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    if (held[rank] == std::byte{0}) continue;
    return {Code::pending,
            fmt::format(
                "farsum_mutex_free: rank {} of the group still holds or waits for one of the mutexes; unlock it first",
                rank)};
  }
  return free_window(&mutexes->object());
}

// ---- statistics ----

RankStatistics Context::statistics() {
  Traffic hot;
  {
    const std::lock_guard lock(mutex_);
    hot = retired_hot_traffic_;
    for (const std::unique_ptr<WindowObject>& object : windows_) hot += object->window->hot_traffic();
  }
  return counts_.read({*engine_, *desk_, *transport_, *waiter_, read_copies_, *agent_, *network_}, hot);
}

}  // namespace farsum
