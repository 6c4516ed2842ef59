#include "protocol_job.hpp"

#include <cstring>

namespace farsum {

namespace {

constexpr std::uint32_t stripes = 16;

TargetService::Options service_options(SimWorld& world, Rank rank, const ProtocolJobOptions& options,
                                       NotificationListener* listener, LeaseService*& leases) {
  TargetService::Options made;
  made.rank = rank;
  made.pull_bytes = options.pull_bytes;
  made.pull_slots = options.pull_slots;
  made.kernels = &ops::kernels_for_this_machine();
  made.listener = listener;
  made.team_mail = options.team_mail;
  made.make_leases = [&world, &leases, limits = options.leases](OperationApplier& applier) {
    auto service = std::make_unique<LeaseService>(applier, limits, [&world] { return world.now_ns(); });
    leases = service.get();
    return service;
  };
  if (options.known_dead != 0) made.known_dead = [dead = options.known_dead] { return dead; };
  return made;
}

OriginEngine::Options engine_options(const ProtocolJobOptions& options, std::function<void()> on_coalescing) {
  OriginEngine::Options made;
  made.on_coalescing = std::move(on_coalescing);
  made.peers = options.owners;
  made.inline_bytes = options.inline_bytes;
  made.pull = options.pull;
  made.backlog = options.backlog;
  return made;
}

const std::byte* bytes_of(const std::uint64_t& value) { return reinterpret_cast<const std::byte*>(&value); }

}  // namespace

ProtocolJobOptions options_from(std::uint64_t seed) {
  SimRandom random(SimRandom::mix(seed ^ 0x5eed));
  ProtocolJobOptions options;
  options.sim.message_latency.high_ns = 500 + random.below(20'000);
  options.sim.long_delay_one_in = random.below(50);
  options.sim.pair_messages = 1 + random.below(12);
  options.sim.max_message_bytes = 2'048 << random.below(4);
  options.sim.max_reply_bytes = options.sim.max_message_bytes;
  options.sim.turn_budget = 1 + random.below(16);
  options.sim.torn_transfers = random.once_in(2);
  options.sim.transfers = !random.once_in(4);
  options.pull = !random.once_in(4);
  options.inline_bytes = 64 << random.below(8);
  options.pull_bytes = 256 << random.below(6);
  options.pull_slots = 1 + random.below(4);
  options.backlog = 1 + random.below(8);
  options.sim.keeps = random.once_in(2);
  return options;
}

ProtocolRank::ProtocolRank(SimWorld& world, Rank rank, const ProtocolJobOptions& options,
                           NotificationListener* listener)
    : program(world, rank),
      service(service_options(world, rank, options, listener, leases), exposures),
      trace(world.transport(rank), world.rank_count()),
      engine(engine_options(options, [this] { visit_coalesced(); }), trace),
      random_(world.random().split()) {
  SimTransport& transport = world.transport(rank);
  service.attach(transport);
  world.set_request_handler(rank, this);
  transport.set_transfer_handler(&service);
  world.set_agent_hook(rank, [this] {
    service.grant_waiting();
    come_back();
  });
  program.set_drive([this, &transport] {
    const std::vector<Rank> peers = transport.peers_with_replies();
    for (const Rank peer : peers) engine.progress(peer);
  });
}

Served ProtocolRank::on_request(Rank from, std::span<const std::byte> message, std::span<std::byte> reply_room,
                                ReplyToken token) {
  if (on_message) on_message(message);
  const Served served = service.on_request(from, message, reply_room, token);
  come_back();
  return served;
}

// As the agent does: at its own times, and as long as there may be something.
void ProtocolRank::visit_coalesced() {
  SimWorld& world = program.world();
  world.call_after(1 + random_.below(50'000), [this, &world] {
    if (world.is_alive(rank())) engine.send_coalesced();
    if (world.is_alive(rank()) && engine.is_coalescing()) visit_coalesced();
  });
}

void ProtocolRank::come_back() {
  if (service.has_unfinished()) program.world().wake_agent(rank());
}

SimTask<Code> ProtocolRank::run(Rank owner, Operation operation) {
  Outstanding outstanding;
  RequestState request;
  co_await program.until([&] { return engine.submit(owner, window, operation, outstanding, &request); });
  co_await program.until([&] { return request.done.load(); });
  co_return request.code.load();
}

SimTask<Code> ProtocolRank::run_leased(Rank owner, Operation operation, std::uint64_t* left_to_owner) {
  Outstanding outstanding;
  LeasedUpdate update({.engine = &engine,
                       .kernels = &ops::kernels_for_this_machine(),
                       .room = program.world().transport(rank()).capabilities(owner),
                       .owner = owner,
                       .window = window},
                      operation, outstanding);
  co_await program.until([&] { return update.advance(); });
  if (left_to_owner != nullptr) *left_to_owner = update.bytes_left_to_owner();
  co_return update.code();
}

SimTask<Code> ProtocolRank::accumulate(Rank owner, std::uint64_t offset, ops::ElementType type, ops::Operator op,
                                       const void* operand, std::uint64_t bytes) {
  Operation operation;
  operation.kind = OperationKind::accumulate;
  operation.type = type;
  operation.op = op;
  operation.offset = offset;
  operation.bytes = bytes;
  operation.operand = static_cast<const std::byte*>(operand);
  const Code code = co_await run(owner, operation);
  co_return code;
}

SimTask<std::uint64_t> ProtocolRank::fetch(Rank owner, std::uint64_t offset, ops::Operator op, std::uint64_t operand) {
  std::uint64_t before = 0;
  Operation operation;
  operation.kind = OperationKind::get_accumulate;
  operation.type = ops::ElementType::uint64;
  operation.op = op;
  operation.offset = offset;
  operation.bytes = sizeof before;
  operation.operand = bytes_of(operand);
  operation.result = reinterpret_cast<std::byte*>(&before);
  const Code code = co_await run(owner, operation);
  co_return code == Code::ok ? before : ~std::uint64_t{0};
}

SimTask<std::uint64_t> ProtocolRank::compare_and_swap(Rank owner, std::uint64_t offset, std::uint64_t compare,
                                                      std::uint64_t operand) {
  std::uint64_t before = 0;
  Operation operation;
  operation.kind = OperationKind::compare_and_swap;
  operation.type = ops::ElementType::uint64;
  operation.offset = offset;
  operation.bytes = sizeof before;
  operation.operand = bytes_of(operand);
  operation.compare = bytes_of(compare);
  operation.result = reinterpret_cast<std::byte*>(&before);
  const Code code = co_await run(owner, operation);
  co_return code == Code::ok ? before : ~std::uint64_t{0};
}

wire::MessageHeader ProtocolRank::header_of(wire::MessageKind kind) const {
  wire::MessageHeader header;
  header.kind = kind;
  header.window = window;
  header.offset = program.rank();
  return header;
}

SimTask<Code> ProtocolRank::control(Rank owner, wire::MessageHeader header, std::span<const std::byte> body,
                                    std::span<std::byte> reply) {
  Outstanding outstanding;
  RequestState request;
  co_await program.until([&] { return engine.submit_control(owner, header, body, outstanding, &request, reply); });
  co_await program.until([&] { return request.done.load(); });
  co_return request.code.load();
}

SimTask<Code> ProtocolRank::lock(Rank owner, bool is_exclusive) {
  return lock_message(owner, wire::MessageKind::lock, is_exclusive);
}
SimTask<Code> ProtocolRank::unlock(Rank owner, bool is_exclusive) {
  return lock_message(owner, wire::MessageKind::unlock, is_exclusive);
}

SimTask<Code> ProtocolRank::lock_message(Rank owner, wire::MessageKind kind, bool is_exclusive) {
  wire::MessageHeader header = header_of(kind);
  if (is_exclusive) header.flags = wire::flag_exclusive;
  return control(owner, header);
}

SimTask<> ProtocolRank::start(Rank owner, Operation operation, Outstanding& outstanding) {
  co_await program.until([&] { return engine.submit(owner, window, operation, outstanding, nullptr); });
}

SimTask<> ProtocolRank::start_scatter(Rank owner, ops::ElementType type, ops::Operator op,
                                      std::span<const std::uint64_t> offsets, std::span<const std::byte> elements,
                                      Outstanding& outstanding) {
  co_await program.until(
      [&] { return engine.submit_scatter(owner, window, type, op, nullptr, offsets, elements, outstanding); });
}

SimTask<> ProtocolRank::flush(Outstanding& outstanding) {
  co_await program.until([&] { return outstanding.count.load() == 0; });
}

ProtocolJob::ProtocolJob(std::uint64_t seed, Rank ranks, const ProtocolJobOptions& options)
    : world_(seed, ranks, options.sim) {
  for (Rank rank = 0; rank < ranks; ++rank) {
    listeners_.push_back(std::make_unique<CountingListener>());
    ranks_.push_back(std::make_unique<ProtocolRank>(world_, rank, options, listeners_.back().get()));
  }
  for (Rank owner = 0; owner < options.owners; ++owner) expose(owner, options);
}

void ProtocolJob::expose(Rank owner, const ProtocolJobOptions& options) {
  memory_.push_back(world_.memory().allocate(options.window_bytes));
  auto* const locks = reinterpret_cast<StripeLock*>(world_.memory().allocate(stripes * sizeof(StripeLock)).data());
  AtomicDomain domain;
  domain.locks = locks;
  domain.mask = stripes - 1;
  domain.atomics_only = options.atomics_only;
  domain.key_base = reinterpret_cast<std::uintptr_t>(memory_.back().data());
  domains_.push_back(domain);
  shape_.ranks = rank_count();
  shape_.notification_slots = options.notification_slots;
  shape_.most_regions = 1;
  shape_.locks = 3;
  const RankWindow& own = rank_windows_.emplace_back(world_.memory().allocate(shape_.rank_bytes()).data(), shape_);
  own.regions()[0].bytes = options.window_bytes;
  own.head().region_count = 1;

  auto exposure = std::make_shared<Exposure>();
  ExposedRegion region;
  region.bytes = options.window_bytes;
  region.memory = memory_.back().data();
  region.domain = domain;
  region.for_cards = options.for_cards;
  exposure->regions.push_back(region);
  exposure->notifications = own.notifications();
  exposure->notification_slots = options.notification_slots;
  exposure->own = own;
  for (Rank rank = 0; rank < rank_count(); ++rank) exposure->ranks.push_back(rank);
  exposure->refuses_locks = options.refuses_locks;
  ranks_[owner]->exposures.set(ProtocolRank::window, std::move(exposure));
}

std::uint64_t ProtocolJob::word(Rank owner, std::uint64_t offset) const {
  std::uint64_t value = 0;
  std::memcpy(&value, memory_[owner].data() + offset, sizeof value);
  return value;
}

bool ProtocolJob::run() {
  // Over ten times what the longest test needs: an agent that serves one request again and again for nothing comes to
  // an end here.
  constexpr std::uint64_t most_events = 1'000'000;
  if (!world_.run(most_events)) return false;
  for (const auto& rank : ranks_) {
    if (world_.is_alive(rank->rank()) && !rank->program.is_finished()) return false;
  }
  return true;
}

}  // namespace farsum
