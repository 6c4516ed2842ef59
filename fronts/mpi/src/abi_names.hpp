// What one MPI header or another lacks: optional datatypes, which are then MPI_DATATYPE_NULL, and combiners, which are
// then a number that no library gives, and an error handler, which is then MPI_ERRHANDLER_NULL. A front serves
// libraries that are newer than the header it is compiled against, so MPICH's later handles, whose second byte is their
// size, stand here as numbers.
#pragma once

#include <mpi.h>

namespace farsum::mpi::names {

inline constexpr int no_combiner = -1;

#if defined(MPICH_VERSION)

inline constexpr int combiner_hvector_integer = MPI_COMBINER_HVECTOR_INTEGER;
inline constexpr int combiner_hindexed_integer = MPI_COMBINER_HINDEXED_INTEGER;
inline constexpr int combiner_struct_integer = MPI_COMBINER_STRUCT_INTEGER;
inline constexpr int combiner_value_index = 20;

// Of the C++ bindings.
inline constexpr MPI_Errhandler errors_throw_exceptions = MPIR_ERRORS_THROW_EXCEPTIONS;

inline constexpr MPI_Datatype real2 = 0x4c000226;
inline constexpr MPI_Datatype complex4 = 0x4c00042e;
inline constexpr MPI_Datatype integer16 = 0x4c001032;
inline constexpr MPI_Datatype logical1 = 0x4c000147;
inline constexpr MPI_Datatype logical2 = 0x4c000248;
inline constexpr MPI_Datatype logical4 = 0x4c000449;
inline constexpr MPI_Datatype logical8 = 0x4c00084a;
inline constexpr MPI_Datatype logical16 = 0x4c00104b;
inline constexpr MPI_Datatype c_float16 = 0x4c000246;

#elif defined(OPEN_MPI)

// The places in the enumeration stay whether or not the header still names them.
inline constexpr int combiner_hvector_integer = MPI_COMBINER_VECTOR + 1;
inline constexpr int combiner_hindexed_integer = MPI_COMBINER_INDEXED + 1;
inline constexpr int combiner_struct_integer = MPI_COMBINER_INDEXED_BLOCK + 1;
inline constexpr int combiner_value_index = no_combiner;

#else  // MPI 5's standard ABI

inline constexpr int combiner_hvector_integer = no_combiner - 1;
inline constexpr int combiner_hindexed_integer = no_combiner - 2;
inline constexpr int combiner_struct_integer = no_combiner - 3;
inline constexpr int combiner_value_index = MPI_COMBINER_VALUE_INDEX;

#endif

#if !defined(MPICH_VERSION)

inline const MPI_Errhandler errors_throw_exceptions = MPI_ERRHANDLER_NULL;

#ifdef MPI_REAL2
inline const MPI_Datatype real2 = MPI_REAL2;
inline const MPI_Datatype complex4 = MPI_COMPLEX4;
#else
inline const MPI_Datatype real2 = MPI_DATATYPE_NULL;
inline const MPI_Datatype complex4 = MPI_DATATYPE_NULL;
#endif

#ifdef MPI_INTEGER16
inline const MPI_Datatype integer16 = MPI_INTEGER16;
#else
inline const MPI_Datatype integer16 = MPI_DATATYPE_NULL;
#endif

#ifdef MPI_LOGICAL1
inline const MPI_Datatype logical1 = MPI_LOGICAL1;
inline const MPI_Datatype logical2 = MPI_LOGICAL2;
inline const MPI_Datatype logical4 = MPI_LOGICAL4;
inline const MPI_Datatype logical8 = MPI_LOGICAL8;
#else
inline const MPI_Datatype logical1 = MPI_DATATYPE_NULL;
inline const MPI_Datatype logical2 = MPI_DATATYPE_NULL;
inline const MPI_Datatype logical4 = MPI_DATATYPE_NULL;
inline const MPI_Datatype logical8 = MPI_DATATYPE_NULL;
#endif

#ifdef MPI_LOGICAL16
inline const MPI_Datatype logical16 = MPI_LOGICAL16;
#else
inline const MPI_Datatype logical16 = MPI_DATATYPE_NULL;
#endif

inline const MPI_Datatype c_float16 = MPI_DATATYPE_NULL;

#endif

#ifdef MPI_2COMPLEX
inline const MPI_Datatype two_complex = MPI_2COMPLEX;
inline const MPI_Datatype two_double_complex = MPI_2DOUBLE_COMPLEX;
#else
inline const MPI_Datatype two_complex = MPI_DATATYPE_NULL;
inline const MPI_Datatype two_double_complex = MPI_DATATYPE_NULL;
#endif

}  // namespace farsum::mpi::names
