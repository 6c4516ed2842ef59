#include "flat_type.hpp"

#include <algorithm>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "type_description.hpp"

namespace farsum::mpi {
namespace {

// A part of a type: its pattern from the part's own base, and the one predefined type that it is made of.
struct Part {
  Pattern pattern;
  const BasicType* basic = nullptr;
  bool mixed = false;
  std::int64_t extent = 0;
};

// `length` children in a row, `displacement` bytes from the base.
struct Block {
  std::int64_t length;
  std::int64_t displacement;
};

void note_basic(Part& whole, const Part& piece) {
  if (piece.pattern.bytes == 0) return;
  if (piece.mixed || (whole.basic != nullptr && whole.basic->element != piece.basic->element)) {
    whole.mixed = true;
    whole.basic = nullptr;
  } else if (!whole.mixed && whole.basic == nullptr) {
    whole.basic = piece.basic;
  }
}

Pattern block_of(std::size_t bytes) {
  Pattern pattern;
  pattern.bytes = pattern.block = bytes;
  return pattern;
}

// Two values of one item, the second where C puts it behind the first.
bool value_and_index(const Pattern& value, std::size_t value_extent, const Pattern& index, std::size_t index_alignment,
                     Pattern& result) {
  PieceList list;
  const std::size_t place = (value_extent + index_alignment - 1) / index_alignment * index_alignment;
  if (!list.add(value, 0) || !list.add(index, static_cast<std::int64_t>(place))) return false;
  result = list.take();
  return true;
}

Part part_of_basic(const BasicType& basic, View view) {
  Part part;
  part.basic = &basic;
  part.extent = basic.extent;
  if (!basic.padded() || view == View::elements) {
    part.pattern = block_of(basic.extent);
    return part;
  }
  const std::size_t value = basic.size - sizeof(int);
  // Two pieces always fit into a list.
  static_cast<void>(value_and_index(block_of(value), value, block_of(sizeof(int)), alignof(int), part.pattern));
  return part;
}

class Flattener {
 public:
  Flattener(const BasicTypes& basics, View view) : basics_(basics), view_(view) {}

  FlattenResult flatten(MPI_Datatype type, Part& part);

  [[nodiscard]] std::size_t work() const { return work_; }

 private:
  FlattenResult flatten_described(TypeDescription& description, Part& part);
  FlattenResult flatten_named(MPI_Datatype type, Part& part);
  FlattenResult flatten_f90(MPI_Datatype type, TypeDescription& description, Part& part);
  FlattenResult flatten_vector(TypeDescription& description, bool in_bytes, Part& part);
  FlattenResult flatten_indexed(TypeDescription& description, bool one_length, bool in_bytes, Part& part);
  FlattenResult flatten_struct(TypeDescription& description, Part& part);
  FlattenResult flatten_subarray(TypeDescription& description, Part& part);
  FlattenResult flatten_darray(TypeDescription& description, Part& part);
  FlattenResult flatten_value_index(TypeDescription& description, Part& part);

  const BasicTypes& basics_;
  View view_;
  std::size_t work_ = 0;
};

constexpr FlattenResult fits(bool ok) { return ok ? FlattenResult::ok : FlattenResult::no_memory; }

// Blocks of equal length at equal distances are a stride.
bool regular(std::span<const Block> blocks) {
  if (blocks.size() < 2) return true;
  const std::int64_t distance = blocks[1].displacement - blocks[0].displacement;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].length != blocks[0].length) return false;
    if (blocks[i].displacement - blocks[i - 1].displacement != distance) return false;
  }
  return true;
}

bool place_regular(std::span<const Block> blocks, std::int64_t extent, Pattern& pattern) {
  const std::int64_t distance = blocks.size() < 2 ? 0 : blocks[1].displacement - blocks[0].displacement;
  if (!repeat(pattern, static_cast<std::size_t>(blocks[0].length), extent)) return false;
  if (!repeat(pattern, blocks.size(), distance)) return false;
  move(pattern, blocks[0].displacement);
  return true;
}

// Turns the pattern of one child into that of all blocks of it, none of them empty.
bool place_blocks(std::span<const Block> blocks, std::int64_t extent, Pattern& pattern) {
  if (blocks.empty() || pattern.bytes == 0) {
    pattern = Pattern{};
    return true;
  }
  if (regular(blocks)) return place_regular(blocks, extent, pattern);
  PieceList list;
  if (pattern.is_block() && extent == static_cast<std::int64_t>(pattern.block)) {
    list.reserve(blocks.size());
    for (const Block& block : blocks) {
      const auto length = static_cast<std::size_t>(block.length);
      if (!list.add(pattern.first + block.displacement, length * pattern.block)) return false;
    }
    pattern = list.take();
    return true;
  }
  Pattern row;
  std::int64_t row_length = 0;
  for (const Block& block : blocks) {
    if (block.length != row_length) {
      row = pattern;
      row_length = block.length;
      if (!repeat(row, static_cast<std::size_t>(block.length), extent)) return false;
    }
    if (!list.add(row, block.displacement)) return false;
  }
  pattern = list.take();
  return true;
}

FlattenResult Flattener::flatten(MPI_Datatype type, Part& part) {
  if (const BasicType* basic = basics_.find(type)) {
    part = part_of_basic(*basic, view_);
    return FlattenResult::ok;
  }
  if (type == MPI_DATATYPE_NULL) return FlattenResult::bad_type;
  TypeDescription description(basics_);
  if (!description.read(type)) return FlattenResult::bad_type;
  work_ += description.numbers() + 1;
  FlattenResult result = FlattenResult::ok;
  switch (description.kind()) {
    case TypeKind::named:
      result = flatten_named(type, part);
      break;
    case TypeKind::f90:
      result = flatten_f90(type, description, part);
      break;
    case TypeKind::unknown:
      return FlattenResult::bad_type;
    default:
      result = flatten_described(description, part);
      break;
  }
  if (result != FlattenResult::ok) return result;
  return library_extent(type, part.extent) ? FlattenResult::ok : FlattenResult::bad_type;
}

FlattenResult Flattener::flatten_described(TypeDescription& description, Part& part) {
  switch (description.kind()) {
    case TypeKind::dup:
    case TypeKind::resized:
      return flatten(description.type(0), part);
    case TypeKind::contiguous: {
      const FlattenResult result = flatten(description.type(0), part);
      if (result != FlattenResult::ok) return result;
      return fits(repeat(part.pattern, static_cast<std::size_t>(description.next_count()), part.extent));
    }
    case TypeKind::vector:
      return flatten_vector(description, false, part);
    case TypeKind::hvector:
      return flatten_vector(description, true, part);
    case TypeKind::indexed:
      return flatten_indexed(description, false, false, part);
    case TypeKind::hindexed:
      return flatten_indexed(description, false, true, part);
    case TypeKind::indexed_block:
      return flatten_indexed(description, true, false, part);
    case TypeKind::hindexed_block:
      return flatten_indexed(description, true, true, part);
    case TypeKind::structure:
      return flatten_struct(description, part);
    case TypeKind::subarray:
      return flatten_subarray(description, part);
    case TypeKind::darray:
      return flatten_darray(description, part);
    case TypeKind::value_index:
      return flatten_value_index(description, part);
    case TypeKind::named:
    case TypeKind::f90:
    case TypeKind::unknown:
      break;
  }
  return FlattenResult::bad_type;
}

// A predefined type that the engine does not compute with, or a marker of bounds, which has no bytes.
FlattenResult Flattener::flatten_named(MPI_Datatype type, Part& part) {
  std::size_t size = 0;
  if (!library_size(type, size)) return FlattenResult::bad_type;
  part.pattern = block_of(size);
  part.mixed = size != 0;
  return FlattenResult::ok;
}

FlattenResult Flattener::flatten_f90(MPI_Datatype type, TypeDescription& description, Part& part) {
  std::size_t size = 0;
  if (!library_size(type, size)) return FlattenResult::bad_type;
  const BasicType* basic = basics_.find(description.f90_equivalent(size));
  if (basic == nullptr || basic->size != size) return flatten_named(type, part);
  part = part_of_basic(*basic, view_);
  return FlattenResult::ok;
}

FlattenResult Flattener::flatten_vector(TypeDescription& description, bool in_bytes, Part& part) {
  const FlattenResult result = flatten(description.type(0), part);
  if (result != FlattenResult::ok) return result;
  const auto count = static_cast<std::size_t>(description.next_count());
  const auto length = static_cast<std::size_t>(description.next_count());
  const std::int64_t stride = in_bytes ? description.next_displacement() : description.next_count() * part.extent;
  return fits(repeat(part.pattern, length, part.extent) && repeat(part.pattern, count, stride));
}

FlattenResult Flattener::flatten_indexed(TypeDescription& description, bool one_length, bool in_bytes, Part& part) {
  const FlattenResult result = flatten(description.type(0), part);
  if (result != FlattenResult::ok) return result;
  const auto count = static_cast<std::size_t>(description.next_count());
  const std::int64_t length = one_length ? description.next_count() : 0;
  std::vector<Block> blocks(count);
  for (Block& block : blocks) block.length = one_length ? length : description.next_count();
  for (Block& block : blocks) {
    block.displacement = in_bytes ? description.next_displacement() : description.next_count() * part.extent;
  }
  std::erase_if(blocks, [](const Block& block) { return block.length == 0; });
  return fits(place_blocks(blocks, part.extent, part.pattern));
}

FlattenResult Flattener::flatten_struct(TypeDescription& description, Part& part) {
  const auto count = static_cast<std::size_t>(description.next_count());
  std::vector<Block> blocks(count);
  for (Block& block : blocks) block.length = description.next_count();
  for (Block& block : blocks) block.displacement = description.next_displacement();
  PieceList list;
  Part child;
  MPI_Datatype child_type = MPI_DATATYPE_NULL;
  Part only;  // stays strided if it is alone
  std::size_t placed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (blocks[i].length == 0) continue;
    if (description.type(i) != child_type) {
      child = Part{};
      const FlattenResult result = flatten(description.type(i), child);
      if (result != FlattenResult::ok) return result;
      child_type = description.type(i);
    }
    if (child.pattern.bytes == 0) continue;
    note_basic(part, child);
    Pattern row = child.pattern;
    if (!repeat(row, static_cast<std::size_t>(blocks[i].length), child.extent)) return FlattenResult::no_memory;
    if (placed++ == 0) {
      only.pattern = std::move(row);
      move(only.pattern, blocks[i].displacement);
      continue;
    }
    if (placed == 2 && !list.add(only.pattern, 0)) return FlattenResult::no_memory;
    if (!list.add(row, blocks[i].displacement)) return FlattenResult::no_memory;
  }
  part.pattern = placed < 2 ? std::move(only.pattern) : list.take();
  return FlattenResult::ok;
}

FlattenResult Flattener::flatten_subarray(TypeDescription& description, Part& part) {
  const FlattenResult result = flatten(description.type(0), part);
  if (result != FlattenResult::ok) return result;
  const auto dimensions = static_cast<std::size_t>(description.next_integer());
  FewOrMany<std::int64_t, 12> few_numbers;
  const std::span<std::int64_t> numbers(few_numbers.make_room(3 * dimensions), 3 * dimensions);
  for (std::int64_t& number : numbers) number = description.next_count();
  const bool fortran = description.next_integer() == MPI_ORDER_FORTRAN;
  std::int64_t stride = part.extent;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::size_t dimension = fortran ? i : dimensions - 1 - i;
    if (!repeat(part.pattern, static_cast<std::size_t>(numbers[dimensions + dimension]), stride)) {
      return FlattenResult::no_memory;
    }
    start += numbers[2 * dimensions + dimension] * stride;
    stride *= numbers[dimension];
  }
  move(part.pattern, start);
  return FlattenResult::ok;
}

// What one process of `processes` holds of a dimension that is dealt out in blocks of `block`.
std::vector<Block> dealt_blocks(std::int64_t size, std::int64_t processes, std::int64_t coordinate, std::int64_t block,
                                std::int64_t stride) {
  std::vector<Block> blocks;
  for (std::int64_t start = coordinate * block; start < size; start += processes * block) {
    blocks.push_back({.length = std::min(block, size - start), .displacement = start * stride});
  }
  return blocks;
}

struct Deal {
  std::int64_t size;
  std::int64_t distribution;
  std::int64_t argument;
  std::int64_t processes;
  std::int64_t coordinate;
};

std::int64_t block_of_deal(const Deal& deal) {
  if (deal.distribution == MPI_DISTRIBUTE_NONE) return deal.size;
  if (deal.argument != MPI_DISTRIBUTE_DFLT_DARG) return deal.argument;
  return deal.distribution == MPI_DISTRIBUTE_CYCLIC ? 1 : (deal.size + deal.processes - 1) / deal.processes;
}

FlattenResult Flattener::flatten_darray(TypeDescription& description, Part& part) {
  const FlattenResult result = flatten(description.type(0), part);
  if (result != FlattenResult::ok) return result;
  static_cast<void>(description.next_integer());  // the number of processes is the product of the grid
  std::int64_t rank = description.next_integer();
  std::vector<Deal> deals(static_cast<std::size_t>(description.next_integer()));
  for (Deal& deal : deals) deal.size = description.next_count();
  for (Deal& deal : deals) deal.distribution = description.next_integer();
  for (Deal& deal : deals) deal.argument = description.next_integer();
  for (Deal& deal : deals) deal.processes = description.next_integer();
  const bool fortran = description.next_integer() == MPI_ORDER_FORTRAN;
  // The grid of processes is in C's order whatever the array's is.
  for (std::size_t i = deals.size(); i-- > 0;) {
    deals[i].coordinate = rank % deals[i].processes;
    rank /= deals[i].processes;
  }
  std::int64_t stride = part.extent;
  for (std::size_t i = 0; i < deals.size(); ++i) {
    const Deal& deal = deals[fortran ? i : deals.size() - 1 - i];
    const std::vector<Block> blocks =
        dealt_blocks(deal.size, deal.processes, deal.coordinate, block_of_deal(deal), stride);
    if (!place_blocks(blocks, stride, part.pattern)) return FlattenResult::no_memory;
    stride *= deal.size;
  }
  return FlattenResult::ok;
}

// MPI 4.1's pairs that have no name: C's struct of a value and an index.
FlattenResult Flattener::flatten_value_index(TypeDescription& description, Part& part) {
  Part value;
  Part index;
  FlattenResult result = flatten(description.type(0), value);
  if (result == FlattenResult::ok) result = flatten(description.type(1), index);
  if (result != FlattenResult::ok) return result;
  note_basic(part, value);
  note_basic(part, index);
  // Complex values do not come in pairs, so what is as wide as its alignment.
  const auto alignment = static_cast<std::size_t>(std::clamp<std::int64_t>(index.extent, 1, 16));
  return fits(
      value_and_index(value.pattern, static_cast<std::size_t>(value.extent), index.pattern, alignment, part.pattern));
}

FlattenResult flatten_views(const BasicTypes& basics, MPI_Datatype type, FlatType& result, std::size_t* work) {
  Part part;
  Flattener flattener(basics, View::bytes);
  const FlattenResult flattened = flattener.flatten(type, part);
  if (work != nullptr) *work = flattener.work();
  if (flattened != FlattenResult::ok) return flattened;
  result.bytes = std::move(part.pattern);
  result.basic = part.mixed || result.bytes.bytes == 0 ? nullptr : part.basic;
  result.extent = part.extent;
  if (result.basic == nullptr || !result.basic->padded()) return FlattenResult::ok;
  Part whole;
  const FlattenResult again = Flattener(basics, View::elements).flatten(type, whole);
  result.elements = std::make_unique<Pattern>(std::move(whole.pattern));
  return again;
}

}  // namespace

FlattenResult flatten(const BasicTypes& basics, MPI_Datatype type, FlatType& result, std::size_t* work) {
  try {
    return flatten_views(basics, type, result, work);
  } catch (const std::bad_alloc&) {
    return FlattenResult::no_memory;
  }
}

}  // namespace farsum::mpi
