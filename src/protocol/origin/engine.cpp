#include "protocol/origin/engine.hpp"

#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "protocol/origin/in_flight.hpp"
#include "protocol/packed_sides.hpp"

namespace farsum {

namespace {

// A grant may have to wait until other ranks have done something; a team's message may wait for room behind it.
bool waits_for_others(wire::MessageKind kind) {
  return kind == wire::MessageKind::lock || kind == wire::MessageKind::team;
}

// Nothing can be done under a lock that does not follow it to its owner. Who wants it at once waits for the answer.
bool leaves_with_end(const wire::MessageHeader& header) {
  return header.kind == wire::MessageKind::lock && (header.flags & wire::flag_at_once) == 0;
}

// A recycled job keeps small buffers and short lists only.
constexpr std::size_t most_spare_bytes = 65536;

void forget_large(std::vector<std::byte>& buffer) {
  if (buffer.capacity() > most_spare_bytes) std::vector<std::byte>().swap(buffer);
}

void forget_large(ops::Layout& layout) {
  if (layout.view().pieces().size_bytes() > most_spare_bytes) layout = ops::Layout();
}

}  // namespace

OriginEngine::OriginEngine(Options options, Transport& transport)
    : options_(std::move(options)),
      transport_(transport),
      cutter_({.inline_bytes = options_.inline_bytes, .pull = options_.pull}, transport),
      peers_(options_.peers),
      under_way_(options_.peers / word_bits + 1),
      coalescing_(options_.peers / word_bits + 1) {}

OriginEngine::~OriginEngine() {
  // Relaxed: no other thread is left.
  for (const std::atomic<Peer*>& peer : peers_) delete peer.load(std::memory_order_relaxed);
}

// Peers are made when first asked for something, for a rank of a large job asks few of the others.
OriginEngine::Peer* OriginEngine::make_peer(Rank rank) {
  const std::lock_guard lock(making_);
  // Relaxed: written under the mutex.
  if (Peer* const made = peers_[rank].load(std::memory_order_relaxed); made != nullptr) return made;
  auto peer = std::make_unique<Peer>();
  peer->hearing = options_.hearing;
  peer->failed.store(all_have_failed_, std::memory_order_relaxed);
  // Release: the peer is whole; pairs with the acquire load in find_peer().
  peers_[rank].store(peer.get(), std::memory_order_release);
  return peer.release();
}

namespace {

bool is_update(const Operation& operation) {
  return operation.kind == OperationKind::accumulate && !operation.notify && !operation.may_wait &&
         operation.operand != nullptr && is_contiguous(operation.operand_layout) &&
         is_contiguous(operation.target_layout);
}

// Counts the pieces of a layout, which has passed its check, that do not go on where the one before ends.
std::uint64_t runs_of(std::span<const ops::Piece> pieces) {
  std::uint64_t runs = 0, end = 0;
  for (const ops::Piece& piece : pieces) {
    if (piece.bytes == 0) continue;
    const auto start = static_cast<std::uint64_t>(piece.offset);
    runs += runs == 0 || start != end ? 1 : 0;
    end = start + piece.bytes;
  }
  return runs;
}

// Elements all over the target: fewer than two a run, for which places are shorter than runs, and quicker to serve.
bool is_scattered(const Operation& operation) {
  if (operation.kind != OperationKind::accumulate || operation.notify) return false;
  const ops::LayoutView& layout = operation.target_layout;
  if (layout.kind() != ops::LayoutKind::indexed) return false;
  const std::uint64_t elements = operation.bytes / ops::size_of(operation.type);
  return elements * wire::place_bytes < runs_of(layout.pieces()) * ops::encoded_piece_bytes;
}

void append_places(const Operation& operation, std::vector<std::byte>& places) {
  const std::uint64_t size = ops::size_of(operation.type);
  places.resize(operation.bytes / size * wire::place_bytes);
  std::byte* to = places.data();
  for (const ops::Piece& piece : operation.target_layout.pieces()) {
    for (std::uint64_t at = 0; at < piece.bytes; at += size, to += wire::place_bytes) {
      const std::uint64_t place = operation.offset + static_cast<std::uint64_t>(piece.offset) + at;
      std::memcpy(to, &place, sizeof place);
    }
  }
}

}  // namespace

bool OriginEngine::submit(Rank rank, WindowId window, const Operation& operation, Outstanding& outstanding,
                          RequestState* request) {
  Peer& peer = peer_made(rank);
  const Visit visit(*this, peer);
  if (peer.backlog.size() >= options_.backlog) return false;
  if (request == nullptr && is_update(operation)) {
    const Update update{operation.type,    operation.op,    operation.offset,
                        operation.operand, operation.bytes, operation.alpha};
    if (join(peer, rank, window, update, outstanding)) return true;
  }
  NewJob job(peer);
  job->header = wire::MessageHeader{};
  job->header.operation = operation.kind;
  job->header.type = operation.type;
  job->header.op = operation.op;
  job->header.window = window;
  job->header.offset = operation.offset;
  if (operation.notify) job->header.flags = wire::flag_notify;
  job->header.slot = operation.notify_slot;
  if (operation.alpha != nullptr) std::memcpy(job->header.alpha, operation.alpha, ops::size_of(operation.type));
  job->bytes = operation.bytes;
  set_target(*job, operation, rank);

  job->may_wait = operation.may_wait;
  job->leaves_with_end = operation.leaves_with_end && request == nullptr && !operation.notify;
  job->operand = operation.operand;
  if (operation.kind == OperationKind::compare_and_swap) {
    job->packed.assign(operation.compare, operation.compare + operation.bytes);
    job->packed.insert(job->packed.end(), operation.operand, operation.operand + operation.bytes);
    job->operand = job->packed.data();
  } else if (carries_operand(job->header) && !is_contiguous(operation.operand_layout)) {
    job->packed.resize(operation.bytes);
    pack(operation.operand_layout, operation.bytes, operation.operand, job->packed.data());
    job->operand = job->packed.data();
  } else {
    job->lends_operand = carries_operand(job->header);
  }
  if (returns_data(operation.kind)) job->result = operation.result;
  if (returns_data(operation.kind) && !is_contiguous(operation.result_layout)) {
    job->gathered.resize(operation.bytes);
    job->result_layout = ops::Layout(operation.result_layout);
    job->scattered_result = operation.result;
    job->result = job->gathered.data();
  }
  return enqueue(peer, rank, job, outstanding, request);
}

// An owner that may pull the operand is told a layout: it pulls no single elements.
void OriginEngine::set_target(Job& job, const Operation& operation, Rank rank) const {
  job.target_is_contiguous = is_contiguous(operation.target_layout);
  if (job.target_is_contiguous) return;
  if (!cutter_.can_pull(rank) && is_scattered(operation)) {
    job.header.kind = wire::MessageKind::scatter;
    job.header.offset = 0;
    append_places(operation, job.offsets);
  } else {
    job.target_layout = ops::Layout(operation.target_layout);
  }
}

bool OriginEngine::submit_update(Rank rank, WindowId window, const Update& update, Outstanding& outstanding) {
  Peer& peer = peer_made(rank);
  const Visit visit(*this, peer);
  return join(peer, rank, window, update, outstanding);
}

bool OriginEngine::submit_scatter(Rank rank, WindowId window, ops::ElementType type, ops::Operator op,
                                  const void* alpha, std::span<const std::uint64_t> offsets,
                                  std::span<const std::byte> elements, Outstanding& outstanding) {
  Peer& peer = peer_made(rank);
  const Visit visit(*this, peer);
  if (peer.backlog.size() >= options_.backlog) return false;
  NewJob job(peer);
  job->header = wire::MessageHeader{};
  job->header.kind = wire::MessageKind::scatter;
  job->header.operation = OperationKind::accumulate;
  job->header.type = type;
  job->header.op = op;
  job->header.window = window;
  if (alpha != nullptr) std::memcpy(job->header.alpha, alpha, ops::size_of(type));
  const auto offset_bytes = std::as_bytes(offsets);
  job->offsets.assign(offset_bytes.begin(), offset_bytes.end());
  job->packed.assign(elements.begin(), elements.end());
  job->operand = job->packed.data();
  job->bytes = elements.size();
  return enqueue(peer, rank, job, outstanding, nullptr);
}

bool OriginEngine::submit_control(Rank rank, const wire::MessageHeader& header, std::span<const std::byte> body,
                                  Outstanding& outstanding, RequestState* request, std::span<std::byte> reply) {
  Peer& peer = peer_made(rank);
  const Visit visit(*this, peer);
  if (peer.backlog.size() >= options_.backlog) return false;
  NewJob job(peer);
  job->header = header;
  job->packed.assign(body.begin(), body.end());
  job->operand = job->packed.data();
  job->result = reply.data();
  job->reply_capacity = reply.size();
  job->may_wait = waits_for_others(header.kind);
  job->leaves_with_end = leaves_with_end(header);
  return enqueue(peer, rank, job, outstanding, request);
}

bool OriginEngine::enqueue(Peer& peer, Rank rank, NewJob& made, Outstanding& outstanding, RequestState* request) {
  close_bundle(peer, rank);
  Job& job = *made;
  job.outstanding = &outstanding;
  job.request = request;
  // Relaxed, here and below: the thread that counts it down learns of it through the peer's mutex.
  outstanding.count.fetch_add(1, std::memory_order_relaxed);
  if (peer.failed.load(std::memory_order_relaxed)) {
    job.code = Code::peer_failed;
    job.all_posted = true;
    made.release();
    finish_job(peer, job);
    return true;
  }
  try {
    if (!post_or_keep(peer, rank, job)) {
      outstanding.count.fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
  } catch (const std::bad_alloc&) {
    if (job.posted_bytes == 0) {
      outstanding.count.fetch_sub(1, std::memory_order_relaxed);
      throw;
    }
    // What has left ends it, if it was not answered meanwhile.
    job.all_posted = true;
    job.code = Code::no_memory;
    if (job.in_flight == 0) {
      made.release();
      finish_job(peer, job);
      return true;
    }
  }
  made.release();
  if (job.needs_buffers()) {
    job.is_borrowing = true;
    outstanding.borrowing.fetch_add(1, std::memory_order_relaxed);
  }
  note_under_way(rank);
  return true;
}

// False: there is no room, and in the backlog it would keep back what the others may be waiting for.
bool OriginEngine::post_or_keep(Peer& peer, Rank rank, Job& job) {
  if (peer.backlog.empty() && post_pieces(peer, rank, job)) return true;
  if (job.may_wait && job.posted_bytes == 0) return false;
  peer.backlog.push_back(&job);
  return true;
}

void OriginEngine::stop_borrowing(Job& job) {
  if (!job.is_borrowing) return;
  job.is_borrowing = false;
  // Release: the results are there, and what was read was read, before the program may have its buffers back; pairs
  // with the acquire load of a local flush.
  job.outstanding->borrowing.fetch_sub(1, std::memory_order_release);
}

bool OriginEngine::drain_backlog(Peer& peer, Rank rank) {
  bool any = false;
  while (!peer.backlog.empty() && post_pieces(peer, rank, *peer.backlog.front())) {
    if (!peer.backlog.front()->needs_buffers()) stop_borrowing(*peer.backlog.front());
    peer.backlog.pop_front();
    any = true;
  }
  return any;
}

// Whatever was kept back for the peer leaves, and what it has answered is taken in. Returns how many replies came.
std::size_t OriginEngine::go_on(Peer& peer, Rank rank) {
  close_bundle(peer, rank);
  const std::size_t replies = transport_.poll_replies(rank, peer);
  peer.coalesces = false;
  peer.left_for_end = 0;
  if (replies != 0) peer.has_progressed = true;
  if (drain_backlog(peer, rank)) peer.has_progressed = true;
  return replies;
}

// It comes behind what it tells of: whoever sleeps for that looks, and finds it.
void OriginEngine::tell_of_progress() const {
  if (options_.on_progress) options_.on_progress();
}

std::size_t OriginEngine::progress(Rank rank) {
  Peer* const asked = find_peer(rank);
  if (asked == nullptr) return 0;
  Peer& peer = *asked;
  const Visit visit(*this, peer);
  return go_on(peer, rank);
}

// Relaxed, here and below: what is under way is looked at under the peer's mutex, and whoever adds to it sets the bit
// first where it is not set. It stays set until the agent finds nothing, so that a thread which waits for each
// operation does not write it each time.
void OriginEngine::note_under_way(Rank rank) {
  std::atomic<std::uint64_t>& word = under_way_[rank / word_bits];
  const std::uint64_t bit = std::uint64_t{1} << rank % word_bits;
  if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
}

std::size_t OriginEngine::progress_unattended() {
  std::size_t replies = 0;
  for (std::size_t which = 0; which < under_way_.size(); ++which) {
    std::uint64_t word = under_way_[which].load(std::memory_order_relaxed);
    for (; word != 0; word &= word - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(word));
      replies += visit_unattended(static_cast<Rank>(which * word_bits + bit));
    }
  }
  return replies;
}

std::size_t OriginEngine::visit_unattended(Rank rank) {
  Peer& peer = peer_made(rank);
  // Acquire and release: see Visit.
  peer.was_missed.exchange(true, std::memory_order_acq_rel);
  const std::unique_lock lock(peer.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return 0;
  peer.was_missed.store(false, std::memory_order_relaxed);
  const std::size_t replies = transport_.poll_replies_unattended(rank, peer);
  drain_backlog(peer, rank);
  if (peer.is_idle()) {
    under_way_[rank / word_bits].fetch_and(~(std::uint64_t{1} << rank % word_bits), std::memory_order_relaxed);
  }
  return replies;
}

bool OriginEngine::has_room(Rank rank) const {
  const Peer* const peer = find_peer(rank);
  if (peer == nullptr) return true;
  const std::lock_guard lock(peer->mutex);
  return peer->backlog.size() < options_.backlog || peer->failed.load(std::memory_order_relaxed);
}

void OriginEngine::fail_all() {
  {
    const std::lock_guard lock(making_);
    all_have_failed_ = true;
  }
  for (Rank rank = 0; rank < peers_.size(); ++rank) {
    if (find_peer(rank) != nullptr) fail_peer(rank);
  }
}

void OriginEngine::fail_peer(Rank rank) {
  Peer& peer = peer_made(rank);
  std::unique_lock lock(peer.mutex);
  peer.failed.store(true, std::memory_order_relaxed);
  transport_.abandon(rank);
  // What is only kept back has nothing in flight; what is in flight ends with its last piece.
  const auto end = [&](Job& job) {
    job.all_posted = true;
    job.code = Code::peer_failed;
    if (job.in_flight == 0) finish_job(peer, job);
  };
  if (peer.bundle != nullptr) end(*std::exchange(peer.bundle, nullptr));
  for (; !peer.backlog.empty(); peer.backlog.pop_front()) end(*peer.backlog.front());
  for (; !peer.in_flight.empty(); peer.in_flight.pop_front()) {
    finish_piece(peer, peer.in_flight.front(), Code::peer_failed, {});
  }
  lock.unlock();
  tell_of_progress();
}

void OriginEngine::finish_piece(Peer& peer, const InFlight& piece, Code code, std::span<const std::byte> reply) {
  Job& job = *piece.job;
  if (code != Code::ok) {
    job.code = code;
  } else if (!reply.empty() && job.result != nullptr && reply.data() != job.result + piece.start) {
    std::memcpy(job.result + piece.start, reply.data(), reply.size());
  }
  --job.in_flight;
  if (job.in_flight == 0 && job.all_posted) finish_job(peer, job);
}

namespace {

bool tells_of_others(const wire::MessageHeader& header) {
  if (header.kind == wire::MessageKind::operate) return farsum::tells_of_others(header.operation, header.op);
  return header.kind != wire::MessageKind::scatter;
}

}  // namespace

void OriginEngine::finish_job(Peer& peer, Job& job) {
  if (job.code == Code::ok && job.scattered_result != nullptr) {
    unpack(job.result_layout.view(), job.bytes, job.gathered.data(), job.scattered_result);
  }
  if (peer.hearing != nullptr && tells_of_others(job.header)) peer.hearing->hear();
  Outstanding& outstanding = *job.outstanding;
  if (job.request == nullptr && job.code != Code::ok) outstanding.failure.store(job.code, std::memory_order_relaxed);
  stop_borrowing(job);
  // Release: results and failure come before the count that a flush waits for (acquire). Before the request is told, so
  // that whoever waited for it finds nothing pending.
  outstanding.count.fetch_sub(1, std::memory_order_release);
  if (job.request != nullptr) {
    job.request->code.store(job.code, std::memory_order_relaxed);
    // Release: the result is there before the request says so; pairs with the acquire load of whoever tests it.
    job.request->done.store(true, std::memory_order_release);
  }
  forget_large(job.packed);
  forget_large(job.gathered);
  forget_large(job.offsets);
  forget_large(job.target_layout);
  forget_large(job.result_layout);
  peer.idle_jobs.push_back(&job);
}

// ---- messages ----

namespace {

// A message and its reply; longer ones gain little by waiting for others.
constexpr std::uint64_t most_unhurried_bytes = 4096;
// Shorter operands are copied: a local flush need not wait for their replies then.
constexpr std::uint64_t least_lent_bytes = 32768;

}  // namespace

// The last of what is in flight, before it is: behind the post nothing may fail. It is taken back where it has not
// left.
class OriginEngine::NewPiece {
 public:
  NewPiece(std::deque<InFlight>& in_flight, const InFlight& piece) : in_flight_(in_flight) {
    in_flight_.push_back(piece);
  }
  ~NewPiece() {
    if (!has_left_) in_flight_.pop_back();
  }
  NewPiece(const NewPiece&) = delete;
  NewPiece& operator=(const NewPiece&) = delete;

  void note_left(std::uint64_t ticket) {
    in_flight_.back().ticket = ticket;
    has_left_ = true;
  }

 private:
  std::deque<InFlight>& in_flight_;
  bool has_left_ = false;
};

// Posts what there is room for; true when the whole job is on its way.
bool OriginEngine::post_pieces(Peer& peer, Rank rank, Job& job) {
  while (!job.all_posted) {
    if (!post_one(peer, rank, job)) return false;
  }
  return true;
}

bool OriginEngine::post_one(Peer& peer, Rank rank, Job& job) {
  peer.draft.head.resize(sizeof(wire::MessageHeader));
  Message message{job.header, {}, 0, job.bytes - job.posted_bytes, {}};
  message.header.sequence = peer.next_sequence;
  switch (job.header.kind) {
    case wire::MessageKind::operate:
      cutter_.make_operation(peer.draft, rank, job, message);
      break;
    case wire::MessageKind::scatter:
      cutter_.make_scatter(peer.draft, rank, job, message);
      break;
    default:
      message.body = job.packed;
      message.reply_capacity = job.reply_capacity;
      break;
  }
  std::memcpy(peer.draft.head.data(), &message.header, sizeof message.header);
  PostOptions how{.reply_capacity = message.reply_capacity,
                  .may_wait = job.may_wait,
                  .may_keep = is_coalesced(peer, rank, job, message)};
  if (job.result != nullptr) how.reply_into = {job.result + job.posted_bytes, message.reply_capacity};
  how.lends_body = job.lends_operand && message.body.size() >= least_lent_bytes;
  NewPiece piece(peer.in_flight, {0, &job, job.posted_bytes});
  const auto ticket = transport_.try_post(rank, peer.draft.head, message.body, how);
  if (!ticket) return false;
  piece.note_left(*ticket);
  // Relaxed: a statistic.
  messages_sent_.fetch_add(1, std::memory_order_relaxed);
  ++peer.next_sequence;
  ++job.in_flight;
  if (how.may_keep && job.leaves_with_end) ++peer.left_for_end;
  if ((message.header.flags & wire::flag_pull) != 0) job.is_pulled = true;
  if (how.lends_body) job.is_lent = true;
  job.posted_bytes += message.payload_bytes;
  if (message.unposted) job.unposted = message.unposted;
  job.all_posted = job.posted_bytes == job.bytes;
  return true;
}

// It had better travel with others.
bool OriginEngine::is_small(const Peer& peer, const Message& message) {
  return peer.draft.head.size() + message.body.size() <= most_unhurried_bytes &&
         message.reply_capacity <= most_unhurried_bytes;
}

// Whether nobody waits for it before a flush.
bool OriginEngine::is_unhurried(const Job& job) {
  const bool is_operation =
      job.header.kind == wire::MessageKind::operate || job.header.kind == wire::MessageKind::scatter;
  return is_operation && !job.may_wait && !job.is_full && job.request == nullptr &&
         (job.header.flags & wire::flag_notify) == 0;
}

bool OriginEngine::is_coalesced(Peer& peer, Rank rank, const Job& job, const Message& message) {
  if (is_small(peer, message)) {
    if (job.leaves_with_end) return true;
    if (is_unhurried(job) && may_coalesce(peer, rank)) return true;
  }
  peer.coalesces = false;
  peer.left_for_end = 0;
  return false;
}

}  // namespace farsum
