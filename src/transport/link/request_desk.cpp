#include "transport/link/request_desk.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace farsum::link {

// ---- serving

Fault RequestDesk::on_requests(const Frame& frame, RequestHandler& handler) {
  if (intake_.knows_early(frame)) return Fault::none;
  const std::optional<std::uint64_t> cost = intake_.charge_of_new(frame);
  if (!cost || !credit_.covers(*cost, intake_.early_charge(), frame.header.credit)) return Fault::malformed;
  credit_.forget_recall();
  if (intake_.is_early(frame)) {
    intake_.keep(frame, *cost);
    return Fault::none;
  }
  accept(frame, handler);
  while (const std::optional<EarlyFrames::Early> early = intake_.take_early()) accept(early->frame(), handler);
  return Fault::none;
}

void RequestDesk::accept(const Frame& frame, RequestHandler& handler) {
  std::span<const std::byte> rest = frame.payload, message;
  RequestRecord record;
  for (std::uint64_t ticket = frame.header.first; next_record(rest, record, message); ++ticket) {
    if (intake_.receive(ticket)) {
      credit_.spend(charge(record.bytes, record.reply_capacity));
    } else if (omission_ != Omission::doubles_check) {
      continue;
    }
    accept_record(ticket, record, message, handler);
  }
}

void RequestDesk::accept_record(std::uint64_t ticket, const RequestRecord& record, std::span<const std::byte> message,
                                RequestHandler& handler) {
  const bool may_wait = (record.flags & may_wait_flag) != 0;
  if (!parked_.empty() || may_wait) {
    Parked parked = park(ticket, record, message);
    if (!parked_.empty() || !serve(parked, handler)) parked_.push_back(std::move(parked));
    return;
  }
  const InPlace answer = serve_in_place(ticket, record, message, handler);
  if (answer.served.kind != Served::Kind::done) {
    Parked parked = park(ticket, record, message);
    keep_room(parked, answer);
    if (answer.served.kind == Served::Kind::again) {
      parked_.push_back(std::move(parked));
    } else {
      defer(std::move(parked));
    }
  }
  finish_completed();
}

// Asks the handler, and replies where the request is done.
Served RequestDesk::ask(std::uint64_t ticket, const RequestRecord& record, std::span<const std::byte> message,
                        std::span<std::byte> room, RequestHandler& handler) {
  serving_ = true;
  const Served served = handler.on_request(peer_, message, room, {peer_, ticket});
  serving_ = false;
  if (served.kind == Served::Kind::done) {
    reply(ticket, record, served.code, room.first(std::min<std::size_t>(served.reply_bytes, room.size())));
  }
  return served;
}

// The common case: the message is read where it lies, its reply is written where it leaves from.
RequestDesk::InPlace RequestDesk::serve_in_place(std::uint64_t ticket, const RequestRecord& record,
                                                 std::span<const std::byte> message, RequestHandler& handler) {
  const std::span<std::byte> room =
      replies_.reserve(sizeof(ReplyEntry) + record.reply_capacity).subspan(sizeof(ReplyEntry));
  // A frame that is full travels while the next one is made; that one, where the room lies, stays until the turn ends.
  if (replies_.holds_full()) {
    replies_.hold();
    report_.pump();
  }
  return {ask(ticket, record, message, room, handler), room};
}

// Keeps the answer of what is not done and was written to: it gets room of its own, before other replies are written to
// the frame's.
void RequestDesk::keep_room(Parked& parked, const InPlace& answer) {
  const Served& served = answer.served;
  const bool is_untouched = served.kind == Served::Kind::again && served.is_untouched;
  if (served.kind == Served::Kind::done || is_untouched) return;
  parked.reply = std::make_unique_for_overwrite<std::byte[]>(answer.room.size());
  std::copy(answer.room.begin(), answer.room.end(), parked.reply.get());
}

// False: `again`. One that nobody has looked at yet needs no room of its own, unless it stays where it is.
bool RequestDesk::serve(Parked& parked, RequestHandler& handler) {
  if (parked.may_wait() && parked.reply == nullptr) parked.make_room();
  Served served;
  if (parked.reply != nullptr) {
    served = ask(parked.ticket, parked.record, parked.message(), parked.room(), handler);
  } else {
    const InPlace answer = serve_in_place(parked.ticket, parked.record, parked.message(), handler);
    keep_room(parked, answer);
    served = answer.served;
  }
  if (served.kind == Served::Kind::later) defer(std::move(parked));
  finish_completed();
  return served.kind != Served::Kind::again;
}

std::size_t RequestDesk::serve_parked(RequestHandler& handler, std::size_t budget) {
  std::size_t finished = 0;
  while (!parked_.empty() && finished < budget && serve(parked_.front(), handler)) {
    parked_.pop_front();
    ++finished;
  }
  return finished;
}

RequestDesk::Parked RequestDesk::park(std::uint64_t ticket, const RequestRecord& record,
                                      std::span<const std::byte> message) {
  Parked parked;
  parked.ticket = ticket;
  parked.record = record;
  parked.bytes = std::make_unique_for_overwrite<std::byte[]>(record.bytes);
  std::copy(message.begin(), message.end(), parked.bytes.get());
  return parked;
}

void RequestDesk::defer(Parked parked) {
  const std::uint64_t ticket = parked.ticket;
  later_.insert_or_assign(ticket, std::move(parked));
}

// ---- replies

void RequestDesk::complete(std::uint64_t ticket, Code code, std::span<const std::byte> data) {
  const auto found = later_.find(ticket);
  if (found == later_.end() || found->second.completed) return;
  Parked& parked = found->second;
  const bool fits = data.size() <= parked.room().size();
  parked.completed = true;
  parked.code = fits ? code : Code::system;
  parked.reply_bytes = fits ? static_cast<std::uint32_t>(data.size()) : 0;
  std::copy_n(data.begin(), parked.reply_bytes, parked.room().begin());
  completed_.push_back(ticket);
  if (!serving_) finish_completed();
}

// Replies to what was completed, also by a handler while it was writing its own reply.
void RequestDesk::finish_completed() {
  for (const std::uint64_t ticket : completed_) {
    const Parked parked = std::move(later_.extract(ticket).mapped());
    reply(ticket, parked.record, parked.code, parked.room().first(parked.reply_bytes));
  }
  completed_.clear();
}

// Whether the request is ok and without data as all of the entry gathered last, which ends just before it.
bool RequestDesk::joins_last_entry(std::uint64_t ticket) {
  const std::span<std::byte> last = replies_.last_record();
  if (last.size() != sizeof(ReplyEntry)) return false;
  ReplyEntry entry;
  std::memcpy(&entry, last.data(), sizeof entry);
  if (entry.code != 0 || entry.ticket + entry.count != ticket || entry.count == ~std::uint32_t{0}) return false;
  ++entry.count;
  std::memcpy(last.data(), &entry, sizeof entry);
  return true;
}

void RequestDesk::reply(std::uint64_t ticket, const RequestRecord& record, Code code, std::span<const std::byte> data) {
  replies_.hold();
  const std::uint64_t cost = charge(record.bytes, record.reply_capacity);
  if (code == Code::ok && data.empty() && joins_last_entry(ticket)) return credit_.release(cost);
  const ReplyEntry entry{ticket, 1, static_cast<std::uint32_t>(code), static_cast<std::uint32_t>(data.size()), 0};
  std::byte* const at = replies_.reserve(sizeof entry + data.size()).data();
  if (!data.empty() && at + sizeof entry != data.data()) std::memmove(at + sizeof entry, data.data(), data.size());
  std::memcpy(at, &entry, sizeof entry);
  // The rest of the charge comes back when the origin has taken the reply.
  std::uint64_t kept = sizeof entry + data.size() + (replies_.gathers_first_record() ? sizeof(FrameHeader) : 0);
  if (omission_ == Omission::hold_credit_of_replies) kept = 0;
  replies_.commit(sizeof entry + data.size(), kept);
  credit_.release(cost - kept);
}

// ---- the end

void RequestDesk::drop_all() {
  parked_.clear();
  later_.clear();
  completed_.clear();
}

std::uint64_t RequestDesk::held_bytes() const {
  std::uint64_t sum = 0;
  for (std::uint64_t at = parked_.begin(); at != parked_.end(); ++at) sum += parked_[at].size();
  for (const auto& [ticket, parked] : later_) sum += parked.size();
  return sum;
}

}  // namespace farsum::link
