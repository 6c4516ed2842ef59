#include "protocol/origin/message_cutter.hpp"

#include <algorithm>
#include <cstring>

namespace farsum {
namespace {

// What a transport whose replies share the room of their requests may lose in rounding either up.
constexpr std::uint64_t rounding_bytes = 2 * cache_line_bytes;

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

bool MessageCutter::can_pull(Rank rank) const { return options_.pull && transport_.capabilities(rank).transfers; }

std::uint64_t MessageCutter::longest_body(Rank peer) const {
  return std::max<std::uint64_t>(after_header(transport_.capabilities(peer)), 1);
}

// What a message of an operation has room for.
struct MessageCutter::Room {
  std::uint64_t payload = 0;         // bytes of the operation, the layout apart
  std::uint64_t layout = 0;          // with `payload_weight` for each byte of payload
  std::uint64_t payload_weight = 0;  // how often the payload is in the room of the layout
  std::uint64_t inline_payload = 0;  // longer ones are pulled and pushed
};

MessageCutter::Room MessageCutter::room_for(Rank rank, bool has_operand, bool has_result) const {
  const Capabilities can = transport_.capabilities(rank);
  const std::uint64_t all = ~std::uint64_t{0};
  if (options_.pull && can.transfers) return {all, most_layout_bytes(can), 0, inline_limit(can, options_.inline_bytes)};
  Room room;
  room.layout = after_header(can);
  room.payload_weight = (has_operand ? 1 : 0) + (has_result && !can.separate_replies ? 1 : 0);
  room.payload = room.payload_weight == 0 ? all : room.layout / room.payload_weight;
  if (has_result) room.payload = std::min<std::uint64_t>(room.payload, can.max_reply_bytes);
  room.payload = whole_elements(room.payload);
  room.inline_payload = all;
  return room;
}

void MessageCutter::make_scatter(MessageDraft& draft, Rank rank, const OriginJob& job, OriginMessage& message) const {
  const std::uint64_t size = ops::size_of(job.header.type);
  const std::uint64_t room = after_header(transport_.capabilities(rank));
  const std::uint64_t most = std::max<std::uint64_t>(room / (size + wire::place_bytes), 1);
  const std::uint64_t first = job.posted_bytes / size;
  const std::uint64_t count = std::min(message.payload_bytes / size, most);
  const auto from = job.offsets.begin() + static_cast<std::ptrdiff_t>(first * wire::place_bytes);
  draft.head.insert(draft.head.end(), from, from + static_cast<std::ptrdiff_t>(count * wire::place_bytes));
  message.payload_bytes = message.header.bytes = count * size;
  message.body = {job.operand + job.posted_bytes, message.payload_bytes};
}

void MessageCutter::make_operation(MessageDraft& draft, Rank rank, const OriginJob& job, OriginMessage& message) const {
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
      piece = append_layout(draft, job, room, piece, message);
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
std::uint64_t MessageCutter::append_layout(MessageDraft& draft, const OriginJob& job, const Room& room,
                                           std::uint64_t most, OriginMessage& message) {
  ops::LayoutView layout = job.target_layout.view();
  std::uint64_t bytes = job.bytes;
  if (most != bytes || ops::encoded_bytes(layout) + bytes * room.payload_weight > room.layout) {
    bytes = cut_layout(draft, job, room, most, message);
    layout = ops::LayoutView::indexed(draft.pieces);
  }
  const std::size_t at = draft.head.size();
  message.header.layout_bytes = static_cast<std::uint32_t>(ops::encoded_bytes(layout));
  draft.head.resize(at + message.header.layout_bytes);
  // The layout was checked by whoever submitted it, and the room is exact.
  (void)ops::encode(layout, std::span(draft.head).subspan(at));
  return bytes;
}

// The pieces of the next at most `most` payload bytes that fit, with the payload where it has the same room. The walk
// goes on where that of the message before has ended.
std::uint64_t MessageCutter::cut_layout(MessageDraft& draft, const OriginJob& job, const Room& room, std::uint64_t most,
                                        OriginMessage& message) {
  const std::uint64_t element = ops::size_of(job.header.type);
  if (job.unposted)
    message.unposted = job.unposted;
  else
    message.unposted.emplace(job.target_layout.view(), job.bytes);
  ops::PieceCursor& cursor = *message.unposted;
  draft.pieces.clear();
  std::uint64_t bytes = 0, used = ops::encoded_header_bytes;
  while (bytes < most && used + ops::encoded_piece_bytes + element * room.payload_weight <= room.layout) {
    used += ops::encoded_piece_bytes;
    const std::uint64_t fits = room.payload_weight == 0 ? most : (room.layout - used) / room.payload_weight;
    const ops::Piece piece = cursor.next(std::min(most - bytes, fits / element * element));
    draft.pieces.push_back(piece);
    bytes += piece.bytes;
    used += piece.bytes * room.payload_weight;
  }
  return bytes;
}

}  // namespace farsum
