#include "collectives/fold.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/units.hpp"
#include "os/default_arithmetic.hpp"

namespace farsum {
namespace {

using ops::ElementType;

constexpr bool leaves_vector_registers(ElementType type) {
  return type == ElementType::long_double || type == ElementType::complex_long_double ||
         type == ElementType::pair_long_double_int || type == ElementType::float128 || type == ElementType::complex256;
}

// Of vectors that are folded by rank, so much at a time: scratch for it lies on the stack, one row for each level that
// any number of parts has, but for the first.
constexpr std::size_t row_bytes = 1024;
constexpr std::size_t most_rows = std::numeric_limits<std::uint32_t>::digits - 1;

}  // namespace

Fold::Fold(const ops::KernelSet& kernels, ElementType type, ops::Operator op, ReduceOrder order)
    : kernel_(kernels.bulk(type, op)),
      element_bytes_(ops::size_of(type)),
      order_(order),
      leaves_vector_registers_(leaves_vector_registers(type)) {}

void Fold::in_default_arithmetic(FunctionRef<void()> work) const {
  if (leaves_vector_registers_) {
    const os::DefaultArithmetic arithmetic;
    work();
  } else {
    const os::DefaultVectorArithmetic arithmetic;
    work();
  }
}

void Fold::all(std::byte* into, std::size_t bytes, std::uint32_t parts,
               FunctionRef<const std::byte*(std::uint32_t)> part) const {
  if (bytes == 0) return;
  // Of three the brackets are the same.
  if (order_ == ReduceOrder::nodes || parts <= 3)
    from_the_left(into, bytes, parts, part);
  else
    by_rank(into, bytes, parts, part);
}

void Fold::from_the_left(std::byte* into, std::size_t bytes, std::uint32_t parts,
                         FunctionRef<const std::byte*(std::uint32_t)> part) const {
  const std::byte* const first = part(0);
  if (first != into) std::memcpy(into, first, bytes);
  in_default_arithmetic([&] {
    for (std::uint32_t next = 1; next < parts; ++next) kernel_(into, part(next), bytes / element_bytes_, nullptr);
  });
}

// As a binary counter counts: with each second part the last two rows become one, and so on with each bit that goes
// over. Row 0, which begins with the first part, is `into` itself.
void Fold::by_rank(std::byte* into, std::size_t bytes, std::uint32_t parts,
                   FunctionRef<const std::byte*(std::uint32_t)> part) const {
  alignas(cache_line_bytes) std::array<std::array<std::byte, row_bytes>, most_rows> scratch;
  const std::size_t most = row_bytes / element_bytes_ * element_bytes_;
  in_default_arithmetic([&] {
    for (std::size_t done = 0; done < bytes; done += most) {
      const std::size_t piece = std::min(most, bytes - done);
      const auto row = [&](std::size_t number) { return number == 0 ? into + done : scratch[number - 1].data(); };
      std::size_t rows = 0;
      const auto join_last_two = [&] {
        --rows;
        kernel_(row(rows - 1), row(rows), piece / element_bytes_, nullptr);
      };
      for (std::uint32_t next = 0; next < parts; ++next) {
        const std::byte* const theirs = part(next) + done;
        if (next % 2 == 0) {
          if (row(rows) != theirs) std::memcpy(row(rows), theirs, piece);
          ++rows;
          continue;
        }
        kernel_(row(rows - 1), theirs, piece / element_bytes_, nullptr);
        for (std::uint32_t pairs = (next + 1) / 2; pairs % 2 == 0; pairs /= 2) join_last_two();
      }
      while (rows > 1) join_last_two();
    }
  });
}

void Fold::one_more(std::byte* into, const std::byte* part, std::size_t bytes) const {
  all(into, bytes, 2, [&](std::uint32_t which) -> const std::byte* { return which == 0 ? into : part; });
}

}  // namespace farsum
