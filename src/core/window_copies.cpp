// The paths on which the origin computes on a copy: attach, where the kernel moves the bytes, and paper 1's
// caller-computes.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "core/packed_sides.hpp"
#include "core/window.hpp"

namespace farsum {

Transfer Window::fetch_bytes(const Region& region, Rank owner, std::uint64_t at, std::span<std::byte> into,
                             bool through_kernel) {
  if (!through_kernel) {
    std::memcpy(into.data(), region.mapped + at, into.size());
    return Transfer::done;
  }
  return parts_.transport->read(owner, region.owner_address + at, into, 0);
}

Transfer Window::store_bytes(const Region& region, Rank owner, std::uint64_t at, std::span<const std::byte> from,
                             bool through_kernel) {
  if (!through_kernel) {
    std::memcpy(region.mapped + at, from.data(), from.size());
    return Transfer::done;
  }
  return parts_.transport->write(owner, region.owner_address + at, from, 0);
}

Status Window::run_attach(const Operation& operation, std::uint32_t target, const Region& region) {
  if (is_atomic(operation.kind)) return reduce_by_copy(operation, target, region, CallerLock::stripe, true);
  const Rank owner = parts_.ranks[target];
  const std::uint64_t base = operation.offset - region.offset;
  Transfer how = Transfer::done;
  if (operation.kind == OperationKind::put) {
    ops::for_each_pair(operation.target_layout, operation.operand_layout, 1, ops::no_piece_limit,
                       [&](std::int64_t to, std::int64_t from, std::uint64_t bytes) {
                         how = store_bytes(region, owner, base + static_cast<std::uint64_t>(to),
                                           {operation.operand + from, bytes}, true);
                         return how == Transfer::done;
                       });
  } else {
    ops::for_each_pair(operation.target_layout, operation.result_layout, 1, ops::no_piece_limit,
                       [&](std::int64_t from, std::int64_t to, std::uint64_t bytes) {
                         how = fetch_bytes(region, owner, base + static_cast<std::uint64_t>(from),
                                           {operation.result + to, bytes}, true);
                         return how == Transfer::done;
                       });
  }
  return transfer_status(how, call_name(operation.kind), target, operation.offset, operation.bytes);
}

// Paper 1's caller-computes. Puts and gets need no computing: they are moved.
Status Window::run_caller(const Operation& operation, std::uint32_t target, const Region& region) {
  const bool through_kernel = region.mapped == nullptr;
  if (is_atomic(operation.kind))
    return reduce_by_copy(operation, target, region, parts_.settings.caller_lock, through_kernel);
  return through_kernel ? run_attach(operation, target, region) : run_direct(operation, target, region);
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
      const bool ok = domain.locks[stripes_[taken_]].acquire(agent.id, [&](std::uint32_t holder) {
        return agent.liveness != nullptr && agent.liveness->is_dead(holder - 1);
      });
      if (!ok) return;
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

Status Window::reduce_by_copy(const Operation& operation, std::uint32_t target, const Region& region,
                              CallerLock granularity, bool through_kernel) {
  const char* call = call_name(operation.kind);
  const Rank owner = parts_.ranks[target];
  const std::uint64_t base = operation.offset - region.offset;
  const bool swaps = operation.kind == OperationKind::compare_and_swap;
  const Reduction reduction = swaps ? Reduction{operation.type, ops::Operator::replace}
                                    : make_reduction(*parts_.kernels, operation.type, operation.op, operation.alpha);
  const std::uint64_t element = reduction.element_bytes();
  const PackedOperand operand(operation);
  PackedResult result(operation);
  // REPLACE without a result needs no get (paper 1, footnote 2); NO_OP needs no put.
  const bool gets = swaps || result.data() != nullptr || reduction.op != ops::Operator::replace;
  const bool puts = swaps || reduction.op != ops::Operator::no_op;
  std::vector<std::byte> copy(
      std::min<std::uint64_t>(operation.bytes, granularity == CallerLock::region ? operation.bytes : stripe_bytes));

  Transfer how = Transfer::done;
  const auto compute = [&](std::uint64_t at, std::uint64_t packed, std::uint64_t bytes) {
    const std::span<std::byte> here(copy.data(), bytes);
    if (gets) how = fetch_bytes(region, owner, at, here, through_kernel);
    if (how != Transfer::done) return;
    const std::byte* from = offset_by(operand.data(), static_cast<std::int64_t>(packed));
    std::byte* to = offset_by(result.data(), static_cast<std::int64_t>(packed));
    if (swaps) {
      ops::plain_compare_and_swap(here.data(), operation.compare, from, to, operation.type);
    } else if (to != nullptr) {
      reduction.fetch(here.data(), from, to, bytes / element, reduction.alpha);
    } else {
      reduction.bulk(here.data(), from, bytes / element, reduction.alpha);
    }
    if (puts) how = store_bytes(region, owner, at, here, through_kernel);
  };

  std::optional<RegionLock> region_lock;
  if (granularity == CallerLock::region) {
    region_lock.emplace(region.domain, region.bytes, parts_.lock_agent);
    if (!region_lock->held()) {
      const Rank dead = region.domain.locks[region_lock->refused()].holder() - 1;
      return {Code::peer_failed,
              fmt::format("{}: rank {} of the job died while it held stripe {} of the region{}", where(call, target),
                          dead, region_lock->refused(), cause_of_death(parts_.lock_agent.liveness, dead))};
    }
  }
  Applied applied = Applied::done;
  std::uint64_t failed_at = base;
  const auto run = [&](std::int64_t to, std::int64_t from, std::uint64_t bytes) {
    for (std::uint64_t done = 0; done < bytes;) {
      const std::uint64_t at = base + static_cast<std::uint64_t>(to) + done;
      const std::uint64_t left = bytes - done;
      const std::uint64_t here = granularity == CallerLock::region ? left
                                 : granularity == CallerLock::element
                                     ? element
                                     : region.domain.run_bytes(at, std::min(left, stripe_bytes), element);
      if (granularity != CallerLock::region) applied = take_stripes(region.domain, at, here, parts_.lock_agent);
      failed_at = at;
      if (applied != Applied::done) return false;
      compute(at, static_cast<std::uint64_t>(from) + done, here);
      if (granularity != CallerLock::region) release_stripes(region.domain, at, here);
      if (how != Transfer::done) return false;
      done += here;
    }
    return true;
  };
  ops::for_each_pair(operation.target_layout, ops::LayoutView::contiguous(operation.bytes), element,
                     ops::no_piece_limit, run);
  if (applied != Applied::done) return applied_status(applied, region.domain, failed_at, call, target);
  if (how == Transfer::done) result.deliver();
  return transfer_status(how, call, target, region.offset + failed_at, element);
}

}  // namespace farsum
