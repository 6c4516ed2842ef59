#include "variants/leases/lease_service.hpp"

#include <algorithm>
#include <cstring>

#include "ops/atomics.hpp"

namespace farsum {
namespace {

// The longest reply to a put of what is pending.
std::uint64_t refusal_bytes(const Lease& lease, bool is_last) {
  const std::uint64_t contents = is_last ? 0 : lease.pending.count() * ops::size_of(lease.type);
  return wire::lease_word_bytes + PendingElements::bytes_for(lease.pending.size()) + contents;
}

// What is refused, and what is there now.
std::uint32_t write_refusal(const Lease& lease, bool is_last, std::span<std::byte> reply) {
  const std::uint64_t count = lease.pending.count(), size = ops::size_of(lease.type);
  std::memcpy(reply.data(), &count, wire::lease_word_bytes);
  const auto words = lease.pending.words();
  std::memcpy(reply.data() + wire::lease_word_bytes, words.data(), words.size());
  std::byte* to = reply.data() + wire::lease_word_bytes + words.size();
  for (std::uint64_t element = 0; !is_last && element < lease.pending.size(); ++element) {
    if (!lease.pending.contains(element)) continue;
    std::memcpy(to, lease.copy.data() + element * size, size);
    to += size;
  }
  return static_cast<std::uint32_t>(to - reply.data());
}

}  // namespace

Served LeaseService::grant(Rank from, const wire::Message& message, const Exposure& exposure,
                           std::span<std::byte> reply_room, RequestWork& work) {
  const wire::MessageHeader& header = message.header;
  const std::uint64_t elements = header.bytes / ops::size_of(header.type);
  if (reply_room.size() < wire::lease_word_bytes || reply_room.size() - wire::lease_word_bytes < header.bytes)
    return {Served::Kind::done, Code::argument, 0};
  const std::uint64_t cost =
      LeaseTable::cost_of(header.bytes, elements) + message.layout.view().pieces().size() * sizeof(ops::Piece);
  const std::uint64_t now_ns = now_ns_ ? now_ns_() : 0;
  if (work.phase == RequestWork::Phase::start) {
    if (const Code code = applier_.check_extent(message, exposure); code != Code::ok)
      return {Served::Kind::done, code, 0};
  }
  if (!leases_.make_room(cost, now_ns)) return {Served::Kind::done, Code::pending, 0};
  const std::span<std::byte> contents = reply_room.subspan(wire::lease_word_bytes, header.bytes);
  const Outcome outcome = applier_.operate(from, message, exposure, contents, work);
  if (outcome.step == Step::again) return {Served::Kind::again};
  if (outcome.step == Step::failed) return {Served::Kind::done, outcome.code, 0};
  Lease lease{header.window,
              header.type,
              header.offset,
              message.layout,
              {contents.begin(), contents.end()},
              PendingElements(elements)};
  const std::uint64_t id = leases_.grant(from, std::move(lease), now_ns);
  std::memcpy(reply_room.data(), &id, wire::lease_word_bytes);
  return {Served::Kind::done, Code::ok, static_cast<std::uint32_t>(wire::lease_word_bytes + header.bytes)};
}

Served LeaseService::put(Rank from, const wire::Message& message, const Exposure& exposure,
                         std::span<std::byte> reply_room, RequestWork& work) {
  const wire::MessageHeader& header = message.header;
  Lease* lease = leases_.find(from, header.offset);
  if (lease == nullptr) return {Served::Kind::done, Code::pending, 0};
  const bool is_last = (header.flags & wire::flag_last) != 0;
  const bool begins = work.applied == 0;
  const bool fits = lease->window == header.window && lease->type == header.type &&
                    (!begins || (header.bytes == lease->pending.count() * ops::size_of(lease->type) &&
                                 reply_room.size() >= refusal_bytes(*lease, is_last)));
  if (!fits) return {Served::Kind::done, Code::argument, 0};
  const Outcome outcome = put_back(*lease, message.operand, exposure, work);
  lease->is_in_work = outcome.step == Step::again;
  if (lease->is_in_work) return {Served::Kind::again};
  std::uint32_t reply_bytes = 0;
  if (outcome.step == Step::finished && lease->pending.count() != 0)
    reply_bytes = write_refusal(*lease, is_last, reply_room);
  if (outcome.step == Step::failed || is_last || lease->pending.count() == 0) leases_.end(from, header.offset);
  return {Served::Kind::done, outcome.code, reply_bytes};
}

// work.applied counts bytes of the lease, work.chunk_start bytes of the values, which are those of what was
// pending at the beginning.
Outcome LeaseService::put_back(Lease& lease, std::span<const std::byte> values, const Exposure& exposure,
                               RequestWork& work) {
  const std::uint64_t size = ops::size_of(lease.type);
  ops::PieceCursor cursor(lease.layout.view(), lease.copy.size());
  cursor.skip(work.applied);
  while (work.applied < lease.copy.size()) {
    const ops::Piece piece = cursor.next(lease.copy.size() - work.applied);
    for (std::uint64_t inside = 0; inside < piece.bytes;) {
      const std::uint64_t offset = lease.offset + static_cast<std::uint64_t>(piece.offset) + inside;
      OperationApplier::Run run = OperationApplier::first_run(exposure, offset, piece.bytes - inside, size);
      if (run.region == nullptr) return {Step::failed, Code::range};
      run.bytes = run.region->domain.run_bytes(run.at, run.bytes, size);
      const std::uint64_t first = work.applied / size;
      const std::uint64_t pending = lease.pending.count_in(first, run.bytes / size);
      if (pending != 0) {
        const Outcome outcome = put_back_run(lease, run, first, values.data() + work.chunk_start);
        if (outcome.step != Step::finished) return outcome;
      }
      work.chunk_start += pending * size;
      work.applied += run.bytes;
      inside += run.bytes;
    }
  }
  return {};
}

namespace {

// Where elements are written: memory that the thread addresses, or another's through the kernel.
class Destination {
 public:
  Destination(Transport* kernel, Rank rank, std::byte* memory) : kernel_(kernel), rank_(rank), memory_(memory) {}

  void write(std::uint64_t at, const std::byte* values, std::uint64_t bytes) {
    if (how_ != Transfer::done || bytes == 0) return;
    if (kernel_ == nullptr)
      std::memcpy(memory_ + at, values, bytes);
    else
      how_ = kernel_->write(rank_, reinterpret_cast<std::uintptr_t>(memory_) + at, {values, bytes}, rank_);
  }
  Transfer how() const { return how_; }

 private:
  Transport* kernel_;
  Rank rank_;
  std::byte* memory_;
  Transfer how_ = Transfer::done;
};

// What has been changed stays pending, with what is there now. `now` is the memory of the run, which nobody changes
// meanwhile.
void compare_and_put(Lease& lease, std::uint64_t first, std::uint64_t bytes, const std::byte* now,
                     const std::byte* values, Destination& to) {
  const std::uint64_t size = ops::size_of(lease.type);
  std::byte* copy = lease.copy.data() + first * size;
  const std::uint64_t elements = bytes / size;
  if (lease.pending.count_in(first, elements) == elements && std::memcmp(now, copy, bytes) == 0) {
    to.write(0, values, bytes);
    for (std::uint64_t i = 0; i < elements; ++i) lease.pending.finish(first + i);
    return;
  }
  for (std::uint64_t i = 0; i < elements; ++i) {
    if (!lease.pending.contains(first + i)) continue;
    if (std::memcmp(now + i * size, copy + i * size, size) == 0) {
      to.write(i * size, values, size);
      lease.pending.finish(first + i);
    } else {
      std::memcpy(copy + i * size, now + i * size, size);
    }
    values += size;
  }
}

// Memory of CPU atomics alone: each element by one of them.
void exchange_by_atomics(Lease& lease, std::uint64_t first, std::uint64_t bytes, std::byte* memory,
                         const std::byte* values) {
  const std::uint64_t size = ops::size_of(lease.type);
  for (std::uint64_t at = 0; at < bytes; at += size) {
    const std::uint64_t element = first + at / size;
    if (!lease.pending.contains(element)) continue;
    std::byte* copy = lease.copy.data() + element * size;
    std::byte old[ops::largest_element_bytes];
    ops::atomic_compare_and_swap(memory + at, copy, values, old, lease.type);
    if (std::memcmp(old, copy, size) == 0)
      lease.pending.finish(element);
    else
      std::memcpy(copy, old, size);
    values += size;
  }
}

}  // namespace

Outcome LeaseService::put_back_run(Lease& lease, const OperationApplier::Run& run, std::uint64_t first,
                                   const std::byte* values) {
  const AtomicDomain& domain = run.region->domain;
  std::byte* memory = run.region->memory + run.at;
  if (domain.atomics_only && !run.through_kernel) {
    exchange_by_atomics(lease, first, run.bytes, memory, values);
    return {};
  }
  const Applied taken = take_stripes(domain, run.at, run.bytes, applier_.lock_agent());
  if (taken != Applied::done) return Outcome::not_taken(taken);
  const std::byte* now = memory;
  Transfer how = Transfer::done;
  if (run.through_kernel) {
    scratch_.resize(std::max<std::size_t>(scratch_.size(), run.bytes));
    now = scratch_.data();
    const std::span<std::byte> copy(scratch_.data(), run.bytes);
    how = applier_.transport().read(applier_.rank(), reinterpret_cast<std::uintptr_t>(memory), copy, applier_.rank());
  }
  if (how == Transfer::done) {
    Destination to(run.through_kernel ? &applier_.transport() : nullptr, applier_.rank(), memory);
    compare_and_put(lease, first, run.bytes, now, values, to);
    how = to.how();
  }
  release_stripes(domain, run.at, run.bytes);
  return Outcome::of(how);
}

}  // namespace farsum
