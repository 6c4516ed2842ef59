// A datatype flattened: its patterns, extent and the one predefined type that it is made of. Made from what the library
// says of the type (envelope and contents), so the user may free the type right after the call.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "basic_types.hpp"
#include "pattern.hpp"

namespace farsum::mpi {

// Puts and gets move the bytes of the type map and no others: padding of MPI_SHORT_INT and its like may hold other
// data, and the other side may describe the same values without it. Accumulates move whole elements, padding included,
// because the engine knows a pair as C's struct.
enum class View : std::uint8_t { bytes, elements };

struct FlatType {
  FlatType() {}  // written out, or making one would clear all its levels first

  Pattern bytes;
  std::unique_ptr<Pattern> elements;  // only if it differs from `bytes`
  const BasicType* basic = nullptr;   // of every piece; null if they differ or the type is empty
  std::int64_t extent = 0;

  [[nodiscard]] const Pattern& pattern(View view) const {
    return view == View::elements && elements != nullptr ? *elements : bytes;
  }
};

enum class FlattenResult : std::uint8_t { ok, bad_type, no_memory };

// Flattens any type. `work`, if given, is set to how many numbers and types its description took: what doing it anew
// costs.
[[nodiscard]] FlattenResult flatten(const BasicTypes& basics, MPI_Datatype type, FlatType& result,
                                    std::size_t* work = nullptr);

}  // namespace farsum::mpi
