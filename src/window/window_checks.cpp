// What an operation must satisfy before anything is touched, and the sentences that say so.
#include <fmt/format.h>

#include "window/window.hpp"

namespace farsum {

const char* call_name(OperationKind kind) {
  switch (kind) {
    case OperationKind::put:
      return "farsum_put";
    case OperationKind::get:
      return "farsum_get";
    case OperationKind::accumulate:
      return "farsum_accumulate";
    case OperationKind::get_accumulate:
      return "farsum_get_accumulate";
    case OperationKind::compare_and_swap:
      return "farsum_compare_and_swap";
  }
  return "farsum_operate";
}

const char* explain_code(Code code) {
  switch (code) {
    case Code::ok:
      return "fine";
    case Code::range:
      return "the bytes are not exposed there";
    case Code::alignment:
      return "an element is not aligned to its type";
    case Code::type:
      return "type and operator do not go together in that window";
    case Code::handle:
      return "the window does not exist there";
    case Code::unreachable:
      return "the memory is exposed but no longer mapped there (was it freed while the window lives?), or read-only, "
             "or the kernel "
             "refuses to copy";
    case Code::peer_failed:
      return "a rank has died";
    case Code::argument:
      return "the message was malformed";
    case Code::rank:
      return "this rank does not belong to the window there";
    case Code::sync:
      return "no lock can be taken or given back so there";
    case Code::unsupported:
      return "that kind of message is not served there";
    case Code::not_initialized:
    case Code::layout:
    case Code::pending:
    case Code::system:
      return "it could not be carried out";
    case Code::no_memory:
      return "there was no memory left to send it or the rest of it, or to map what it is sent through";
  }
  return "it could not be carried out";
}

std::string fate_of(const Liveness* liveness, Rank rank) {
  return liveness != nullptr ? liveness->fate_of(rank) : fmt::format("rank {} of the job died", rank);
}

std::string cause_of_death(const Liveness* liveness, Rank dead) {
  if (liveness == nullptr) return {};
  const Rank first = liveness->declare_dead(dead);
  return first == dead ? std::string() : " after " + liveness->fate_of(first);
}

std::string name_the_dead(const Liveness* liveness, const std::vector<Rank>& ranks) {
  for (const Rank rank : ranks) {
    if (liveness != nullptr && liveness->is_dead(rank)) {
      return ": " + liveness->fate_of(liveness->declare_dead(rank));
    }
  }
  return {};
}

namespace {

const char* fault_text(ops::LayoutFault fault) {
  switch (fault) {
    case ops::LayoutFault::none:
      return "is sound";
    case ops::LayoutFault::too_many_levels:
      return "has more than 8 levels";
    case ops::LayoutFault::uneven_levels:
      return "has another number of counts than of strides";
    case ops::LayoutFault::overflow:
      return "overflows 63 bits";
    case ops::LayoutFault::not_whole_elements:
      return "has pieces that are no whole number of elements";
  }
  return "is malformed";
}

}  // namespace

std::string Window::where(const char* call, std::uint32_t target) const {
  // A negative rank comes here wrapped around; it is told as it was given.
  const auto rank = static_cast<std::int32_t>(target);
  if (parts_.name.empty()) return fmt::format("{}: window {}, rank {}", call, parts_.id, rank);
  return fmt::format("{}: window {} '{}', rank {}", call, parts_.id, parts_.name, rank);
}

Status Window::check_rank(const char* call, std::uint32_t target) const {
  if (target < size_) return {};
  return {Code::rank, fmt::format("{}: the target must be a rank from 0 to {} of the window's group",
                                  where(call, target), size_ - 1)};
}

Status Window::check(const Operation& operation, std::uint32_t target, RegionRef& at) {
  const char* call = call_name(operation.kind);
  if (Status status = check_rank(call, target); !status.is_ok()) return status;
  if (!in_access_epoch(target)) {
    return {Code::sync,
            fmt::format("{}: outside an access epoch; begin one with farsum_fence, farsum_start, farsum_lock or "
                        "farsum_lock_all",
                        where(call, target))};
  }
  if (is_atomic(operation.kind)) {
    if (Status status = check_elements(operation, target); !status.is_ok()) return status;
  }
  ops::Extent extent;
  if (Status status = check_layouts(operation, target, extent); !status.is_ok()) return status;
  if (Status status = check_arguments(operation, target); !status.is_ok()) return status;
  Status status = check_range(operation, target, extent, at);
  if (card_targets_ == nullptr || !status.is_ok() || at.region == nullptr) return status;
  return check_for_card(operation, target, *at.region);
}

// Checks type, operator and number of elements of an atomic operation.
Status Window::check_elements(const Operation& operation, std::uint32_t target) const {
  const char* call = call_name(operation.kind);
  const bool has_operator = operation.kind != OperationKind::compare_and_swap;
  if (has_operator && !ops::legal(operation.type, operation.op)) {
    return {Code::type,
            fmt::format("{}: operator {} is not defined for {}; docs/reference/operators.md lists the legal pairs",
                        where(call, target), ops::name_of(operation.op), ops::name_of(operation.type))};
  }
  const bool may_be_several = operation.target_layout.kind() != ops::LayoutKind::contiguous;
  if ((parts_.promises & promise_single_element) != 0 &&
      (!ops::is_lockable(operation.type) || (operation.bytes > ops::size_of(operation.type) && !may_be_several))) {
    return {
        Code::type,
        fmt::format(
            "{}: the window promises atomic operations on single lockable elements (FARSUM_SINGLE_ELEMENT), but this "
            "one has {} bytes of {}",
            where(call, target), operation.bytes, ops::name_of(operation.type))};
  }
  if (has_operator && operation.op == ops::Operator::scaled_sum && operation.alpha == nullptr) {
    return {Code::argument, fmt::format("{}: scaled_sum needs alpha, one element of {}", where(call, target),
                                        ops::name_of(operation.type))};
  }
  return {};
}

// `extent` becomes that of the target's layout.
Status Window::check_layouts(const Operation& operation, std::uint32_t target, ops::Extent& extent) const {
  struct Side {
    const char* name;
    const ops::LayoutView& layout;
    bool is_used;
  };
  const Side sides[] = {{"target", operation.target_layout, true},
                        {"origin", operation.operand_layout, needs_operand(operation)},
                        {"result", operation.result_layout, returns_data(operation.kind)}};
  const std::uint64_t element = is_atomic(operation.kind) ? ops::size_of(operation.type) : 1;
  for (const Side& side : sides) {
    if (!side.is_used) continue;
    const ops::LayoutView::Measured measured = side.layout.measured(element);
    if (&side == sides) extent = measured.extent;
    if (measured.fault == ops::LayoutFault::none && measured.total_bytes == operation.bytes) [[likely]]
      continue;
    const std::string what = where(call_name(operation.kind), target);
    if (measured.fault != ops::LayoutFault::none)
      return {Code::layout, fmt::format("{}: the {} layout {}", what, side.name, fault_text(measured.fault))};
    return {Code::layout, fmt::format("{}: the {} layout names {} bytes, but the operation has {}", what, side.name,
                                      measured.total_bytes, operation.bytes)};
  }
  return {};
}

Status Window::check_arguments(const Operation& operation, std::uint32_t target) const {
  const char* call = call_name(operation.kind);
  if (operation.bytes != 0 && needs_operand(operation) && operation.operand == nullptr)
    return {Code::argument, fmt::format("{}: the origin buffer is null", where(call, target))};
  if (operation.bytes != 0 && returns_data(operation.kind) && operation.result == nullptr)
    return {Code::argument, fmt::format("{}: the result buffer is null", where(call, target))};
  if (operation.notify && operation.notify_slot >= parts_.shape.notification_slots) {
    return {Code::range, fmt::format("{}: notification slot {} was asked for, but the window has {} (0 to {})",
                                     where("farsum_put_notify", target), operation.notify_slot,
                                     parts_.shape.notification_slots, parts_.shape.notification_slots - 1)};
  }
  if (operation.kind == OperationKind::compare_and_swap && operation.compare == nullptr)
    return {Code::argument, fmt::format("{}: the expected value is null", where(call, target))};
  return {};
}

// Regions that hold every piece, though not all that lies between them; read-only if one of them is.
RegionRef Window::regions_of_pieces(const Operation& operation, std::uint32_t target) {
  RegionRef all;
  ops::PieceCursor cursor(operation.target_layout, operation.bytes);
  for (ops::Piece piece = cursor.next(); piece.bytes != 0; piece = cursor.next()) {
    RegionRef at = region_at(target, operation.offset + static_cast<std::uint64_t>(piece.offset), piece.bytes);
    if (at.region == nullptr) return {};
    const bool read_only = all.read_only || at.read_only;
    if (all.region == nullptr) all = std::move(at);
    all.read_only = read_only;
  }
  all.whole = false;
  all.same_locks = false;
  return all;
}

Status Window::check_range(const Operation& operation, std::uint32_t target, const ops::Extent& extent, RegionRef& at) {
  // Where nothing is touched nothing need be exposed: programs come with a global offset to a rank whose part is empty.
  if (operation.bytes == 0) return {};
  const char* call = call_name(operation.kind);
  // 128 bits: an offset near 2^64 must not wrap into the window.
  const WideInteger low = static_cast<WideInteger>(operation.offset) + extent.low;
  const WideInteger high = static_cast<WideInteger>(operation.offset) + extent.high;
  if (!parts_.dynamic) {
    const std::uint64_t size = parts_.sizes[target];
    if (low < 0 || high > static_cast<WideInteger>(size)) {
      return {Code::range,
              fmt::format("{}: bytes [{}, {}) were asked for, but the rank exposes [0, {})", where(call, target),
                          static_cast<std::int64_t>(low), static_cast<std::int64_t>(high), size)};
    }
  }
  const auto first = static_cast<std::uint64_t>(low);
  at = region_at(target, first, static_cast<std::uint64_t>(high - low));
  // In a dynamic window one operation may reach several regions with something else between them.
  if (at.region == nullptr && operation.target_layout.kind() != ops::LayoutKind::contiguous)
    at = regions_of_pieces(operation, target);
  if (at.region == nullptr) {
    return {Code::range, fmt::format("{}: addresses [{:#x}, {:#x}) are not all attached at the rank",
                                     where(call, target), first, static_cast<std::uint64_t>(high))};
  }
  const Region& region = *at.region;
  if (at.read_only && writes(operation.kind, operation.op)) {
    return {Code::unreachable,
            fmt::format("{}: bytes [{}, {}) are read-only at the rank; only get and no_op are possible",
                        where(call, target), first, static_cast<std::uint64_t>(high))};
  }
  if (!is_atomic(operation.kind)) return {};
  if (region.domain.atomics_only && !ops::is_lockable(operation.type)) {
    return {Code::type,
            fmt::format(
                "{}: the memory belongs to a window that promises single lockable elements (FARSUM_SINGLE_ELEMENT); {} "
                "is none",
                where(call, target), ops::name_of(operation.type))};
  }
  return {};
}

Status Window::check_closed_epochs(const char* call) const {
  if (!all_locked_ && !started_ && !exposed_ && locks_held() == 0) return {};
  const std::string what = parts_.name.empty() ? fmt::format("{}: window {}", call, parts_.id)
                                               : fmt::format("{}: window {} '{}'", call, parts_.id, parts_.name);
  if (all_locked_)
    return {Code::pending, fmt::format("{}: farsum_lock_all is not undone; call farsum_unlock_all first", what)};
  if (const std::uint32_t held = locks_held(); held != 0)
    return {Code::pending, fmt::format("{}: {} locks are held; call farsum_unlock first", what, held)};
  if (started_) return {Code::pending, fmt::format("{}: an access epoch is open; call farsum_complete first", what)};
  if (exposed_)
    return {Code::pending, fmt::format("{}: an exposure epoch is open; call farsum_wait_exposure first", what)};
  return {};
}

}  // namespace farsum
