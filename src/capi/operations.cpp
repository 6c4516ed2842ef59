// Operations of the C interface. The simple calls try the hot path first: handle, epoch and range are checked and the
// operation is done in a few nanoseconds; whatever is not plain goes the long way, which also words the errors.
#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "capi/global.hpp"

namespace farsum::capi {

static_assert(static_cast<int>(ops::ElementType::byte) == FARSUM_BYTE &&
              static_cast<int>(ops::ElementType::boolean) == FARSUM_BOOL);
static_assert(static_cast<int>(ops::ElementType::int64) == FARSUM_INT64 &&
              static_cast<int>(ops::ElementType::float64) == FARSUM_DOUBLE);
static_assert(static_cast<int>(ops::ElementType::complex_long_double) == FARSUM_COMPLEX_LONG_DOUBLE);
static_assert(static_cast<int>(ops::ElementType::pair_float_int) == FARSUM_FLOAT_INT);
static_assert(static_cast<int>(ops::ElementType::pair_long_double_int) == FARSUM_LONG_DOUBLE_INT);
static_assert(static_cast<int>(ops::ElementType::pair_float_float) == FARSUM_FLOAT_FLOAT &&
              static_cast<int>(ops::ElementType::float128) == FARSUM_FLOAT128);
static_assert(static_cast<int>(ops::ElementType::int128) == FARSUM_INT128 &&
              static_cast<int>(ops::ElementType::float16) == FARSUM_FLOAT16);
static_assert(static_cast<int>(ops::Operator::sum) == FARSUM_SUM &&
              static_cast<int>(ops::Operator::scaled_sum) == FARSUM_SCALED_SUM);
static_assert(static_cast<int>(ops::Operator::maxloc) == FARSUM_MAXLOC &&
              static_cast<int>(ops::Operator::bxor) == FARSUM_BXOR);
static_assert(static_cast<int>(ops::Operator::replace) == FARSUM_REPLACE &&
              static_cast<int>(ops::Operator::no_op) == FARSUM_NO_OP);
static_assert(ops::element_type_count == FARSUM_FLOAT16 + 1 && ops::operator_count == FARSUM_NO_OP + 1);
static_assert(static_cast<int>(OperationKind::compare_and_swap) == FARSUM_COMPARE_AND_SWAP);

namespace {

// Whether the pair comes near the hot path: legal, without alpha.
inline bool plain_pair(farsum_type type, farsum_op op) {
  return static_cast<unsigned>(type) < ops::element_type_count && static_cast<unsigned>(op) < ops::operator_count &&
         op != FARSUM_SCALED_SUM && ops::legal(static_cast<ops::ElementType>(type), static_cast<ops::Operator>(op));
}

farsum_status check_pair(const char* call, farsum_type type, farsum_op op) {
  return guarded(call, [&]() -> farsum_status {
    if (static_cast<unsigned>(type) >= ops::element_type_count) {
      return fail(Code::type, fmt::format("{}: unknown type {}", call, static_cast<int>(type)));
    }
    if (static_cast<unsigned>(op) >= ops::operator_count) {
      return fail(Code::type, fmt::format("{}: unknown operator {}", call, static_cast<int>(op)));
    }
    return FARSUM_OK;
  });
}

Operation simple(OperationKind kind, std::uint64_t offset, std::uint64_t bytes) {
  Operation operation;
  operation.kind = kind;
  operation.offset = offset;
  operation.bytes = bytes;
  operation.operand_layout = ops::LayoutView::contiguous(bytes);
  operation.target_layout = operation.operand_layout;
  operation.result_layout = operation.operand_layout;
  return operation;
}

[[gnu::noinline]] farsum_status long_way(farsum_window handle, int target, const Operation& operation,
                                         Completion completion) {
  return guarded(call_name(operation.kind), [&]() -> farsum_status {
    WindowSlot* slot = live_context() == nullptr ? nullptr : find_window(handle);
    if (slot == nullptr) return bad_window(call_name(operation.kind), handle);
    return report(slot->object->window->operate(operation, static_cast<std::uint32_t>(target), completion, nullptr));
  });
}

// Updates one element, which nobody waits for, at a rank of another node. False: take the long way.
bool updates_remote(farsum_window handle, int target, std::uint64_t offset, const void* origin, farsum_type type,
                    farsum_op op) {
  const WindowSlot* slot = live_context() == nullptr ? nullptr : find_window(handle);
  return slot != nullptr && plain_pair(type, op) &&
         slot->object->window->update_remote(static_cast<std::uint32_t>(target), offset, origin,
                                             static_cast<ops::ElementType>(type), static_cast<ops::Operator>(op));
}

// Updates one element of user memory that the kernel copies. False: take the long way.
bool is_updated_by_copy(farsum_window handle, const char* call, int target, std::uint64_t offset,
                        const Window::ElementUpdate& update, farsum_status& status) {
  const WindowSlot* slot = live_context() == nullptr ? nullptr : find_window(handle);
  if (slot == nullptr) return false;
  Window& window = *slot->object->window;
  const auto rank = static_cast<std::uint32_t>(target);
  if (!window.may_update_by_copy(rank, offset, update.type, update.op)) return false;
  status = guarded(call, [&]() -> farsum_status { return report(window.update_by_copy(rank, offset, update)); });
  return true;
}

[[gnu::noinline]] farsum_status long_reduction(farsum_window handle, int target, std::uint64_t offset,
                                               const void* origin, void* result, std::size_t count, farsum_type type,
                                               farsum_op op, bool fetches, Completion completion) {
  const OperationKind kind = fetches ? OperationKind::get_accumulate : OperationKind::accumulate;
  if (const farsum_status status = check_pair(call_name(kind), type, op); status != FARSUM_OK) return status;
  const auto element = static_cast<ops::ElementType>(type);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, ops::size_of(element), &bytes)) {
    return fail(Code::range,
                fmt::format("{}: {} elements of {} overflow 64 bits", call_name(kind), count, ops::name_of(element)));
  }
  Operation operation = simple(kind, offset, bytes);
  operation.type = element;
  operation.op = static_cast<ops::Operator>(op);
  operation.operand = static_cast<const std::byte*>(origin);
  operation.result = static_cast<std::byte*>(result);
  return long_way(handle, target, operation, completion);
}

// The long way of the simple calls, kept out of them so that the hot path saves few registers.
[[gnu::noinline]] farsum_status long_put(farsum_window window, int target, std::uint64_t offset, const void* origin,
                                         std::size_t bytes) {
  Operation operation = simple(OperationKind::put, offset, bytes);
  operation.operand = static_cast<const std::byte*>(origin);
  return long_way(window, target, operation, Completion::implicit);
}

[[gnu::noinline]] farsum_status long_get(farsum_window window, int target, std::uint64_t offset, void* result,
                                         std::size_t bytes) {
  Operation operation = simple(OperationKind::get, offset, bytes);
  operation.result = static_cast<std::byte*>(result);
  return long_way(window, target, operation, Completion::implicit);
}

[[gnu::noinline]] farsum_status long_accumulate(farsum_window window, int target, std::uint64_t offset,
                                                const void* origin, std::size_t count, farsum_type type, farsum_op op) {
  return guarded("farsum_accumulate", [&]() -> farsum_status {
    if (count == 1 && updates_remote(window, target, offset, origin, type, op)) return FARSUM_OK;
    if (count == 1 && origin != nullptr && op != FARSUM_NO_OP && plain_pair(type, op)) {
      const Window::ElementUpdate update{static_cast<ops::ElementType>(type), static_cast<ops::Operator>(op),
                                         static_cast<const std::byte*>(origin)};
      farsum_status status = FARSUM_OK;
      if (is_updated_by_copy(window, call_name(OperationKind::accumulate), target, offset, update, status))
        return status;
    }
    return long_reduction(window, target, offset, origin, nullptr, count, type, op, false, Completion::implicit);
  });
}

[[gnu::noinline]] farsum_status long_fetch_op(farsum_window window, int target, std::uint64_t offset,
                                              const void* operand, void* result, farsum_type type, farsum_op op) {
  const farsum_status status =
      long_reduction(window, target, offset, operand, result, 1, type, op, true, Completion::blocking);
  heard();
  return status;
}

[[gnu::noinline]] farsum_status long_compare_and_swap(farsum_window window, int target, std::uint64_t offset,
                                                      const void* expected, const void* desired, void* result,
                                                      ops::ElementType element) {
  if (expected != nullptr && desired != nullptr && result != nullptr) {
    const Window::ElementUpdate update{element, ops::Operator::replace, static_cast<const std::byte*>(desired),
                                       static_cast<std::byte*>(result), static_cast<const std::byte*>(expected)};
    farsum_status status = FARSUM_OK;
    if (is_updated_by_copy(window, call_name(OperationKind::compare_and_swap), target, offset, update, status)) {
      heard();
      return status;
    }
  }
  Operation operation = simple(OperationKind::compare_and_swap, offset, ops::size_of(element));
  operation.type = element;
  operation.operand = static_cast<const std::byte*>(desired);
  operation.compare = static_cast<const std::byte*>(expected);
  operation.result = static_cast<std::byte*>(result);
  return long_way(window, target, operation, Completion::blocking);
}

// The sums of one element that programs live by.
inline bool is_word_sum(farsum_type type, farsum_op op) {
  return op == FARSUM_SUM && (type == FARSUM_INT64 || type == FARSUM_UINT64 || type == FARSUM_DOUBLE);
}

// Any pair, those too where they were not finished as one word: the kernels' tables decide.
[[gnu::noinline]] farsum_status any_accumulate(farsum_window window, int target, std::uint64_t offset,
                                               const void* origin, std::size_t count, farsum_type type, farsum_op op) {
  const WindowSlot* slot = find_window(window);
  if (slot != nullptr && plain_pair(type, op)) [[likely]] {
    const auto element = static_cast<ops::ElementType>(type);
    if ((origin != nullptr || op == FARSUM_NO_OP) &&
        hot_window(*slot, window)
            .reduce(static_cast<std::uint32_t>(target), offset, origin, nullptr, count, element,
                    static_cast<ops::Operator>(op))) {
      note_hot_change();
      return FARSUM_OK;
    }
  }
  return long_accumulate(window, target, offset, origin, count, type, op);
}

[[gnu::noinline]] farsum_status any_fetch_op(farsum_window window, int target, std::uint64_t offset,
                                             const void* operand, void* result, farsum_type type, farsum_op op) {
  const WindowSlot* slot = find_window(window);
  if (slot != nullptr && plain_pair(type, op) && result != nullptr && (operand != nullptr || op == FARSUM_NO_OP))
      [[likely]] {
    const auto element = static_cast<ops::ElementType>(type);
    if (hot_window(*slot, window)
            .reduce(static_cast<std::uint32_t>(target), offset, operand, result, 1, element,
                    static_cast<ops::Operator>(op))) {
      heard();
      return FARSUM_OK;
    }
    const Window::ElementUpdate update{element, static_cast<ops::Operator>(op), static_cast<const std::byte*>(operand),
                                       static_cast<std::byte*>(result)};
    farsum_status status = FARSUM_OK;
    if (is_updated_by_copy(window, call_name(OperationKind::get_accumulate), target, offset, update, status)) {
      heard();
      return status;
    }
  }
  return long_fetch_op(window, target, offset, operand, result, type, op);
}

// The sums of a word that the first look did not do.
[[gnu::always_inline]] inline bool is_summed_under_lock(farsum_window window, int target, std::uint64_t offset,
                                                        const void* operand, void* result, farsum_type type) {
  const WindowSlot* slot = find_window(window);
  return slot != nullptr && hot_window(*slot, window)
                                .sum_word_under_lock(static_cast<std::uint32_t>(target), offset, operand, result,
                                                     static_cast<ops::ElementType>(type));
}

[[gnu::noinline]] farsum_status locked_fetch_op(farsum_window window, int target, std::uint64_t offset,
                                                const void* operand, void* result, farsum_type type) {
  if (!is_summed_under_lock(window, target, offset, operand, result, type))
    return any_fetch_op(window, target, offset, operand, result, type, FARSUM_SUM);
  heard();
  return FARSUM_OK;
}

[[gnu::noinline]] farsum_status locked_accumulate(farsum_window window, int target, std::uint64_t offset,
                                                  const void* operand, farsum_type type) {
  if (!is_summed_under_lock(window, target, offset, operand, nullptr, type))
    return any_accumulate(window, target, offset, operand, 1, type, FARSUM_SUM);
  note_hot_change();
  return FARSUM_OK;
}

// A flush to targets, where copies answer reads: of what this process had changed before, no copy from before answers.
Status flush_and_hear(Window& window, int target) {
  const bool all = target == FARSUM_ALL_RANKS;
  const std::uint32_t first = all ? 0 : static_cast<std::uint32_t>(target);
  const std::uint32_t last = all ? window.size() : std::min(first, window.size() - 1) + 1;
  const std::uint64_t hot = hot_changes.made();
  std::vector<std::uint64_t> made;
  for (std::uint32_t rank = first; rank < last; ++rank) made.push_back(window.changes(rank).made());
  Status status = all ? window.flush_every_target() : window.flush_one_target(first);
  bool are_unheard = hot_changes.are_unheard(hot);
  for (std::uint32_t rank = first; rank < last; ++rank)
    are_unheard = are_unheard || window.changes(rank).are_unheard(made[rank - first]);
  if (!are_unheard) return status;
  heard();
  hot_changes.note_heard(hot);
  for (std::uint32_t rank = first; rank < last; ++rank) window.changes(rank).note_heard(made[rank - first]);
  return status;
}

[[gnu::noinline]] farsum_status long_flush(const char* call, farsum_window handle, int target, Window::Reach reach) {
  return guarded(call, [&]() -> farsum_status {
    WindowSlot* slot = live_context() == nullptr ? nullptr : find_window(handle);
    if (slot == nullptr) return bad_window(call, handle);
    Window& window = *slot->object->window;
    if (reach == Window::Reach::target && copies_answer_reads()) return report(flush_and_hear(window, target));
    return report(target == FARSUM_ALL_RANKS ? window.flush_every_target(reach)
                                             : window.flush_one_target(static_cast<std::uint32_t>(target), reach));
  });
}

// A layout of the C interface as a view; indexed lists are copied into `pieces`, which must outlive it.
Status read_layout(const farsum_layout& from, std::vector<ops::Piece>& pieces, ops::LayoutView& view) {
  switch (from.kind) {
    case FARSUM_CONTIGUOUS:
      view = ops::LayoutView::contiguous(from.bytes);
      return {};
    case FARSUM_STRIDED:
      if (from.levels < 0 || from.levels > FARSUM_MAX_LEVELS) {
        return {Code::layout, fmt::format("farsum_operate: a strided layout has {} levels; 0 to {} are possible",
                                          from.levels, FARSUM_MAX_LEVELS)};
      }
      if (from.levels > 0 && (from.counts == nullptr || from.strides == nullptr)) {
        return {Code::layout, "farsum_operate: a strided layout needs counts and strides"};
      }
      static_assert(sizeof(std::size_t) == sizeof(std::uint64_t));
      view = ops::LayoutView::strided(
          from.bytes, {reinterpret_cast<const std::uint64_t*>(from.counts), static_cast<std::size_t>(from.levels)},
          {from.strides, static_cast<std::size_t>(from.levels)});
      return {};
    case FARSUM_INDEXED:
      if (from.pieces != 0 && from.offsets == nullptr)
        return {Code::layout, "farsum_operate: an indexed layout needs offsets"};
      pieces.resize(from.pieces);
      for (std::size_t i = 0; i < from.pieces; ++i) {
        pieces[i] = {from.offsets[i], from.lengths == nullptr ? from.bytes : from.lengths[i]};
      }
      view = ops::LayoutView::indexed(pieces);
      return {};
  }
  return {Code::layout, fmt::format("farsum_operate: unknown kind of layout {}", static_cast<int>(from.kind))};
}

// A packed list of single elements scattered over the target: the batched atomics of paper 4.
bool is_plain_scatter(const farsum_operation& from) {
  if (from.struct_bytes < sizeof(farsum_operation) || from.kind != FARSUM_ACCUMULATE || from.origin_layout != nullptr)
    return false;
  const farsum_layout* layout = from.target_layout;
  if (layout == nullptr || layout->kind != FARSUM_INDEXED || layout->lengths != nullptr || layout->offsets == nullptr)
    return false;
  return static_cast<unsigned>(from.type) < ops::element_type_count &&
         static_cast<unsigned>(from.op) < ops::operator_count && from.completion >= FARSUM_IMPLICIT &&
         from.completion <= FARSUM_EXPLICIT && layout->bytes == ops::size_of(static_cast<ops::ElementType>(from.type));
}

// What the layout names; none on overflow. The places of a uniform list are for OperationChecks to look at.
std::optional<std::uint64_t> total_bytes(const farsum_layout& from, const ops::LayoutView& view) {
  if (from.kind != FARSUM_INDEXED || from.lengths != nullptr) return view.total_bytes();
  std::uint64_t total = 0;
  if (__builtin_mul_overflow(from.pieces, from.bytes, &total) || total > ops::most_bytes_of_a_layout) return {};
  return total;
}

// The general descriptor, read once. Views point into it.
struct Described {
  Operation operation;
  std::vector<ops::Piece> origin_pieces, target_pieces, result_pieces;
};

Status read_layouts(const farsum_operation& from, Described& described) {
  Operation& operation = described.operation;
  ops::LayoutView origin, target, result;
  if (from.origin_layout != nullptr) {
    if (Status status = read_layout(*from.origin_layout, described.origin_pieces, origin); !status.is_ok())
      return status;
  }
  if (from.target_layout != nullptr) {
    if (Status status = read_layout(*from.target_layout, described.target_pieces, target); !status.is_ok())
      return status;
  }
  if (from.result_layout != nullptr) {
    if (Status status = read_layout(*from.result_layout, described.result_pieces, result); !status.is_ok())
      return status;
  }
  // The size is said by a layout, or by count.
  std::optional<std::uint64_t> bytes;
  if (from.target_layout != nullptr) {
    bytes = total_bytes(*from.target_layout, target);
  } else if (from.origin_layout != nullptr) {
    bytes = total_bytes(*from.origin_layout, origin);
  } else if (from.result_layout != nullptr) {
    bytes = total_bytes(*from.result_layout, result);
  } else {
    std::uint64_t product = 0;
    if (!__builtin_mul_overflow(from.count, ops::size_of(operation.type), &product)) bytes = product;
  }
  if (!bytes) return {Code::layout, "farsum_operate: the size of the operation overflows 63 bits"};
  operation.bytes = *bytes;
  const ops::LayoutView whole = ops::LayoutView::contiguous(*bytes);
  operation.target_layout = from.target_layout != nullptr ? target : whole;
  operation.operand_layout = from.origin_layout != nullptr ? origin : whole;
  operation.result_layout = from.result_layout != nullptr ? result : from.origin_layout != nullptr ? origin : whole;
  return {};
}

Status describe(const farsum_operation& from, Described& described) {
  if (from.struct_bytes < sizeof(farsum_operation))
    return {Code::argument, "farsum_operate: struct_bytes must be sizeof(farsum_operation)"};
  if (from.kind < FARSUM_PUT || from.kind > FARSUM_COMPARE_AND_SWAP) {
    return {Code::argument, fmt::format("farsum_operate: unknown kind {}", static_cast<int>(from.kind))};
  }
  if (from.completion < FARSUM_IMPLICIT || from.completion > FARSUM_EXPLICIT) {
    return {Code::argument, fmt::format("farsum_operate: unknown completion {}", static_cast<int>(from.completion))};
  }
  if (static_cast<unsigned>(from.type) >= ops::element_type_count ||
      static_cast<unsigned>(from.op) >= ops::operator_count) {
    return {Code::type, fmt::format("farsum_operate: unknown type {} or operator {}", static_cast<int>(from.type),
                                    static_cast<int>(from.op))};
  }
  Operation& operation = described.operation;
  operation.kind = static_cast<OperationKind>(from.kind);
  operation.type = static_cast<ops::ElementType>(from.type);
  operation.op = static_cast<ops::Operator>(from.op);
  operation.offset = from.offset;
  operation.operand = static_cast<const std::byte*>(from.origin);
  operation.compare = static_cast<const std::byte*>(from.compare);
  operation.result = static_cast<std::byte*>(from.result);
  operation.alpha = from.alpha;
  // What a put or get moves has no type beyond its size.
  const bool moves = operation.kind == OperationKind::put || operation.kind == OperationKind::get;
  if (operation.kind == OperationKind::compare_and_swap) {
    operation.bytes = ops::size_of(operation.type);
    operation.target_layout = operation.operand_layout = operation.result_layout =
        ops::LayoutView::contiguous(operation.bytes);
    if (from.count > 1 || from.target_layout != nullptr || from.origin_layout != nullptr ||
        from.result_layout != nullptr) {
      return {Code::layout,
              "farsum_operate: compare_and_swap is on one element; layouts and counts beyond 1 have no meaning"};
    }
    return {};
  }
  Status status = read_layouts(from, described);
  if (moves) operation.type = ops::ElementType::byte;
  return status;
}

// A contiguous operation with a request, which is complete at once where the hot path serves it. False: take the long
// way, which also says what is wrong.
bool finished_in_caller(farsum_window handle, const farsum_operation& from) {
  const WindowSlot* slot = find_window(handle);
  if (slot == nullptr || from.struct_bytes < sizeof from || from.origin_layout != nullptr ||
      from.target_layout != nullptr || from.result_layout != nullptr || !plain_pair(from.type, from.op))
    return false;
  const auto type = static_cast<ops::ElementType>(from.type);
  const auto target = static_cast<std::uint32_t>(from.target);
  const HotWindow hot = hot_window(*slot, handle);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(from.count, ops::size_of(type), &bytes)) return false;
  const bool has_operand = from.origin != nullptr || from.op == FARSUM_NO_OP;
  switch (from.kind) {
    case FARSUM_PUT:
      return from.origin != nullptr && hot.put(target, from.offset, from.origin, bytes);
    case FARSUM_GET:
      return from.result != nullptr && hot.get(target, from.offset, from.result, bytes);
    case FARSUM_ACCUMULATE:
      return has_operand && hot.reduce(target, from.offset, from.origin, nullptr, from.count, type,
                                       static_cast<ops::Operator>(from.op));
    case FARSUM_GET_ACCUMULATE:
      return has_operand && from.result != nullptr &&
             hot.reduce(target, from.offset, from.origin, from.result, from.count, type,
                        static_cast<ops::Operator>(from.op));
    case FARSUM_COMPARE_AND_SWAP:
      break;
  }
  return false;
}

}  // namespace
}  // namespace farsum::capi

using namespace farsum;
using namespace farsum::capi;

extern "C" {

size_t farsum_type_size(farsum_type type) {
  return static_cast<unsigned>(type) < ops::element_type_count ? ops::size_of(static_cast<ops::ElementType>(type)) : 0;
}

int farsum_op_legal(farsum_type type, farsum_op op) {
  return static_cast<unsigned>(type) < ops::element_type_count && static_cast<unsigned>(op) < ops::operator_count &&
                 ops::legal(static_cast<ops::ElementType>(type), static_cast<ops::Operator>(op))
             ? 1
             : 0;
}

farsum_status farsum_put(farsum_window window, int target, uint64_t offset, const void* origin, size_t bytes) {
  const WindowSlot* slot = find_window(window);
  if (slot != nullptr && origin != nullptr &&
      hot_window(*slot, window).put(static_cast<std::uint32_t>(target), offset, origin, bytes)) [[likely]] {
    note_hot_change();
    return FARSUM_OK;
  }
  return long_put(window, target, offset, origin, bytes);
}

farsum_status farsum_get(farsum_window window, int target, uint64_t offset, void* result, size_t bytes) {
  const WindowSlot* slot = find_window(window);
  if (slot != nullptr && result != nullptr &&
      hot_window(*slot, window).get(static_cast<std::uint32_t>(target), offset, result, bytes)) [[likely]] {
    return FARSUM_OK;
  }
  return long_get(window, target, offset, result, bytes);
}

farsum_status farsum_accumulate(farsum_window window, int target, uint64_t offset, const void* origin, size_t count,
                                farsum_type type, farsum_op op) {
  const WindowSlot* slot = find_window(window);
  if (slot == nullptr || count != 1 || origin == nullptr || !is_word_sum(type, op))
    return any_accumulate(window, target, offset, origin, count, type, op);
  if (!hot_window(*slot, window)
           .sum_word(static_cast<std::uint32_t>(target), offset, origin, nullptr, static_cast<ops::ElementType>(type)))
      [[unlikely]]
    return locked_accumulate(window, target, offset, origin, type);
  note_hot_change();
  return FARSUM_OK;
}

farsum_status farsum_get_accumulate(farsum_window window, int target, uint64_t offset, const void* origin, void* result,
                                    size_t count, farsum_type type, farsum_op op) {
  const WindowSlot* slot = find_window(window);
  if (slot != nullptr && plain_pair(type, op) && result != nullptr && (origin != nullptr || op == FARSUM_NO_OP))
      [[likely]] {
    const auto element = static_cast<ops::ElementType>(type);
    if (hot_window(*slot, window)
            .reduce(static_cast<std::uint32_t>(target), offset, origin, result, count, element,
                    static_cast<ops::Operator>(op))) {
      if (op != FARSUM_NO_OP) heard();
      return FARSUM_OK;
    }
  }
  return long_reduction(window, target, offset, origin, result, count, type, op, true, Completion::implicit);
}

farsum_status farsum_fetch_op(farsum_window window, int target, uint64_t offset, const void* operand, void* result,
                              farsum_type type, farsum_op op) {
  const WindowSlot* slot = find_window(window);
  if (slot == nullptr || operand == nullptr || result == nullptr || !is_word_sum(type, op)) [[unlikely]]
    return any_fetch_op(window, target, offset, operand, result, type, op);
  if (!hot_window(*slot, window)
           .sum_word(static_cast<std::uint32_t>(target), offset, operand, result, static_cast<ops::ElementType>(type)))
      [[unlikely]]
    return locked_fetch_op(window, target, offset, operand, result, type);
  heard();
  return FARSUM_OK;
}

farsum_status farsum_compare_and_swap(farsum_window window, int target, uint64_t offset, const void* expected,
                                      const void* desired, void* result, farsum_type type) {
  if (const farsum_status status = check_pair("farsum_compare_and_swap", type, FARSUM_REPLACE); status != FARSUM_OK)
    return status;
  const auto element = static_cast<ops::ElementType>(type);
  const WindowSlot* slot = find_window(window);
  if (slot != nullptr && expected != nullptr && desired != nullptr && result != nullptr && ops::is_lockable(element) &&
      hot_window(*slot, window)
          .compare_and_swap(static_cast<std::uint32_t>(target), offset, expected, desired, result, element))
      [[likely]] {
    heard();
    return FARSUM_OK;
  }
  return long_compare_and_swap(window, target, offset, expected, desired, result, element);
}

farsum_status farsum_put_notify(farsum_window window, int target, uint64_t offset, const void* origin, size_t bytes,
                                uint32_t slot) {
  Operation operation = simple(OperationKind::put, offset, bytes);
  operation.operand = static_cast<const std::byte*>(origin);
  operation.notify = true;
  operation.notify_slot = slot;
  return long_way(window, target, operation, Completion::implicit);
}

farsum_status farsum_operate(farsum_window handle, const farsum_operation* from, farsum_request* request) {
  if (from != nullptr && request != nullptr && from->completion == FARSUM_EXPLICIT && finished_in_caller(handle, *from))
      [[likely]] {
    if (from->kind == FARSUM_GET_ACCUMULATE && from->op != FARSUM_NO_OP) heard();
    if (from->kind != FARSUM_GET) note_hot_change();
    request->bits = completed_request;
    return FARSUM_OK;
  }
  return guarded("farsum_operate", [&]() -> farsum_status {
    WindowSlot* slot = live_context() == nullptr ? nullptr : find_window(handle);
    if (slot == nullptr) return bad_window("farsum_operate", handle);
    if (from == nullptr) return fail(Code::argument, "farsum_operate: the operation is null");
    if (from->completion == FARSUM_EXPLICIT && request == nullptr) {
      return fail(Code::argument, "farsum_operate: FARSUM_EXPLICIT needs a place for the request");
    }
    Status scattered;
    if (is_plain_scatter(*from) &&
        slot->object->window->scatter_hot(static_cast<std::uint32_t>(from->target),
                                          {from->offset,
                                           {from->target_layout->offsets, from->target_layout->pieces},
                                           from->origin,
                                           static_cast<ops::ElementType>(from->type),
                                           static_cast<ops::Operator>(from->op)},
                                          scattered)) {
      if (!scattered.is_ok()) return fail(scattered);
      note_hot_change();
      if (from->completion == FARSUM_EXPLICIT) request->bits = completed_request;
      return FARSUM_OK;
    }
    Described described;
    if (const Status status = describe(*from, described); !status.is_ok()) return fail(status);
    const auto target = static_cast<std::uint32_t>(from->target);
    Window& window = *slot->object->window;
    if (from->completion != FARSUM_EXPLICIT) {
      const Completion completion = from->completion == FARSUM_BLOCKING ? Completion::blocking : Completion::implicit;
      const Status status = window.operate(described.operation, target, completion, nullptr);
      if (completion == Completion::blocking && described.operation.kind != OperationKind::get) heard();
      return report(status);
    }
    auto state = std::make_shared<RequestState>();
    if (const Status status = window.operate(described.operation, target, Completion::by_request, state.get());
        !status.is_ok())
      return fail(status);
    // Acquire pairs with the release of whoever finishes the operation: OriginEngine::finish_job, or the path it took.
    if (state->done.load(std::memory_order_acquire) && state->code.load(std::memory_order_relaxed) == Code::ok) {
      request->bits = completed_request;
      return FARSUM_OK;
    }
    request->bits = global().requests.add({.state = state,
                                           .peer = window.parts().ranks[target],
                                           .call = call_name(described.operation.kind),
                                           .writes = writes(described.operation.kind, described.operation.op)});
    return FARSUM_OK;
  });
}

static farsum_status finish_request(farsum_request* request, const RequestSlot& slot) {
  const Code code = slot.state->code.load(std::memory_order_relaxed);
  const std::string call = slot.call;
  const Rank peer = slot.peer;
  if (slot.writes) heard();
  global().requests.remove(request->bits);
  request->bits = 0;
  if (code == Code::ok) return FARSUM_OK;
  if (code == Code::peer_failed) {
    if (const std::string dead = name_the_dead(&live_context()->watch(), {peer}); !dead.empty())
      return fail(code, call + dead);
  }
  const char* where = code == Code::no_memory ? "here" : "at its owner";
  return fail(code, fmt::format("{}: the operation failed {}: {}", call, where, explain_code(code)));
}

static farsum_status find_request(const char* call, farsum_request* request, RequestSlot*& slot) {
  if (live_context() == nullptr) return no_context(call);
  if (request == nullptr) return fail(Code::argument, fmt::format("{}: null request", call));
  slot = global().requests.find(request->bits);
  if (slot == nullptr) {
    return fail(Code::handle, fmt::format("{}: the request {:#x} does not live; it was completed before, or never made",
                                          call, request->bits));
  }
  return FARSUM_OK;
}

farsum_status farsum_test(farsum_request* request, int* done) {
  return guarded("farsum_test", [&]() -> farsum_status {
    if (request != nullptr && request->bits == completed_request) {
      request->bits = 0;
      *done = 1;
      return FARSUM_OK;
    }
    RequestSlot* slot = nullptr;
    if (const farsum_status status = find_request("farsum_test", request, slot); status != FARSUM_OK) return status;
    if (slot->carried != nullptr) return test_carried(request, *slot, done);
    live_context()->engine().progress(slot->peer);
    *done = slot->state->done.load(std::memory_order_acquire) ? 1 : 0;
    if (*done != 0) return finish_request(request, *slot);
    return report(live_context()->waiter().looked_in_vain("farsum_test"));
  });
}

farsum_status farsum_wait(farsum_request* request) {
  return guarded("farsum_wait", [&]() -> farsum_status {
    if (request != nullptr && request->bits == completed_request) {
      request->bits = 0;
      return FARSUM_OK;
    }
    RequestSlot* slot = nullptr;
    if (const farsum_status status = find_request("farsum_wait", request, slot); status != FARSUM_OK) return status;
    if (slot->carried != nullptr) return wait_for_carried(request, *slot);
    Context& context = *live_context();
    const Status status = context.waiter().wait(
        context.waiter().own_events(),
        [&] {
          if (context.engine().progress(slot->peer) != 0) context.waiter().note_come();
          return slot->state->done.load(std::memory_order_acquire);
        },
        "farsum_wait");
    if (!status.is_ok()) return fail(status);
    return finish_request(request, *slot);
  });
}

static bool is_flushed(farsum_window handle, int target) {
  const WindowSlot* slot = find_window(handle);
  if (slot == nullptr) [[unlikely]]
    return false;
  const HotWindow hot = hot_window(*slot, handle);
  return target == FARSUM_ALL_RANKS ? hot.flush_all() : hot.flush(static_cast<std::uint32_t>(target));
}

farsum_status farsum_flush(farsum_window handle, int target) {
  if (!copies_answer_reads() && is_flushed(handle, target)) [[likely]]
    return FARSUM_OK;
  return long_flush("farsum_flush", handle, target, Window::Reach::target);
}

farsum_status farsum_flush_local(farsum_window handle, int target) {
  if (is_flushed(handle, target)) [[likely]]
    return FARSUM_OK;
  return long_flush("farsum_flush_local", handle, target, Window::Reach::local);
}

}  // extern "C"
