// Elements of every type with what is rare among their values, and what of a folded one has to be the same.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "collectives/fold.hpp"

namespace farsum {

using ops::ElementType;
using ops::Operator;

// Any bits, and often what is rare among them: NaNs that differ, zeros of both signs, infinities, the least subnormal.
template <class Real>
Real odd_real(std::mt19937_64& random) {
  const Real quiet = std::numeric_limits<Real>::quiet_NaN();
  switch (random() % 8) {
    case 0:
      return Real(0);
    case 1:
      return -Real(0);
    case 2:
      return quiet;
    case 3:
      return -quiet;
    case 4:
      return std::numeric_limits<Real>::infinity();
    case 5:
      return std::numeric_limits<Real>::denorm_min();
    default:
      return static_cast<Real>(static_cast<double>(random() % 1000) / 7 - 70);
  }
}

template <class Real>
void fill_with(std::span<std::byte> bytes, std::mt19937_64& random) {
  for (std::size_t at = 0; at + sizeof(Real) <= bytes.size(); at += sizeof(Real)) {
    const Real value = odd_real<Real>(random);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

inline void fill_oddly(ElementType type, std::span<std::byte> bytes, std::mt19937_64& random) {
  switch (type) {
    case ElementType::float32:
    case ElementType::complex64:
      return fill_with<float>(bytes, random);
    case ElementType::float64:
    case ElementType::complex128:
      return fill_with<double>(bytes, random);
    case ElementType::long_double:
    case ElementType::complex_long_double:
      return fill_with<long double>(bytes, random);
    default:
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  }
}

struct Foldable {
  ElementType type;
  Operator op;
};

inline std::vector<Foldable> pairs_that_can_be_folded() {
  std::vector<Foldable> pairs;
  for (std::size_t type = 0; type < ops::element_type_count; ++type) {
    for (std::size_t op = 0; op < ops::operator_count; ++op) {
      if (can_fold(static_cast<ElementType>(type), static_cast<Operator>(op)))
        pairs.push_back({static_cast<ElementType>(type), static_cast<Operator>(op)});
    }
  }
  return pairs;
}

// Where it goes through a register of a real, a part of the bytes has no meaning and need not be the same.
inline std::vector<std::byte> without_padding(ElementType type, std::vector<std::byte> bytes) {
  const auto clear = [&](std::size_t stride, std::size_t from, std::size_t until) {
    for (std::size_t at = 0; at + stride <= bytes.size(); at += stride)
      std::memset(bytes.data() + at + from, 0, until - from);
  };
  if (type == ElementType::long_double || type == ElementType::complex_long_double) clear(16, 10, 16);
  if (type == ElementType::pair_double_int) clear(16, 12, 16);
  if (type == ElementType::pair_long_int) clear(16, 12, 16);
  if (type == ElementType::pair_short_int) clear(8, 2, 4);
  if (type == ElementType::pair_long_double_int) clear(32, 10, 16), clear(32, 20, 32);
  return bytes;
}

template <class Real>
void make_nans_one(std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at + sizeof(Real) <= bytes.size(); at += sizeof(Real)) {
    Real value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    if (!std::isnan(value)) continue;
    value = std::numeric_limits<Real>::quiet_NaN();
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

// What is the same for sure: of two NaNs either may be what a sum or a product gives.
inline std::vector<std::byte> promised(const Foldable& pair, std::vector<std::byte> bytes) {
  bytes = without_padding(pair.type, std::move(bytes));
  if (pair.op != Operator::sum && pair.op != Operator::prod) return bytes;
  if (pair.type == ElementType::float32 || pair.type == ElementType::complex64) make_nans_one<float>(bytes);
  if (pair.type == ElementType::float64 || pair.type == ElementType::complex128) make_nans_one<double>(bytes);
  return bytes;
}

}  // namespace farsum
