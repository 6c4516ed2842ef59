// The reduction operators and the one table that says which operator works on which element type. Argument checks,
// kernels, tests and docs/reference/operators.md all read it. The numeric values travel in messages: only append.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/element_type.hpp"

namespace farsum::ops {

// What each does to a target t with an operand x, beyond its name:
//   sum, prod, scaled_sum (t += alpha * x): integers wrap; a product is rounded before it is added, never fused, so
//   that every path and every instruction set gives the same bits.
//   min, max: of a number and a NaN the number wins, whichever came first, so the order of arrival does not matter. Of
//   two NaNs, and of two zeros of different sign, either may stay.
//   minloc, maxloc: values as min and max; equal values, two NaNs among them, give the lower index (MPI 4.1, section
//   6.9.4).
//   land, lor, lxor: anything but zero is true; the result is 0 or 1.
//   replace: each element is written once.
//   no_op: the target is left alone; its fetching form is an atomic get.
enum class Operator : std::uint8_t {
  sum = 0,
  scaled_sum = 1,
  prod = 2,
  min = 3,
  max = 4,
  minloc = 5,
  maxloc = 6,
  band = 7,
  bor = 8,
  bxor = 9,
  land = 10,
  lor = 11,
  lxor = 12,
  replace = 13,
  no_op = 14,
};

inline constexpr std::size_t operator_count = 15;

inline constexpr std::array<const char*, operator_count> operator_names = {
    "sum", "scaled_sum", "prod", "min", "max",  "minloc",  "maxloc", "band",
    "bor", "bxor",       "land", "lor", "lxor", "replace", "no_op"};

constexpr std::size_t index_of(Operator op) { return static_cast<std::size_t>(op); }
constexpr bool is_operator(std::uint64_t value) { return value < operator_count; }
constexpr const char* name_of(Operator op) { return operator_names[index_of(op)]; }

namespace detail {

constexpr std::uint32_t bit(Operator op) { return 1u << index_of(op); }

template <class... Ops>
constexpr std::uint32_t bits(Ops... ops) {
  return (bit(ops) | ...);
}

inline constexpr std::uint32_t moving = bits(Operator::replace, Operator::no_op);
inline constexpr std::uint32_t arithmetic = bits(Operator::sum, Operator::scaled_sum, Operator::prod);
inline constexpr std::uint32_t ordering = bits(Operator::min, Operator::max);
inline constexpr std::uint32_t bitwise = bits(Operator::band, Operator::bor, Operator::bxor);
inline constexpr std::uint32_t logical = bits(Operator::land, Operator::lor, Operator::lxor);
inline constexpr std::uint32_t locating = bits(Operator::minloc, Operator::maxloc);

// Indexed by ElementKind.
inline constexpr std::array<std::uint32_t, 6> legal_operators = {
    /* opaque   */ moving | bitwise,
    /* boolean  */ moving | logical,
    /* integer  */ moving | arithmetic | ordering | bitwise | logical,
    /* floating */ moving | arithmetic | ordering,
    /* complex  */ moving | arithmetic,
    /* pair     */ moving | locating,
};

}  // namespace detail

constexpr bool legal(ElementType type, Operator op) {
  return (detail::legal_operators[static_cast<std::size_t>(kind_of(type))] & detail::bit(op)) != 0;
}

// These make one element of two, and the brackets do not matter but for rounding. A scaled sum has a factor beside each
// operand, and moving combines nothing. One that is not named here is for windows alone.
inline constexpr std::uint32_t associative_operators = detail::bits(Operator::sum, Operator::prod) | detail::ordering |
                                                       detail::locating | detail::bitwise | detail::logical;
constexpr bool is_associative(Operator op) { return (associative_operators & detail::bit(op)) != 0; }

// Whether the operator reads the operand (a null operand is allowed otherwise) and whether it reads alpha.
constexpr bool reads_operand(Operator op) { return op != Operator::no_op; }
constexpr bool reads_alpha(Operator op) { return op == Operator::scaled_sum; }

}  // namespace farsum::ops
