#include "ops/long_moves.hpp"

#include <array>
#include <cstddef>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace farsum::ops {

namespace {

#if defined(__x86_64__)

// "Enhanced REP MOVSB": leaf 7, EBX bit 9.
bool ask_for_quick_string_move() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 9 & 1u) != 0;
}

void string_move(std::byte* to, const std::byte* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

#else

bool ask_for_quick_string_move() { return false; }
void string_move(std::byte*, const std::byte*, std::size_t) {}

#endif

bool has_quick_string_move() {
  static const bool quick = ask_for_quick_string_move();
  return quick;
}

constexpr std::size_t line_bytes = 64;
// Shorter runs, at the ends of an operation, are left to the kernels.
constexpr std::size_t shortest_string_move = 4096;

// Where the target lies less than a line behind the operand within its page, the processor takes each load for one of
// what was just stored.
bool loads_look_stored(const std::byte* to, const std::byte* from) {
  const std::size_t behind = (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % 4096;
  return behind != 0 && behind < line_bytes;
}

// Only whole lines go by the string move, so that each element is written once and in one piece, as the kernels do.
template <ElementType type>
void move_long(void* target, const void* operand, std::size_t count, const void*) {
  constexpr std::size_t size = size_of(type);
  static_assert(line_bytes % size == 0);
  const auto kernel = kernels_for_this_machine().bulk(type, Operator::replace);
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(operand);
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) % line_bytes;
  if (count * size < shortest_string_move || head % size != 0 || loads_look_stored(to, from)) {
    kernel(to, from, count, nullptr);
    return;
  }
  if (head != 0) kernel(to, from, head / size, nullptr);
  const std::size_t rest = count * size - head;
  const std::size_t lines = rest / line_bytes * line_bytes;
  string_move(to + head, from + head, lines);
  if (lines != rest) kernel(to + head + lines, from + head + lines, (rest - lines) / size, nullptr);
}

template <ElementType type>
void fetch_long(void* target, const void*, void* result, std::size_t count, const void*) {
  move_long<type>(result, target, count, nullptr);
}

template <std::size_t... index>
constexpr std::array<KernelSet::Bulk, sizeof...(index)> list_bulk(std::index_sequence<index...>) {
  return {&move_long<static_cast<ElementType>(index)>...};
}

template <std::size_t... index>
constexpr std::array<KernelSet::Fetch, sizeof...(index)> list_fetch(std::index_sequence<index...>) {
  return {&fetch_long<static_cast<ElementType>(index)>...};
}

constexpr auto all_types = std::make_index_sequence<element_type_count>{};
constexpr auto bulk_by_type = list_bulk(all_types);
constexpr auto fetch_by_type = list_fetch(all_types);

}  // namespace

KernelSet::Bulk long_bulk(ElementType type, Operator op) {
  return op == Operator::replace && has_quick_string_move() ? bulk_by_type[index_of(type)] : nullptr;
}

KernelSet::Fetch long_fetch(ElementType type, Operator op) {
  return op == Operator::no_op && has_quick_string_move() ? fetch_by_type[index_of(type)] : nullptr;
}

}  // namespace farsum::ops
