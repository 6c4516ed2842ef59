#include "variants/leases/leased_update.hpp"

#include <algorithm>
#include <cstring>

#include "ops/atomics.hpp"
#include "protocol/messages.hpp"
#include "protocol/packed_sides.hpp"

namespace farsum {
namespace {

// Puts of one piece before the owner computes what is still pending.
constexpr unsigned most_puts = 2;

std::uint64_t room_of_message(const Capabilities& can) {
  const std::uint64_t room = can.max_message_bytes - sizeof(wire::MessageHeader);
  return can.separate_replies ? room : room / 2;
}

// A piece is fetched in a reply and put in a message, and all of it may be refused in a reply with a bit for each
// element.
std::uint64_t longest_piece(const Capabilities& can, std::uint64_t element_bytes) {
  const std::uint64_t replies = can.separate_replies ? can.max_reply_bytes : room_of_message(can);
  const std::uint64_t overhead =
      wire::lease_word_bytes + sizeof(std::uint64_t);  // the bits' last word may be used in part
  const std::uint64_t refused = (replies - overhead) * 8 / (8 * element_bytes + 1);
  return std::max<std::uint64_t>(std::min(refused, room_of_message(can) / element_bytes), 1) * element_bytes;
}

}  // namespace

LeasedUpdate::LeasedUpdate(const Way& way, const Operation& operation, Outstanding& outstanding)
    : way_(way),
      operation_(operation),
      outstanding_(outstanding),
      cursor_(operation.target_layout, operation.bytes),
      piece_bytes_(longest_piece(way.room, ops::size_of(operation.type))),
      most_layout_pieces_(std::max<std::uint64_t>(
          (room_of_message(way.room) - ops::encoded_header_bytes) / ops::encoded_piece_bytes, 1)),
      slots_(std::min<std::uint64_t>((operation.bytes + piece_bytes_ - 1) / piece_bytes_, most_pieces)) {
  const bool swaps = operation.kind == OperationKind::compare_and_swap;
  reduction_ = swaps ? Reduction{operation.type, ops::Operator::replace}
                     : make_reduction(*way.kernels, operation.type, operation.op, operation.alpha, piece_bytes_);
}

bool LeasedUpdate::advance() {
  bool is_finished = true;
  for (Slot& slot : slots_) {
    while (go_on(slot)) {
    }
    is_finished = is_finished && slot.state == State::free;
  }
  return is_finished;
}

// One step of one piece; false where that has to wait, or nothing is left.
bool LeasedUpdate::go_on(Slot& slot) {
  // Acquire pairs with the release in OriginEngine::finish_job.
  const auto is_answered = [&] { return slot.request.done.load(std::memory_order_acquire); };
  switch (slot.state) {
    case State::free:
      if (begun_ == operation_.bytes || code_ != Code::ok) return false;
      take_piece(slot);
      return true;
    case State::to_ask:
      return ask(slot);
    case State::to_put:
      return put(slot);
    case State::to_owner:
      return have_owner_compute(slot);
    case State::asked:
      if (!is_answered()) return false;
      on_contents(slot);
      return true;
    case State::put:
      if (!is_answered()) return false;
      on_put(slot);
      return true;
    case State::at_owner:
      if (!is_answered()) return false;
      on_computed_by_owner(slot);
      return true;
  }
  return false;
}

void LeasedUpdate::take_piece(Slot& slot) {
  slot.start = begun_;
  slot.bytes = 0;
  slot.pieces.clear();
  const std::uint64_t most = std::min(piece_bytes_, operation_.bytes - begun_);
  while (slot.bytes < most && slot.pieces.size() < most_layout_pieces_) {
    const ops::Piece piece = cursor_.next(most - slot.bytes);
    slot.pieces.push_back(piece);
    slot.bytes += piece.bytes;
  }
  begun_ += slot.bytes;
  slot.pending = PendingElements(slot.bytes / size());
  slot.puts = 0;
  slot.reply.resize(wire::lease_word_bytes + PendingElements::bytes_for(slot.pending.size()) + slot.bytes);
  slot.state = State::to_ask;
}

bool LeasedUpdate::send(Slot& slot, const wire::MessageHeader& header, std::span<const std::byte> body,
                        std::uint64_t reply_bytes) {
  // Relaxed: nobody looks before the message is sent.
  slot.request.done.store(false, std::memory_order_relaxed);
  return way_.engine->submit_control(way_.owner, header, body, outstanding_, &slot.request,
                                     std::span(slot.reply).first(reply_bytes));
}

bool LeasedUpdate::ask(Slot& slot) {
  wire::MessageHeader header;
  header.kind = wire::MessageKind::lease;
  header.operation = OperationKind::get_accumulate;
  header.op = ops::Operator::no_op;
  header.type = operation_.type;
  header.window = way_.window;
  header.offset = operation_.offset;
  header.bytes = slot.bytes;
  std::vector<std::byte> layout;
  if (slot.pieces.size() == 1) {
    header.offset += static_cast<std::uint64_t>(slot.pieces.front().offset);
  } else {
    const ops::LayoutView view = ops::LayoutView::indexed(slot.pieces);
    layout.resize(ops::encoded_bytes(view));
    // The layout was checked by whoever began the operation, and the room is exact.
    (void)ops::encode(view, layout);
    header.layout_bytes = static_cast<std::uint32_t>(layout.size());
  }
  if (!send(slot, header, layout, wire::lease_word_bytes + slot.bytes)) return false;
  slot.state = State::asked;
  return true;
}

bool LeasedUpdate::put(Slot& slot) {
  wire::MessageHeader header;
  header.kind = wire::MessageKind::lease_put;
  header.type = operation_.type;
  header.window = way_.window;
  header.offset = slot.lease;
  header.bytes = pending_bytes(slot);
  const bool is_last = slot.puts + 1 == most_puts;
  if (is_last) header.flags = wire::flag_last;
  const std::uint64_t bits = PendingElements::bytes_for(slot.pending.size());
  // The body is copied before the reply comes to the same place.
  const std::span<const std::byte> body = std::span(slot.reply).subspan(slot.contents_at, header.bytes);
  // So that an empty reply says that nothing was refused.
  std::memset(slot.reply.data(), 0, wire::lease_word_bytes);
  if (!send(slot, header, body, wire::lease_word_bytes + bits + (is_last ? 0 : header.bytes))) return false;
  ++slot.puts;
  slot.state = State::put;
  return true;
}

// Under a lease that has just been granted everything is pending.
void LeasedUpdate::on_contents(Slot& slot) {
  const Code code = slot.request.code.load(std::memory_order_relaxed);
  if (code == Code::pending) {
    slot.state = State::to_owner;
  } else if (code != Code::ok) {
    fail(slot, code);
  } else {
    std::memcpy(&slot.lease, slot.reply.data(), wire::lease_word_bytes);
    compute(slot, wire::lease_word_bytes);
    slot.state = State::to_put;
  }
}

void LeasedUpdate::on_put(Slot& slot) {
  const Code code = slot.request.code.load(std::memory_order_relaxed);
  if (code == Code::pending) {
    // Revoked. Once more where nothing is known of the memory, which others cannot have kept changing.
    slot.state = slot.puts < most_puts ? State::to_ask : State::to_owner;
    return;
  }
  if (code != Code::ok) return fail(slot, code);
  std::uint64_t refused = 0;
  std::memcpy(&refused, slot.reply.data(), wire::lease_word_bytes);
  if (refused == 0) {
    slot.state = State::free;
    return;
  }
  const std::uint64_t bits = PendingElements::bytes_for(slot.pending.size());
  const PendingElements pending(slot.pending.size(), std::span(slot.reply).subspan(wire::lease_word_bytes, bits));
  if (pending.count() != refused || refused > slot.pending.count()) return fail(slot, Code::system);
  slot.pending = pending;
  if (slot.puts < most_puts) {
    compute(slot, wire::lease_word_bytes + bits);
    slot.state = State::to_put;
  } else {
    slot.state = State::to_owner;
  }
}

const std::byte* LeasedUpdate::open_operand(Slot& slot) const {
  const std::byte* operand = offset_by(operation_.operand, static_cast<std::int64_t>(slot.start));
  if (operand == nullptr || slot.pending.all()) return operand;
  slot.operand.clear();
  for (std::uint64_t element = 0; element < slot.pending.size(); ++element) {
    const std::byte* from = operand + element * size();
    if (slot.pending.contains(element)) slot.operand.insert(slot.operand.end(), from, from + size());
  }
  return slot.operand.data();
}

std::byte* LeasedUpdate::open_result(Slot& slot) const {
  std::byte* result = offset_by(operation_.result, static_cast<std::int64_t>(slot.start));
  if (result == nullptr || slot.pending.all()) return result;
  slot.result.resize(pending_bytes(slot));
  return slot.result.data();
}

// What was written to open_result goes where the program wants it.
void LeasedUpdate::deliver(Slot& slot) {
  if (operation_.result == nullptr || slot.pending.all()) return;
  const std::byte* from = slot.result.data();
  for (std::uint64_t element = 0; element < slot.pending.size(); ++element) {
    if (!slot.pending.contains(element)) continue;
    std::memcpy(operation_.result + slot.start + element * size(), from, size());
    from += size();
  }
}

// Turns the contents of the pending elements into what they are to become, in place.
void LeasedUpdate::compute(Slot& slot, std::uint64_t contents_at) {
  slot.contents_at = contents_at;
  std::byte* contents = slot.reply.data() + contents_at;
  const std::byte* operand = open_operand(slot);
  std::byte* result = open_result(slot);
  if (operation_.kind == OperationKind::compare_and_swap)
    ops::plain_compare_and_swap(contents, operation_.compare, operand, result, operation_.type);
  else if (result != nullptr)
    reduction_.fetch(contents, operand, result, slot.pending.count(), reduction_.alpha);
  else
    reduction_.bulk(contents, operand, slot.pending.count(), reduction_.alpha);
  deliver(slot);
}

bool LeasedUpdate::have_owner_compute(Slot& slot) {
  Operation rest = operation_;
  rest.bytes = pending_bytes(slot);
  rest.operand = open_operand(slot);
  rest.result = open_result(slot);
  rest.operand_layout = rest.result_layout = ops::LayoutView::contiguous(rest.bytes);
  std::vector<ops::Piece> pieces;
  ops::PieceCursor cursor(ops::LayoutView::indexed(slot.pieces), slot.bytes);
  for (std::uint64_t element = 0; element < slot.pending.size(); ++element) {
    const ops::Piece piece = cursor.next(size());
    if (!slot.pending.contains(element)) continue;
    const bool goes_on =
        !pieces.empty() && pieces.back().offset + static_cast<std::int64_t>(pieces.back().bytes) == piece.offset;
    if (goes_on)
      pieces.back().bytes += piece.bytes;
    else
      pieces.push_back(piece);
  }
  rest.target_layout = ops::LayoutView::indexed(pieces);
  if (pieces.size() == 1) {
    rest.offset += static_cast<std::uint64_t>(pieces.front().offset);
    rest.target_layout = ops::LayoutView::contiguous(rest.bytes);
  }
  slot.request.done.store(false, std::memory_order_relaxed);
  if (!way_.engine->submit(way_.owner, way_.window, rest, outstanding_, &slot.request)) return false;
  left_to_owner_ += rest.bytes;
  slot.state = State::at_owner;
  return true;
}

void LeasedUpdate::on_computed_by_owner(Slot& slot) {
  const Code code = slot.request.code.load(std::memory_order_relaxed);
  if (code != Code::ok) return fail(slot, code);
  deliver(slot);
  slot.state = State::free;
}

void LeasedUpdate::fail(Slot& slot, Code code) {
  code_ = code;
  slot.state = State::free;
}

}  // namespace farsum
