#include "protocol/messages.hpp"

#include <cstddef>
#include <cstring>

namespace farsum::wire {
namespace {

bool header_is_sound(const MessageHeader& header) {
  const auto kind = static_cast<std::uint8_t>(header.kind);
  if (header.wire_version != version || kind < static_cast<std::uint8_t>(MessageKind::operate) ||
      kind > static_cast<std::uint8_t>(MessageKind::lease_put))
    return false;
  if (static_cast<std::uint8_t>(header.operation) > static_cast<std::uint8_t>(OperationKind::compare_and_swap))
    return false;
  if (!ops::is_element_type(ops::index_of(header.type)) || !ops::is_operator(ops::index_of(header.op))) return false;
  if (is_atomic(header.operation) && header.operation != OperationKind::compare_and_swap &&
      !ops::legal(header.type, header.op)) {
    return false;
  }
  // Single elements ride along always: their owner does not look elsewhere.
  const bool rides_along = header.kind == MessageKind::scatter || header.operation == OperationKind::compare_and_swap;
  if (rides_along && (header.flags & (flag_pull | flag_push)) != 0) return false;
  return header.bytes % ops::size_of(header.type) == 0;
}

// Bytes of operand that must follow the header and the layout.
std::uint64_t inline_operand_bytes(const MessageHeader& header) {
  if ((header.flags & flag_pull) != 0) return 0;
  switch (header.operation) {
    case OperationKind::put:
    case OperationKind::accumulate:
      return header.bytes;
    case OperationKind::get:
      return 0;
    case OperationKind::get_accumulate:
      return ops::reads_operand(header.op) ? header.bytes : 0;
    case OperationKind::compare_and_swap:
      return 2 * header.bytes;  // expected, then desired
  }
  return 0;
}

bool decode_scatter(Message& message, std::span<const std::byte> rest) {
  const std::uint64_t size = ops::size_of(message.header.type);
  const std::uint64_t count = message.header.bytes / size;
  if (message.header.operation != OperationKind::accumulate || message.header.layout_bytes != 0) return false;
  if (count > rest.size() / (place_bytes + size) || rest.size() != count * (place_bytes + size)) return false;
  message.offsets = rest.first(count * place_bytes);
  message.operand = rest.subspan(count * place_bytes);
  return true;
}

bool decode_operate(Message& message, std::span<const std::byte> rest) {
  const MessageHeader& header = message.header;
  if (header.layout_bytes > rest.size()) return false;
  if (header.layout_bytes == 0) {
    if (header.bytes > ops::most_bytes_of_a_layout) return false;
    message.layout = ops::Layout(ops::LayoutView::contiguous(header.bytes));
    message.extent = {0, static_cast<std::int64_t>(header.bytes)};
  } else {
    auto decoded = ops::decode(rest.first(header.layout_bytes), ops::size_of(header.type));
    if (!decoded || decoded->bytes_used != header.layout_bytes || decoded->total_bytes != header.bytes) return false;
    message.layout = std::move(decoded->layout);
    message.extent = decoded->extent;
  }
  message.operand = rest.subspan(header.layout_bytes);
  if (header.operation == OperationKind::compare_and_swap && header.bytes != ops::size_of(header.type)) return false;
  return message.operand.size() == inline_operand_bytes(header);
}

// What a lease is for is the origin's business: its memory is read as by a fetch that changes nothing.
bool is_lease(const MessageHeader& header) {
  return header.operation == OperationKind::get_accumulate && header.op == ops::Operator::no_op && header.flags == 0 &&
         header.bytes != 0;
}

bool is_lease_put(const MessageHeader& header, std::span<const std::byte> rest) {
  return header.layout_bytes == 0 && (header.flags & ~flag_last) == 0 && header.bytes != 0 &&
         rest.size() == header.bytes;
}

bool is_team(const MessageHeader& header, std::span<const std::byte> rest) {
  return (header.flags & ~flag_more) == 0 && rest.size() == header.bytes;
}

}  // namespace

std::uint64_t sequence_of(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(MessageHeader)) return 0;
  std::uint64_t sequence = 0;
  std::memcpy(&sequence, bytes.data() + offsetof(MessageHeader, sequence), sizeof sequence);
  return sequence;
}

std::optional<Message> decode(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(MessageHeader)) return std::nullopt;
  Message message;
  std::memcpy(&message.header, bytes.data(), sizeof(MessageHeader));
  if (!header_is_sound(message.header)) return std::nullopt;
  const std::span<const std::byte> rest = bytes.subspan(sizeof(MessageHeader));
  switch (message.header.kind) {
    case MessageKind::operate:
      return decode_operate(message, rest) ? std::optional<Message>(std::move(message)) : std::nullopt;
    case MessageKind::scatter:
      return decode_scatter(message, rest) ? std::optional<Message>(std::move(message)) : std::nullopt;
    case MessageKind::lock:
    case MessageKind::unlock:
    case MessageKind::post:
    case MessageKind::complete:
    case MessageKind::life:
      return rest.empty() && message.header.bytes == 0 ? std::optional<Message>(std::move(message)) : std::nullopt;
    case MessageKind::lease:
      return is_lease(message.header) && decode_operate(message, rest) ? std::optional<Message>(std::move(message))
                                                                       : std::nullopt;
    case MessageKind::lease_put:
      message.operand = rest;
      return is_lease_put(message.header, rest) ? std::optional<Message>(std::move(message)) : std::nullopt;
    case MessageKind::team:
      message.operand = rest;
      return is_team(message.header, rest) ? std::optional<Message>(std::move(message)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace farsum::wire
