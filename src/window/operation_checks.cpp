#include "window/operation_checks.hpp"

#include <fmt/format.h>

#include "ops/operator_list.hpp"

namespace farsum {

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

Status OperationChecks::rank(const char* call, std::uint32_t target) const {
  if (target < rules_.sizes.size()) return {};
  return {Code::rank, fmt::format("{}: the target must be a rank from 0 to {} of the window's group",
                                  rules_.texts.where(call, target), rules_.sizes.size() - 1)};
}

// Checks type, operator and number of elements of an atomic operation.
Status OperationChecks::elements(const Operation& operation, std::uint32_t target) const {
  const char* call = call_name(operation.kind);
  const bool has_operator = operation.kind != OperationKind::compare_and_swap;
  if (has_operator && !ops::legal(operation.type, operation.op)) {
    return {Code::type,
            fmt::format("{}: operator {} is not defined for {}; use {}", rules_.texts.where(call, target),
                        ops::name_of(operation.op), ops::name_of(operation.type),
                        ops::list_operators([&](ops::Operator op) { return ops::legal(operation.type, op); }))};
  }
  const bool may_be_several = operation.target_layout.kind() != ops::LayoutKind::contiguous;
  if ((rules_.promises & promise_single_element) != 0 &&
      (!ops::is_lockable(operation.type) || (operation.bytes > ops::size_of(operation.type) && !may_be_several))) {
    return {
        Code::type,
        fmt::format(
            "{}: the window promises atomic operations on single lockable elements (FARSUM_SINGLE_ELEMENT), but this "
            "one has {} bytes of {}",
            rules_.texts.where(call, target), operation.bytes, ops::name_of(operation.type))};
  }
  if (has_operator && operation.op == ops::Operator::scaled_sum && operation.alpha == nullptr) {
    return {Code::argument, fmt::format("{}: scaled_sum needs alpha, one element of {}",
                                        rules_.texts.where(call, target), ops::name_of(operation.type))};
  }
  return {};
}

// `extent` becomes that of the target's layout.
Status OperationChecks::layouts(const Operation& operation, std::uint32_t target, ops::Extent& extent) const {
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
    const std::string what = rules_.texts.where(call_name(operation.kind), target);
    if (measured.fault != ops::LayoutFault::none)
      return {Code::layout, fmt::format("{}: the {} layout {}", what, side.name, fault_text(measured.fault))};
    return {Code::layout, fmt::format("{}: the {} layout names {} bytes, but the operation has {}", what, side.name,
                                      measured.total_bytes, operation.bytes)};
  }
  return {};
}

Status OperationChecks::arguments(const Operation& operation, std::uint32_t target) const {
  const char* call = call_name(operation.kind);
  if (operation.bytes != 0 && needs_operand(operation) && operation.operand == nullptr)
    return {Code::argument, fmt::format("{}: the origin buffer is null", rules_.texts.where(call, target))};
  if (operation.bytes != 0 && returns_data(operation.kind) && operation.result == nullptr)
    return {Code::argument, fmt::format("{}: the result buffer is null", rules_.texts.where(call, target))};
  if (operation.notify && operation.notify_slot >= rules_.notification_slots) {
    return {Code::range, fmt::format("{}: notification slot {} was asked for, but the window has {} (0 to {})",
                                     rules_.texts.where("farsum_put_notify", target), operation.notify_slot,
                                     rules_.notification_slots, rules_.notification_slots - 1)};
  }
  if (operation.kind == OperationKind::compare_and_swap && operation.compare == nullptr)
    return {Code::argument, fmt::format("{}: the expected value is null", rules_.texts.where(call, target))};
  return {};
}

Status OperationChecks::all(const Operation& operation, std::uint32_t target, RegionRef& at) const {
  if (is_atomic(operation.kind)) {
    if (Status status = elements(operation, target); !status.is_ok()) return status;
  }
  ops::Extent extent;
  if (Status status = layouts(operation, target, extent); !status.is_ok()) return status;
  if (Status status = arguments(operation, target); !status.is_ok()) return status;
  return range(operation, target, extent, at);
}

Status OperationChecks::range(const Operation& operation, std::uint32_t target, const ops::Extent& extent,
                              RegionRef& at) const {
  // Where nothing is touched nothing need be exposed: programs come with a global offset to a rank whose part is empty.
  if (operation.bytes == 0) return {};
  const char* call = call_name(operation.kind);
  // 128 bits: an offset near 2^64 must not wrap into the window.
  const WideInteger low = static_cast<WideInteger>(operation.offset) + extent.low;
  const WideInteger high = static_cast<WideInteger>(operation.offset) + extent.high;
  if (!rules_.dynamic) {
    const std::uint64_t size = rules_.sizes[target];
    if (low < 0 || high > static_cast<WideInteger>(size)) {
      return {Code::range, fmt::format("{}: bytes [{}, {}) were asked for, but the rank exposes [0, {})",
                                       rules_.texts.where(call, target), static_cast<std::int64_t>(low),
                                       static_cast<std::int64_t>(high), size)};
    }
  }
  const auto first = static_cast<std::uint64_t>(low);
  at = rules_.regions.at(target, first, static_cast<std::uint64_t>(high - low));
  // In a dynamic window one operation may reach several regions with something else between them.
  if (at.region == nullptr && operation.target_layout.kind() != ops::LayoutKind::contiguous)
    at = rules_.regions.of_pieces(operation, target);
  if (at.region == nullptr) {
    return {Code::range, fmt::format("{}: addresses [{:#x}, {:#x}) are not all attached at the rank",
                                     rules_.texts.where(call, target), first, static_cast<std::uint64_t>(high))};
  }
  if (at.read_only && writes(operation.kind, operation.op)) {
    return {Code::unreachable,
            fmt::format("{}: bytes [{}, {}) are read-only at the rank; only get and no_op are possible",
                        rules_.texts.where(call, target), first, static_cast<std::uint64_t>(high))};
  }
  if (!is_atomic(operation.kind)) return {};
  if (at.atomics_only && !ops::is_lockable(operation.type)) {
    return {Code::type,
            fmt::format(
                "{}: the memory belongs to a window that promises single lockable elements (FARSUM_SINGLE_ELEMENT); {} "
                "is none",
                rules_.texts.where(call, target), ops::name_of(operation.type))};
  }
  return {};
}

}  // namespace farsum
