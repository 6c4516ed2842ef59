#include "collectives/fold.hpp"

#include <cstring>

#include "os/default_arithmetic.hpp"

namespace farsum {
namespace {

using ops::ElementType;

constexpr bool leaves_vector_registers(ElementType type) {
  return type == ElementType::long_double || type == ElementType::complex_long_double ||
         type == ElementType::pair_long_double_int || type == ElementType::float128 || type == ElementType::complex256;
}

}  // namespace

Fold::Fold(const ops::KernelSet& kernels, ElementType type, ops::Operator op)
    : kernel_(kernels.bulk(type, op)),
      element_bytes_(ops::size_of(type)),
      leaves_vector_registers_(leaves_vector_registers(type)) {}

void Fold::all(std::byte* into, std::size_t bytes, std::uint32_t parts,
               FunctionRef<const std::byte*(std::uint32_t)> part) const {
  if (bytes == 0) return;
  const std::byte* const first = part(0);
  if (first != into) std::memcpy(into, first, bytes);
  const auto others = [&] {
    for (std::uint32_t next = 1; next < parts; ++next) kernel_(into, part(next), bytes / element_bytes_, nullptr);
  };
  if (leaves_vector_registers_) {
    const os::DefaultArithmetic arithmetic;
    others();
  } else {
    const os::DefaultVectorArithmetic arithmetic;
    others();
  }
}

void Fold::one_more(std::byte* into, const std::byte* part, std::size_t bytes) const {
  all(into, bytes, 2, [&](std::uint32_t which) -> const std::byte* { return which == 0 ? into : part; });
}

}  // namespace farsum
