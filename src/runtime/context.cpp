#include "runtime/context.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <new>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "os/attach.hpp"
#include "os/process_barrier.hpp"
#include "runtime/rank_chores.hpp"
#include "runtime/reduction_models.hpp"
#include "variants/leases/lease_service.hpp"

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
  promotion_registry_.leave_out(membership_.segment->begin(), membership_.segment->bytes());
  make_parts();
  const Settings& settings = options_.settings;
  if (Status status = agent_->prepare(); !status.is_ok()) return status;
  if (settings.agent == AgentMode::dedicated) block.processors.spinning_agent = os::processor_set_of(agent_->cpus());
  if (Status status = meet_the_node(); !status.is_ok()) return status;
  if (Status status = meet_the_job(); !status.is_ok()) return status;
  // The caller's, for as long as the job begins.
  membership_.allgather = nullptr;
  return groups_->begin_job();
}

void Context::make_parts() {
  make_ways();
  make_service();
  make_agent();
  make_groups();
  make_windows();
}

// Who the others are, and how they are waited for and reached.
void Context::make_ways() {
  NodeSegment& segment = node_.segment();
  const Settings& settings = options_.settings;
  RankBlock& block = node_.block();
  remote_nodes_ = std::make_unique<RemoteNodes>(membership_.here);
  watch_ = std::make_unique<PeerWatch>(segment, membership_.here, *remote_nodes_, rank());
  ThreadWaiter::Options waiting{settings.spin_ns, settings.wait_gap_ns, options_.idle, options_.idle_gap_ns,
                                has_too_few_online(block.processors, membership_.here.count())};
  waiting.told_after_ns = settings.wait_notice_s * 1'000'000'000;
  waiting.tell_of_wait = [rank = membership_.rank](const char* doing, std::uint64_t waited_ns) {
    tell_of_wait(rank, doing, waited_ns);
  };
  waiter_ = std::make_unique<ThreadWaiter>(std::move(waiting), *watch_, block.waiters);
  transport_ = std::make_unique<ShmTransport>(
      segment, ShmTransport::Options{node_.place(), settings.channel_bytes, settings.attach != Permission::refuse});
  route_ = std::make_unique<RouteTransport>(*transport_, membership_.here);
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
}

// What others of the node and of the network ask is served.
void Context::make_service() {
  const Settings& settings = options_.settings;
  RankBlock& block = node_.block();
  listener_ = std::make_unique<WakeOwnThreads>(block.waiters);
  TargetService::Options service;
  service.rank = membership_.rank;
  service.pull_bytes = settings.pull_bytes;
  service.kernels = kernels_;
  service.liveness = watch_.get();
  service.listener = listener_.get();
  service.permits = &permits_;
  service.team_mail = exchange_.get();
  service.known_dead = [this] { return watch_->look(); };
  service.make_leases = make_lease_service({}, monotonic_ns);
  service_ = std::make_unique<TargetService>(std::move(service), exposures_);
  service_->attach(*route_);

  NetworkSide::Parts network;
  network.rank = rank();
  network.ranks = size();
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
  card_ = std::make_unique<CardSide>(CardSide::Parts{rank(), &options_.settings,
                                                     [this](Rank lost, const std::string& why) {
                                                       remote_nodes_->lose(lost, why);
                                                       watch_->declare_dead(lost);
                                                     },
                                                     [this](Rdma& card) {
                                                       wake_sources_->add(card);
                                                       return bell_->add_network(*wake_sources_);
                                                     }});
}

// Who serves it.
void Context::make_agent() {
  const Settings& settings = options_.settings;
  bell_ = std::make_unique<RankBell>(node_.block().doorbell, transport_->wake_name(node_.place()));
  Attendance::Parts attendance;
  attendance.handler = service_.get();
  attendance.grant = [this] { service_->grant_waiting(); };
  attendance.needs_agent = [this] { return service_->has_unfinished() || service_->has_waiting(); };
  attendance.rouse = [this] { bell_->ask_for_look(); };
  attendance.after_serving = [this] { desk_->wake_touched(); };
  attendance_ = std::make_unique<Attendance>(std::move(attendance));
  wake_sources_ = std::make_unique<WakeSources>(*attendance_);
  chores_ = std::make_unique<RankChores>(*service_, *desk_, *network_, *wake_sources_, *attendance_, *bell_, *waiter_,
                                         carries_);
  agent_ = std::make_unique<AgentSide>(settings, AgentSide::Parts{*route_, *service_, *bell_, *chores_, *attendance_});
  attending_ =
      std::make_unique<Attending>(Attending::Parts{*attendance_, carries_, *transport_, node_.place(), settings.agent});
  waiter_->before_sleep([this] { network_->hand_over(); });
  waiter_->before_look([this] { network_->ask_remote_nodes(); });
  if (settings.agent != AgentMode::dedicated)
    waiter_->attend_by({.begin = [this] { return attendance_->begin() == Code::ok; },
                        .attend = [this] { return attending_->attend(); },
                        .end = [this] { attending_->end(); }});
}

void Context::make_groups() {
  const ReduceOrder order = options_.settings.reduce_order;
  peer_memory_ = std::make_unique<AttachedMemory>(*transport_, promotion_registry_, node_.place());
  teams_ = std::make_unique<TeamMaker>(TeamMaker::Parts{*waiter_, *desk_, *exchange_, *peer_memory_, *kernels_, order});
  extents_ = std::make_unique<NodeExtents>(node_, exposures_);
  carried_ = std::make_unique<CarriedGroups>(CarriedGroups::Parts{
      node_, *transport_, *network_, carries_, *exchange_, *waiter_, *teams_, *kernels_, *agent_, *extents_, order});
  groups_ = std::make_unique<Groups>(Groups::Parts{{node_, *remote_nodes_, *waiter_, *exchange_}, *teams_, *carried_});
}

void Context::make_windows() {
  NodeSegment& segment = node_.segment();
  const Settings& settings = options_.settings;
  circle_ = std::make_unique<TeardownCircle>(
      [this](Rank other) -> AwaitedRank& { return node_.block_of(other).awaited; },
      TeardownCircle::Words{segment.begin(), [&segment](std::uint64_t offset) { return segment.read_word(offset); }},
      segment.ranks(), rank());
  if (options_.many_threads) circle_->take_out();
  ringer_ = std::make_unique<RingOwner>(*transport_, membership_.here);
  locks_ = std::make_unique<OwnLocks>(
      OwnLocks::Parts{node_, *watch_, *waiter_, permits_, *ringer_, counts_.stripe_contention()});
  promotions_ = std::make_unique<WindowPromotions>(
      WindowPromotions::Parts{node_, exposures_, *agent_, settings, promotion_registry_});
  models_ = std::make_unique<PathModels>(settings);
  reach_ = std::make_unique<RegionReach>(RegionReach::Parts{node_, settings, *models_, *transport_, *remote_nodes_});
  descriptions_ = std::make_unique<MemoryDescriptions>(node_, promotion_registry_.maps());
  const WindowServices services = {settings,       *kernels_, node_,      *remote_nodes_,  *waiter_,     *teams_,
                                   *engine_,       *route_,   exposures_, *card_,          *promotions_, *reach_,
                                   *descriptions_, *extents_, *locks_,    counts_.paths(), hearing_,     read_copies_};
  windows_ = std::make_unique<Windows>(Windows::Parts{services, *watch_, *agent_, *models_, *circle_});
  mutexes_ = std::make_unique<MutexTable>(*windows_);
}

Status Context::meet_the_node() {
  groups_->begin_node();
  std::vector<os::ProcessorBounds> bounds(membership_.here.count());
  if (Status status = groups_->home().team().barrier("farsum_init"); !status.is_ok()) return status;
  // All ranks have published what bounds theirs, and nobody changes it: so all come to the same.
  for (std::uint32_t place = 0; place < bounds.size(); ++place) bounds[place] = node_.segment().rank(place).processors;
  processors_ = os::scarcest_share(bounds);
  waiter_->be_crowded(processors_.is_crowded());
  agent_->be_crowded(processors_.is_crowded());
  transport_->probe_peers();
  return groups_->home().team().barrier("farsum_init");
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
  Status status = network_->introduce(cards);
  // What another build has told is refused there.
  if (!status.is_ok()) return {status.code(), fmt::format("farsum_init: {}", status.text())};
  teams_->set_trees(cost::rule_as_told(all.front().trees));
  return {};
}

Status Context::serve_network(Network& network) {
  wake_sources_->add(network);
  waiter_->expect_remote_replies();
  if (Status status = bell_->add_network(*wake_sources_); !status.is_ok()) return status;
  // A thread may have handed something over before the bell knew of the network.
  bell_->ask_for_look();
  return agent_->start();
}

Context::~Context() {
  if (agent_ != nullptr) agent_->stop();
  if (left_) return;
  if (windows_ != nullptr) windows_->turn_all_back();
  leave();
}

// The agent has ended.
void Context::leave() {
  left_ = true;
  // What could not be turned back (a thread of the program may be using it) stays the program's memory and lies in the
  // file.
  membership_.segment->leave(node_.place(), promotion_registry_.promoted_bytes() != 0);
}

Status Context::finalize(Insistence insistence) {
  // What the ranks tell each other.
  constexpr std::byte ready{0}, pending{1}, forced{2};
  Status mine;
  std::exception_ptr thrown;  // this rank has found no memory to see what it has open
  std::byte word = forced;
  if (insistence == Insistence::none) {
    try {
      mine = groups_->find_open_requests();
      if (mine.is_ok()) mine = windows_->find_open();
    } catch (...) {
      thrown = std::current_exception();
    }
    word = mine.is_ok() && thrown == nullptr ? ready : pending;
  } else {
    windows_->abandon_all();
  }
  // Where not all ranks are reached, whoever brought some together sees to it that all leave together.
  Group& leaving = world().meets() ? world() : groups_->home();
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
  if (!mine.is_ok() || thrown != nullptr) windows_->abandon_all();
  // Every rank is in here now and none runs another runtime from here on: as where a window is made.
  ThreadWaiter::Quiet quiet(*waiter_);
  quiet.begin();
  if (status.is_ok()) status = leaving.team().barrier("farsum_finalize");
  stop_serving();
  if (status.is_ok()) status = groups_->home().team().barrier("farsum_finalize");
  leave();
  return status;
}

// Nobody serves or sends after this, and promoted memory is the program's again.
void Context::stop_serving() {
  attendance_->shut();
  agent_->stop();
  card_->abandon();
  network_->close(*service_);
  try {
    windows_->turn_all_back();
  } catch (const std::bad_alloc&) {
    // What could not be turned back stays as leave() has it; the others wait in the barrier.
  }
}

RankStatistics Context::statistics() {
  return counts_.read({*engine_, *desk_, *transport_, *waiter_, read_copies_, *agent_, *network_},
                      windows_->hot_traffic());
}

}  // namespace farsum
