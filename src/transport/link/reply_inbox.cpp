#include "transport/link/reply_inbox.hpp"

#include <cstring>
#include <utility>

namespace farsum::link {

Fault ReplyInbox::on_replies(const Frame& frame) {
  if (!holds_whole_entries(frame)) return Fault::malformed;
  if (frame.header.records == 0) return Fault::none;
  if (frame.header.first > next_) {
    const std::uint64_t bytes = sizeof(FrameHeader) + frame.payload.size();
    if (early_.has(frame.header.first)) return Fault::none;
    if (early_.charge() + bytes > requests_.reply_room()) return Fault::malformed;
    early_.add(frame, bytes);
    return Fault::none;
  }
  if (!are_due(frame)) return Fault::malformed;
  take_entries(frame);
  while (const std::optional<EarlyFrames::Early> early = early_.take(next_)) {
    if (are_due(early->frame())) take_entries(early->frame());
  }
  return Fault::none;
}

// Whether each entry that has not come before answers requests that are open and fits the room they asked for.
bool ReplyInbox::are_due(const Frame& frame) const {
  std::span<const std::byte> rest = frame.payload, data;
  ReplyEntry entry;
  for (std::uint64_t number = frame.header.first; next_entry(rest, entry, data); ++number) {
    if (number >= next_ && !requests_.await(entry.ticket, entry.count, entry.bytes)) return false;
  }
  return true;
}

void ReplyInbox::take_entries(const Frame& frame) {
  std::span<const std::byte> rest = frame.payload, data;
  ReplyEntry entry;
  for (std::uint64_t number = frame.header.first; next_entry(rest, entry, data); ++number) {
    if (number < next_) {
      ++counters_.doubles;
    } else {
      ++next_;
      untold_ += reply_charge(data.size());
      keep(entry, data);
    }
  }
}

void ReplyInbox::keep(const ReplyEntry& entry, std::span<const std::byte> data) {
  Reply reply;
  reply.ticket = entry.ticket;
  reply.count = entry.count;
  reply.code = static_cast<Code>(entry.code);
  for (std::uint64_t ticket = entry.ticket; ticket != entry.ticket + entry.count; ++ticket) {
    // Two entries of one frame that name the same ticket: the second is not handed out.
    if (requests_.is_answered(ticket)) {
      reply.count = static_cast<std::uint32_t>(ticket - entry.ticket);
      break;
    }
    requests_.note_answered(ticket);
  }
  if (!data.empty() && reply.count != 0) {
    const std::span<std::byte> into = requests_[entry.ticket].reply_into;
    if (into.size() < data.size()) reply.kept = std::make_unique_for_overwrite<std::byte[]>(data.size());
    std::byte* const place = reply.kept != nullptr ? reply.kept.get() : into.data();
    std::memcpy(place, data.data(), data.size());
    reply.data = {place, data.size()};
  }
  inbox_.push_back(std::move(reply));
}

void ReplyInbox::answer(std::uint64_t ticket, Code code) {
  Reply reply;
  reply.ticket = ticket;
  reply.code = code;
  inbox_.push_back(std::move(reply));
}

void ReplyInbox::answer_all(Code code) {
  for (std::uint64_t ticket = requests_.begin(); ticket != requests_.end(); ++ticket) {
    if (requests_.is_answered(ticket)) continue;
    requests_.note_answered(ticket);
    answer(ticket, code);
  }
}

bool ReplyInbox::hand_out(Reply& reply, TakeReply take) {
  for (; reply.count != 0; ++reply.ticket, --reply.count) {
    const OpenRequests::Request& request = requests_[reply.ticket];
    const bool waits = request.borrowed && sent_.is_in_wire(request.frame);
    if (waits && omission_ != Omission::wait_for_sent) return false;
    requests_.note_taken(reply.ticket);
    take(reply.ticket, reply.code, reply.data);
  }
  return true;
}

std::size_t ReplyInbox::take_replies(TakeReply take) {
  std::size_t count = 0;
  for (; !inbox_.empty() && hand_out(inbox_.front(), take); ++count) inbox_.pop_front();
  requests_.drop_taken();
  return count;
}

}  // namespace farsum::link
