// How an operation that did not finish on the hot path is carried out: one decision (route), then one body per path.
#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "core/window.hpp"

namespace farsum {
namespace {

bool is_contiguous(const ops::LayoutView& layout) { return layout.kind() == ops::LayoutKind::contiguous; }

std::byte* offset_by(std::byte* base, std::int64_t offset) { return base == nullptr ? nullptr : base + offset; }
const std::byte* offset_by(const std::byte* base, std::int64_t offset) { return base == nullptr ? nullptr : base + offset; }

// An origin side as packed bytes: the user's buffer where it is contiguous, else a copy.
class PackedOperand {
 public:
  explicit PackedOperand(const Operation& operation) : bytes_(operation.operand) {
    if (operation.operand == nullptr || is_contiguous(operation.operand_layout)) return;
    copy_.resize(operation.bytes);
    std::byte* to = copy_.data();
    ops::PieceCursor cursor(operation.operand_layout);
    for (ops::Piece piece = cursor.next(); piece.bytes != 0; piece = cursor.next()) {
      std::memcpy(to, operation.operand + piece.offset, piece.bytes);
      to += piece.bytes;
    }
    bytes_ = copy_.data();
  }
  const std::byte* data() const { return bytes_; }

 private:
  const std::byte* bytes_;
  std::vector<std::byte> copy_;
};

class PackedResult {
 public:
  explicit PackedResult(const Operation& operation) : operation_(operation), bytes_(operation.result) {
    if (operation.result == nullptr || is_contiguous(operation.result_layout)) return;
    copy_.resize(operation.bytes);
    bytes_ = copy_.data();
  }
  std::byte* data() { return bytes_; }
  // Puts a copy where the user wants it.
  void deliver() {
    if (copy_.empty()) return;
    const std::byte* from = copy_.data();
    ops::PieceCursor cursor(operation_.result_layout);
    for (ops::Piece piece = cursor.next(); piece.bytes != 0; piece = cursor.next()) {
      std::memcpy(operation_.result + piece.offset, from, piece.bytes);
      from += piece.bytes;
    }
  }

 private:
  const Operation& operation_;
  std::byte* bytes_;
  std::vector<std::byte> copy_;
};

// " after rank 3 of the job died" where another rank's death came before that of `dead`; else nothing. Tells the others of it.
std::string cause_of_death(const Liveness* liveness, Rank dead) {
  if (liveness == nullptr) return {};
  const Rank first = liveness->declare_dead(dead);
  return first == dead ? std::string() : fmt::format(" after rank {} of the job died", first);
}

// Names the rank whose death made a message fail, where one of `ranks` is found dead.
std::string name_the_dead(const Liveness* liveness, const std::vector<Rank>& ranks) {
  for (const Rank rank : ranks) {
    if (liveness != nullptr && liveness->is_dead(rank)) {
      return fmt::format(": rank {} of the job died", liveness->declare_dead(rank));
    }
  }
  return {};
}

// One element of a lockable or any type: what the agent or a CPU atomic does best.
bool is_single_element(const Operation& operation) {
  return is_atomic(operation.kind) && operation.bytes == ops::size_of(operation.type);
}

}  // namespace

Status Window::operate(const Operation& operation, std::uint32_t target, Completion completion, RequestState* request) {
  if (Status status = check(operation, target); !status.is_ok()) {
    if (!parts_.dynamic || status.code() != Code::range) return status;
    // A rank that died while it changed its table exposes nothing any more.
    const std::string dead = name_the_dead(parts_.lock_agent.liveness, {parts_.ranks[target]});
    return dead.empty() ? std::move(status) : Status(Code::peer_failed, where(call_name(operation.kind), target) + dead);
  }
  // An accumulate of no_op does nothing, and its operand may be null.
  const bool does_nothing = operation.bytes == 0 || (operation.kind == OperationKind::accumulate && operation.op == ops::Operator::no_op);
  if (does_nothing && !operation.notify) {
    if (request != nullptr) request->done.store(true, std::memory_order_release);
    return {};
  }
  Result<Route> route = this->route(operation, target);
  if (!route.is_ok()) return route.take_status();
  // What somebody waits for is not gathered; what was gathered goes before it.
  if (route.value().path == Path::aggregated && completion != Completion::implicit) route.value().path = Path::owner;
  return carry_out(operation, target, route.value(), completion, request);
}

Result<Window::Route> Window::route(const Operation& operation, std::uint32_t target) {
  Route route;
  const ops::Extent extent = *operation.target_layout.extent();
  const std::uint64_t low = operation.offset + static_cast<std::uint64_t>(extent.low);
  const auto length = static_cast<std::uint64_t>(extent.high - extent.low);
  if (length == 0) {  // a bare notification
    route.path = Path::owner;
    return route;
  }
  route.at = region_at(target, low, length);
  if (route.at.region == nullptr) return Status(Code::range, fmt::format("{}: the memory was detached", where(call_name(operation.kind), target)));
  const bool atomic = is_single_element(operation);
  route.path = atomic ? route.at.region->atomic : route.at.region->bulk;
  // Bulk atomics on memory that only CPU atomics may touch follow the atomic path.
  if (is_atomic(operation.kind) && route.at.region->domain.bare) route.path = route.at.region->atomic;
  // What crosses from one region into the next is contiguous at the owner, and the owner's stripes guard all of it alike.
  if (!route.at.whole && (route.path == Path::direct || route.path == Path::caller)) route.path = Path::owner;
  const bool gathers = atomic && operation.kind == OperationKind::accumulate && !operation.notify;
  if (route.path == Path::aggregated && !gathers) route.path = Path::owner;
  return route;
}

Status Window::carry_out(const Operation& operation, std::uint32_t target, const Route& route, Completion completion,
                         RequestState* request) {
  if (Status status = settle_before(operation, target, route.path); !status.is_ok()) return status;
  count(route.path, route.path == Path::caller && is_atomic(operation.kind) ? 2 * operation.bytes : operation.bytes);
  Status status;
  switch (route.path) {
    case Path::owner:
    case Path::offload:
      return run_owner(operation, target, completion, request);
    case Path::aggregated:
      return run_aggregated(operation, target);
    case Path::direct:
      status = run_direct(operation, target, *route.at.region);
      break;
    case Path::attach:
      status = run_attach(operation, target, *route.at.region);
      break;
    case Path::caller:
      status = run_caller(operation, target, *route.at.region);
      break;
  }
  if (!status.is_ok()) return status;
  if (operation.notify) {
    // Release: the data comes before the notification; pairs with the acquire load in notify_wait.
    parts_.shared[target].notifications()[operation.notify_slot].fetch_add(1, std::memory_order_release);
    parts_.wake_rank(parts_.ranks[target]);
  }
  if (request != nullptr) request->done.store(true, std::memory_order_release);
  return {};
}

// Keeps the order of atomics on one location when the path changes: what travels as a message, or is still gathered, comes first.
Status Window::settle_before(const Operation& operation, std::uint32_t target, Path path) {
  Detail& detail = details_[target];
  const bool must_order = detail.ordered.load(std::memory_order_relaxed);
  if (path != Path::aggregated && aggregates_) {
    if (Status status = send_gathered(target); !status.is_ok()) return status;
  }
  const bool as_message = path == Path::owner || path == Path::aggregated;
  if (as_message) return {};  // one ring, one order
  const bool ordered_kind = is_atomic(operation.kind) && (parts_.promises & promise_no_ordering) == 0;
  if (!ordered_kind && !must_order) return {};
  if (views_[target].outstanding.count.load(std::memory_order_acquire) == 0) return {};
  return wait_outstanding(target, call_name(operation.kind));
}

Status Window::applied_status(Applied applied, const AtomicDomain& domain, std::uint64_t offset, const char* call,
                              std::uint32_t target) const {
  if (applied == Applied::done) return {};
  const std::uint32_t holder = domain.lock_of(offset).holder();
  return {Code::peer_failed, fmt::format("{}: rank {} of the job died while it held the lock of the stripe at offset {}{}",
                                         where(call, target), holder - 1, offset, cause_of_death(parts_.lock_agent.liveness, holder - 1))};
}

Status Window::transfer_status(Transfer how, const char* call, std::uint32_t target, std::uint64_t offset, std::uint64_t bytes) const {
  switch (how) {
    case Transfer::done:
    case Transfer::started:
      return {};
    case Transfer::bad_address:
      return {Code::unreachable, fmt::format("{}: bytes [{}, {}) are exposed, but the rank no longer has that memory mapped (was it freed while "
                                             "the window lives?) or only for reading", where(call, target), offset, offset + bytes)};
    case Transfer::refused:
      return {Code::unreachable, fmt::format("{}: the kernel refuses to copy between the processes", where(call, target))};
    case Transfer::peer_dead:
      return {Code::peer_failed, fmt::format("{}: rank {} of the job died{}", where(call, target), parts_.ranks[target],
                                             cause_of_death(parts_.lock_agent.liveness, parts_.ranks[target]))};
  }
  return {Code::system, "unknown transfer result"};
}

Status Window::run_direct(const Operation& operation, std::uint32_t target, const Region& region) {
  const char* call = call_name(operation.kind);
  const std::uint64_t base = operation.offset - region.offset;
  if (operation.kind == OperationKind::compare_and_swap) {
    const Applied applied = apply_compare_and_swap(region.domain, parts_.lock_agent, region.mapped, base, operation.compare,
                                                   operation.operand, operation.result, operation.type);
    return applied_status(applied, region.domain, base, call, target);
  }
  if (operation.kind == OperationKind::put) {
    ops::for_each_pair(operation.target_layout, operation.operand_layout, 1, ops::no_piece_limit,
                       [&](std::int64_t to, std::int64_t from, std::uint64_t bytes) {
                         std::memcpy(region.mapped + base + to, operation.operand + from, bytes);
                       });
    return {};
  }
  if (operation.kind == OperationKind::get) {
    ops::for_each_pair(operation.target_layout, operation.result_layout, 1, ops::no_piece_limit,
                       [&](std::int64_t from, std::int64_t to, std::uint64_t bytes) {
                         std::memcpy(operation.result + to, region.mapped + base + from, bytes);
                       });
    return {};
  }
  const Reduction reduction = make_reduction(*parts_.kernels, operation.type, operation.op, operation.alpha);
  const std::uint64_t element = reduction.element_bytes();
  Applied applied = Applied::done;
  std::uint64_t at = base;
  const auto apply_piece = [&](std::uint64_t offset, const std::byte* from, std::byte* to, std::uint64_t bytes) {
    std::uint64_t progress = 0;
    at = offset;
    applied = apply_reduction(region.domain, parts_.lock_agent, region.mapped, offset, from, to, bytes, reduction, progress);
    return applied == Applied::done;
  };
  if (operation.kind == OperationKind::accumulate) {
    ops::for_each_pair(operation.target_layout, operation.operand_layout, element, ops::no_piece_limit,
                       [&](std::int64_t to, std::int64_t from, std::uint64_t bytes) {
                         return apply_piece(base + static_cast<std::uint64_t>(to), offset_by(operation.operand, from), nullptr, bytes);
                       });
    return applied_status(applied, region.domain, at, call, target);
  }
  const PackedOperand operand(operation);
  PackedResult result(operation);
  ops::for_each_pair(operation.target_layout, ops::LayoutView::contiguous(operation.bytes), element, ops::no_piece_limit,
                     [&](std::int64_t to, std::int64_t from, std::uint64_t bytes) {
                       return apply_piece(base + static_cast<std::uint64_t>(to), offset_by(operand.data(), from),
                                          offset_by(result.data(), from), bytes);
                     });
  if (applied == Applied::done) result.deliver();
  return applied_status(applied, region.domain, at, call, target);
}

Transfer Window::fetch_bytes(const Region& region, Rank owner, std::uint64_t at, std::span<std::byte> into, bool through_kernel) {
  if (!through_kernel) {
    std::memcpy(into.data(), region.mapped + at, into.size());
    return Transfer::done;
  }
  return parts_.transport->read(owner, region.owner_address + at, into, 0);
}

Transfer Window::store_bytes(const Region& region, Rank owner, std::uint64_t at, std::span<const std::byte> from, bool through_kernel) {
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
                         how = store_bytes(region, owner, base + static_cast<std::uint64_t>(to), {operation.operand + from, bytes}, true);
                         return how == Transfer::done;
                       });
  } else {
    ops::for_each_pair(operation.target_layout, operation.result_layout, 1, ops::no_piece_limit,
                       [&](std::int64_t from, std::int64_t to, std::uint64_t bytes) {
                         how = fetch_bytes(region, owner, base + static_cast<std::uint64_t>(from), {operation.result + to, bytes}, true);
                         return how == Transfer::done;
                       });
  }
  return transfer_status(how, call_name(operation.kind), target, operation.offset, operation.bytes);
}

// Paper 1's caller-computes. Puts and gets need no computing: they are moved.
Status Window::run_caller(const Operation& operation, std::uint32_t target, const Region& region) {
  const bool through_kernel = region.mapped == nullptr;
  if (is_atomic(operation.kind)) return reduce_by_copy(operation, target, region, parts_.settings.caller_lock, through_kernel);
  return through_kernel ? run_attach(operation, target, region) : run_direct(operation, target, region);
}

namespace {

// All stripes of a region, taken in ascending order of their place in the table, so that two callers cannot wait for each other.
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

Status Window::reduce_by_copy(const Operation& operation, std::uint32_t target, const Region& region, CallerLock granularity,
                              bool through_kernel) {
  const char* call = call_name(operation.kind);
  const Rank owner = parts_.ranks[target];
  const std::uint64_t base = operation.offset - region.offset;
  const bool swaps = operation.kind == OperationKind::compare_and_swap;
  const Reduction reduction =
      swaps ? Reduction{operation.type, ops::Operator::replace} : make_reduction(*parts_.kernels, operation.type, operation.op, operation.alpha);
  const std::uint64_t element = reduction.element_bytes();
  const PackedOperand operand(operation);
  PackedResult result(operation);
  // REPLACE without a result needs no get (paper 1, footnote 2); NO_OP needs no put.
  const bool gets = swaps || result.data() != nullptr || reduction.op != ops::Operator::replace;
  const bool puts = swaps || reduction.op != ops::Operator::no_op;
  std::vector<std::byte> copy(std::min<std::uint64_t>(operation.bytes, granularity == CallerLock::region ? operation.bytes : stripe_bytes));

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
      return {Code::peer_failed, fmt::format("{}: rank {} of the job died while it held stripe {} of the region{}", where(call, target), dead,
                                             region_lock->refused(), cause_of_death(parts_.lock_agent.liveness, dead))};
    }
  }
  Applied applied = Applied::done;
  std::uint64_t failed_at = base;
  const auto run = [&](std::int64_t to, std::int64_t from, std::uint64_t bytes) {
    for (std::uint64_t done = 0; done < bytes;) {
      const std::uint64_t at = base + static_cast<std::uint64_t>(to) + done;
      const std::uint64_t left = bytes - done;
      const std::uint64_t here = granularity == CallerLock::region    ? left
                                 : granularity == CallerLock::element ? element
                                                                      : region.domain.run_bytes(at, std::min(left, stripe_bytes), element);
      if (granularity != CallerLock::region) applied = take_stripe(region.domain, at, parts_.lock_agent);
      failed_at = at;
      if (applied != Applied::done) return false;
      compute(at, static_cast<std::uint64_t>(from) + done, here);
      if (granularity != CallerLock::region) region.domain.lock_of(at).release();
      if (how != Transfer::done) return false;
      done += here;
    }
    return true;
  };
  ops::for_each_pair(operation.target_layout, ops::LayoutView::contiguous(operation.bytes), element, ops::no_piece_limit, run);
  if (applied != Applied::done) return applied_status(applied, region.domain, failed_at, call, target);
  if (how == Transfer::done) result.deliver();
  return transfer_status(how, call, target, region.offset + failed_at, element);
}

Status Window::run_owner(const Operation& operation, std::uint32_t target, Completion completion, RequestState* request) {
  RequestState own;
  RequestState* told = completion == Completion::blocking ? &own : request;
  const Rank owner = parts_.ranks[target];
  while (!parts_.engine->submit(owner, parts_.id, operation, views_[target].outstanding, told)) {
    if (Status status = wait_for_room(target); !status.is_ok()) return status;
  }
  if (completion != Completion::blocking) return {};
  const char* call = call_name(operation.kind);
  Status status = parts_.waiter->wait(
      parts_.waiter->own_events(),
      [&] {
        parts_.engine->progress(owner);
        // Acquire pairs with the release in OriginEngine::finish_job.
        return own.done.load(std::memory_order_acquire);
      },
      call);
  if (!status.is_ok()) {
    // The engine points at `own` until the peer's operations are ended.
    parts_.engine->fail_peer(owner);
    return status;
  }
  const Code code = own.code.load(std::memory_order_relaxed);
  if (code == Code::ok) return {};
  return {code, fmt::format("{}: the owner's agent answered: {}{}", where(call, target), explain_code(code),
                            code == Code::peer_failed ? name_the_dead(parts_.lock_agent.liveness, parts_.ranks) : "")};
}

Status Window::run_aggregated(const Operation& operation, std::uint32_t target) {
  Gathered& gathered = details_[target].gathered;
  bool full = false;
  {
    std::unique_lock lock(gathered.mutex);
    const std::uint64_t size = ops::size_of(operation.type);
    const auto same = [&] {
      return gathered.type == operation.type && gathered.op == operation.op &&
             (operation.alpha == nullptr || std::memcmp(gathered.alpha, operation.alpha, size) == 0);
    };
    // Again, because another thread may gather something else while the lock is free.
    while (!gathered.offsets.empty() && !same()) {
      lock.unlock();
      if (Status status = send_gathered(target); !status.is_ok()) return status;
      lock.lock();
    }
    gathered.type = operation.type;
    gathered.op = operation.op;
    if (operation.alpha != nullptr) std::memcpy(gathered.alpha, operation.alpha, size);
    // One element, so one piece on each side.
    ops::PieceCursor target_piece(operation.target_layout);
    gathered.offsets.push_back(operation.offset + static_cast<std::uint64_t>(target_piece.next().offset));
    const PackedOperand operand(operation);
    if (operand.data() != nullptr) {
      gathered.elements.insert(gathered.elements.end(), operand.data(), operand.data() + size);
    } else {
      gathered.elements.resize(gathered.elements.size() + size);
    }
    full = gathered.offsets.size() >= parts_.aggregate_limit;
  }
  return full ? send_gathered(target) : Status();
}

Status Window::send_gathered(std::uint32_t target) {
  Gathered& gathered = details_[target].gathered;
  const std::lock_guard lock(gathered.mutex);
  if (gathered.offsets.empty()) return {};
  while (!parts_.engine->submit_scatter(parts_.ranks[target], parts_.id, gathered.type, gathered.op, gathered.alpha, gathered.offsets,
                                        gathered.elements, views_[target].outstanding)) {
    if (Status status = wait_for_room(target); !status.is_ok()) return status;
  }
  gathered.offsets.clear();
  gathered.elements.clear();
  return {};
}

// Back-pressure: sleeps until a reply has made room.
Status Window::wait_for_room(std::uint32_t target) {
  const Rank owner = parts_.ranks[target];
  return parts_.waiter->wait(
      parts_.waiter->own_events(), [&] { return parts_.engine->progress(owner) != 0; }, "waiting for room in the target's mailbox");
}

Status Window::wait_outstanding(std::uint32_t target, const char* call) {
  TargetView& view = views_[target];
  const Rank owner = parts_.ranks[target];
  // Acquire pairs with the release in OriginEngine::finish_job.
  if (view.outstanding.count.load(std::memory_order_acquire) != 0) {
    Status status = parts_.waiter->wait(
        parts_.waiter->own_events(),
        [&] {
          parts_.engine->progress(owner);
          return view.outstanding.count.load(std::memory_order_acquire) == 0;
        },
        call);
    if (!status.is_ok()) return status;
  }
  return take_failure(target, call);
}

Status Window::take_failure(std::uint32_t target, const char* call) {
  Outstanding& outstanding = views_[target].outstanding;
  if (outstanding.failure.load(std::memory_order_relaxed) == Code::ok) return {};
  const Code code = outstanding.failure.exchange(Code::ok, std::memory_order_relaxed);
  return {code, fmt::format("{}: an earlier operation failed at the owner: {}{}", where(call, target), explain_code(code),
                            code == Code::peer_failed ? name_the_dead(parts_.lock_agent.liveness, parts_.ranks) : "")};
}

Status Window::flush(std::uint32_t target, const char* call) {
  if (Status status = check_rank(call, target); !status.is_ok()) return status;
  if (views_[target].open.load(std::memory_order_relaxed) == 0) {
    return {Code::sync, fmt::format("{}: outside an access epoch", where(call, target))};
  }
  if (aggregates_) {
    if (Status status = send_gathered(target); !status.is_ok()) return status;
  }
  details_[target].ordered.store(false, std::memory_order_relaxed);
  if (Status status = wait_outstanding(target, call); !status.is_ok()) return status;
  flush_fence();
  return {};
}

Status Window::flush_all(const char* call) {
  // Everything is sent before anything is waited for.
  if (aggregates_) {
    for (std::uint32_t target = 0; target < size_; ++target) {
      if (Status status = send_gathered(target); !status.is_ok()) return status;
    }
  }
  Status first;
  for (std::uint32_t target = 0; target < size_; ++target) {
    details_[target].ordered.store(false, std::memory_order_relaxed);
    Status status = wait_outstanding(target, call);
    if (first.is_ok() && !status.is_ok()) first = std::move(status);
  }
  flush_fence();
  return first;
}

Status Window::order() {
  for (std::uint32_t target = 0; target < size_; ++target) details_[target].ordered.store(true, std::memory_order_relaxed);
  return {};
}

}  // namespace farsum
