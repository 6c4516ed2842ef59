// What the library says of a derived type: envelope and contents, small or large counts alike, read in the order in
// which the type's constructor takes its arguments. Gives the handles of derived types back when it goes.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "basic_types.hpp"

namespace farsum::mpi {

enum class TypeKind : std::uint8_t {
  named,
  dup,
  contiguous,
  vector,
  hvector,
  indexed,
  hindexed,
  indexed_block,
  hindexed_block,
  structure,
  subarray,
  darray,
  resized,
  f90,
  value_index,
  unknown,
};

// Room for `count` values, on the stack while they are few.
template <typename Value, std::size_t few>
class FewOrMany {
 public:
  Value* make_room(std::size_t count) {
    if (count <= few) return data_ = few_.data();
    many_.resize(count);
    return data_ = many_.data();
  }
  [[nodiscard]] const Value& operator[](std::size_t index) const { return data_[index]; }

 private:
  Value* data_ = nullptr;
  std::array<Value, few> few_;
  std::vector<Value> many_;
};

class TypeDescription {
 public:
  explicit TypeDescription(const BasicTypes& basics) : basics_(basics) {}
  ~TypeDescription();
  TypeDescription(const TypeDescription&) = delete;
  TypeDescription& operator=(const TypeDescription&) = delete;

  // False if the library refuses the handle.
  [[nodiscard]] bool read(MPI_Datatype type);

  [[nodiscard]] TypeKind kind() const { return kind_; }
  // How many numbers and types describe it.
  [[nodiscard]] std::size_t numbers() const { return integer_count_ + address_count_ + large_count_ + type_count_; }

  // The constructor's arguments, each read once, in its order.
  [[nodiscard]] std::int64_t next_integer() { return integers_[next_integer_++]; }
  [[nodiscard]] std::int64_t next_count() { return large_count_ != 0 ? next_large() : next_integer(); }
  [[nodiscard]] std::int64_t next_displacement() {
    if (large_count_ != 0) return next_large();
    return address_count_ != 0 ? static_cast<std::int64_t>(addresses_[next_address_++]) : next_integer();
  }
  [[nodiscard]] MPI_Datatype type(std::size_t index) const { return types_[index]; }

  // The predefined type that is the same as this parametrised Fortran type of `size` bytes.
  [[nodiscard]] MPI_Datatype f90_equivalent(std::size_t size) const;

 private:
  [[nodiscard]] std::int64_t next_large() { return static_cast<std::int64_t>(larges_[next_large_++]); }
  void give_back(MPI_Datatype type) const;

  const BasicTypes& basics_;
  TypeKind kind_ = TypeKind::unknown;
  int combiner_ = 0;
  std::size_t integer_count_ = 0;
  std::size_t address_count_ = 0;
  std::size_t large_count_ = 0;
  std::size_t type_count_ = 0;
  std::size_t next_integer_ = 0;
  std::size_t next_address_ = 0;
  std::size_t next_large_ = 0;
  FewOrMany<int, 32> integers_;
  FewOrMany<MPI_Aint, 8> addresses_;
  FewOrMany<MPI_Count, 16> larges_;
  FewOrMany<MPI_Datatype, 4> types_;
};

// What the library says of any type. False if it refuses.
[[nodiscard]] bool library_extent(MPI_Datatype type, std::int64_t& extent);
[[nodiscard]] bool library_size(MPI_Datatype type, std::size_t& size);

}  // namespace farsum::mpi
