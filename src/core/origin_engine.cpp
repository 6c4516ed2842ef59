#include "core/origin_engine.hpp"

#include <algorithm>
#include <cstring>

#include "core/packed_sides.hpp"

namespace farsum {

// An operation from submit() until its last reply. Recycled, so that a steady stream of operations allocates nothing.
struct OriginEngine::Job {
  wire::MessageHeader header;
  ops::Layout target_layout;
  bool target_is_contiguous = true;
  const std::byte* operand = nullptr;  // packed: the user's buffer, or `packed`
  std::vector<std::byte> packed;
  std::byte* result = nullptr;  // packed: the user's buffer, or `gathered`
  std::vector<std::byte> gathered;
  ops::Layout result_layout;
  std::byte* scattered_result = nullptr;  // where `gathered` goes at the end
  std::vector<std::byte> offsets;         // scatter: packed target offsets
  std::uint64_t reply_capacity = 0;       // of a control message
  std::uint64_t bytes = 0;
  std::uint64_t posted_bytes = 0;
  std::uint32_t in_flight = 0;
  bool all_posted = false;
  Code code = Code::ok;
  Outstanding* outstanding = nullptr;
  RequestState* request = nullptr;
};

struct OriginEngine::InFlight {
  std::uint64_t ticket = 0;
  Job* job = nullptr;
  std::uint64_t start = 0;  // payload bytes before this piece
};

struct OriginEngine::Peer : ReplyHandler {
  mutable std::mutex mutex;
  std::deque<Job*> backlog;  // the front may be posted in part
  std::deque<InFlight> in_flight;
  std::vector<std::unique_ptr<Job>> jobs;
  std::vector<Job*> idle_jobs;
  std::vector<std::byte> head;  // message head under construction
  std::uint64_t next_sequence = 1;
  std::atomic<bool> failed{false};

  Job* take_job() {
    if (idle_jobs.empty()) {
      jobs.push_back(std::make_unique<Job>());
      return jobs.back().get();
    }
    Job* job = idle_jobs.back();
    idle_jobs.pop_back();
    return job;
  }

  void on_reply(Rank, std::uint64_t ticket, Code code, std::span<const std::byte> reply) override {
    const auto found = std::find_if(in_flight.begin(), in_flight.end(),
                                    [ticket](const InFlight& piece) { return piece.ticket == ticket; });
    if (found == in_flight.end()) return;  // of an operation that was failed meanwhile
    const InFlight piece = *found;
    in_flight.erase(found);
    finish_piece(*this, piece, code, reply);
  }
};

namespace {

bool carries_operand(const wire::MessageHeader& header) {
  switch (header.operation) {
    case OperationKind::put:
    case OperationKind::accumulate:
      return true;
    case OperationKind::get:
      return false;
    case OperationKind::get_accumulate:
      return ops::reads_operand(header.op);
    case OperationKind::compare_and_swap:
      return true;
  }
  return false;
}

// A recycled job keeps small buffers only.
void forget_large_buffers(std::vector<std::byte>& buffer) {
  constexpr std::size_t kept_bytes = 65536;
  if (buffer.capacity() > kept_bytes) std::vector<std::byte>().swap(buffer);
}

}  // namespace

OriginEngine::OriginEngine(Options options, Transport& transport) : options_(options), transport_(transport) {
  peers_.reserve(options_.peers);
  for (std::size_t i = 0; i < options_.peers; ++i) {
    peers_.push_back(std::make_unique<Peer>());
  }
}

OriginEngine::~OriginEngine() = default;

std::uint64_t OriginEngine::most_layout_bytes(Rank peer) const {
  return std::max<std::uint64_t>(transport_.capabilities(peer).max_message_bytes / 4, 512);
}

std::uint64_t OriginEngine::inline_limit(Rank peer) const {
  // Room for the header, for the longest layout that append_layout makes, and for a reply as long as the operand.
  const std::uint64_t most = transport_.capabilities(peer).max_message_bytes;
  const std::uint64_t others = most_layout_bytes(peer) + sizeof(wire::MessageHeader) + 2 * cache_line_bytes;
  const std::uint64_t fits = most > others ? (most - others) / 2 : 0;
  return std::max<std::uint64_t>(
      std::min(options_.inline_bytes, fits) / ops::largest_element_bytes * ops::largest_element_bytes,
      ops::largest_element_bytes);
}

bool OriginEngine::submit(Rank rank, WindowId window, const Operation& operation, Outstanding& outstanding,
                          RequestState* request) {
  Peer& peer = *peers_[rank];
  const std::lock_guard lock(peer.mutex);
  if (peer.backlog.size() >= options_.backlog) return false;
  Job* job = peer.take_job();
  job->header = wire::MessageHeader{};
  job->header.operation = operation.kind;
  job->header.type = operation.type;
  job->header.op = operation.op;
  job->header.window = window;
  job->header.offset = operation.offset;
  if (operation.notify) job->header.flags = wire::flag_notify;
  job->header.notify_slot = operation.notify_slot;
  if (operation.alpha != nullptr) std::memcpy(job->header.alpha, operation.alpha, ops::size_of(operation.type));
  job->bytes = operation.bytes;
  job->target_is_contiguous = is_contiguous(operation.target_layout);
  if (!job->target_is_contiguous) job->target_layout = ops::Layout(operation.target_layout);

  job->operand = operation.operand;
  if (operation.kind == OperationKind::compare_and_swap) {
    job->packed.assign(operation.compare, operation.compare + operation.bytes);
    job->packed.insert(job->packed.end(), operation.operand, operation.operand + operation.bytes);
    job->operand = job->packed.data();
  } else if (carries_operand(job->header) && !is_contiguous(operation.operand_layout)) {
    job->packed.resize(operation.bytes);
    pack(operation.operand_layout, operation.operand, job->packed.data());
    job->operand = job->packed.data();
  }
  job->result = operation.result;
  job->scattered_result = nullptr;
  if (returns_data(operation.kind) && !is_contiguous(operation.result_layout)) {
    job->gathered.resize(operation.bytes);
    job->result_layout = ops::Layout(operation.result_layout);
    job->scattered_result = operation.result;
    job->result = job->gathered.data();
  }
  return enqueue(peer, rank, job, outstanding, request);
}

bool OriginEngine::submit_scatter(Rank rank, WindowId window, ops::ElementType type, ops::Operator op,
                                  const void* alpha, std::span<const std::uint64_t> offsets,
                                  std::span<const std::byte> elements, Outstanding& outstanding) {
  Peer& peer = *peers_[rank];
  const std::lock_guard lock(peer.mutex);
  if (peer.backlog.size() >= options_.backlog) return false;
  Job* job = peer.take_job();
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
  job->result = nullptr;
  job->scattered_result = nullptr;
  job->bytes = elements.size();
  return enqueue(peer, rank, job, outstanding, nullptr);
}

bool OriginEngine::submit_control(Rank rank, const wire::MessageHeader& header, std::span<const std::byte> body,
                                  Outstanding& outstanding, RequestState* request, std::span<std::byte> reply) {
  Peer& peer = *peers_[rank];
  const std::lock_guard lock(peer.mutex);
  if (peer.backlog.size() >= options_.backlog) return false;
  Job* job = peer.take_job();
  job->header = header;
  job->packed.assign(body.begin(), body.end());
  job->operand = job->packed.data();
  job->result = reply.data();
  job->reply_capacity = reply.size();
  job->scattered_result = nullptr;
  job->bytes = 0;
  return enqueue(peer, rank, job, outstanding, request);
}

bool OriginEngine::enqueue(Peer& peer, Rank rank, Job* job, Outstanding& outstanding, RequestState* request) {
  job->posted_bytes = 0;
  job->in_flight = 0;
  job->all_posted = false;
  job->code = Code::ok;
  job->outstanding = &outstanding;
  job->request = request;
  // Relaxed: the thread that counts it down learns of it through the peer's mutex.
  outstanding.count.fetch_add(1, std::memory_order_relaxed);
  if (peer.failed.load(std::memory_order_relaxed)) {
    job->code = Code::peer_failed;
    job->all_posted = true;
    finish_job(peer, *job);
    return true;
  }
  const bool had_backlog = !peer.backlog.empty();
  if (!had_backlog && post_pieces(peer, rank, *job)) return true;
  peer.backlog.push_back(job);
  if (!had_backlog) transport_.hand_over();
  return true;
}

// Posts what there is room for; true when the whole job is on its way.
bool OriginEngine::post_pieces(Peer& peer, Rank rank, Job& job) {
  while (!job.all_posted) {
    if (!post_one(peer, rank, job)) return false;
  }
  return true;
}

// Names a posted message as a part of its job, from `start` on; the job ends with the last.
void OriginEngine::note_posted(Peer& peer, Job& job, std::uint64_t ticket, std::uint64_t start) {
  // Relaxed: a statistic.
  messages_sent_.fetch_add(1, std::memory_order_relaxed);
  ++peer.next_sequence;
  peer.in_flight.push_back({ticket, &job, start});
  ++job.in_flight;
}

bool OriginEngine::post_control(Peer& peer, Rank rank, Job& job) {
  job.header.sequence = peer.next_sequence;
  peer.head.resize(sizeof job.header);
  std::memcpy(peer.head.data(), &job.header, sizeof job.header);
  const auto ticket = transport_.try_post(rank, peer.head, job.packed, job.reply_capacity);
  if (!ticket) return false;
  note_posted(peer, job, *ticket, 0);
  job.all_posted = true;
  return true;
}

bool OriginEngine::post_one(Peer& peer, Rank rank, Job& job) {
  if (job.header.kind != wire::MessageKind::operate && job.header.kind != wire::MessageKind::scatter) {
    return post_control(peer, rank, job);
  }
  wire::MessageHeader header = job.header;
  header.sequence = peer.next_sequence;
  const std::uint64_t left = job.bytes - job.posted_bytes;
  const std::uint64_t limit = inline_limit(rank);
  const bool has_operand = header.kind == wire::MessageKind::operate && carries_operand(header);
  const bool has_result = header.kind == wire::MessageKind::operate && returns_data(header.operation);
  const bool can_transfer = options_.pull && transport_.capabilities(rank).transfers;
  std::uint64_t piece = left;
  std::span<const std::byte> body;
  peer.head.resize(sizeof header);

  if (header.kind == wire::MessageKind::scatter) {
    const std::uint64_t size = ops::size_of(header.type);
    const std::uint64_t most =
        std::max<std::uint64_t>(transport_.capabilities(rank).max_message_bytes / (size + 8) / 2, 1);
    const std::uint64_t first = job.posted_bytes / size;
    const std::uint64_t count = std::min(left / size, most);
    piece = count * size;
    const auto from = job.offsets.begin() + static_cast<std::ptrdiff_t>(first * 8);
    peer.head.insert(peer.head.end(), from, from + static_cast<std::ptrdiff_t>(count * 8));
    body = {job.operand + job.posted_bytes, piece};
  } else if (header.operation == OperationKind::compare_and_swap) {
    body = {job.operand, 2 * job.bytes};
  } else if (header.kind == wire::MessageKind::operate) {
    const bool long_one = left > limit && (has_operand || has_result);
    if (long_one && !can_transfer) piece = limit;
    if (job.target_is_contiguous) {
      header.offset += job.posted_bytes;
    } else {
      piece = append_layout(peer, rank, job, piece, header);
    }
    if (has_operand && piece > limit) {
      header.flags |= wire::flag_pull;
      header.operand_address = reinterpret_cast<std::uintptr_t>(job.operand) + job.posted_bytes;
    } else if (has_operand) {
      body = {job.operand + job.posted_bytes, piece};
    }
    if (has_result && piece > limit) {
      header.flags |= wire::flag_push;
      header.result_address = reinterpret_cast<std::uintptr_t>(job.result) + job.posted_bytes;
    }
  }
  header.bytes = piece;
  // Only the last piece tells the target that all is there; pieces are served in order.
  if (piece != left) header.flags &= static_cast<std::uint8_t>(~wire::flag_notify);
  std::memcpy(peer.head.data(), &header, sizeof header);
  const bool replies_inline = has_result && (header.flags & wire::flag_push) == 0;

  const auto ticket = transport_.try_post(rank, peer.head, body, replies_inline ? piece : 0);
  if (!ticket) return false;
  note_posted(peer, job, *ticket, job.posted_bytes);
  job.posted_bytes += piece;
  job.all_posted = job.posted_bytes == job.bytes;
  return true;
}

// Adds the target layout of the next at most `most` payload bytes to the message head; returns how many bytes it names.
std::uint64_t OriginEngine::append_layout(Peer& peer, Rank rank, Job& job, std::uint64_t most,
                                          wire::MessageHeader& header) {
  const std::uint64_t room = most_layout_bytes(rank);
  ops::LayoutView layout = job.target_layout.view();
  std::vector<ops::Piece> pieces;
  std::uint64_t bytes = most;
  if (job.posted_bytes != 0 || most != job.bytes || ops::encoded_bytes(layout) > room) {
    const std::size_t most_pieces = room / 16 - 1;
    ops::PieceCursor cursor(layout);
    cursor.seek(job.posted_bytes);
    bytes = 0;
    while (bytes < most && pieces.size() < most_pieces) {
      const ops::Piece piece = cursor.next(most - bytes);
      pieces.push_back(piece);
      bytes += piece.bytes;
    }
    layout = ops::LayoutView::indexed(pieces);
  }
  const std::size_t at = peer.head.size();
  header.layout_bytes = static_cast<std::uint32_t>(ops::encoded_bytes(layout));
  peer.head.resize(at + header.layout_bytes);
  // The layout was checked by whoever submitted it, and the room is exact.
  (void)ops::encode(layout, std::span(peer.head).subspan(at));
  return bytes;
}

void OriginEngine::drain_backlog(Peer& peer, Rank rank) {
  while (!peer.backlog.empty() && post_pieces(peer, rank, *peer.backlog.front())) {
    peer.backlog.pop_front();
  }
}

std::size_t OriginEngine::progress(Rank rank) {
  Peer& peer = *peers_[rank];
  const std::lock_guard lock(peer.mutex);
  const std::size_t replies = transport_.poll_replies(rank, peer);
  drain_backlog(peer, rank);
  return replies;
}

bool OriginEngine::has_room(Rank rank) const {
  const Peer& peer = *peers_[rank];
  const std::lock_guard lock(peer.mutex);
  return peer.backlog.size() < options_.backlog || peer.failed.load(std::memory_order_relaxed);
}

void OriginEngine::fail_all() {
  for (Rank rank = 0; rank < peers_.size(); ++rank) fail_peer(rank);
}

void OriginEngine::fail_peer(Rank rank) {
  Peer& peer = *peers_[rank];
  const std::lock_guard lock(peer.mutex);
  peer.failed.store(true, std::memory_order_relaxed);
  // What is only in the backlog has nothing in flight; what is in flight ends with its last piece.
  std::deque<Job*> backlog = std::move(peer.backlog);
  std::deque<InFlight> in_flight = std::move(peer.in_flight);
  peer.backlog.clear();
  peer.in_flight.clear();
  for (Job* job : backlog) {
    job->all_posted = true;
    job->code = Code::peer_failed;
    if (job->in_flight == 0) finish_job(peer, *job);
  }
  for (const InFlight& piece : in_flight) {
    finish_piece(peer, piece, Code::peer_failed, {});
  }
}

void OriginEngine::finish_piece(Peer& peer, const InFlight& piece, Code code, std::span<const std::byte> reply) {
  Job& job = *piece.job;
  if (code != Code::ok) {
    job.code = code;
  } else if (!reply.empty() && job.result != nullptr) {
    std::memcpy(job.result + piece.start, reply.data(), reply.size());
  }
  --job.in_flight;
  if (job.in_flight == 0 && job.all_posted) finish_job(peer, job);
}

void OriginEngine::finish_job(Peer& peer, Job& job) {
  if (job.code == Code::ok && job.scattered_result != nullptr) {
    unpack(job.result_layout.view(), job.gathered.data(), job.scattered_result);
  }
  Outstanding& outstanding = *job.outstanding;
  if (job.request == nullptr && job.code != Code::ok) outstanding.failure.store(job.code, std::memory_order_relaxed);
  // Release: results and failure come before the count that a flush waits for (acquire). Before the request is told, so
  // that whoever waited for it finds nothing pending.
  outstanding.count.fetch_sub(1, std::memory_order_release);
  if (job.request != nullptr) {
    job.request->code.store(job.code, std::memory_order_relaxed);
    // Release: the result is there before the request says so; pairs with the acquire load of whoever tests it.
    job.request->done.store(true, std::memory_order_release);
  }
  forget_large_buffers(job.packed);
  forget_large_buffers(job.gathered);
  peer.idle_jobs.push_back(&job);
}

}  // namespace farsum
