// The channel from one sender to one receiver: a byte ring of records of any length, in which the reply to a record is
// written into the record itself, behind the message. So room for every reply is there before its request is sent, and
// an acknowledgement needs no message.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <span>

#include "os/futex.hpp"

namespace farsum {

// What a receiver says about a record it was shown.
struct RecordAnswer {
  enum class Kind : std::uint8_t { again, done };
  Kind kind = Kind::done;
  std::uint32_t status = 0;
  std::uint32_t reply_bytes = 0;
};

// The shared part, followed by `capacity` bytes of records. Lives at an address that is a multiple of 64. Its first 64
// bytes must be zero before the first use; the records need not be.
//
// Who may call: one sender (its threads under the caller's mutex) and one receiver thread.
// Capacity: a power of two from 1024 to 2^31 bytes; anything else is rounded down to one. A record takes 32 bytes of
// header, the message and the reply room, rounded up to 64, and is contiguous: a pad record fills the end of the ring
// when one does not fit.
//
// What a crash leaves behind. The sender, before its store to `published`: nothing; after it: a whole record, which the
// receiver may serve though nobody reads the reply. The sender's tail and reclaim position are private and die with it.
// The receiver, before its store to a record's state: a record that stays posted for good, its effects perhaps half
// done (so it must not be served again by a successor); after it: a complete reply, which the sender can still reap. No
// step of one makes the other wait inside a call. Neither trusts the other: every length read from shared memory is
// read once, checked, then used.
template <class Policy>
struct alignas(64) BasicRingShared {
  // Written by the sender: bytes published since the beginning, pads included.
  typename Policy::template Atomic<std::uint64_t> published;

  static std::size_t footprint(std::size_t capacity_bytes) { return sizeof(BasicRingShared) + capacity_bytes; }
  std::byte* storage() { return reinterpret_cast<std::byte*>(this) + sizeof(BasicRingShared); }
};

namespace ring_detail {

inline constexpr std::size_t line_bytes = 64;
inline constexpr std::uint32_t pad_mark = 0xffffffffU;

template <class Policy>
struct RecordHeader {
  // Set to posted by the sender before it publishes, then written by the receiver.
  typename Policy::template Atomic<std::uint32_t> state;
  // Written by the sender.
  std::uint32_t record_bytes;
  std::uint32_t message_bytes;  // or pad_mark
  std::uint32_t reply_capacity;
  // Written by the receiver.
  std::uint32_t status;
  std::uint32_t reply_bytes;
  // The reply, where no more than this was asked for: in the line that the sender watches, it costs no further one.
  std::byte small_reply[8];

  static constexpr std::uint32_t posted = 0;
  static constexpr std::uint32_t done = 1;

  std::byte* payload() { return reinterpret_cast<std::byte*>(this) + sizeof(RecordHeader); }
  // Where the reply lies. Both ends ask with lengths that they have checked.
  std::byte* reply(std::size_t message_length, std::size_t capacity) {
    return capacity <= sizeof small_reply ? small_reply : payload() + message_length;
  }
};
static_assert(sizeof(RecordHeader<SystemAtomics>) == 32);

inline std::size_t record_bytes_for(std::size_t payload_bytes) {
  constexpr std::size_t header_bytes = sizeof(RecordHeader<SystemAtomics>);
  return (header_bytes + payload_bytes + line_bytes - 1) / line_bytes * line_bytes;
}

// A record's lengths, copied out of shared memory once, and whether they describe a record inside `room` bytes.
struct Lengths {
  std::size_t record = 0;
  std::size_t message = 0;
  std::size_t reply = 0;
  bool pad = false;
  bool valid = false;
};

template <class Policy>
Lengths read_lengths(const RecordHeader<Policy>& header, std::size_t room) {
  Policy::reads(&header.record_bytes, 3 * sizeof(std::uint32_t));
  // Volatile, so that a length is read once: the bytes checked are the bytes used, whatever the peer does meanwhile.
  const auto read_once = [](const std::uint32_t& field) { return *static_cast<const volatile std::uint32_t*>(&field); };
  Lengths lengths;
  lengths.record = read_once(header.record_bytes);
  lengths.message = read_once(header.message_bytes);
  lengths.reply = read_once(header.reply_capacity);
  lengths.pad = lengths.message == pad_mark;
  const bool record_fits = lengths.record != 0 && lengths.record % line_bytes == 0 && lengths.record <= room;
  lengths.valid = record_fits && (lengths.pad || record_bytes_for(lengths.message + lengths.reply) == lengths.record);
  return lengths;
}

}  // namespace ring_detail

// The sender's end. Its positions live in private memory.
template <class Policy>
class BasicRingSender {
 public:
  BasicRingSender(BasicRingShared<Policy>& shared, std::size_t capacity)
      : shared_(&shared), storage_(shared.storage()), capacity_(std::bit_floor(capacity)) {}

  // The largest 32 + message + reply that try_push takes. A quarter, so that pad and record always fit an empty ring.
  std::size_t max_record_bytes() const { return capacity_ / 4; }

  // Appends a record whose message is head followed by body, with room for a reply of reply_capacity bytes.
  // Returns its ticket, a running number from 0; nothing when there is no room now, or never will be (see
  // max_record_bytes). Copies both spans. The receiver sees the record at once; ringing its bell is the caller's
  // business.
  std::optional<std::uint64_t> try_push(std::span<const std::byte> head, std::span<const std::byte> body,
                                        std::size_t reply_capacity) {
    const std::size_t message_bytes = head.size() + body.size();
    const std::size_t record_bytes = ring_detail::record_bytes_for(message_bytes + reply_capacity);
    if (record_bytes > max_record_bytes()) [[unlikely]] {
      return std::nullopt;
    }
    const std::size_t to_end = capacity_ - offset_of(tail_);
    const std::size_t pad_bytes = record_bytes <= to_end ? 0 : to_end;
    if (pad_bytes + record_bytes > capacity_ - (tail_ - reclaimed_)) {
      return std::nullopt;
    }
    if (pad_bytes != 0) {
      write_header(pad_bytes, ring_detail::pad_mark, 0);
      tail_ += pad_bytes;
    }
    Header* header = write_header(record_bytes, message_bytes, reply_capacity);
    Policy::writes(header->payload(), message_bytes);
    copy(header->payload(), head);
    copy(header->payload() + head.size(), body);
    tail_ += record_bytes;
    // Publishes pad and record; pairs with the acquire load in BasicRingReceiver.
    shared_->published.store(tail_, std::memory_order_release);
    return posted_++;
  }

  // Visits completed records in the order they were posted as f(ticket, status, reply bytes), frees each after its
  // visit and stops at the first that is not done; returns how many.
  template <class Visit>
  std::size_t reap(Visit&& visit) {
    std::size_t count = 0;
    while (Header* header = oldest_done_header()) {
      reclaimed_ = oldest();
      const ring_detail::Lengths lengths = ring_detail::read_lengths(*header, room_at_oldest());
      Policy::reads(&header->status, 2 * sizeof(std::uint32_t));
      const std::uint32_t status = header->status;
      const std::uint32_t reply_bytes = *static_cast<const volatile std::uint32_t*>(&header->reply_bytes);
      if (!lengths.valid || reply_bytes > lengths.reply) [[unlikely]] {
        corrupt_ = true;
        break;
      }
      std::byte* const reply = header->reply(lengths.message, lengths.reply);
      Policy::reads(reply, reply_bytes);
      visit(reaped_, status, std::span<const std::byte>(reply, reply_bytes));
      reclaimed_ += lengths.record;
      ++reaped_;
      ++count;
    }
    return count;
  }

  std::uint64_t posted() const { return posted_; }
  std::uint64_t reaped() const { return reaped_; }
  bool empty() const { return posted_ == reaped_; }
  // Whether reap would visit something; one load of a line that the receiver writes once, so it may be spun upon.
  bool oldest_done() const { return oldest_done_header() != nullptr; }
  // The receiver wrote lengths that cannot be; nothing more can be reaped.
  bool corrupt() const { return corrupt_; }

 private:
  using Header = ring_detail::RecordHeader<Policy>;

  std::size_t offset_of(std::uint64_t position) const { return static_cast<std::size_t>(position & (capacity_ - 1)); }
  Header* header_at(std::uint64_t position) const { return reinterpret_cast<Header*>(storage_ + offset_of(position)); }

  static void copy(std::byte* to, std::span<const std::byte> from) {
    if (!from.empty()) {
      std::memcpy(to, from.data(), from.size());
    }
  }

  Header* write_header(std::size_t record_bytes, std::size_t message_bytes, std::size_t reply_capacity) {
    Header* header = header_at(tail_);
    Policy::writes(&header->record_bytes, 3 * sizeof(std::uint32_t));
    header->record_bytes = static_cast<std::uint32_t>(record_bytes);
    header->message_bytes = static_cast<std::uint32_t>(message_bytes);
    header->reply_capacity = static_cast<std::uint32_t>(reply_capacity);
    // Relaxed: published with the record.
    header->state.store(Header::posted, std::memory_order_relaxed);
    return header;
  }

  std::size_t room_at_oldest() const {
    return std::min<std::size_t>(capacity_ - offset_of(reclaimed_), static_cast<std::size_t>(tail_ - reclaimed_));
  }

  // The oldest record that is not reaped, behind its pad if it has one. The pad is not free before its record is done:
  // until then the receiver may not have read it.
  std::uint64_t oldest() const {
    const std::uint64_t behind_pad = reclaimed_ + (capacity_ - offset_of(reclaimed_));
    return is_pad(*header_at(reclaimed_)) ? behind_pad : reclaimed_;
  }

  Header* oldest_done_header() const {
    if (posted_ == reaped_ || corrupt_) {
      return nullptr;
    }
    Header* header = header_at(oldest());
    // Pairs with the release store in BasicRingReceiver::serve.
    return header->state.load(std::memory_order_acquire) == Header::done ? header : nullptr;
  }

  // A pad is recognised only where a record at the end of the ring must have been one, so a scribbling peer cannot move
  // us beyond tail.
  bool is_pad(const Header& header) const {
    Policy::reads(&header.message_bytes, sizeof(std::uint32_t));
    return header.message_bytes == ring_detail::pad_mark && tail_ - reclaimed_ > capacity_ - offset_of(reclaimed_);
  }

  BasicRingShared<Policy>* shared_;
  std::byte* storage_;
  std::size_t capacity_;
  std::uint64_t tail_ = 0;
  std::uint64_t reclaimed_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t reaped_ = 0;
  bool corrupt_ = false;
};

// The receiver's end. Only its position is its own; it keeps no state in shared memory besides the replies.
template <class Policy>
class BasicRingReceiver {
 public:
  BasicRingReceiver(BasicRingShared<Policy>& shared, std::size_t capacity)
      : shared_(&shared), storage_(shared.storage()), capacity_(std::bit_floor(capacity)) {}

  // Shows at most `budget` published records in order to f(message, reply_room) -> RecordAnswer; returns how many were
  // done. `again` leaves the record at the head, to be shown anew by the next call with what was written to its reply
  // room, and stops. The message is aligned to 32 bytes and may still be changed by a corrupt sender: read each length
  // in it once.
  template <class Serve>
  std::size_t serve(Serve&& serve_one, std::size_t budget) {
    std::size_t count = 0;
    while (count < budget && pending()) {
      Header* header = reinterpret_cast<Header*>(storage_ + offset());
      const std::size_t room = std::min<std::size_t>(capacity_ - offset(), static_cast<std::size_t>(seen_ - head_));
      const ring_detail::Lengths lengths = ring_detail::read_lengths(*header, room);
      if (!lengths.valid) [[unlikely]] {
        corrupt_ = true;
        break;
      }
      if (lengths.pad) {
        head_ += lengths.record;
        continue;
      }
      Policy::reads(header->payload(), lengths.message);
      const RecordAnswer served =
          serve_one(std::span<const std::byte>(header->payload(), lengths.message),
                    std::span<std::byte>(header->reply(lengths.message, lengths.reply), lengths.reply));
      if (served.kind == RecordAnswer::Kind::again) {
        break;
      }
      Policy::writes(header->reply(lengths.message, lengths.reply), served.reply_bytes);
      Policy::writes(&header->status, 2 * sizeof(std::uint32_t));
      header->status = served.status;
      header->reply_bytes = served.reply_bytes;
      head_ += lengths.record;
      ++count;
      // Publishes the reply; pairs with the acquire load in BasicRingSender::oldest_done_header. From here the record
      // is the sender's.
      header->state.store(Header::done, std::memory_order_release);
    }
    return count;
  }

  // Whether a published record waits to be served.
  bool pending() const {
    if (corrupt_) {
      return false;
    }
    if (seen_ == head_) {
      refresh();
    }
    return !corrupt_ && seen_ != head_;
  }

  // The sender wrote positions or lengths that cannot be; nothing more is served from this ring.
  bool corrupt() const { return corrupt_; }

 private:
  using Header = ring_detail::RecordHeader<Policy>;

  std::size_t offset() const { return static_cast<std::size_t>(head_ & (capacity_ - 1)); }

  void refresh() const {
    // Pairs with the release store in BasicRingSender::try_push.
    const std::uint64_t published = shared_->published.load(std::memory_order_acquire);
    if (published - head_ > capacity_ || published % ring_detail::line_bytes != 0) [[unlikely]] {
      corrupt_ = true;
      return;
    }
    seen_ = published;
  }

  BasicRingShared<Policy>* shared_;
  std::byte* storage_;
  std::size_t capacity_;
  std::uint64_t head_ = 0;
  // What was published when last looked; saves a shared line per record.
  mutable std::uint64_t seen_ = 0;
  mutable bool corrupt_ = false;
};

using RingShared = BasicRingShared<SystemAtomics>;
using RingSender = BasicRingSender<SystemAtomics>;
using RingReceiver = BasicRingReceiver<SystemAtomics>;
static_assert(sizeof(RingShared) == 64);

}  // namespace farsum
