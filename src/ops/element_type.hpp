// Element types that accumulates work on: their sizes, alignments, names and which fit one CPU atomic. The numeric
// values travel in messages: never renumber one, only append. This file knows nothing of operators.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace farsum::ops {

enum class ElementType : std::uint8_t {
  byte = 0,  // Opaque: replace, no_op and the bitwise operators only.
  boolean = 1,
  int8 = 2,
  uint8 = 3,
  int16 = 4,
  uint16 = 5,
  int32 = 6,
  uint32 = 7,
  int64 = 8,
  uint64 = 9,
  float32 = 10,
  float64 = 11,
  long_double = 12,
  complex64 = 13,   // Two floats.
  complex128 = 14,  // Two doubles.
  complex_long_double = 15,
  pair_float_int = 16,
  pair_double_int = 17,
  pair_long_int = 18,
  pair_int_int = 19,
  pair_short_int = 20,
  pair_long_double_int = 21,
  pair_float_float = 22,  // Fortran's pairs have no other index.
  pair_double_double = 23,
  float128 = 24,
  complex256 = 25,  // Two float128.
  int128 = 26,
  float16 = 27,
};

inline constexpr std::size_t element_type_count = 28;
inline constexpr std::size_t largest_element_bytes = 32;

enum class ElementKind : std::uint8_t { opaque, boolean, integer, floating, complex, pair };

// The types beyond the standard's, as the compiler has them.
#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 Float128;
#else
using Float128 = long double;
#endif
static_assert(Float128(1) + Float128(0x1p-112L) != Float128(1), "a long double must do for what this compiler lacks");
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;
struct Float16 {  // Bits: half.hpp knows what they mean.
  std::uint16_t bits;
};

// The C layouts of the value-and-index types that minloc and maxloc reduce (MPI 4.1, section 6.9.4).
template <class Value, class Index = int>
struct ValueIndex {
  Value value;
  Index index;
};

// Two reals, laid out as C's _Complex and Fortran's COMPLEX. Not std::complex, whose inline members would be shared
// between translation units that are compiled for different instruction sets.
template <class Real>
struct ComplexOf {
  Real real;
  Real imaginary;
};

struct ElementTraits {
  std::uint8_t size_bytes;
  std::uint8_t alignment_bytes;
  ElementKind kind;
  bool is_lockable;  // One CPU atomic instruction can update it.
  const char* name;  // As a C programmer writes it.
};

template <class T>
constexpr ElementTraits describe(ElementKind kind, bool is_lockable, const char* name) {
  return {sizeof(T), alignof(T), kind, is_lockable, name};
}

inline constexpr std::array<ElementTraits, element_type_count> element_traits = {{
    describe<std::byte>(ElementKind::opaque, true, "byte"),
    describe<bool>(ElementKind::boolean, true, "bool"),
    describe<std::int8_t>(ElementKind::integer, true, "int8_t"),
    describe<std::uint8_t>(ElementKind::integer, true, "uint8_t"),
    describe<std::int16_t>(ElementKind::integer, true, "int16_t"),
    describe<std::uint16_t>(ElementKind::integer, true, "uint16_t"),
    describe<std::int32_t>(ElementKind::integer, true, "int32_t"),
    describe<std::uint32_t>(ElementKind::integer, true, "uint32_t"),
    describe<std::int64_t>(ElementKind::integer, true, "int64_t"),
    describe<std::uint64_t>(ElementKind::integer, true, "uint64_t"),
    describe<float>(ElementKind::floating, true, "float"),
    describe<double>(ElementKind::floating, true, "double"),
    describe<long double>(ElementKind::floating, false, "long double"),
    describe<ComplexOf<float>>(ElementKind::complex, false, "float _Complex"),
    describe<ComplexOf<double>>(ElementKind::complex, false, "double _Complex"),
    describe<ComplexOf<long double>>(ElementKind::complex, false, "long double _Complex"),
    describe<ValueIndex<float>>(ElementKind::pair, false, "struct { float; int; }"),
    describe<ValueIndex<double>>(ElementKind::pair, false, "struct { double; int; }"),
    describe<ValueIndex<long>>(ElementKind::pair, false, "struct { long; int; }"),
    describe<ValueIndex<int>>(ElementKind::pair, false, "struct { int; int; }"),
    describe<ValueIndex<short>>(ElementKind::pair, false, "struct { short; int; }"),
    describe<ValueIndex<long double>>(ElementKind::pair, false, "struct { long double; int; }"),
    describe<ValueIndex<float, float>>(ElementKind::pair, false, "struct { float; float; }"),
    describe<ValueIndex<double, double>>(ElementKind::pair, false, "struct { double; double; }"),
    describe<Float128>(ElementKind::floating, false, "_Float128"),
    describe<ComplexOf<Float128>>(ElementKind::complex, false, "_Float128 _Complex"),
    describe<Int128>(ElementKind::integer, false, "__int128"),
    describe<Float16>(ElementKind::floating, true, "_Float16"),
}};

static_assert(sizeof(ValueIndex<float>) == 8 && sizeof(ValueIndex<double>) == 16 && sizeof(ValueIndex<long>) == 16);
static_assert(sizeof(ValueIndex<short>) == 8 && sizeof(ValueIndex<long double>) == largest_element_bytes);
static_assert(sizeof(Float128) == 16 && sizeof(Float16) == 2);
static_assert(sizeof(bool) == 1, "a boolean element is one byte");

constexpr std::size_t index_of(ElementType type) { return static_cast<std::size_t>(type); }

// For values that come off the wire or through the C interface.
constexpr bool is_element_type(std::uint64_t value) { return value < element_type_count; }

constexpr const ElementTraits& traits_of(ElementType type) { return element_traits[index_of(type)]; }
constexpr std::size_t size_of(ElementType type) { return traits_of(type).size_bytes; }
constexpr std::size_t alignment_of(ElementType type) { return traits_of(type).alignment_bytes; }
constexpr ElementKind kind_of(ElementType type) { return traits_of(type).kind; }
constexpr bool is_lockable(ElementType type) { return traits_of(type).is_lockable; }
constexpr const char* name_of(ElementType type) { return traits_of(type).name; }

// The C++ type behind an ElementType: typename Element<ElementType::int32>::type.
template <ElementType>
struct Element;
template <>
struct Element<ElementType::byte> {
  using type = unsigned char;
};
template <>
struct Element<ElementType::boolean> {
  using type = unsigned char;
};  // Any bits may arrive; a bool may not hold them.
template <>
struct Element<ElementType::int8> {
  using type = std::int8_t;
};
template <>
struct Element<ElementType::uint8> {
  using type = std::uint8_t;
};
template <>
struct Element<ElementType::int16> {
  using type = std::int16_t;
};
template <>
struct Element<ElementType::uint16> {
  using type = std::uint16_t;
};
template <>
struct Element<ElementType::int32> {
  using type = std::int32_t;
};
template <>
struct Element<ElementType::uint32> {
  using type = std::uint32_t;
};
template <>
struct Element<ElementType::int64> {
  using type = std::int64_t;
};
template <>
struct Element<ElementType::uint64> {
  using type = std::uint64_t;
};
template <>
struct Element<ElementType::float32> {
  using type = float;
};
template <>
struct Element<ElementType::float64> {
  using type = double;
};
template <>
struct Element<ElementType::long_double> {
  using type = long double;
};
template <>
struct Element<ElementType::complex64> {
  using type = ComplexOf<float>;
};
template <>
struct Element<ElementType::complex128> {
  using type = ComplexOf<double>;
};
template <>
struct Element<ElementType::complex_long_double> {
  using type = ComplexOf<long double>;
};
template <>
struct Element<ElementType::pair_float_int> {
  using type = ValueIndex<float>;
};
template <>
struct Element<ElementType::pair_double_int> {
  using type = ValueIndex<double>;
};
template <>
struct Element<ElementType::pair_long_int> {
  using type = ValueIndex<long>;
};
template <>
struct Element<ElementType::pair_int_int> {
  using type = ValueIndex<int>;
};
template <>
struct Element<ElementType::pair_short_int> {
  using type = ValueIndex<short>;
};
template <>
struct Element<ElementType::pair_long_double_int> {
  using type = ValueIndex<long double>;
};
template <>
struct Element<ElementType::pair_float_float> {
  using type = ValueIndex<float, float>;
};
template <>
struct Element<ElementType::pair_double_double> {
  using type = ValueIndex<double, double>;
};
template <>
struct Element<ElementType::float128> {
  using type = Float128;
};
template <>
struct Element<ElementType::complex256> {
  using type = ComplexOf<Float128>;
};
template <>
struct Element<ElementType::int128> {
  using type = Int128;
};
template <>
struct Element<ElementType::float16> {
  using type = Float16;
};

}  // namespace farsum::ops
