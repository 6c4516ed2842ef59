#include "transport/link/outbox.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace farsum::link {

Outbox::Outbox(const LinkOptions& options, Connection& connection, LinkCounters& counters, FrameKind record_kind)
    : options_(options), connection_(connection), counters_(counters), record_kind_(record_kind), buffers_(options) {}

void Outbox::start() {
  free_acknowledged();
  next_unsent_ = frames_.begin();
}

// ---- gathering

bool Outbox::fits(std::size_t bytes) const {
  return has_gathered() && frames_.back().size + bytes <= options_.max_frame_bytes;
}

void Outbox::seal() {
  if (!has_gathered()) return;
  OutFrame& frame = frames_.back();
  frame.sealed = true;
  buffers_.trim(frame.buffer, frame.size);  // room that a short reply left unused is not covered by its credit
}

std::span<std::byte> Outbox::reserve(std::size_t bytes, std::size_t borrowed_bytes) {
  if (!fits(bytes + borrowed_bytes)) {
    // Whole before the last is sealed: where there is no memory, nothing has changed.
    frames_.make_room();
    OutFrame fresh;
    fresh.buffer = buffers_.take_kept(sizeof(FrameHeader) + bytes);
    buffers_.make_room(fresh.buffer, 0, sizeof(FrameHeader) + bytes);
    fresh.size = sizeof(FrameHeader);
    fresh.first = next_number_;
    seal();
    frames_.push_back(std::move(fresh));
  }
  OutFrame& frame = frames_.back();
  buffers_.make_room(frame.buffer, frame.size, bytes);
  return {frame.buffer.bytes.get() + frame.size, bytes};
}

std::uint64_t Outbox::commit(std::size_t bytes, std::uint64_t charge) {
  OutFrame& frame = frames_.back();
  held_bytes_ += bytes + (frame.records == 0 ? sizeof(FrameHeader) : 0);
  frame.last_record = frame.size;
  frame.size += bytes;
  frame.charge += charge;
  ++frame.records;
  ++next_number_;
  return frames_.end() - 1;
}

void Outbox::append_borrowed(std::span<const std::byte> body) {
  frames_.back().body = body;
  seal();
}

std::span<std::byte> Outbox::last_record() {
  if (!has_gathered() || frames_.back().records == 0) return {};
  OutFrame& frame = frames_.back();
  return {frame.buffer.bytes.get() + frame.last_record, frame.size - frame.last_record};
}

// ---- leaving

void Outbox::acknowledge(std::uint64_t upto) {
  acknowledged_ = std::max(acknowledged_, upto);
  free_acknowledged();
}

void Outbox::free_acknowledged() {
  while (!frames_.empty()) {
    OutFrame& frame = frames_.front();
    if (frame.first + frame.records > acknowledged_ || frame.in_wire || frame.records == 0) break;
    held_bytes_ -= frame.size;
    freed_charge_ += frame.charge;
    buffers_.discard(frame.buffer);
    frames_.pop_front();
  }
  next_unsent_ = std::max(next_unsent_, frames_.begin());
}

std::uint64_t Outbox::take_freed_charge() { return std::exchange(freed_charge_, 0); }

void Outbox::drop_all() {
  if (!gathers_first_record()) seal();
  next_unsent_ = frames_.end();
  acknowledge(next_number_);
}

void Outbox::on_sent(FrameId id) {
  OutFrame& frame = frames_[id];
  frame.in_wire = false;
  --in_wire_;
  const bool forgets = options_.omission == (record_kind_ == FrameKind::requests ? Omission::keep_until_received
                                                                                 : Omission::keep_reply_until_seen);
  if (forgets) acknowledged_ = std::max(acknowledged_, frame.first + frame.records);
  free_acknowledged();
}

// ---- sending

void Outbox::send_frame(OutFrame& frame, std::uint64_t number, const Told& told) {
  const FrameHeader header = connection_.header_of_records(
      record_kind_, frame.size - sizeof(FrameHeader) + frame.body.size(), frame.records, frame.first, told);
  std::memcpy(frame.buffer.bytes.get(), &header, sizeof header);
  if (frame.was_sent) ++counters_.replayed;
  frame.in_wire = frame.was_sent = true;
  ++in_wire_;
  sent_upto_ = std::max(sent_upto_, frame.first + frame.records);
  const std::span<const std::byte> pieces[] = {{frame.buffer.bytes.get(), frame.size}, frame.body};
  connection_.send(number, record_kind_, std::span(pieces, frame.body.empty() ? 1 : 2));
}

bool Outbox::pump(const Told& told) {
  if (!connection_.takes_data()) return false;
  bool any = false;
  while (next_unsent_ != frames_.end() && in_wire_ < options_.frames_in_wire) {
    OutFrame& frame = frames_[next_unsent_];
    if (!frame.sealed && (held_ || frame.records == 0)) break;
    if (!frame.sealed) seal();
    send_frame(frame, next_unsent_++, told);
    any = true;
  }
  return any;
}

}  // namespace farsum::link
