// A datatype flattened: its patterns, bounds and the one predefined type that it is made of. Made from what the library
// says of the type (envelope and contents), so the user may free the type right after the call.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "basic_types.hpp"
#include "pattern.hpp"

namespace farsum::mpi {

// Puts and gets move the bytes of the type map and no others: padding of MPI_SHORT_INT and its like may hold other
// data, and the other side may describe the same values without it. Accumulates move whole elements, padding included,
// because the engine knows a pair as C's struct.
enum class View : std::uint8_t { bytes, elements };

struct FlatType {
  Pattern bytes;
  Pattern elements;                  // filled only if it differs from `bytes`
  const BasicType* basic = nullptr;  // of every piece; null if they differ or the type is empty
  std::int64_t lb = 0;
  std::int64_t extent = 0;
  bool padded = false;  // `elements` differs

  [[nodiscard]] std::size_t size() const { return bytes.bytes; }
  [[nodiscard]] std::int64_t true_lb() const { return bytes.lowest; }
  [[nodiscard]] std::int64_t true_extent() const { return bytes.highest - bytes.lowest; }
  // Elements of `basic` in one item; 0 if there is none.
  [[nodiscard]] std::size_t element_count() const { return basic == nullptr ? 0 : bytes.bytes / basic->size; }
  [[nodiscard]] const Pattern& pattern(View view) const { return view == View::elements && padded ? elements : bytes; }
};

enum class FlattenResult : std::uint8_t { ok, bad_type, no_memory };

// Flattens any type. `work`, if given, is set to how many numbers and types its description took: what doing it anew
// costs.
[[nodiscard]] FlattenResult flatten(const BasicTypes& basics, MPI_Datatype type, FlatType& result,
                                    std::size_t* work = nullptr);

}  // namespace farsum::mpi
