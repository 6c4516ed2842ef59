#include "window/copied_path.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "protocol/packed_sides.hpp"
#include "protocol/presence.hpp"

namespace farsum {

namespace {

// Each call of the kernel costs as much as copying some kilobytes, so pieces go there many at a time.
constexpr std::size_t most_pieces = 64;

// Pieces that go together, with the packed bytes that they stand for.
class PieceBatch {
 public:
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == pieces_.size(); }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t end() const { return pieces_[count_ - 1].remote_address + pieces_[count_ - 1].bytes; }
  std::uint64_t first() const { return pieces_[0].remote_address; }
  std::span<const TransferPiece> pieces() const { return std::span(pieces_).first(count_); }
  void add(const TransferPiece& piece) {
    pieces_[count_++] = piece;
    bytes_ += piece.bytes;
  }
  void clear() { count_ = bytes_ = 0; }

 private:
  std::array<TransferPiece, most_pieces> pieces_;
  std::size_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Transfer CopiedPath::fetch_pieces(const Region& region, Rank owner, std::span<const TransferPiece> pieces,
                                  bool through_kernel) const {
  if (through_kernel) return needs_.transport.read_pieces(owner, pieces);
  for (const TransferPiece& piece : pieces)
    std::memcpy(piece.local, region.mapped + (piece.remote_address - region.owner_address), piece.bytes);
  return Transfer::done;
}

Transfer CopiedPath::store_pieces(const Region& region, Rank owner, std::span<const TransferPiece> pieces,
                                  bool through_kernel) const {
  if (through_kernel) return needs_.transport.write_pieces(owner, pieces);
  for (const TransferPiece& piece : pieces)
    std::memcpy(region.mapped + (piece.remote_address - region.owner_address), piece.local, piece.bytes);
  return Transfer::done;
}

// What of pieces that could not be moved is not there, as part of a sentence; empty where all can be read.
std::string CopiedPath::name_missing(Rank owner, std::span<const TransferPiece> pieces) const {
  for (const TransferPiece& piece : pieces) {
    const auto page = first_missing_page(needs_.transport, owner, piece.remote_address, piece.bytes);
    if (page) return fmt::format("; its page at {:#x} is not there", *page);
  }
  return {};
}

Status CopiedPath::attach(const Operation& operation, std::uint32_t target, const Region& region) const {
  if (is_atomic(operation.kind)) {
    const bool is_one = operation.bytes == ops::size_of(operation.type) && is_contiguous(operation.target_layout);
    return is_one ? update_element_by_copy(operation, target, region)
                  : reduce_by_copy(operation, target, region, CallerLock::stripe, true);
  }
  const Rank owner = needs_.ranks[target];
  const std::uint64_t base = region.owner_address + (operation.offset - region.offset);
  const bool puts = operation.kind == OperationKind::put;
  // A piece serves both directions; the operand of a put is only read.
  std::byte* here = puts ? const_cast<std::byte*>(operation.operand) : operation.result;
  Transfer how = Transfer::done;
  std::string missing;
  PieceBatch batch;
  const auto move = [&] {
    how = puts ? needs_.transport.write_pieces(owner, batch.pieces())
               : needs_.transport.read_pieces(owner, batch.pieces());
    if (how == Transfer::bad_address) missing = name_missing(owner, batch.pieces());
    batch.clear();
    return how == Transfer::done;
  };
  ops::for_each_pair(operation.target_layout, puts ? operation.operand_layout : operation.result_layout,
                     operation.bytes, 1, ops::no_piece_limit,
                     [&](std::int64_t there, std::int64_t local, std::uint64_t bytes) {
                       batch.add({base + static_cast<std::uint64_t>(there), here + local, bytes});
                       return !batch.full() || move();
                     });
  if (how == Transfer::done && !batch.empty()) (void)move();
  return needs_.texts.transferred(how, call_name(operation.kind), target, {operation.offset, operation.bytes, missing});
}

// Paper 1's caller-computes. Puts and gets need no computing: they are moved.
Status CopiedPath::caller(const Operation& operation, std::uint32_t target, const Region& region) const {
  const bool through_kernel = region.mapped == nullptr;
  if (is_atomic(operation.kind)) return reduce_by_copy(operation, target, region, needs_.caller_lock, through_kernel);
  return through_kernel ? attach(operation, target, region) : needs_.mapped.run(operation, target, region);
}

namespace {

// All stripes of a region, taken in ascending order of their place in the table, so that two callers cannot wait for
// each other.
class RegionLock {
 public:
  RegionLock(const AtomicDomain& domain, std::uint64_t region_bytes, const LockAgent& agent) : domain_(domain) {
    const std::uint64_t first = domain.stripe_of(0);
    const std::uint64_t last = domain.stripe_of(region_bytes == 0 ? 0 : region_bytes - 1);
    const std::uint64_t count = std::min<std::uint64_t>(last - first + 1, std::uint64_t{domain.mask} + 1);
    for (std::uint64_t i = 0; i < count; ++i) stripes_.push_back(static_cast<std::uint32_t>((first + i) & domain.mask));
    std::sort(stripes_.begin(), stripes_.end());
    for (; taken_ < stripes_.size(); ++taken_) {
      if (take_stripe(domain.locks[stripes_[taken_]], agent) != Applied::done) return;
    }
  }
  ~RegionLock() {
    while (taken_ != 0) domain_.locks[stripes_[--taken_]].release();
  }
  RegionLock(const RegionLock&) = delete;
  RegionLock& operator=(const RegionLock&) = delete;
  bool held() const { return taken_ == stripes_.size(); }
  // Table index of the stripe that could not be had.
  std::uint32_t refused() const { return stripes_[taken_]; }

 private:
  const AtomicDomain& domain_;
  std::vector<std::uint32_t> stripes_;
  std::size_t taken_ = 0;
};

}  // namespace

CopiedPath::Update CopiedPath::update_of(const Operation& operation) const {
  const bool fetches = operation.result != nullptr;
  if (operation.kind == OperationKind::compare_and_swap)
    return {{operation.type, ops::Operator::replace}, operation.compare, fetches};
  return {make_reduction(needs_.kernels, operation.type, operation.op, operation.alpha, 0), nullptr, fetches};
}

// It has room for the element and no more. What stays as it was, as where a compare-and-swap fails, is not written: a
// call of the kernel takes longer than all the rest.
Status CopiedPath::update_element(const Update& update, const Element& element) const {
  const Region& region = element.region;
  const std::uint64_t at = element.offset - region.offset;
  const std::uint64_t bytes = update.reduction.element_bytes();
  const Rank owner = needs_.ranks[element.target];
  alignas(ops::largest_element_bytes) std::array<std::byte, ops::largest_element_bytes> copy;
  std::array<std::byte, ops::largest_element_bytes> before;
  const TransferPiece piece{region.owner_address + at, copy.data(), bytes};
  const Applied applied = take_stripes(region.domain, at, bytes, needs_.agent);
  if (applied != Applied::done) return needs_.texts.applied(applied, region.domain, at, element.call, element.target);
  Transfer how = update.gets() ? needs_.transport.read_pieces(owner, {&piece, 1}) : Transfer::done;
  if (how == Transfer::done) {
    if (update.gets()) std::memcpy(before.data(), copy.data(), bytes);
    update.apply(copy.data(), 1, element.operand, element.result);
    const bool stays = update.gets() && std::memcmp(before.data(), copy.data(), bytes) == 0;
    if (update.puts() && !stays) how = needs_.transport.write_pieces(owner, {&piece, 1});
  }
  release_stripes(region.domain, at, bytes);
  // It may have no memory for its text: not with the stripe.
  std::string missing;
  if (how == Transfer::bad_address) missing = name_missing(owner, {&piece, 1});
  return needs_.texts.transferred(how, element.call, element.target, {element.offset, bytes, missing});
}

Status CopiedPath::update_element_by_copy(const Operation& operation, std::uint32_t target,
                                          const Region& region) const {
  const PackedOperand operand(operation);
  PackedResult result(operation);
  Status status = update_element(update_of(operation), {call_name(operation.kind), target, region, operation.offset,
                                                        operand.data(), result.data()});
  if (status.is_ok()) result.deliver();
  return status;
}

Status CopiedPath::reduce_by_copy(const Operation& operation, std::uint32_t target, const Region& region,
                                  CallerLock granularity, bool through_kernel) const {
  const char* call = call_name(operation.kind);
  const Rank owner = needs_.ranks[target];
  const std::uint64_t base = operation.offset - region.offset;
  const Update computation = update_of(operation);
  const std::uint64_t element = computation.reduction.element_bytes();
  const PackedOperand operand(operation);
  PackedResult result(operation);
  const std::uint64_t copy_bytes =
      granularity == CallerLock::region ? operation.bytes : std::min<std::uint64_t>(operation.bytes, stripe_bytes);
  const auto copy = std::make_unique_for_overwrite<std::byte[]>(copy_bytes);

  Transfer how = Transfer::done;
  std::string missing;
  std::uint64_t packed = 0;  // bytes of the operand before the batch
  const auto compute = [&](const PieceBatch& batch) {
    if (computation.gets()) how = fetch_pieces(region, owner, batch.pieces(), through_kernel);
    if (how != Transfer::done) return;
    computation.apply(copy.get(), batch.bytes() / element, offset_by(operand.data(), static_cast<std::int64_t>(packed)),
                      offset_by(result.data(), static_cast<std::int64_t>(packed)));
    if (computation.puts()) how = store_pieces(region, owner, batch.pieces(), through_kernel);
  };

  std::optional<RegionLock> region_lock;
  if (granularity == CallerLock::region) {
    region_lock.emplace(region.domain, region.bytes, needs_.agent);
    if (!region_lock->held()) {
      const Rank dead = region.domain.locks[region_lock->refused()].holder() - 1;
      return {Code::peer_failed, fmt::format("{}: {} while it held stripe {} of the region{}",
                                             needs_.texts.where(call, target), fate_of(needs_.agent.liveness, dead),
                                             region_lock->refused(), cause_of_death(needs_.agent.liveness, dead))};
    }
  }
  Applied applied = Applied::done;
  std::uint64_t failed_at = base;
  // Pieces of one stripe are updated together where they ascend: of one that comes twice each update is to count.
  PieceBatch batch;
  const auto update = [&] {
    const std::uint64_t at = batch.first() - region.owner_address;
    failed_at = at;
    // One piece may straddle two stripes; several lie in one.
    const std::uint64_t reach = batch.pieces().size() == 1 ? batch.bytes() : 1;
    if (granularity != CallerLock::region) applied = take_stripes(region.domain, at, reach, needs_.agent);
    if (applied != Applied::done) return false;
    compute(batch);
    if (granularity != CallerLock::region) release_stripes(region.domain, at, reach);
    if (how == Transfer::bad_address) missing = name_missing(owner, batch.pieces());
    packed += batch.bytes();
    batch.clear();
    return how == Transfer::done;
  };
  const auto joins = [&](std::uint64_t at, std::uint64_t bytes) {
    if (batch.full() || granularity == CallerLock::element || region.owner_address + at < batch.end()) return false;
    if (granularity == CallerLock::region) return true;
    const std::uint64_t first = batch.first() - region.owner_address;
    return at + bytes <= first + region.domain.bytes_left_in_stripe(first);
  };
  const auto run = [&](std::int64_t to, std::int64_t, std::uint64_t bytes) {
    for (std::uint64_t done = 0; done < bytes;) {
      const std::uint64_t at = base + static_cast<std::uint64_t>(to) + done;
      const std::uint64_t left = bytes - done;
      const std::uint64_t here = granularity == CallerLock::region ? left
                                 : granularity == CallerLock::element
                                     ? element
                                     : region.domain.run_bytes(at, std::min(left, stripe_bytes), element);
      if (!batch.empty() && !joins(at, here) && !update()) return false;
      batch.add({region.owner_address + at, copy.get() + batch.bytes(), here});
      done += here;
    }
    return true;
  };
  ops::for_each_pair(operation.target_layout, ops::LayoutView::contiguous(operation.bytes), operation.bytes, element,
                     ops::no_piece_limit, run);
  if (applied == Applied::done && how == Transfer::done && !batch.empty()) (void)update();
  if (applied != Applied::done) return needs_.texts.applied(applied, region.domain, failed_at, call, target);
  if (how == Transfer::done) result.deliver();
  return needs_.texts.transferred(how, call, target, {region.offset + failed_at, element, missing});
}

}  // namespace farsum
