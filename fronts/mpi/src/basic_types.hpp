// The predefined datatypes and operators of MPI as the engine knows them, and which operator MPI allows on which type.
// Owned by Datatypes; filled once when the front starts, then read by any thread.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "farsum.h"
#include "quick_table.hpp"

namespace farsum::mpi {

// The classes that MPI's rules for predefined operators speak of (MPI 4.1, 6.9.2).
enum class TypeClass : std::uint8_t {
  c_integer,
  fortran_integer,
  floating_point,
  logical,
  complex,
  byte,
  multi_language,  // MPI_AINT, MPI_OFFSET, MPI_COUNT
  pair,            // for MINLOC and MAXLOC
  other,           // characters and whatever else is only moved
};

struct BasicType {
  MPI_Datatype handle;
  std::uint32_t size;    // bytes of its type map, as MPI_Type_size says
  std::uint32_t extent;  // bytes of one element in memory: what the engine accumulates
  farsum_type element;
  farsum_type swap_element;  // the same for compare-and-swap, which knows no uninterpreted bytes
  std::uint16_t operators;   // bit `op` of farsum_op: MPI and the engine both allow it
  TypeClass type_class;
  bool swappable;  // MPI allows it in MPI_Compare_and_swap

  // Some pair types have bytes that belong to no value: MPI moves them in no put or get.
  [[nodiscard]] bool padded() const { return size != extent; }
};

struct BasicOp {
  MPI_Op handle;
  farsum_op op;
};

[[nodiscard]] inline bool legal(farsum_op op, const BasicType& type) {
  return ((type.operators >> static_cast<unsigned>(op)) & 1u) != 0;
}

class BasicTypes {
 public:
  // Asks the library for the sizes of Fortran's types. False only if a table could not be laid out.
  [[nodiscard]] bool fill();

  // The predefined type, or null for every other: derived, MPI_DATATYPE_NULL, what the engine cannot compute with.
  [[nodiscard]] const BasicType* find(MPI_Datatype type) const { return types_.find(type); }
  // The predefined operator, or null: user-defined, MPI_OP_NULL.
  [[nodiscard]] const BasicOp* find_op(MPI_Op op) const { return ops_.find(op); }

 private:
  QuickTable<BasicType, 11> types_;
  QuickTable<BasicOp, 7> ops_;
};

}  // namespace farsum::mpi
