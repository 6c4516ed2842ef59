// Many single elements of one target in one call: paper 4's batched atomics. They are checked in one pass and applied
// in a second that asks for the cache lines ahead, so that misses overlap where one update after the other would wait
// for each.
#include "ops/atomics.hpp"
#include "window/window.hpp"

namespace farsum {
namespace {

constexpr std::size_t prefetch_distance = 24;

// Applies `update(address, operand)` to each element, with the lines of the coming ones under way.
template <class Update>
void for_each_element(std::byte* base, std::span<const std::int64_t> offsets, const std::byte* elements,
                      std::size_t size, Update&& update) {
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (i + prefetch_distance < offsets.size()) __builtin_prefetch(base + offsets[i + prefetch_distance], 1);
    update(base + offsets[i], elements + i * size);
  }
}

// The 64-bit operators with an instruction of their own; false for the rest.
bool apply_words(std::byte* base, std::span<const std::int64_t> offsets, const std::byte* elements, ops::Operator op) {
  const auto with = [&](auto&& update) {
    for_each_element(base, offsets, elements, sizeof(std::uint64_t), [&](std::byte* address, const std::byte* element) {
      std::uint64_t operand;
      std::memcpy(&operand, element, sizeof operand);
      update(reinterpret_cast<std::uint64_t*>(address), operand);
    });
    return true;
  };
  // Acquire and release: see ops/atomics.hpp.
  if (op == ops::Operator::bxor)
    return with([](auto* word, auto operand) { __atomic_fetch_xor(word, operand, __ATOMIC_ACQ_REL); });
  if (op == ops::Operator::sum)
    return with([](auto* word, auto operand) { __atomic_fetch_add(word, operand, __ATOMIC_ACQ_REL); });
  if (op == ops::Operator::bor)
    return with([](auto* word, auto operand) { __atomic_fetch_or(word, operand, __ATOMIC_ACQ_REL); });
  if (op == ops::Operator::band)
    return with([](auto* word, auto operand) { __atomic_fetch_and(word, operand, __ATOMIC_ACQ_REL); });
  return false;
}

bool is_word_integer(ops::ElementType type) {
  return type == ops::ElementType::int64 || type == ops::ElementType::uint64;
}

}  // namespace

Status Window::scatter_under_locks(std::uint32_t target, std::uint64_t offset, std::span<const std::int64_t> offsets,
                                   const std::byte* elements, const Reduction& reduction) {
  const TargetView& view = views_[target];
  RowReducer reducer(view.domain, parts_.lock_agent, view.memory, reduction);
  const Applied applied = reducer.apply(ElementList{offset, offsets, reduction.element_bytes(), elements});
  return texts_.applied(applied, view.domain, reducer.refused_at(), "farsum_accumulate", target);
}

// False when something is not plain, and nothing was done: the long way finds out what.
bool Window::scatter_hot(std::uint32_t target, std::uint64_t offset, std::span<const std::int64_t> offsets,
                         const void* elements, ops::ElementType type, ops::Operator op, Status& status) {
  if (target >= size_ || offsets.empty() || op == ops::Operator::scaled_sum || !ops::legal(type, op)) return false;
  TargetView& view = views_[target];
  const std::uint64_t size = ops::size_of(type);
  if (view.open.load(std::memory_order_relaxed) <= no_epoch || view.direct_bytes < size) return false;
  if (view.domain.atomics_only && !ops::is_lockable(type)) return false;
  if (offset > view.direct_bytes || elements == nullptr) return false;
  // One pass without branches: the largest place, and all low bits together, for atomics-only words are to be aligned
  // here. A negative offset becomes a very large place.
  std::uint64_t largest = 0;
  std::uint64_t low_bits = reinterpret_cast<std::uintptr_t>(view.memory);
  for (const std::int64_t piece : offsets) {
    const std::uint64_t place = offset + static_cast<std::uint64_t>(piece);
    largest = std::max(largest, place);
    low_bits |= place;
  }
  if (largest > view.direct_bytes - size || (low_bits & (ops::alignment_of(type) - 1)) != 0) return false;

  std::byte* base = view.memory + offset;
  const auto* operands = static_cast<const std::byte*>(elements);
  if (!view.domain.atomics_only) {
    status =
        scatter_under_locks(target, offset, offsets, operands, make_reduction(*parts_.kernels, type, op, nullptr, 0));
  } else if (!is_word_integer(type) || !apply_words(base, offsets, operands, op)) {
    for_each_element(base, offsets, operands, size, [&](std::byte* address, const std::byte* element) {
      ops::atomic_apply(address, element, nullptr, type, op, nullptr);
    });
  }
  note_stores(view);
  view.hot_operations.store(view.hot_operations.load(std::memory_order_relaxed) + offsets.size(),
                            std::memory_order_relaxed);
  view.hot_bytes.store(view.hot_bytes.load(std::memory_order_relaxed) + offsets.size() * size,
                       std::memory_order_relaxed);
  return true;
}

}  // namespace farsum
