// What OriginEngine keeps of an operation that is under way, and of a message that is made of it. For the origin's own
// files alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ops/layout.hpp"
#include "protocol/messages.hpp"
#include "protocol/outstanding.hpp"
#include "protocol/request_state.hpp"

namespace farsum {

bool carries_operand(const wire::MessageHeader& header);

// An operation from submit() until its last reply. Recycled, so that a steady stream of operations allocates nothing.
struct OriginJob {
  wire::MessageHeader header;
  ops::Layout target_layout;
  bool target_is_contiguous = true;
  // In target_layout, behind what was posted, from the first message on that is a part of it.
  std::optional<ops::PieceCursor> unposted;
  const std::byte* operand = nullptr;  // packed: the user's buffer, or `packed`
  std::vector<std::byte> packed;       // also the body of a control message
  std::byte* result = nullptr;         // packed: the user's buffer, or `gathered`
  std::vector<std::byte> gathered;
  ops::Layout result_layout;
  std::byte* scattered_result = nullptr;  // where `gathered` goes at the end
  std::vector<std::byte> offsets;         // scatter: packed target offsets
  std::uint64_t reply_capacity = 0;       // of a control message
  std::uint64_t offset_bytes = 0;         // of these, while a bundle is open
  std::uint64_t bytes = 0;
  std::uint64_t posted_bytes = 0;
  std::uint32_t in_flight = 0;
  bool all_posted = false;
  bool may_wait = false;         // for what other ranks do
  bool leaves_with_end = false;  // of its epoch, if it is small
  bool lends_operand = false;    // `operand` is the user's
  bool is_pulled = false;        // the owner reads the operand where it is
  bool is_lent = false;          // to the transport, until its replies have come
  bool is_borrowing = false;     // counted as such in `outstanding`
  bool is_full = false;          // a bundle: it gains nothing by waiting for others
  Code code = Code::ok;
  Outstanding* outstanding = nullptr;
  RequestState* request = nullptr;

  // But for what buffers and layouts hold, which is used again.
  void forget() {
    operand = nullptr;
    result = scattered_result = nullptr;
    target_is_contiguous = true;
    unposted.reset();
    bytes = offset_bytes = posted_bytes = reply_capacity = 0;
    in_flight = 0;
    all_posted = may_wait = leaves_with_end = lends_operand = is_pulled = is_lent = is_borrowing = is_full = false;
    code = Code::ok;
  }
  bool needs_buffers() const { return result != nullptr || (lends_operand && (!all_posted || is_pulled || is_lent)); }
};

// A message under construction; its head is in a draft.
struct OriginMessage {
  wire::MessageHeader header;
  std::span<const std::byte> body;
  std::uint64_t reply_capacity = 0;
  std::uint64_t payload_bytes = 0;
  std::optional<ops::PieceCursor> unposted;  // behind it, where it is a part of the job's target layout
};

// Room in which a message is made, used again for the next.
struct MessageDraft {
  std::vector<std::byte> head;
  std::vector<ops::Piece> pieces;
};

}  // namespace farsum
