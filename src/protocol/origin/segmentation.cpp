// How OriginEngine cuts operations into messages: by the room for a message and for its reply, each where it is needed.
#include <algorithm>
#include <cstring>

#include "protocol/origin/in_flight.hpp"

namespace farsum {
namespace {

// What a transport whose replies share the room of their requests may lose in rounding either up.
constexpr std::uint64_t rounding_bytes = 2 * cache_line_bytes;
// A message and its reply; longer ones gain little by waiting for others.
constexpr std::uint64_t most_unhurried_bytes = 4096;
// Shorter operands are copied: a local flush need not wait for their replies then.
constexpr std::uint64_t least_lent_bytes = 32768;

std::uint64_t whole_elements(std::uint64_t bytes) {
  constexpr std::uint64_t largest = ops::largest_element_bytes;
  return std::max(bytes / largest * largest, largest);
}

std::uint64_t after_header(const Capabilities& can) {
  const std::uint64_t taken = sizeof(wire::MessageHeader) + (can.separate_replies ? 0 : rounding_bytes);
  return can.max_message_bytes > taken ? can.max_message_bytes - taken : 0;
}

// The most that a layout takes of a message whose operand may be left to the owner to pull.
std::uint64_t most_layout_bytes(const Capabilities& can) {
  return std::max<std::uint64_t>(can.max_message_bytes / 4, 512);
}

// Longer operands are pulled, and longer results pushed, by the owner: there is room for the longest layout, and for a
// reply as long as the operand.
std::uint64_t inline_limit(const Capabilities& can, std::uint64_t inline_bytes) {
  const std::uint64_t room = after_header(can), layout = most_layout_bytes(can);
  return whole_elements(std::min(inline_bytes, room > layout ? (room - layout) / 2 : 0));
}

}  // namespace

bool OriginEngine::can_pull(const Capabilities& can) const { return options_.pull && can.transfers; }

std::uint64_t OriginEngine::longest_body(Rank peer) const {
  return std::max<std::uint64_t>(after_header(transport_.capabilities(peer)), 1);
}

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

// What a message of an operation has room for.
struct OriginEngine::Room {
  std::uint64_t payload = 0;         // bytes of the operation, the layout apart
  std::uint64_t layout = 0;          // with `payload_weight` for each byte of payload
  std::uint64_t payload_weight = 0;  // how often the payload is in the room of the layout
  std::uint64_t inline_payload = 0;  // longer ones are pulled and pushed
};

OriginEngine::Room OriginEngine::room_for(Rank rank, bool has_operand, bool has_result) const {
  const Capabilities can = transport_.capabilities(rank);
  const std::uint64_t all = ~std::uint64_t{0};
  if (can_pull(can)) return {all, most_layout_bytes(can), 0, inline_limit(can, options_.inline_bytes)};
  Room room;
  room.layout = after_header(can);
  room.payload_weight = (has_operand ? 1 : 0) + (has_result && !can.separate_replies ? 1 : 0);
  room.payload = room.payload_weight == 0 ? all : room.layout / room.payload_weight;
  if (has_result) room.payload = std::min<std::uint64_t>(room.payload, can.max_reply_bytes);
  room.payload = whole_elements(room.payload);
  room.inline_payload = all;
  return room;
}

// Posts what there is room for; true when the whole job is on its way.
bool OriginEngine::post_pieces(Peer& peer, Rank rank, Job& job) {
  while (!job.all_posted) {
    if (!post_one(peer, rank, job)) return false;
  }
  return true;
}

bool OriginEngine::post_one(Peer& peer, Rank rank, Job& job) {
  peer.head.resize(sizeof(wire::MessageHeader));
  Message message{job.header, {}, 0, job.bytes - job.posted_bytes, {}};
  message.header.sequence = peer.next_sequence;
  switch (job.header.kind) {
    case wire::MessageKind::operate:
      make_operation(peer, rank, job, message);
      break;
    case wire::MessageKind::scatter:
      make_scatter(peer, rank, job, message);
      break;
    default:
      message.body = job.packed;
      message.reply_capacity = job.reply_capacity;
      break;
  }
  std::memcpy(peer.head.data(), &message.header, sizeof message.header);
  PostOptions how{.reply_capacity = message.reply_capacity,
                  .may_wait = job.may_wait,
                  .may_keep = is_coalesced(peer, rank, job, message)};
  if (job.result != nullptr) how.reply_into = {job.result + job.posted_bytes, message.reply_capacity};
  how.lends_body = job.lends_operand && message.body.size() >= least_lent_bytes;
  NewPiece piece(peer.in_flight, {0, &job, job.posted_bytes});
  const auto ticket = transport_.try_post(rank, peer.head, message.body, how);
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
  return peer.head.size() + message.body.size() <= most_unhurried_bytes &&
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

void OriginEngine::make_scatter(Peer& peer, Rank rank, Job& job, Message& message) {
  const std::uint64_t size = ops::size_of(job.header.type);
  const std::uint64_t room = after_header(transport_.capabilities(rank));
  const std::uint64_t most = std::max<std::uint64_t>(room / (size + wire::place_bytes), 1);
  const std::uint64_t first = job.posted_bytes / size;
  const std::uint64_t count = std::min(message.payload_bytes / size, most);
  const auto from = job.offsets.begin() + static_cast<std::ptrdiff_t>(first * wire::place_bytes);
  peer.head.insert(peer.head.end(), from, from + static_cast<std::ptrdiff_t>(count * wire::place_bytes));
  message.payload_bytes = message.header.bytes = count * size;
  message.body = {job.operand + job.posted_bytes, message.payload_bytes};
}

void OriginEngine::make_operation(Peer& peer, Rank rank, Job& job, Message& message) {
  wire::MessageHeader& header = message.header;
  const std::uint64_t left = message.payload_bytes;
  const bool has_operand = carries_operand(header), has_result = returns_data(header.operation);
  const Room room = room_for(rank, has_operand, has_result);
  std::uint64_t& piece = message.payload_bytes;
  if (header.operation == OperationKind::compare_and_swap) {
    message.body = {job.operand, 2 * job.bytes};
  } else {
    piece = std::min(left, room.payload);
    if (job.target_is_contiguous) {
      header.offset += job.posted_bytes;
    } else {
      piece = append_layout(peer, job, room, piece, message);
    }
    const bool is_long = piece > room.inline_payload;
    if (has_operand && is_long) {
      header.flags |= wire::flag_pull;
      header.operand_address = reinterpret_cast<std::uintptr_t>(job.operand) + job.posted_bytes;
    } else if (has_operand) {
      message.body = {job.operand + job.posted_bytes, piece};
    }
    if (has_result && is_long) {
      header.flags |= wire::flag_push;
      header.result_address = reinterpret_cast<std::uintptr_t>(job.result) + job.posted_bytes;
    }
  }
  header.bytes = piece;
  // Only the last piece tells the target that all is there; pieces are served in order.
  if (piece != left) header.flags &= static_cast<std::uint8_t>(~wire::flag_notify);
  if (has_result && (header.flags & wire::flag_push) == 0) message.reply_capacity = piece;
}

// Adds the target layout of the next at most `most` payload bytes to the message head; returns how many bytes it names.
std::uint64_t OriginEngine::append_layout(Peer& peer, const Job& job, const Room& room, std::uint64_t most,
                                          Message& message) {
  ops::LayoutView layout = job.target_layout.view();
  std::uint64_t bytes = job.bytes;
  if (most != bytes || ops::encoded_bytes(layout) + bytes * room.payload_weight > room.layout) {
    bytes = cut_layout(peer, job, room, most, message);
    layout = ops::LayoutView::indexed(peer.pieces);
  }
  const std::size_t at = peer.head.size();
  message.header.layout_bytes = static_cast<std::uint32_t>(ops::encoded_bytes(layout));
  peer.head.resize(at + message.header.layout_bytes);
  // The layout was checked by whoever submitted it, and the room is exact.
  (void)ops::encode(layout, std::span(peer.head).subspan(at));
  return bytes;
}

// The pieces of the next at most `most` payload bytes that fit, with the payload where it has the same room. The walk
// goes on where that of the message before has ended.
std::uint64_t OriginEngine::cut_layout(Peer& peer, const Job& job, const Room& room, std::uint64_t most,
                                       Message& message) {
  const std::uint64_t element = ops::size_of(job.header.type);
  if (job.unposted)
    message.unposted = job.unposted;
  else
    message.unposted.emplace(job.target_layout.view(), job.bytes);
  ops::PieceCursor& cursor = *message.unposted;
  peer.pieces.clear();
  std::uint64_t bytes = 0, used = ops::encoded_header_bytes;
  while (bytes < most && used + ops::encoded_piece_bytes + element * room.payload_weight <= room.layout) {
    used += ops::encoded_piece_bytes;
    const std::uint64_t fits = room.payload_weight == 0 ? most : (room.layout - used) / room.payload_weight;
    const ops::Piece piece = cursor.next(std::min(most - bytes, fits / element * element));
    peer.pieces.push_back(piece);
    bytes += piece.bytes;
    used += piece.bytes * room.payload_weight;
  }
  return bytes;
}

}  // namespace farsum
