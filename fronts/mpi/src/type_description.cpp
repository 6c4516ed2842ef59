#include "type_description.hpp"

#include "abi_names.hpp"
#include "library.hpp"

namespace farsum::mpi {
namespace {

struct KindOfCombiner {
  int combiner;
  TypeKind kind;
};

constexpr std::array<KindOfCombiner, 21> kinds_of_combiners = {{
    {MPI_COMBINER_NAMED, TypeKind::named},
    {MPI_COMBINER_DUP, TypeKind::dup},
    {MPI_COMBINER_CONTIGUOUS, TypeKind::contiguous},
    {MPI_COMBINER_VECTOR, TypeKind::vector},
    {MPI_COMBINER_HVECTOR, TypeKind::hvector},
    {names::combiner_hvector_integer, TypeKind::hvector},
    {MPI_COMBINER_INDEXED, TypeKind::indexed},
    {MPI_COMBINER_HINDEXED, TypeKind::hindexed},
    {names::combiner_hindexed_integer, TypeKind::hindexed},
    {MPI_COMBINER_INDEXED_BLOCK, TypeKind::indexed_block},
    {MPI_COMBINER_HINDEXED_BLOCK, TypeKind::hindexed_block},
    {MPI_COMBINER_STRUCT, TypeKind::structure},
    {names::combiner_struct_integer, TypeKind::structure},
    {MPI_COMBINER_SUBARRAY, TypeKind::subarray},
    {MPI_COMBINER_DARRAY, TypeKind::darray},
    {MPI_COMBINER_RESIZED, TypeKind::resized},
    {MPI_COMBINER_F90_REAL, TypeKind::f90},
    {MPI_COMBINER_F90_COMPLEX, TypeKind::f90},
    {MPI_COMBINER_F90_INTEGER, TypeKind::f90},
    {names::combiner_value_index, TypeKind::value_index},
    {names::no_combiner, TypeKind::unknown},
}};

TypeKind kind_of(int combiner) {
  for (const KindOfCombiner& row : kinds_of_combiners) {
    if (row.combiner == combiner) return row.kind;
  }
  return TypeKind::unknown;
}

// Predefined types, named or not, must not be freed.
bool is_predefined(TypeKind kind) {
  return kind == TypeKind::named || kind == TypeKind::f90 || kind == TypeKind::value_index;
}

bool envelope_of(MPI_Datatype type, MPI_Count& integers, MPI_Count& addresses, MPI_Count& larges, MPI_Count& types,
                 int& combiner) {
  if (library().Type_get_envelope_c != nullptr) {
    return library().Type_get_envelope_c(type, &integers, &addresses, &larges, &types, &combiner) == MPI_SUCCESS;
  }
  int few_integers = 0;
  int few_addresses = 0;
  int few_types = 0;
  if (library().Type_get_envelope(type, &few_integers, &few_addresses, &few_types, &combiner) != MPI_SUCCESS) {
    return false;
  }
  integers = few_integers;
  addresses = few_addresses;
  types = few_types;
  larges = 0;
  return true;
}

// The smallest exact width is known from the size; among 16 bytes, precision tells the formats apart: x87's has 18
// digits.
bool is_x87(int digits) { return digits <= 18; }

MPI_Datatype f90_real(std::size_t size, int digits) {
  switch (size) {
    case 4:
      return MPI_REAL4;
    case 8:
      return MPI_REAL8;
    case 16:
      return is_x87(digits) ? MPI_LONG_DOUBLE : MPI_REAL16;
    default:
      return MPI_DATATYPE_NULL;
  }
}

MPI_Datatype f90_complex(std::size_t size, int digits) {
  switch (size) {
    case 8:
      return MPI_COMPLEX8;
    case 16:
      return MPI_COMPLEX16;
    case 32:
      return is_x87(digits) ? MPI_C_LONG_DOUBLE_COMPLEX : MPI_COMPLEX32;
    default:
      return MPI_DATATYPE_NULL;
  }
}

MPI_Datatype f90_integer(std::size_t size) {
  switch (size) {
    case 1:
      return MPI_INTEGER1;
    case 2:
      return MPI_INTEGER2;
    case 4:
      return MPI_INTEGER4;
    case 8:
      return MPI_INTEGER8;
    case 16:
      return names::integer16;
    default:
      return MPI_DATATYPE_NULL;
  }
}

}  // namespace

bool TypeDescription::read(MPI_Datatype type) {
  MPI_Count integers = 0;
  MPI_Count addresses = 0;
  MPI_Count larges = 0;
  MPI_Count types = 0;
  if (!envelope_of(type, integers, addresses, larges, types, combiner_)) return false;
  kind_ = kind_of(combiner_);
  if (kind_ == TypeKind::named || kind_ == TypeKind::unknown) return true;
  integer_count_ = static_cast<std::size_t>(integers);
  address_count_ = static_cast<std::size_t>(addresses);
  large_count_ = static_cast<std::size_t>(larges);
  // Room is always made for exactly what is asked for: Open MPI reads every handle of the room it is given.
  const auto type_room = static_cast<std::size_t>(types);
  int* integers_into = integers_.make_room(integer_count_);
  MPI_Aint* addresses_into = addresses_.make_room(address_count_);
  MPI_Count* larges_into = larges_.make_room(large_count_);
  MPI_Datatype* types_into = types_.make_room(type_room);
  const int result =
      large_count_ != 0
          ? library().Type_get_contents_c(type, integers, addresses, larges, types, integers_into, addresses_into,
                                          larges_into, types_into)
          : library().Type_get_contents(type, static_cast<int>(integers), static_cast<int>(addresses),
                                        static_cast<int>(types), integers_into, addresses_into, types_into);
  if (result != MPI_SUCCESS) return false;
  type_count_ = type_room;
  return true;
}

TypeDescription::~TypeDescription() {
  for (std::size_t i = 0; i < type_count_; ++i) {
    if (basics_.find(types_[i]) == nullptr) give_back(types_[i]);
  }
}

void TypeDescription::give_back(MPI_Datatype type) const {
  MPI_Count integers = 0;
  MPI_Count addresses = 0;
  MPI_Count larges = 0;
  MPI_Count types = 0;
  int combiner = 0;
  if (!envelope_of(type, integers, addresses, larges, types, combiner) || is_predefined(kind_of(combiner))) return;
  library().Type_free(&type);
}

MPI_Datatype TypeDescription::f90_equivalent(std::size_t size) const {
  if (combiner_ == MPI_COMBINER_F90_INTEGER) return f90_integer(size);
  return combiner_ == MPI_COMBINER_F90_REAL ? f90_real(size, integers_[0]) : f90_complex(size, integers_[0]);
}

bool library_extent(MPI_Datatype type, std::int64_t& extent) {
  MPI_Aint lower = 0;
  MPI_Aint width = 0;
  if (library().Type_get_extent(type, &lower, &width) != MPI_SUCCESS) return false;
  extent = width;
  return true;
}

bool library_size(MPI_Datatype type, std::size_t& size) {
  MPI_Count count = 0;
  if (library().Type_size_x(type, &count) != MPI_SUCCESS || count < 0) return false;
  size = static_cast<std::size_t>(count);
  return true;
}

}  // namespace farsum::mpi
