#include "protocol/owner/operation_applier.hpp"

#include <algorithm>
#include <cstring>

#include "ops/atomics.hpp"
#include "protocol/presence.hpp"

namespace farsum {
namespace {

bool has(const wire::MessageHeader& header, wire::MessageFlag flag) { return (header.flags & flag) != 0; }

// A lease is taken to write later.
bool writes(const wire::MessageHeader& header) {
  return header.kind == wire::MessageKind::lease || writes(header.operation, header.op);
}

// A get is a fetching no_op and a put a plain replace, wherever they are applied in pieces like the other kinds.
Reduction reduction_of(const ops::KernelSet& kernels, const wire::MessageHeader& header) {
  const ops::Operator op = header.operation == OperationKind::get   ? ops::Operator::no_op
                           : header.operation == OperationKind::put ? ops::Operator::replace
                                                                    : header.op;
  return make_reduction(kernels, header.type, op, header.alpha, header.bytes);
}

Code check_region(const wire::MessageHeader& header, const ExposedRegion& region) {
  if (region.read_only && writes(header)) return Code::unreachable;
  if (region.domain.atomics_only && is_atomic(header.operation) && !ops::is_lockable(header.type)) return Code::type;
  return Code::ok;
}

// A stretch may go on from one region in the next, which may be of another kind.
Code check_stretch(const wire::MessageHeader& header, const Exposure& exposure, std::uint64_t offset,
                   std::uint64_t bytes) {
  while (bytes != 0) {
    const ExposedRegion* const region = exposure.find_first(offset);
    if (region == nullptr) return Code::range;
    if (const Code code = check_region(header, *region); code != Code::ok) return code;
    const std::uint64_t here = std::min(bytes, region->bytes - (offset - region->offset));
    offset += here;
    bytes -= here;
  }
  return Code::ok;
}

}  // namespace

OperationApplier::OperationApplier(const Needs& needs) : needs_(needs) {
  for (std::size_t i = 0; i < needs_.pull_slots; ++i) slots_.push_back(std::make_unique<PullSlot>());
}

Served OperationApplier::serve(Rank from, const wire::Message& message, const Exposure& exposure,
                               std::span<std::byte> reply_room, RequestWork& work) {
  const wire::MessageHeader& header = message.header;
  if (!work.has_begun()) {
    const Code code = check_extent(message, exposure);
    if (code != Code::ok) return {Served::Kind::done, code, 0};
    if (exposure.has_holes) {
      if (const Code missing = check_presence(message, exposure); missing != Code::ok)
        return {Served::Kind::done, missing, 0};
    }
  }

  Outcome outcome;
  if (header.kind == wire::MessageKind::scatter) {
    outcome = scatter(message, exposure, work);
  } else if (header.operation == OperationKind::compare_and_swap) {
    outcome = compare_and_swap(message, exposure, reply_room);
  } else {
    outcome = operate(from, message, exposure, reply_room, work);
  }
  if (outcome.step == Step::again) return {Served::Kind::again};
  if (outcome.step == Step::failed) return {Served::Kind::done, outcome.code, 0};

  if (has(header, wire::flag_notify)) {
    // Release: the data above comes before the notification that tells of it; pairs with the acquire load of the
    // waiter.
    exposure.notifications[header.slot].fetch_add(1, std::memory_order_release);
    if (needs_.listener != nullptr) needs_.listener->on_notified();
  }
  const bool replies_inline = returns_data(header.operation) && !has(header, wire::flag_push);
  return {Served::Kind::done, Code::ok, replies_inline ? static_cast<std::uint32_t>(header.bytes) : 0};
}

Code OperationApplier::check_extent(const wire::Message& message, const Exposure& exposure) const {
  const wire::MessageHeader& header = message.header;
  if (has(header, wire::flag_notify) && header.slot >= exposure.notification_slots) return Code::range;
  if (header.kind == wire::MessageKind::scatter) return check_places(message, exposure);
  if (header.bytes == 0) return Code::ok;
  if (const ExposedRegion* const region = region_of_all(message, exposure)) return check_region(header, *region);
  // The pieces lie in several regions, or there is something between them that is not exposed.
  ops::PieceCursor cursor(message.layout.view(), header.bytes);
  for (ops::Piece piece = cursor.next(); piece.bytes != 0; piece = cursor.next()) {
    const std::uint64_t offset = header.offset + static_cast<std::uint64_t>(piece.offset);
    if (const Code code = check_stretch(header, exposure, offset, piece.bytes); code != Code::ok) return code;
  }
  return Code::ok;
}

Code OperationApplier::check_places(const wire::Message& message, const Exposure& exposure) {
  const wire::MessageHeader& header = message.header;
  const std::uint64_t size = ops::size_of(header.type);
  const ExposedRegion* last = nullptr;  // that held an element whole: most lie in one
  for (std::uint64_t at = 0; at < header.bytes / size * wire::place_bytes; at += wire::place_bytes) {
    std::uint64_t offset = 0;
    std::memcpy(&offset, message.offsets.data() + at, wire::place_bytes);
    if (last != nullptr && last->bytes >= size && offset - last->offset <= last->bytes - size) continue;
    if (const Code code = check_stretch(header, exposure, offset, size); code != Code::ok) return code;
    last = exposure.find_first(offset);
  }
  return Code::ok;
}

// Nothing is applied of an operation that comes upon a page that cannot be read.
Code OperationApplier::check_presence(const wire::Message& message, const Exposure& exposure) const {
  const wire::MessageHeader& header = message.header;
  if (header.kind == wire::MessageKind::scatter) {
    const std::uint64_t size = ops::size_of(header.type);
    for (std::uint64_t at = 0; at < header.bytes / size * wire::place_bytes; at += wire::place_bytes) {
      std::uint64_t offset = 0;
      std::memcpy(&offset, message.offsets.data() + at, wire::place_bytes);
      if (!is_there(exposure, offset, size)) return Code::unreachable;
    }
    return Code::ok;
  }
  ops::PieceCursor cursor(message.layout.view(), header.bytes);
  for (ops::Piece piece = cursor.next(); piece.bytes != 0; piece = cursor.next()) {
    if (!is_there(exposure, header.offset + static_cast<std::uint64_t>(piece.offset), piece.bytes))
      return Code::unreachable;
  }
  return Code::ok;
}

// What is exposed from `offset` on is known to be so.
bool OperationApplier::is_there(const Exposure& exposure, std::uint64_t offset, std::uint64_t bytes) const {
  while (bytes != 0) {
    const ExposedRegion& region = *exposure.find_first(offset);
    const std::uint64_t at = offset - region.offset;
    const std::uint64_t here = std::min(bytes, region.bytes - at);
    const auto address = reinterpret_cast<std::uintptr_t>(region.memory) + at;
    if (region.has_holes && first_missing_page(*transport_, needs_.rank, address, here)) return false;
    offset += here;
    bytes -= here;
  }
  return true;
}

// The region that holds all pieces of the layout and what lies between them; null when none does.
const ExposedRegion* OperationApplier::region_of_all(const wire::Message& message, const Exposure& exposure) {
  const std::uint64_t low = message.header.offset + static_cast<std::uint64_t>(message.extent.low);
  return exposure.find(low, static_cast<std::uint64_t>(message.extent.high - message.extent.low));
}

Outcome OperationApplier::operate(Rank from, const wire::Message& message, const Exposure& exposure,
                                  std::span<std::byte> reply_room, RequestWork& work) {
  const wire::MessageHeader& header = message.header;
  // One walk a visit, whatever its chunks.
  ops::PieceCursor unapplied(message.layout.view(), header.bytes);
  unapplied.skip(work.chunk_start + work.applied);
  while (work.chunk_start < header.bytes) {
    Outcome outcome;
    if (work.phase == Phase::start) {
      outcome = prepare_chunk(from, message, work);
      if (outcome.step != Step::finished) return outcome;
    }
    if (work.phase == Phase::pulling) {
      outcome = wait_for_transfer(work.transfer_result, work);
      if (outcome.step != Step::finished) return outcome;
      work.phase = Phase::applying;
    }
    if (work.phase == Phase::applying) {
      outcome = apply_chunk(message, exposure, unapplied, reply_room, work);
      if (outcome.step != Step::finished) return outcome;
      outcome = push_chunk(from, message, work);
      if (outcome.step != Step::finished) return outcome;
    }
    if (work.phase == Phase::pushing) {
      outcome = wait_for_transfer(work.transfer_result, work);
      if (outcome.step != Step::finished) return outcome;
    }
    work.chunk_start += work.chunk_bytes;
    work.applied = 0;
    work.phase = Phase::start;
  }
  return {};
}

Outcome OperationApplier::prepare_chunk(Rank from, const wire::Message& message, RequestWork& work) {
  const wire::MessageHeader& header = message.header;
  const bool pulls = has(header, wire::flag_pull);
  const bool pushes = has(header, wire::flag_push);
  const std::uint64_t left = header.bytes - work.chunk_start;
  work.chunk_bytes = pulls || pushes ? std::min<std::uint64_t>(left, needs_.pull_bytes) : left;
  work.phase = Phase::applying;
  if (!pulls && !pushes) return {};
  if (work.slot == nullptr) {
    const auto free_slot = std::find_if(slots_.begin(), slots_.end(), [](const auto& slot) { return !slot->busy; });
    if (free_slot == slots_.end()) {
      work.phase = Phase::start;
      return {Step::again};
    }
    work.slot = free_slot->get();
    work.slot->busy = true;
    work.slot->operand.resize(pulls ? needs_.pull_bytes : 0);
    work.slot->result.resize(pushes ? needs_.pull_bytes : 0);
  }
  if (!pulls) return {};
  work.phase = Phase::pulling;
  const std::span<std::byte> into(work.slot->operand.data(), work.chunk_bytes);
  const std::uint64_t cookie = begin_transfer(work);
  const Transfer how = transport_->read(from, header.operand_address + work.chunk_start, into, cookie);
  if (how != Transfer::started) on_transfer(cookie, how);
  return {};
}

Outcome OperationApplier::push_chunk(Rank from, const wire::Message& message, RequestWork& work) {
  if (!has(message.header, wire::flag_push)) return {};
  work.phase = Phase::pushing;
  const std::span<const std::byte> what(work.slot->result.data(), work.chunk_bytes);
  const std::uint64_t cookie = begin_transfer(work);
  const Transfer how = transport_->write(from, message.header.result_address + work.chunk_start, what, cookie);
  if (how != Transfer::started) on_transfer(cookie, how);
  return {};
}

std::uint64_t OperationApplier::begin_transfer(RequestWork& work) {
  work.transfer_under_way = true;
  transfers_.emplace(++last_cookie_, &work);
  return last_cookie_;
}

void OperationApplier::on_transfer(std::uint64_t cookie, Transfer how) {
  const auto transfer = transfers_.find(cookie);
  RequestWork& work = *transfer->second;
  transfers_.erase(transfer);
  work.transfer_under_way = false;
  work.transfer_result = how;
}

Outcome OperationApplier::wait_for_transfer(Transfer how, RequestWork& work) {
  if (work.transfer_under_way) return {Step::again};
  if (how != Transfer::done) return Outcome::of(how);
  return {};
}

void OperationApplier::release(RequestWork& work) {
  if (work.slot != nullptr) work.slot->busy = false;
  work.slot = nullptr;
}

// `unapplied` is behind what of the message has been applied.
Outcome OperationApplier::apply_chunk(const wire::Message& message, const Exposure& exposure,
                                      ops::PieceCursor& unapplied, std::span<std::byte> reply_room, RequestWork& work) {
  const wire::MessageHeader& header = message.header;
  const std::uint64_t size = ops::size_of(header.type);
  const std::byte* operand = has(header, wire::flag_pull) ? work.slot->operand.data()
                             : message.operand.empty()    ? nullptr
                                                          : message.operand.data();
  std::byte* result = nullptr;
  if (returns_data(header.operation)) {
    if (!has(header, wire::flag_push) && reply_room.size() < header.bytes) return {Step::failed, Code::argument};
    result = has(header, wire::flag_push) ? work.slot->result.data() : reply_room.data();
  }
  Outcome outcome;
  const auto apply = [&](const ops::Piece& piece) {
    for (std::uint64_t inside = 0; inside < piece.bytes;) {
      const std::uint64_t offset = header.offset + static_cast<std::uint64_t>(piece.offset) + inside;
      const Run run = first_run(exposure, offset, piece.bytes - inside, size);
      if (run.region == nullptr) {
        outcome = {Step::failed, Code::range};
        return false;
      }
      std::uint64_t done = 0;
      const std::byte* from = operand == nullptr ? nullptr : operand + work.applied;
      std::byte* to = result == nullptr ? nullptr : result + work.applied;
      outcome = run.through_kernel ? apply_guarded(header, *run.region, offset, from, to, run.bytes, done)
                                   : apply_run(header, *run.region, offset, from, to, run.bytes, done);
      if (outcome.step != Step::finished) {
        work.applied += done;
        return false;
      }
      work.applied += run.bytes;
      inside += run.bytes;
    }
    return true;
  };
  std::uint64_t left = work.chunk_bytes - work.applied;
  const auto next = [&] {
    const ops::Piece piece = unapplied.next(left);
    left -= piece.bytes;
    return piece;
  };
  const ExposedRegion* const all = region_of_all(message, exposure);
  const bool may_be_asked_for = all != nullptr && !all->guarded;
  const std::uint64_t base = may_be_asked_for ? header.offset - all->offset : 0;
  ops::walk_ahead(
      next,
      [&](const ops::Piece& piece) __attribute__((always_inline)) {
        if (may_be_asked_for) __builtin_prefetch(all->memory + (base + static_cast<std::uint64_t>(piece.offset)), 1);
      },
      apply);
  return outcome;
}

OperationApplier::Run OperationApplier::first_run(const Exposure& exposure, std::uint64_t offset, std::uint64_t bytes,
                                                  std::uint64_t element_bytes) {
  const ExposedRegion* region = exposure.find_first(offset);
  if (region == nullptr) return {};
  const std::uint64_t at = offset - region->offset;
  const std::uint64_t here = region->bytes - at;
  // An element that straddles two regions goes through the kernel, which takes any address.
  return {region, at, std::min(bytes, std::max(here / element_bytes * element_bytes, element_bytes)),
          region->guarded || here < element_bytes};
}

Outcome OperationApplier::apply_run(const wire::MessageHeader& header, const ExposedRegion& region,
                                    std::uint64_t offset, const std::byte* operand, std::byte* result,
                                    std::uint64_t bytes, std::uint64_t& done) {
  const std::uint64_t at = offset - region.offset;
  if (header.operation == OperationKind::put) {
    std::memcpy(region.memory + at, operand, bytes);
    return {};
  }
  if (header.operation == OperationKind::get) {
    std::memcpy(result, region.memory + at, bytes);
    return {};
  }
  const Reduction reduction = reduction_of(*needs_.kernels, header);
  switch (apply_reduction(region.domain, lock_agent(), region.memory, at, operand, result, bytes, reduction, done)) {
    case Applied::done:
      return {};
    case Applied::busy:
      return {Step::again};
    case Applied::holder_dead:
      return {Step::failed, Code::peer_failed};
  }
  return {Step::failed, Code::system};
}

Outcome OperationApplier::apply_guarded(const wire::MessageHeader& header, const ExposedRegion& region,
                                        std::uint64_t offset, const std::byte* operand, std::byte* result,
                                        std::uint64_t bytes, std::uint64_t& done) {
  const std::uint64_t at = offset - region.offset;
  const std::uint64_t size = ops::size_of(header.type);
  const Reduction reduction = reduction_of(*needs_.kernels, header);
  const bool locked = is_atomic(header.operation);
  while (done < bytes) {
    const std::uint64_t run = region.domain.run_bytes(at + done, bytes - done, size);
    const auto address = reinterpret_cast<std::uintptr_t>(region.memory) + at + done;
    if (locked) {
      const Applied taken = take_first_stripes(region.domain, at + done, run, bytes - done, lock_agent());
      if (taken != Applied::done) return Outcome::not_taken(taken);
    }
    scratch_.resize(std::max<std::size_t>(scratch_.size(), run));
    const std::span<std::byte> copy(scratch_.data(), run);
    const bool reads = reduction.op != ops::Operator::replace || result != nullptr;
    Transfer how = reads ? transport_->read(needs_.rank, address, copy, needs_.rank) : Transfer::done;
    if (how == Transfer::done) {
      const std::byte* from = operand == nullptr ? nullptr : operand + done;
      if (result != nullptr) {
        reduction.fetch(copy.data(), from, result + done, run / size, reduction.alpha);
      } else {
        reduction.bulk(copy.data(), from, run / size, reduction.alpha);
      }
      if (writes(header)) how = transport_->write(needs_.rank, address, copy, needs_.rank);
    }
    if (locked) release_stripes(region.domain, at + done, run);
    if (how != Transfer::done) return Outcome::of(how);
    done += run;
  }
  return {};
}

// Elements of one region that come one behind the other go under one lock while they lie in its stripe.
Outcome OperationApplier::scatter(const wire::Message& message, const Exposure& exposure, RequestWork& work) {
  const std::uint64_t size = ops::size_of(message.header.type);
  offsets_.resize(message.offsets.size() / sizeof(std::int64_t));
  // Both are null where there are none.
  if (!offsets_.empty()) std::memcpy(offsets_.data(), message.offsets.data(), message.offsets.size());
  const Reduction reduction = reduction_of(*needs_.kernels, message.header);
  const LockAgent agent = lock_agent();
  while (work.applied < message.header.bytes) {
    const std::span<const std::int64_t> left = std::span(offsets_).subspan(work.applied / size);
    const auto offset = static_cast<std::uint64_t>(left.front());
    const ExposedRegion* region = exposure.find_first(offset);
    if (region == nullptr) return {Step::failed, Code::range};
    const std::byte* operand = message.operand.data() + work.applied;
    const std::size_t count = region->guarded ? 0 : count_inside(*region, left, size);
    if (count == 0) {
      std::uint64_t done = 0;
      const Outcome outcome = apply_guarded(message.header, *region, offset, operand, nullptr, size, done);
      if (outcome.step != Step::finished) return outcome;
      work.applied += size;
      continue;
    }
    RowReducer reducer(region->domain, agent, region->memory, reduction);
    const Applied applied = reducer.apply(ElementList{0 - region->offset, left.first(count), size, operand});
    work.applied += (applied == Applied::done ? count : reducer.refused_piece()) * size;
    if (applied != Applied::done) return Outcome::not_taken(applied);
  }
  return {};
}

// The first of the elements that lie in the region whole.
std::size_t OperationApplier::count_inside(const ExposedRegion& region, std::span<const std::int64_t> offsets,
                                           std::uint64_t element_bytes) {
  if (region.bytes < element_bytes) return 0;
  std::size_t count = 0;
  // What lies before the region wraps around.
  while (count < offsets.size() &&
         static_cast<std::uint64_t>(offsets[count]) - region.offset <= region.bytes - element_bytes)
    ++count;
  return count;
}

Outcome OperationApplier::compare_and_swap(const wire::Message& message, const Exposure& exposure,
                                           std::span<std::byte> reply_room) {
  const wire::MessageHeader& header = message.header;
  const std::uint64_t size = header.bytes;
  if (reply_room.size() < size) return {Step::failed, Code::argument};
  const ExposedRegion& region = *exposure.find_first(header.offset);
  const std::uint64_t at = header.offset - region.offset;
  const std::byte* expected = message.operand.data();
  const std::byte* desired = expected + size;
  if (!region.guarded && region.bytes - at >= size) {
    const Applied applied = apply_compare_and_swap(region.domain, lock_agent(), region.memory, at, expected, desired,
                                                   reply_room.data(), header.type);
    if (applied == Applied::busy) return {Step::again};
    return applied == Applied::done ? Outcome{} : Outcome{Step::failed, Code::peer_failed};
  }
  const Applied taken = take_stripes(region.domain, at, size, lock_agent());
  if (taken != Applied::done) return Outcome::not_taken(taken);
  const auto address = reinterpret_cast<std::uintptr_t>(region.memory) + at;
  Transfer how = transport_->read(needs_.rank, address, reply_room.first(size), needs_.rank);
  if (how == Transfer::done && std::memcmp(reply_room.data(), expected, size) == 0) {
    how = transport_->write(needs_.rank, address, {desired, size}, needs_.rank);
  }
  release_stripes(region.domain, at, size);
  return Outcome::of(how);
}

}  // namespace farsum
