#include "window/mapped_scatter.hpp"

#include <algorithm>
#include <cstring>

#include "memory/stripes.hpp"
#include "ops/atomics.hpp"

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

Status MappedScatter::run_under_locks(const TargetView& view, std::uint32_t target, const List& list) const {
  const Reduction reduction = make_reduction(kernels_, list.type, list.op, nullptr, 0);
  RowReducer reducer(view.domain, agent_, view.memory, reduction);
  const Applied applied = reducer.apply(
      ElementList{list.offset, list.offsets, reduction.element_bytes(), static_cast<const std::byte*>(list.elements)});
  return texts_.applied(applied, view.domain, reducer.refused_at(), "farsum_accumulate", target);
}

bool MappedScatter::is_plain(const TargetView& view, const List& list) {
  if (list.offsets.empty() || list.op == ops::Operator::scaled_sum || !ops::legal(list.type, list.op)) return false;
  const std::uint64_t size = ops::size_of(list.type);
  if (view.open.load(std::memory_order_relaxed) <= no_epoch || view.direct_bytes < size) return false;
  if (view.domain.atomics_only && !ops::is_lockable(list.type)) return false;
  if (list.offset > view.direct_bytes || list.elements == nullptr) return false;
  // One pass without branches: the largest place, and all low bits together, for atomics-only words are to be aligned
  // here. A negative offset becomes a very large place.
  std::uint64_t largest = 0;
  std::uint64_t low_bits = reinterpret_cast<std::uintptr_t>(view.memory);
  for (const std::int64_t piece : list.offsets) {
    const std::uint64_t place = list.offset + static_cast<std::uint64_t>(piece);
    largest = std::max(largest, place);
    low_bits |= place;
  }
  return largest <= view.direct_bytes - size && (low_bits & (ops::alignment_of(list.type) - 1)) == 0;
}

bool MappedScatter::run(TargetView& view, std::uint32_t target, const List& list, Status& status) const {
  if (!is_plain(view, list)) return false;
  const std::uint64_t size = ops::size_of(list.type);
  std::byte* base = view.memory + list.offset;
  const auto* operands = static_cast<const std::byte*>(list.elements);
  if (!view.domain.atomics_only) {
    status = run_under_locks(view, target, list);
  } else if (!is_word_integer(list.type) || !apply_words(base, list.offsets, operands, list.op)) {
    for_each_element(base, list.offsets, operands, size, [&](std::byte* address, const std::byte* element) {
      ops::atomic_apply(address, element, nullptr, list.type, list.op, nullptr);
    });
  }
  note_stores(view);
  view.hot_operations.store(view.hot_operations.load(std::memory_order_relaxed) + list.offsets.size(),
                            std::memory_order_relaxed);
  view.hot_bytes.store(view.hot_bytes.load(std::memory_order_relaxed) + list.offsets.size() * size,
                       std::memory_order_relaxed);
  return true;
}

}  // namespace farsum
