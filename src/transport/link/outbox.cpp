#include "transport/link/outbox.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace farsum::link {
namespace {

constexpr FrameId control_bit = FrameId{1} << 63;
// Buffers of lone small records are used again; larger ones would hold memory that no credit pays for.
constexpr std::size_t spare_most = 4, spare_bytes = 1024;

std::size_t index_of(FrameKind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

Outbox::Outbox(const LinkOptions& options, Wire& wire, FrameKind record_kind)
    : options_(options), wire_(wire), record_kind_(record_kind) {
  spare_.reserve(spare_most);  // what is given back asks for no memory
}

void Outbox::start(std::uint32_t epoch) {
  epoch_ = epoch;
  key_ = key_of(options_.secret, options_.me, options_.peer, epoch, goes_to_origin(record_kind_));
  started_ = true;
  records_go_ = false;
  free_acknowledged();
  next_unsent_ = frames_.begin();
  for (Control& control : controls_) control.due = false;
  ++counters_.connections;
}

// ---- gathering

bool Outbox::fits(std::size_t bytes) const {
  return has_gathered() && frames_.back().size + bytes <= options_.max_frame_bytes;
}

void Outbox::seal() {
  if (!has_gathered()) return;
  OutFrame& frame = frames_.back();
  frame.sealed = true;
  // Room that a short reply left unused is not covered by its credit.
  if (frame.capacity > frame.size + spare_bytes) {
    std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[frame.size]);
    if (bytes == nullptr) return;
    std::memcpy(bytes.get(), frame.bytes.get(), frame.size);
    discard(frame);
    frame.bytes = std::move(bytes);
    frame.capacity = frame.size;
  }
}

bool Outbox::is_full_frame(std::size_t capacity) const {
  return options_.full_frames != nullptr && capacity + spare_bytes > options_.max_frame_bytes;
}

void Outbox::discard(OutFrame& frame) {
  if (is_full_frame(frame.capacity)) {
    options_.full_frames->give_back(std::move(frame.bytes));
  } else if (spare_.size() < spare_most && frame.capacity <= spare_bytes && frame.capacity != 0) {
    OutFrame spare;
    spare.bytes = std::move(frame.bytes);
    spare.capacity = frame.capacity;
    spare_.push_back(std::move(spare));
  }
}

void Outbox::make_room(OutFrame& frame, std::size_t bytes) {
  if (frame.capacity >= frame.size + bytes) return;
  const std::size_t doubled = std::min(2 * frame.capacity, options_.max_frame_bytes);
  std::size_t capacity = std::max(frame.size + bytes, doubled);
  if (is_full_frame(capacity)) capacity = options_.max_frame_bytes;
  auto larger = is_full_frame(capacity) ? options_.full_frames->take(capacity)
                                        : std::make_unique_for_overwrite<std::byte[]>(capacity);
  if (frame.size != 0) std::memcpy(larger.get(), frame.bytes.get(), frame.size);
  discard(frame);
  frame.bytes = std::move(larger);
  frame.capacity = capacity;
}

std::span<std::byte> Outbox::reserve(std::size_t bytes, std::size_t borrowed_bytes) {
  if (!fits(bytes + borrowed_bytes)) {
    // Whole before the last is sealed: where there is no memory, nothing has changed.
    frames_.make_room();
    OutFrame fresh;
    if (!spare_.empty() && spare_.back().capacity >= sizeof(FrameHeader) + bytes) {
      fresh = std::move(spare_.back());
      spare_.pop_back();
    }
    make_room(fresh, sizeof(FrameHeader) + bytes);
    fresh.size = sizeof(FrameHeader);
    fresh.first = next_number_;
    seal();
    frames_.push_back(std::move(fresh));
  }
  OutFrame& frame = frames_.back();
  make_room(frame, bytes);
  return {frame.bytes.get() + frame.size, bytes};
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
  return {frame.bytes.get() + frame.last_record, frame.size - frame.last_record};
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
    discard(frame);
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
  if ((id & control_bit) != 0) {
    controls_[id & ~control_bit].in_wire = false;
    --controls_in_wire_;
    return;
  }
  OutFrame& frame = frames_[id];
  frame.in_wire = false;
  --in_wire_;
  const bool forgets = options_.omission == (record_kind_ == FrameKind::requests ? Omission::keep_until_received
                                                                                 : Omission::keep_reply_until_seen);
  if (forgets) acknowledged_ = std::max(acknowledged_, frame.first + frame.records);
  free_acknowledged();
}

// ---- sending

FrameHeader Outbox::header_of(FrameKind kind, std::size_t payload_bytes, const Told& told) const {
  FrameHeader header{};
  header.magic_word = magic;
  header.epoch = epoch_;
  header.version = wire_version;
  header.kind = kind;
  header.from = options_.me;
  header.to = options_.peer;
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  header.key = key_;
  header.seen = told.seen;
  header.credit = told.credit;
  return header;
}

void Outbox::count_sent(FrameKind kind, std::size_t bytes) {
  LinkCounters::Traffic& traffic = counters_.sent[index_of(kind)];
  ++traffic.frames;
  traffic.bytes += bytes;
}

void Outbox::send_frame(OutFrame& frame, std::uint64_t number, const Told& told) {
  FrameHeader header = header_of(record_kind_, frame.size - sizeof header + frame.body.size(), told);
  header.records = frame.records;
  header.first = frame.first;
  if (goes_to_origin(record_kind_)) received_letters(header) = told.letters;
  std::memcpy(frame.bytes.get(), &header, sizeof header);
  if (frame.was_sent) ++counters_.replayed;
  frame.in_wire = frame.was_sent = true;
  seen_told_with_records_ = told.seen;
  ++in_wire_;
  sent_upto_ = std::max(sent_upto_, frame.first + frame.records);
  count_sent(record_kind_, frame.size + frame.body.size());
  const std::span<const std::byte> pieces[] = {{frame.bytes.get(), frame.size}, frame.body};
  wire_.send(number, epoch_, std::span(pieces, frame.body.empty() ? 1 : 2));
}

bool Outbox::control(FrameKind kind, std::uint64_t first, std::uint64_t stamp, const Told& told,
                     std::span<const std::byte> payload) {
  Control& control = controls_[index_of(kind)];
  control.first = first;
  control.stamp = stamp;
  control.payload = payload;
  control.due = true;
  if (!started_ || control.in_wire) return false;
  send_control(kind, told);
  return true;
}

void Outbox::send_control(FrameKind kind, const Told& told) {
  Control& control = controls_[index_of(kind)];
  control.header = header_of(kind, control.payload.size(), told);
  control.header.first = control.first;
  control.header.stamp = control.stamp;
  if (goes_to_origin(kind)) received_letters(control.header) = told.letters;
  control.due = false;
  control.in_wire = true;
  ++controls_in_wire_;
  count_sent(kind, sizeof control.header + control.payload.size());
  if (options_.omission == Omission::bare_acks) control.header.seen = seen_told_with_records_;
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(&control.header, 1)), control.payload};
  wire_.send(control_bit | index_of(kind), epoch_, std::span(pieces, control.payload.empty() ? 1 : 2));
}

bool Outbox::pump(const Told& told) {
  if (!started_) return false;
  bool any = false;
  for (std::size_t kind = 0; kind < frame_kinds; ++kind) {
    if (!controls_[kind].due || controls_[kind].in_wire) continue;
    send_control(static_cast<FrameKind>(kind), told);
    any = true;
  }
  while (records_go_ && next_unsent_ != frames_.end() && in_wire_ < options_.frames_in_wire) {
    OutFrame& frame = frames_[next_unsent_];
    if (!frame.sealed && (held_ || frame.records == 0)) break;
    if (!frame.sealed) seal();
    send_frame(frame, next_unsent_++, told);
    any = true;
  }
  return any;
}

}  // namespace farsum::link
