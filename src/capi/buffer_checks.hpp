// What one rank can see to be wrong with the elements and buffers of a collective.
#pragma once

#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "base/status.hpp"
#include "collectives/fold.hpp"
#include "farsum.h"
#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"
#include "ops/operator_list.hpp"

namespace farsum::capi {

inline Status check_element(const char* call, farsum_type type) {
  if (ops::is_element_type(static_cast<unsigned>(type))) return {};
  return {Code::type, fmt::format("{}: unknown type {}", call, static_cast<int>(type))};
}

inline Status check_reducible(const char* call, farsum_type type, farsum_op op) {
  if (Status status = check_element(call, type); !status.is_ok()) return status;
  if (!ops::is_operator(static_cast<unsigned>(op)))
    return {Code::type, fmt::format("{}: unknown operator {}", call, static_cast<int>(op))};
  const auto element = static_cast<ops::ElementType>(type);
  const auto combining = static_cast<ops::Operator>(op);
  if (can_fold(element, combining)) return {};
  const char* const why = ops::legal(element, combining) ? ": replace, no_op and scaled_sum are for windows alone" : "";
  return {Code::type, fmt::format("{}: operator {} reduces no elements of {}{}; use {}", call, ops::name_of(combining),
                                  ops::name_of(element), why,
                                  ops::list_operators([&](ops::Operator one) { return can_fold(element, one); }))};
}

struct Lengths {
  std::size_t mine = 0;
  std::size_t result = 0;
};

// `blocks`: how many of `count` elements each rank brings.
inline Status measure(const char* call, std::size_t count, std::size_t element_bytes, std::size_t blocks,
                      Lengths& lengths) {
  if (!__builtin_mul_overflow(count, element_bytes, &lengths.result) &&
      !__builtin_mul_overflow(lengths.result, blocks, &lengths.mine) && lengths.mine <= PTRDIFF_MAX)
    return {};
  return {Code::range, fmt::format("{}: {} elements of {} bytes for each of {} ranks are more than memory can hold",
                                   call, count, element_bytes, blocks)};
}

inline Status check_buffers(const char* call, const void* mine, const void* result, const Lengths& lengths) {
  if (lengths.result == 0) return {};
  if (mine == nullptr || result == nullptr) return {Code::argument, fmt::format("{}: a buffer is null", call)};
  const auto from = reinterpret_cast<std::uintptr_t>(mine);
  const auto to = reinterpret_cast<std::uintptr_t>(result);
  if (from == to || (to > from ? to - from >= lengths.mine : from - to >= lengths.result)) return {};
  return {Code::argument,
          fmt::format("{}: the result begins {} bytes {} the elements that this rank brings, and overlaps them; it "
                      "must be apart from them or begin where they do",
                      call, to > from ? to - from : from - to, to > from ? "behind" : "before")};
}

}  // namespace farsum::capi
