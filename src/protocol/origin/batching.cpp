// What OriginEngine keeps back: small operations that nobody waits for leave together with what comes next, and updates
// of single elements become one message. Whatever is kept leaves when that message is full, with the next operation
// that may not be kept, when a thread asks for progress, and when send_coalesced() finds it for the second time.
//
// A lock, and what little comes right behind it, is left for the end of its epoch: until then nobody waits for it, and
// send_coalesced() takes no notice.
//
// Nothing else is kept of a lone operation. One is not alone while another is unanswered, or while such have come so
// fast one behind the other that send_coalesced() is being called for them.
#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "protocol/origin/in_flight.hpp"
#include "protocol/packed_sides.hpp"

namespace farsum {
namespace {

constexpr std::size_t bundle_bytes = 8192;  // offsets and elements
// A bundle grows by such a length for each message under way, to so many of them at most: the owner begins early, and
// is woken seldom in a long stream.
constexpr std::size_t longest_bundle = 3;
// A longer update is as well off in a message of its own.
constexpr std::uint64_t most_joined_bytes = 32;
// Calls of send_coalesced() that are asked for when something is kept: so many come after the last.
constexpr unsigned visits_after_the_last = 4;

// Makes room for so many bytes more behind the first `used`; the buffer's size is no matter before the bundle is
// closed.
void make_room(std::vector<std::byte>& buffer, std::uint64_t used, std::uint64_t bytes) {
  constexpr std::uint64_t least = 8 * most_joined_bytes;  // offsets of elements of one byte
  const std::uint64_t needed = used + bytes;
  if (buffer.size() < needed) buffer.resize(std::max({least, 2 * buffer.size(), needed}));
}

}  // namespace

bool OriginEngine::may_coalesce(Peer& peer, Rank rank) { return peer.coalesces || begin_coalescing(peer, rank); }

bool OriginEngine::begin_coalescing(Peer& peer, Rank rank) {
  if (peer.never_coalesces || !options_.on_coalescing) return false;
  if (const Capabilities can = transport_.capabilities(rank); !can.keeps) {
    peer.never_coalesces = can.max_message_bytes != 0;
    return false;
  }
  if (!is_coalescing()) {
    // What was answered meanwhile is no company.
    if (peer.has_company() && transport_.poll_replies_unattended(rank, peer) != 0) peer.has_progressed = true;
    if (!peer.has_company()) return false;
  }
  peer.coalesces = true;
  peer.was_coalescing_before = false;
  // seq_cst, as in send_coalesced(): either this finds visits due, or the last visit comes after this bit was set.
  std::atomic<std::uint64_t>& word = coalescing_[rank / word_bits];
  const std::uint64_t bit = std::uint64_t{1} << rank % word_bits;
  if ((word.load(std::memory_order_seq_cst) & bit) == 0) word.fetch_or(bit, std::memory_order_seq_cst);
  if (visits_due_.load(std::memory_order_seq_cst) != visits_after_the_last &&
      visits_due_.exchange(visits_after_the_last, std::memory_order_seq_cst) == 0)
    options_.on_coalescing();
  return true;
}

// Adds an update to what leaves as one message; false where it has to be one of its own.
bool OriginEngine::join(Peer& peer, Rank rank, WindowId window, const Update& update, Outstanding& outstanding) {
  if (outstanding.goes_alone || update.bytes > most_joined_bytes) return false;
  if (!peer.backlog.empty() || peer.failed.load(std::memory_order_relaxed) || !may_coalesce(peer, rank)) return false;
  const std::uint64_t size = ops::size_of(update.type);
  if (peer.bundle != nullptr) {
    const Job& bundle = *peer.bundle;
    const bool is_alike = bundle.outstanding == &outstanding && bundle.header.window == window &&
                          bundle.header.type == update.type && bundle.header.op == update.op &&
                          (update.alpha == nullptr || std::memcmp(bundle.header.alpha, update.alpha, size) == 0);
    if (!is_alike) {
      close_bundle(peer, rank);
      if (!may_coalesce(peer, rank) || !peer.backlog.empty()) return false;
    }
  }
  if (peer.bundle == nullptr) open_bundle(peer, window, update, outstanding);
  Job& bundle = *peer.bundle;
  // Both before either is written: where there is no memory nothing was added.
  const std::uint64_t offset_bytes = update.bytes / size * wire::place_bytes;
  make_room(bundle.packed, bundle.bytes, update.bytes);
  make_room(bundle.offsets, bundle.offset_bytes, offset_bytes);
  std::memcpy(bundle.packed.data() + bundle.bytes, update.operand, update.bytes);
  bundle.bytes += update.bytes;
  for (std::uint64_t at = 0; at < update.bytes; at += size) {
    const std::uint64_t offset = update.offset + at;
    std::memcpy(bundle.offsets.data() + bundle.offset_bytes, &offset, sizeof offset);
    bundle.offset_bytes += sizeof offset;
  }
  const std::size_t under_way = peer.has_company() ? peer.in_flight.size() - peer.left_for_end : 1;
  const std::size_t most_bytes = bundle_bytes * std::min(under_way, longest_bundle);
  if (bundle.bytes + bundle.offset_bytes + most_joined_bytes * 9 > most_bytes) {
    bundle.is_full = true;
    try {
      close_bundle(peer, rank);
    } catch (const std::bad_alloc&) {
      peer.coalesces = true;  // the update has joined: it leaves with the rest when there is memory
    }
  }
  return true;
}

void OriginEngine::open_bundle(Peer& peer, WindowId window, const Update& update, Outstanding& outstanding) {
  Job& bundle = *peer.take_job();
  bundle.header = wire::MessageHeader{};
  bundle.header.kind = wire::MessageKind::scatter;
  bundle.header.operation = OperationKind::accumulate;
  bundle.header.type = update.type;
  bundle.header.op = update.op;
  bundle.header.window = window;
  if (update.alpha != nullptr) std::memcpy(bundle.header.alpha, update.alpha, ops::size_of(update.type));
  bundle.outstanding = &outstanding;
  bundle.request = nullptr;
  // Relaxed: see enqueue().
  outstanding.count.fetch_add(1, std::memory_order_relaxed);
  peer.bundle = &bundle;
}

// What comes next to that peer comes after it. Where there is no memory it stays open, for the next to try.
void OriginEngine::close_bundle(Peer& peer, Rank rank) {
  if (peer.bundle == nullptr) return;
  Job& bundle = *peer.bundle;
  bundle.packed.resize(bundle.bytes);
  bundle.offsets.resize(bundle.offset_bytes);
  bundle.operand = bundle.packed.data();
  if (!post_pieces(peer, rank, bundle)) peer.backlog.push_back(&bundle);
  peer.bundle = nullptr;
  note_under_way(rank);
}

void OriginEngine::send_coalesced() {
  // seq_cst: see begin_coalescing().
  const unsigned due = visits_due_.load(std::memory_order_seq_cst);
  if (due == 0) return;
  const bool is_last = visits_due_.fetch_sub(1, std::memory_order_seq_cst) == 1;
  bool all = true;
  for (std::size_t which = 0; which < coalescing_.size(); ++which) {
    std::uint64_t word = coalescing_[which].load(std::memory_order_seq_cst);
    for (; word != 0; word &= word - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(word));
      all &= visit_coalesced(static_cast<Rank>(which * word_bits + bit), is_last);
    }
  }
  unsigned none = 0;
  if (is_last && !all) visits_due_.compare_exchange_strong(none, 1, std::memory_order_seq_cst);
}

// Whether nothing can have been left behind.
bool OriginEngine::visit_coalesced(Rank rank, bool is_last) {
  Peer& peer = peer_made(rank);
  std::unique_lock lock(peer.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  if (peer.coalesces && (is_last || peer.was_coalescing_before)) go_on(peer, rank);
  peer.was_coalescing_before = peer.coalesces;
  if (!peer.coalesces)
    coalescing_[rank / word_bits].fetch_and(~(std::uint64_t{1} << rank % word_bits), std::memory_order_seq_cst);
  const bool has_progressed = std::exchange(peer.has_progressed, false);
  const bool has_backlog = !peer.backlog.empty();
  lock.unlock();
  if (has_progressed) tell_of_progress();
  if (has_backlog) transport_.hand_over();
  return true;
}

}  // namespace farsum
