#include "basic_types.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "abi_names.hpp"
#include "library.hpp"

namespace farsum::mpi {
namespace {

constexpr std::uint16_t bit(farsum_op op) { return static_cast<std::uint16_t>(1u << static_cast<unsigned>(op)); }

constexpr std::uint16_t moving = bit(FARSUM_REPLACE) | bit(FARSUM_NO_OP);
constexpr std::uint16_t adding = bit(FARSUM_SUM) | bit(FARSUM_PROD);
constexpr std::uint16_t ordering = bit(FARSUM_MIN) | bit(FARSUM_MAX);
constexpr std::uint16_t logical = bit(FARSUM_LAND) | bit(FARSUM_LOR) | bit(FARSUM_LXOR);
constexpr std::uint16_t bitwise = bit(FARSUM_BAND) | bit(FARSUM_BOR) | bit(FARSUM_BXOR);
constexpr std::uint16_t locating = bit(FARSUM_MINLOC) | bit(FARSUM_MAXLOC);

// MPI 4.1, 6.9.2 and 12.3.4. Beyond it, logical operators are taken on every integer, as MPICH does.
constexpr std::uint16_t allowed(TypeClass type_class) {
  switch (type_class) {
    case TypeClass::c_integer:
    case TypeClass::fortran_integer:
    case TypeClass::multi_language:
      return moving | adding | ordering | logical | bitwise;
    case TypeClass::floating_point:
      return moving | adding | ordering;
    case TypeClass::logical:
      return moving | logical;
    case TypeClass::complex:
      return moving | adding;
    case TypeClass::byte:
      return moving | bitwise;
    case TypeClass::pair:
      return moving | locating;
    case TypeClass::other:
      return moving;
  }
  return 0;
}

// MPI 4.1, 12.3.4: C integer, Fortran integer, logical, multi-language and byte.
constexpr bool may_swap(TypeClass type_class) {
  switch (type_class) {
    case TypeClass::c_integer:
    case TypeClass::fortran_integer:
    case TypeClass::logical:
    case TypeClass::multi_language:
    case TypeClass::byte:
      return true;
    case TypeClass::floating_point:
    case TypeClass::complex:
    case TypeClass::pair:
    case TypeClass::other:
      return false;
  }
  return false;
}

std::uint16_t allowed_by_both(TypeClass type_class, farsum_type element) {
  std::uint16_t both = 0;
  for (int op = FARSUM_SUM; op <= FARSUM_NO_OP; ++op) {
    const std::uint16_t one = bit(static_cast<farsum_op>(op));
    if ((allowed(type_class) & one) != 0 && farsum_op_legal(element, static_cast<farsum_op>(op)) != 0) {
      both = static_cast<std::uint16_t>(both | one);
    }
  }
  return both;
}

// Element types by width in bytes; FARSUM_BYTE for a width that the engine has no such type of.
farsum_type signed_integer(std::size_t width) {
  switch (width) {
    case 1:
      return FARSUM_INT8;
    case 2:
      return FARSUM_INT16;
    case 4:
      return FARSUM_INT32;
    case 8:
      return FARSUM_INT64;
    case 16:
      return FARSUM_INT128;
    default:
      return FARSUM_BYTE;
  }
}

farsum_type unsigned_integer(std::size_t width) {
  switch (width) {
    case 1:
      return FARSUM_UINT8;
    case 2:
      return FARSUM_UINT16;
    case 4:
      return FARSUM_UINT32;
    case 8:
      return FARSUM_UINT64;
    default:
      return FARSUM_BYTE;
  }
}

farsum_type fortran_real(std::size_t width) {
  switch (width) {
    case 2:
      return FARSUM_FLOAT16;
    case 4:
      return FARSUM_FLOAT;
    case 8:
      return FARSUM_DOUBLE;
    case 16:
      return FARSUM_FLOAT128;
    default:
      return FARSUM_BYTE;
  }
}

farsum_type fortran_complex(std::size_t width) {
  switch (width) {
    case 8:
      return FARSUM_COMPLEX_FLOAT;
    case 16:
      return FARSUM_COMPLEX_DOUBLE;
    case 32:
      return FARSUM_COMPLEX_FLOAT128;
    default:
      return FARSUM_BYTE;
  }
}

farsum_type fortran_pair_of_reals(std::size_t width) {
  switch (width) {
    case 8:
      return FARSUM_FLOAT_FLOAT;
    case 16:
      return FARSUM_DOUBLE_DOUBLE;
    default:
      return FARSUM_BYTE;
  }
}

farsum_type fortran_pair_of_integers(std::size_t width) { return width == 8 ? FARSUM_INT_INT : FARSUM_BYTE; }

// What only moves may go as any element of its size.
farsum_type anything(std::size_t width) {
  switch (width) {
    case 16:
      return FARSUM_COMPLEX_DOUBLE;
    case 32:
      return FARSUM_COMPLEX_LONG_DOUBLE;
    default:
      return unsigned_integer(width);
  }
}

using ElementOfWidth = farsum_type (*)(std::size_t width);

class Rows {
 public:
  // The size of the type map is the element's, unless given.
  void add(MPI_Datatype handle, TypeClass type_class, farsum_type element, std::size_t size = 0) {
    const std::size_t extent = farsum_type_size(element);
    if (handle == MPI_DATATYPE_NULL || extent == 0 || known(handle)) return;
    const farsum_type swap = type_class == TypeClass::byte ? FARSUM_UINT8 : element;
    rows_.push_back({.handle = handle,
                     .size = static_cast<std::uint32_t>(size == 0 ? extent : size),
                     .extent = static_cast<std::uint32_t>(extent),
                     .element = element,
                     .swap_element = swap,
                     .operators = allowed_by_both(type_class, element),
                     .type_class = type_class,
                     .swappable = may_swap(type_class)});
  }

  template <typename Integer>
  void add_integer(MPI_Datatype handle, TypeClass type_class = TypeClass::c_integer) {
    add(handle, type_class,
        std::is_signed_v<Integer> ? signed_integer(sizeof(Integer)) : unsigned_integer(sizeof(Integer)));
  }

  // A pair { Value; int; }: its size leaves out the padding.
  template <typename Value>
  void add_pair(MPI_Datatype handle, farsum_type element) {
    add(handle, TypeClass::pair, element, sizeof(Value) + sizeof(int));
  }

  // A type whose width the Fortran compiler chose. Types of a width that the engine cannot compute with stay out:
  // flatten takes them for uninterpreted bytes.
  void add_sized(MPI_Datatype handle, TypeClass type_class, ElementOfWidth element_of_width) {
    int width = 0;
    if (handle == MPI_DATATYPE_NULL || library().Type_size(handle, &width) != MPI_SUCCESS || width <= 0) return;
    add_wide(handle, type_class, element_of_width, static_cast<std::size_t>(width));
  }

  // A type with its width in its name, which the library may not have: it is not asked.
  void add_wide(MPI_Datatype handle, TypeClass type_class, ElementOfWidth element_of_width, std::size_t width) {
    const farsum_type element = element_of_width(width);
    if (farsum_type_size(element) == width) add(handle, type_class, element);
  }

  [[nodiscard]] const std::vector<BasicType>& all() const { return rows_; }

 private:
  [[nodiscard]] bool known(MPI_Datatype handle) const {
    return std::ranges::any_of(rows_, [&](const BasicType& row) { return row.handle == handle; });
  }

  std::vector<BasicType> rows_;
};

void add_c_types(Rows& rows) {
  rows.add(MPI_BYTE, TypeClass::byte, FARSUM_BYTE);
  rows.add(MPI_PACKED, TypeClass::other, FARSUM_BYTE);
  // MPI leaves characters out of the integers, and every library lets programs compute with C's.
  rows.add(MPI_CHAR, TypeClass::c_integer, FARSUM_INT8);
  rows.add_integer<wchar_t>(MPI_WCHAR, TypeClass::other);
  rows.add_integer<signed char>(MPI_SIGNED_CHAR);
  rows.add_integer<unsigned char>(MPI_UNSIGNED_CHAR);
  rows.add_integer<short>(MPI_SHORT);
  rows.add_integer<unsigned short>(MPI_UNSIGNED_SHORT);
  rows.add_integer<int>(MPI_INT);
  rows.add_integer<unsigned>(MPI_UNSIGNED);
  rows.add_integer<long>(MPI_LONG);
  rows.add_integer<unsigned long>(MPI_UNSIGNED_LONG);
  rows.add_integer<long long>(MPI_LONG_LONG);
  rows.add_integer<unsigned long long>(MPI_UNSIGNED_LONG_LONG);
  rows.add_integer<std::int8_t>(MPI_INT8_T);
  rows.add_integer<std::int16_t>(MPI_INT16_T);
  rows.add_integer<std::int32_t>(MPI_INT32_T);
  rows.add_integer<std::int64_t>(MPI_INT64_T);
  rows.add_integer<std::uint8_t>(MPI_UINT8_T);
  rows.add_integer<std::uint16_t>(MPI_UINT16_T);
  rows.add_integer<std::uint32_t>(MPI_UINT32_T);
  rows.add_integer<std::uint64_t>(MPI_UINT64_T);
  rows.add_integer<MPI_Aint>(MPI_AINT, TypeClass::multi_language);
  rows.add_integer<MPI_Offset>(MPI_OFFSET, TypeClass::multi_language);
  rows.add_integer<MPI_Count>(MPI_COUNT, TypeClass::multi_language);
  rows.add(MPI_FLOAT, TypeClass::floating_point, FARSUM_FLOAT);
  rows.add(MPI_DOUBLE, TypeClass::floating_point, FARSUM_DOUBLE);
  rows.add(MPI_LONG_DOUBLE, TypeClass::floating_point, FARSUM_LONG_DOUBLE);
  rows.add(names::c_float16, TypeClass::floating_point, FARSUM_FLOAT16);
  rows.add(MPI_C_BOOL, TypeClass::logical, FARSUM_BOOL);
  rows.add(MPI_CXX_BOOL, TypeClass::logical, FARSUM_BOOL);
  rows.add(MPI_C_FLOAT_COMPLEX, TypeClass::complex, FARSUM_COMPLEX_FLOAT);
  rows.add(MPI_C_DOUBLE_COMPLEX, TypeClass::complex, FARSUM_COMPLEX_DOUBLE);
  rows.add(MPI_C_LONG_DOUBLE_COMPLEX, TypeClass::complex, FARSUM_COMPLEX_LONG_DOUBLE);
  rows.add(MPI_CXX_FLOAT_COMPLEX, TypeClass::complex, FARSUM_COMPLEX_FLOAT);
  rows.add(MPI_CXX_DOUBLE_COMPLEX, TypeClass::complex, FARSUM_COMPLEX_DOUBLE);
  rows.add(MPI_CXX_LONG_DOUBLE_COMPLEX, TypeClass::complex, FARSUM_COMPLEX_LONG_DOUBLE);
}

void add_pairs(Rows& rows) {
  rows.add_pair<float>(MPI_FLOAT_INT, FARSUM_FLOAT_INT);
  rows.add_pair<double>(MPI_DOUBLE_INT, FARSUM_DOUBLE_INT);
  rows.add_pair<long>(MPI_LONG_INT, FARSUM_LONG_INT);
  rows.add_pair<int>(MPI_2INT, FARSUM_INT_INT);
  rows.add_pair<short>(MPI_SHORT_INT, FARSUM_SHORT_INT);
  rows.add_pair<long double>(MPI_LONG_DOUBLE_INT, FARSUM_LONG_DOUBLE_INT);
  rows.add_sized(MPI_2REAL, TypeClass::pair, fortran_pair_of_reals);
  rows.add_sized(MPI_2DOUBLE_PRECISION, TypeClass::pair, fortran_pair_of_reals);
  rows.add_sized(MPI_2INTEGER, TypeClass::pair, fortran_pair_of_integers);
}

void add_fortran_types(Rows& rows) {
  rows.add_sized(MPI_INTEGER, TypeClass::fortran_integer, signed_integer);
  rows.add_sized(MPI_REAL, TypeClass::floating_point, fortran_real);
  rows.add_sized(MPI_DOUBLE_PRECISION, TypeClass::floating_point, fortran_real);
  rows.add_sized(MPI_COMPLEX, TypeClass::complex, fortran_complex);
  rows.add_sized(MPI_DOUBLE_COMPLEX, TypeClass::complex, fortran_complex);
  rows.add_sized(MPI_LOGICAL, TypeClass::logical, signed_integer);
  rows.add(MPI_CHARACTER, TypeClass::other, FARSUM_INT8);
  rows.add_sized(names::two_complex, TypeClass::other, anything);
  rows.add_sized(names::two_double_complex, TypeClass::other, anything);

  rows.add_wide(MPI_INTEGER1, TypeClass::fortran_integer, signed_integer, 1);
  rows.add_wide(MPI_INTEGER2, TypeClass::fortran_integer, signed_integer, 2);
  rows.add_wide(MPI_INTEGER4, TypeClass::fortran_integer, signed_integer, 4);
  rows.add_wide(MPI_INTEGER8, TypeClass::fortran_integer, signed_integer, 8);
  rows.add_wide(names::integer16, TypeClass::fortran_integer, signed_integer, 16);
  rows.add_wide(names::real2, TypeClass::floating_point, fortran_real, 2);
  rows.add_wide(MPI_REAL4, TypeClass::floating_point, fortran_real, 4);
  rows.add_wide(MPI_REAL8, TypeClass::floating_point, fortran_real, 8);
  rows.add_wide(MPI_REAL16, TypeClass::floating_point, fortran_real, 16);
  rows.add_wide(names::complex4, TypeClass::other, anything, 4);
  rows.add_wide(MPI_COMPLEX8, TypeClass::complex, fortran_complex, 8);
  rows.add_wide(MPI_COMPLEX16, TypeClass::complex, fortran_complex, 16);
  rows.add_wide(MPI_COMPLEX32, TypeClass::complex, fortran_complex, 32);
  rows.add_wide(names::logical1, TypeClass::logical, signed_integer, 1);
  rows.add_wide(names::logical2, TypeClass::logical, signed_integer, 2);
  rows.add_wide(names::logical4, TypeClass::logical, signed_integer, 4);
  rows.add_wide(names::logical8, TypeClass::logical, signed_integer, 8);
  rows.add_wide(names::logical16, TypeClass::logical, signed_integer, 16);
}

std::vector<BasicOp> operators() {
  return {{MPI_SUM, FARSUM_SUM},         {MPI_PROD, FARSUM_PROD},     {MPI_MIN, FARSUM_MIN},   {MPI_MAX, FARSUM_MAX},
          {MPI_MINLOC, FARSUM_MINLOC},   {MPI_MAXLOC, FARSUM_MAXLOC}, {MPI_BAND, FARSUM_BAND}, {MPI_BOR, FARSUM_BOR},
          {MPI_BXOR, FARSUM_BXOR},       {MPI_LAND, FARSUM_LAND},     {MPI_LOR, FARSUM_LOR},   {MPI_LXOR, FARSUM_LXOR},
          {MPI_REPLACE, FARSUM_REPLACE}, {MPI_NO_OP, FARSUM_NO_OP}};
}

}  // namespace

bool BasicTypes::fill() {
  Rows rows;
  add_c_types(rows);
  add_pairs(rows);
  add_fortran_types(rows);
  return types_.fill(rows.all()) && ops_.fill(operators());
}

}  // namespace farsum::mpi
