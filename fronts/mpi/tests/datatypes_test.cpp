// Datatypes of the MPI front against the library itself: what is flattened must be the bytes that MPI_Pack takes, in
// its order. Runs as one process, once for each MPI. FARSUM_TEST_SEED replays a failure of the random types.
#include "datatypes.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "abi_names.hpp"
#include "library.hpp"

namespace farsum::mpi {

// The test is the program here, and calls the library without stubs in between.

namespace {

void load_library() {
#define FARSUM_MPI_LOAD(name, parameters, arguments) \
  the_library.name = reinterpret_cast<decltype(the_library.name)>(dlsym(RTLD_DEFAULT, "MPI_" #name));
  FARSUM_MPI_CALLS(FARSUM_MPI_LOAD)
  FARSUM_MPI_HELPERS(FARSUM_MPI_LOAD)
#undef FARSUM_MPI_LOAD
}

// Outlives every type, as in the front.
Datatypes& datatypes() {
  static Datatypes& instance = *std::make_unique<Datatypes>().release();
  return instance;
}

// A type of the test, freed at the end of its scope.
class Type {
 public:
  explicit Type(MPI_Datatype handle) : handle_(handle) { MPI_Type_commit(&handle_); }
  ~Type() { MPI_Type_free(&handle_); }
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
  [[nodiscard]] MPI_Datatype get() const { return handle_; }

 private:
  MPI_Datatype handle_;
};

MPI_Datatype contiguous(int count, MPI_Datatype child) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(count, child, &type);
  return type;
}

MPI_Datatype vector(int count, int length, int stride, MPI_Datatype child) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(count, length, stride, child, &type);
  return type;
}

MPI_Datatype subarray(std::vector<int> sizes, std::vector<int> part, std::vector<int> starts, int order,
                      MPI_Datatype child) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), part.data(), starts.data(), order, child,
                           &type);
  return type;
}

MPI_Datatype structure(std::vector<int> lengths, std::vector<MPI_Aint> places, std::vector<MPI_Datatype> children) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(static_cast<int>(lengths.size()), lengths.data(), places.data(), children.data(), &type);
  return type;
}

FlatType flattened(MPI_Datatype type) {
  FlatType flat;
  EXPECT_EQ(flatten(datatypes().basics(), type, flat), FlattenResult::ok);
  return flat;
}

// Calls visit(offset, length) for every piece of a layout, from the caller's base.
template <typename Visit>
void for_each_piece(const Layout& layout, Visit visit) {
  const farsum_layout& shape = layout.shape();
  if (shape.kind == FARSUM_CONTIGUOUS) {
    if (shape.bytes != 0) visit(layout.shift(), shape.bytes);
    return;
  }
  if (shape.kind == FARSUM_INDEXED) {
    for (std::size_t i = 0; i < shape.pieces; ++i) {
      visit(layout.shift() + shape.offsets[i], shape.lengths == nullptr ? shape.bytes : shape.lengths[i]);
    }
    return;
  }
  std::size_t blocks = 1;
  for (int level = 0; level < shape.levels; ++level) blocks *= shape.counts[level];
  for (std::size_t block = 0; block < blocks; ++block) {
    std::int64_t offset = layout.shift();
    std::size_t rest = block;
    for (int level = 0; level < shape.levels; ++level) {
      offset += static_cast<std::int64_t>(rest % shape.counts[level]) * shape.strides[level];
      rest /= shape.counts[level];
    }
    visit(offset, shape.bytes);
  }
}

// The lowest byte touched and one past the highest. Both zero if nothing is.
struct Bounds {
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
};

Bounds bounds_of(const Layout& layout) {
  Bounds bounds;
  bool any = false;
  for_each_piece(layout, [&](std::int64_t offset, std::size_t length) {
    if (length == 0) return;
    const std::int64_t end = offset + static_cast<std::int64_t>(length);
    bounds.lowest = any ? std::min(bounds.lowest, offset) : offset;
    bounds.highest = any ? std::max(bounds.highest, end) : end;
    any = true;
  });
  return bounds;
}

Bounds bounds_of(const FlatType& flat, View view, std::size_t count = 1) {
  Layout layout;
  EXPECT_TRUE(layout.set(flat.pattern(view), flat.extent, count));
  return bounds_of(layout);
}

std::vector<std::byte> gathered(const Layout& layout, const std::byte* base) {
  std::vector<std::byte> bytes;
  for_each_piece(layout, [&](std::int64_t offset, std::size_t length) {
    bytes.insert(bytes.end(), base + offset, base + offset + length);
  });
  return bytes;
}

// Elements of the layout with their padding left out, as their type map has them.
std::vector<std::byte> without_padding(const std::vector<std::byte>& elements, const BasicType& basic) {
  const FlatType one = flattened(basic.handle);
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at < elements.size(); at += basic.extent) {
    Layout layout;
    EXPECT_TRUE(layout.set(one.bytes, one.extent, 1));
    const std::vector<std::byte> element = gathered(layout, elements.data() + at);
    bytes.insert(bytes.end(), element.begin(), element.end());
  }
  return bytes;
}

// A buffer that holds every byte of `count` items, each byte random, and the base that MPI is given.
class Numbered {
 public:
  Numbered(const FlatType& flat, std::size_t count) {
    const Bounds bytes = bounds_of(flat, View::bytes, count);
    const Bounds whole = bounds_of(flat, View::elements, count);
    const std::int64_t lowest = std::min(bytes.lowest, whole.lowest);
    const std::int64_t highest = std::max(bytes.highest, whole.highest);
    bytes_.resize(static_cast<std::size_t>(highest - lowest) + 64);
    std::mt19937 random(12345);
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random());
    base_ = bytes_.data() + 32 - lowest;
  }
  [[nodiscard]] const std::byte* base() const { return base_; }

 private:
  std::vector<std::byte> bytes_;
  const std::byte* base_ = nullptr;
};

std::vector<std::byte> packed(const std::byte* base, int count, MPI_Datatype type) {
  int room = 0;
  MPI_Pack_size(count, type, MPI_COMM_SELF, &room);
  std::vector<std::byte> bytes(static_cast<std::size_t>(room) + 1);
  int position = 0;
  MPI_Pack(base, count, type, bytes.data(), room, &position, MPI_COMM_SELF);
  bytes.resize(static_cast<std::size_t>(position));
  return bytes;
}

void expect_bounds_of_library(MPI_Datatype type, const FlatType& flat) {
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(type, &lb, &extent);
  EXPECT_EQ(flat.extent, extent);
  int size = 0;
  MPI_Type_size(type, &size);
  EXPECT_EQ(flat.bytes.bytes, static_cast<std::size_t>(size));
  if (size == 0) return;
  MPI_Type_get_true_extent(type, &lb, &extent);
  // MPICH counts parts without bytes too. What is touched is compared with the layout's bytes below.
  const Bounds bounds = bounds_of(flat, View::bytes);
  EXPECT_GE(bounds.lowest, lb);
  EXPECT_LE(bounds.highest, lb + extent);
}

void expect_packs_as_library(MPI_Datatype type, int count) {
  const FlatType flat = flattened(type);
  expect_bounds_of_library(type, flat);
  const Numbered buffer(flat, static_cast<std::size_t>(count));
  const std::vector<std::byte> expected = packed(buffer.base(), count, type);
  Layout layout;
  ASSERT_TRUE(layout.set(flat.bytes, flat.extent, static_cast<std::size_t>(count)));
  EXPECT_EQ(layout.bytes(), expected.size());
  EXPECT_TRUE(gathered(layout, buffer.base()) == expected);
  if (flat.basic == nullptr) return;
  Layout elements;
  ASSERT_TRUE(elements.set(flat.pattern(View::elements), flat.extent, static_cast<std::size_t>(count)));
  EXPECT_EQ(elements.bytes(),
            flat.bytes.bytes / flat.basic->size * static_cast<std::size_t>(count) * flat.basic->extent);
  EXPECT_TRUE(without_padding(gathered(elements, buffer.base()), *flat.basic) == expected);
}

// ---- predefined types and operators -----------------------------------------------------------------------------

TEST(BasicTypes, have_the_sizes_that_the_library_says) {
  for (MPI_Datatype type : {MPI_BYTE,
                            MPI_CHAR,
                            MPI_WCHAR,
                            MPI_SHORT,
                            MPI_INT,
                            MPI_LONG,
                            MPI_LONG_LONG,
                            MPI_UNSIGNED_LONG,
                            MPI_FLOAT,
                            MPI_DOUBLE,
                            MPI_LONG_DOUBLE,
                            MPI_C_BOOL,
                            MPI_C_FLOAT_COMPLEX,
                            MPI_C_DOUBLE_COMPLEX,
                            MPI_C_LONG_DOUBLE_COMPLEX,
                            MPI_AINT,
                            MPI_OFFSET,
                            MPI_COUNT,
                            MPI_FLOAT_INT,
                            MPI_DOUBLE_INT,
                            MPI_LONG_INT,
                            MPI_2INT,
                            MPI_SHORT_INT,
                            MPI_LONG_DOUBLE_INT,
                            MPI_INTEGER,
                            MPI_REAL,
                            MPI_LOGICAL,
                            MPI_DOUBLE_PRECISION,
                            MPI_COMPLEX,
                            MPI_DOUBLE_COMPLEX,
                            MPI_2REAL,
                            MPI_2DOUBLE_PRECISION,
                            MPI_2INTEGER,
                            MPI_CHARACTER,
                            MPI_INTEGER1,
                            MPI_INTEGER2,
                            MPI_INTEGER4,
                            MPI_INTEGER8,
                            MPI_REAL4,
                            MPI_REAL8,
                            MPI_REAL16,
                            MPI_COMPLEX8,
                            MPI_COMPLEX16,
                            MPI_COMPLEX32,
                            MPI_CXX_BOOL,
                            MPI_CXX_FLOAT_COMPLEX,
                            MPI_CXX_DOUBLE_COMPLEX,
                            MPI_CXX_LONG_DOUBLE_COMPLEX}) {
    if (type == MPI_DATATYPE_NULL) continue;
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    MPI_Type_get_name(type, name, &length);
    const BasicType* basic = datatypes().basic(type);
    int size = 0;
    MPI_Aint lb = 0;
    MPI_Aint extent = 0;
    MPI_Type_size(type, &size);
    if (size == 0) continue;  // in the header, not in this library
    ASSERT_NE(basic, nullptr) << name;
    MPI_Type_get_extent(type, &lb, &extent);
    EXPECT_EQ(basic->size, static_cast<std::uint32_t>(size)) << name;
    EXPECT_EQ(basic->extent, static_cast<std::uint32_t>(extent)) << name;
    EXPECT_EQ(farsum_type_size(basic->element), basic->extent) << name;
    expect_packs_as_library(type, 3);
  }
}

TEST(BasicTypes, do_not_know_the_null_type_nor_derived_ones) {
  EXPECT_EQ(datatypes().basic(MPI_DATATYPE_NULL), nullptr);
  const Type type(contiguous(2, MPI_INT));
  EXPECT_EQ(datatypes().basic(type.get()), nullptr);
  EXPECT_EQ(datatypes().op(MPI_OP_NULL), nullptr);
}

TEST(BasicTypes, take_the_operators_that_mpi_allows_on_their_class) {
  const auto allowed = [](MPI_Op op, MPI_Datatype type) {
    return legal(datatypes().op(op)->op, *datatypes().basic(type));
  };
  EXPECT_TRUE(allowed(MPI_SUM, MPI_DOUBLE));
  EXPECT_TRUE(allowed(MPI_BXOR, MPI_INTEGER));
  EXPECT_TRUE(allowed(MPI_MAX, MPI_AINT));
  EXPECT_TRUE(allowed(MPI_LOR, MPI_LOGICAL));
  EXPECT_TRUE(allowed(MPI_PROD, MPI_DOUBLE_COMPLEX));
  EXPECT_TRUE(allowed(MPI_BAND, MPI_BYTE));
  EXPECT_TRUE(allowed(MPI_MINLOC, MPI_DOUBLE_INT));
  EXPECT_TRUE(allowed(MPI_MAXLOC, MPI_2INTEGER));
  EXPECT_TRUE(allowed(MPI_REPLACE, MPI_WCHAR));
  EXPECT_TRUE(allowed(MPI_NO_OP, MPI_LONG_DOUBLE_INT));
  EXPECT_FALSE(allowed(MPI_BAND, MPI_DOUBLE));
  EXPECT_FALSE(allowed(MPI_SUM, MPI_BYTE));
  EXPECT_FALSE(allowed(MPI_SUM, MPI_LOGICAL));
  EXPECT_TRUE(allowed(MPI_SUM, MPI_CHAR));  // beyond the standard, as in every library
  EXPECT_FALSE(allowed(MPI_MAX, MPI_COMPLEX));
  EXPECT_FALSE(allowed(MPI_MINLOC, MPI_INT));
  EXPECT_FALSE(allowed(MPI_LAND, MPI_FLOAT));
}

TEST(BasicTypes, may_be_compared_and_swapped_where_mpi_says_so) {
  EXPECT_TRUE(datatypes().basic(MPI_INT)->swappable);
  EXPECT_TRUE(datatypes().basic(MPI_LOGICAL)->swappable);
  EXPECT_TRUE(datatypes().basic(MPI_BYTE)->swappable);
  EXPECT_EQ(datatypes().basic(MPI_BYTE)->swap_element, FARSUM_UINT8);
  EXPECT_FALSE(datatypes().basic(MPI_DOUBLE)->swappable);
}

// ---- shapes ---------------------------------------------------------------------------------------------------------

TEST(Flattening, keeps_a_block_of_a_matrix_one_stride) {
  const Type type(subarray({200, 300}, {64, 64}, {3, 4}, MPI_ORDER_C, MPI_DOUBLE));
  const FlatType flat = flattened(type.get());
  EXPECT_FALSE(flat.bytes.is_list());
  EXPECT_EQ(flat.bytes.levels, 1);
  EXPECT_EQ(flat.bytes.block, 64 * sizeof(double));
  EXPECT_EQ(flat.bytes.counts[0], 64u);
  EXPECT_EQ(flat.bytes.strides[0], 300 * 8);
  EXPECT_EQ(flat.bytes.first, (3 * 300 + 4) * 8);
  EXPECT_EQ(flat.basic, datatypes().basic(MPI_DOUBLE));
  EXPECT_EQ(flat.bytes.bytes, 64u * 64u * sizeof(double));
}

TEST(Flattening, makes_whole_rows_of_a_matrix_one_block) {
  const Type type(subarray({20, 30}, {5, 30}, {2, 0}, MPI_ORDER_C, MPI_INT));
  const FlatType flat = flattened(type.get());
  EXPECT_TRUE(flat.bytes.is_block());
  EXPECT_EQ(flat.bytes.block, 5u * 30u * 4u);
}

TEST(Flattening, nests_strides_of_vectors_of_vectors) {
  const Type inner(vector(3, 2, 5, MPI_INT));
  const Type outer(vector(4, 1, 7, inner.get()));
  const FlatType flat = flattened(outer.get());
  EXPECT_EQ(flat.bytes.levels, 2);
  expect_packs_as_library(outer.get(), 3);
}

TEST(Flattening, finds_the_stride_in_a_list_of_equal_distances) {
  std::vector<int> lengths(100, 2);
  std::vector<int> places;
  for (int i = 0; i < 100; ++i) places.push_back(10 * i + 3);
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  MPI_Type_indexed(100, lengths.data(), places.data(), MPI_FLOAT, &handle);
  const Type type(handle);
  const FlatType flat = flattened(type.get());
  EXPECT_FALSE(flat.bytes.is_list());
  EXPECT_EQ(flat.bytes.levels, 1);
  expect_packs_as_library(type.get(), 2);
}

TEST(Flattening, finds_nested_strides_in_a_struct_of_rows) {
  const Type row(vector(4, 1, 3, MPI_SHORT));
  const Type type(structure({1, 1, 1}, {0, 1000, 2000}, {row.get(), row.get(), row.get()}));
  EXPECT_EQ(flattened(type.get()).bytes.levels, 2);
  expect_packs_as_library(type.get(), 2);
}

TEST(Flattening, lays_out_more_levels_than_the_engine_has_as_a_list) {
  std::vector<std::unique_ptr<Type>> types;
  MPI_Datatype child = MPI_CHAR;
  for (int level = 0; level < FARSUM_MAX_LEVELS + 2; ++level) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_hvector(2, 1, MPI_Aint{3} << (2 * level), child, &type);
    types.push_back(std::make_unique<Type>(type));
    child = type;
    expect_packs_as_library(child, 2);
  }
  EXPECT_TRUE(flattened(child).bytes.is_list());
}

TEST(Flattening, follows_negative_strides_backwards) {
  const Type type(vector(5, 2, -4, MPI_INT));
  const FlatType flat = flattened(type.get());
  EXPECT_EQ(bounds_of(flat, View::bytes).lowest, -4 * 4 * 4);
  expect_packs_as_library(type.get(), 3);
}

TEST(Flattening, of_a_type_without_bytes_is_empty) {
  const Type none(contiguous(0, MPI_INT));
  const FlatType flat = flattened(none.get());
  EXPECT_EQ(flat.bytes.bytes, 0u);
  EXPECT_EQ(flat.basic, nullptr);
  Layout layout;
  ASSERT_TRUE(layout.set(flat.bytes, flat.extent, 1000));
  EXPECT_EQ(layout.bytes(), 0u);
  const Type type(structure({2, 3}, {0, 0}, {none.get(), MPI_DOUBLE}));
  EXPECT_EQ(flattened(type.get()).basic, datatypes().basic(MPI_DOUBLE));
}

TEST(Flattening, names_no_element_where_types_are_mixed) {
  const Type type(structure({1, 1}, {0, 8}, {MPI_INT, MPI_DOUBLE}));
  EXPECT_EQ(flattened(type.get()).basic, nullptr);
  expect_packs_as_library(type.get(), 4);
}

TEST(Flattening, moves_no_padding_in_a_put_and_whole_pairs_in_an_accumulate) {
  const FlatType flat = flattened(MPI_SHORT_INT);
  EXPECT_EQ(flat.bytes.bytes, 6u);
  EXPECT_EQ(flat.pattern(View::elements).bytes, 8u);
  EXPECT_TRUE(flat.pattern(View::elements).is_block());
  const Type type(vector(3, 2, 4, MPI_LONG_DOUBLE_INT));
  const FlatType pairs = flattened(type.get());
  EXPECT_EQ(pairs.bytes.bytes / pairs.basic->size, 6u);
  EXPECT_EQ(pairs.pattern(View::elements).block, 64u);
  expect_packs_as_library(type.get(), 2);
}

TEST(Flattening, takes_fortran_types_by_precision_for_those_of_their_size) {
  MPI_Datatype real = MPI_DATATYPE_NULL;
  MPI_Datatype complex = MPI_DATATYPE_NULL;
  MPI_Datatype integer = MPI_DATATYPE_NULL;
  MPI_Type_create_f90_real(15, 307, &real);
  MPI_Type_create_f90_complex(6, 37, &complex);
  MPI_Type_create_f90_integer(9, &integer);
  const auto element = [](MPI_Datatype type) {
    const FlatType flat = flattened(type);
    return flat.basic == nullptr ? -1 : static_cast<int>(flat.basic->element);
  };
  EXPECT_EQ(element(real), FARSUM_DOUBLE);
  EXPECT_EQ(element(complex), FARSUM_COMPLEX_FLOAT);
  EXPECT_EQ(element(integer), FARSUM_INT32);
  const Type many(vector(3, 1, 2, real));
  EXPECT_EQ(element(many.get()), FARSUM_DOUBLE);
  expect_packs_as_library(many.get(), 2);
  EXPECT_EQ(element(real), FARSUM_DOUBLE);  // still alive: looking inside its parent did not free it
}

TEST(Flattening, refuses_the_null_type) {
  FlatType flat;
  EXPECT_EQ(flatten(datatypes().basics(), MPI_DATATYPE_NULL, flat), FlattenResult::bad_type);
}

TEST(Flattening, holds_a_million_pieces) {
  constexpr int count = 1000000;
  std::vector<int> places(count);
  std::mt19937 random(7);
  int place = 0;
  for (int& at : places) at = place += 2 + static_cast<int>(random() % 3);
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  MPI_Type_create_indexed_block(count, 1, places.data(), MPI_INT, &handle);
  const Type type(handle);
  EXPECT_EQ(flattened(type.get()).bytes.pieces(), static_cast<std::size_t>(count));
  expect_packs_as_library(type.get(), 1);
}

TEST(Layouts, refuse_sizes_that_no_memory_has) {
  const Type type(vector(2, 1, 2, MPI_DOUBLE));
  const FlatType flat = flattened(type.get());
  Layout layout;
  EXPECT_FALSE(layout.set(flat.bytes, flat.extent, std::size_t{1} << 62));
  EXPECT_FALSE(layout.set(flattened(MPI_DOUBLE).bytes, 8, std::size_t{1} << 61));
  EXPECT_TRUE(layout.set(flattened(MPI_DOUBLE).bytes, 8, std::size_t{1} << 40));
}

// ---- large counts -----------------------------------------------------------------------------------------------

template <typename Function>
Function function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

TEST(LargeCounts, flatten_as_the_small_ones) {
  using Vector = int (*)(MPI_Count, MPI_Count, MPI_Count, MPI_Datatype, MPI_Datatype*);
  using Indexed = int (*)(MPI_Count, const MPI_Count*, const MPI_Count*, MPI_Datatype, MPI_Datatype*);
  using Block = int (*)(MPI_Count, MPI_Count, const MPI_Count*, MPI_Datatype, MPI_Datatype*);
  using Struct = int (*)(MPI_Count, const MPI_Count*, const MPI_Count*, const MPI_Datatype*, MPI_Datatype*);
  using Subarray = int (*)(int, const MPI_Count*, const MPI_Count*, const MPI_Count*, int, MPI_Datatype, MPI_Datatype*);
  using Darray =
      int (*)(int, int, int, const MPI_Count*, const int*, const int*, const int*, int, MPI_Datatype, MPI_Datatype*);
  using Resized = int (*)(MPI_Datatype, MPI_Count, MPI_Count, MPI_Datatype*);
  using Contiguous = int (*)(MPI_Count, MPI_Datatype, MPI_Datatype*);
  if (function<Vector>("MPI_Type_vector_c") == nullptr) GTEST_SKIP() << "this library has no large counts";
  const std::vector<MPI_Count> lengths = {2, 0, 3};
  const std::vector<MPI_Count> places = {40, 0, 8};
  const std::vector<MPI_Count> ones = {4, 2};
  const std::vector<MPI_Count> sizes = {6, 7};
  const std::vector<MPI_Datatype> children = {MPI_INT, MPI_CHAR, MPI_DOUBLE};
  const std::vector<int> distributions = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
  const std::vector<int> arguments = {MPI_DISTRIBUTE_DFLT_DARG, 2};
  const std::vector<int> grid = {2, 2};
  std::vector<MPI_Datatype> made(10, MPI_DATATYPE_NULL);
  function<Vector>("MPI_Type_vector_c")(3, 2, 5, MPI_INT, &made[0]);
  function<Vector>("MPI_Type_create_hvector_c")(3, 2, -50, MPI_INT, &made[1]);
  function<Indexed>("MPI_Type_indexed_c")(3, lengths.data(), places.data(), MPI_INT, &made[2]);
  function<Indexed>("MPI_Type_create_hindexed_c")(3, lengths.data(), places.data(), MPI_SHORT, &made[3]);
  function<Block>("MPI_Type_create_indexed_block_c")(3, 2, places.data(), MPI_SHORT, &made[4]);
  function<Block>("MPI_Type_create_hindexed_block_c")(3, 2, places.data(), MPI_SHORT, &made[5]);
  function<Struct>("MPI_Type_create_struct_c")(3, lengths.data(), places.data(), children.data(), &made[6]);
  function<Subarray>("MPI_Type_create_subarray_c")(2, sizes.data(), ones.data(), ones.data(), MPI_ORDER_FORTRAN,
                                                   MPI_INT, &made[7]);
  function<Darray>("MPI_Type_create_darray_c")(4, 3, 2, sizes.data(), distributions.data(), arguments.data(),
                                               grid.data(), MPI_ORDER_C, MPI_INT, &made[8]);
  function<Resized>("MPI_Type_create_resized_c")(made[0], -8, 200, &made[9]);
  for (const MPI_Datatype handle : made) {
    SCOPED_TRACE(handle == made[0] ? "vector" : "another");
    // Intel MPI 2021.19 makes none of some kinds.
    if (handle == MPI_DATATYPE_NULL) GTEST_SKIP() << "this library did not make one of the types";
    MPI_Datatype nested = MPI_DATATYPE_NULL;
    function<Contiguous>("MPI_Type_contiguous_c")(2, handle, &nested);
    const Type type(nested);
    expect_packs_as_library(type.get(), 2);
  }
  for (MPI_Datatype& handle : made) MPI_Type_free(&handle);
}

// ---- random types -----------------------------------------------------------------------------------------------

// The bytes of a type by MPI's definition of its constructor, one offset each, in the order of the type map.
using TypeMap = std::vector<std::int64_t>;

struct Mapped {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  TypeMap map;
};

std::int64_t extent_of(MPI_Datatype type) {
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(type, &lb, &extent);
  return extent;
}

void append(TypeMap& map, const TypeMap& child, std::int64_t displacement) {
  for (const std::int64_t offset : child) map.push_back(displacement + offset);
}

void append_row(TypeMap& map, const Mapped& child, std::int64_t displacement, int length) {
  for (int i = 0; i < length; ++i) append(map, child.map, displacement + i * extent_of(child.type));
}

TypeMap map_of_basic(MPI_Datatype type) {
  TypeMap map;
  const auto value = [&](std::int64_t from, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) map.push_back(from + static_cast<std::int64_t>(i));
  };
  int size = 0;
  MPI_Type_size(type, &size);
  const bool gap = type == MPI_SHORT_INT;
  value(0, gap ? sizeof(short) : static_cast<std::size_t>(size));
  if (gap) value(sizeof(int), sizeof(int));
  return map;
}

struct Dimension {
  int size;
  int deal = MPI_DISTRIBUTE_NONE;
  int argument = MPI_DISTRIBUTE_DFLT_DARG;
  int grid = 1;
  int from = 0;  // of a subarray
  int part = 0;

  [[nodiscard]] int owner(int index) const {
    if (deal == MPI_DISTRIBUTE_NONE) return 0;
    const int whole = deal == MPI_DISTRIBUTE_CYCLIC ? 1 : (size + grid - 1) / grid;
    const int block = argument == MPI_DISTRIBUTE_DFLT_DARG ? whole : argument;
    return index / block % grid;
  }
};

// Elements of an array that `chosen(dimension, index)` picks, as they lie in memory.
template <typename Chosen>
TypeMap map_of_array(const std::vector<Dimension>& dimensions, int order, const Mapped& child, Chosen chosen) {
  TypeMap map;
  const std::size_t rank = dimensions.size();
  int elements = 1;
  for (const Dimension& dimension : dimensions) elements *= dimension.size;
  for (int element = 0; element < elements; ++element) {
    int rest = element;
    bool inside = true;
    for (std::size_t i = 0; i < rank; ++i) {
      const std::size_t at = order == MPI_ORDER_FORTRAN ? i : rank - 1 - i;
      inside = inside && chosen(at, rest % dimensions[at].size);
      rest /= dimensions[at].size;
    }
    if (inside) append(map, child.map, element * extent_of(child.type));
  }
  return map;
}

class RandomTypes {
 public:
  explicit RandomTypes(std::uint64_t seed) : random_(seed) {}

  // A new type, `depth` constructors deep, or null if it grew too large. The caller frees it.
  Mapped make(int depth) {
    if (depth == 0) {
      const MPI_Datatype type = basic();
      return {contiguous(1, type), map_of_basic(type)};
    }
    Mapped child = make(depth - 1);
    if (child.type == MPI_DATATYPE_NULL) return child;
    if (child.map.empty() || extent_of(child.type) == 0) hollow_ = true;
    Mapped result = construct(child);
    MPI_Type_free(&child.type);
    if (result.type != MPI_DATATYPE_NULL && !small(result.type)) MPI_Type_free(&result.type);
    return result;
  }

  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint64_t>(limit)); }
  const std::string& text() const { return text_; }
  // Whether some part has no bytes or no extent: MPICH's packing divides by them.
  bool hollow() const { return hollow_; }

 private:
  static bool small(MPI_Datatype type) {
    MPI_Aint lb = 0;
    MPI_Aint extent = 0;
    int size = 0;
    MPI_Type_size(type, &size);
    if (size > 20000) return false;
    MPI_Type_get_true_extent(type, &lb, &extent);
    if (std::abs(static_cast<long>(lb)) > 100000 || extent > 100000) return false;
    return std::abs(static_cast<long>(extent_of(type))) < 100000;
  }

  MPI_Datatype basic() {
    // No long double: MPICH moves the ten bytes of its value and leaves the six of its padding.
    static const std::vector<MPI_Datatype> all = {MPI_CHAR,      MPI_SHORT,      MPI_INT,    MPI_DOUBLE,
                                                  MPI_DOUBLE,    MPI_DOUBLE,     MPI_BYTE,   MPI_FLOAT_INT,
                                                  MPI_SHORT_INT, MPI_DOUBLE_INT, MPI_COMPLEX};
    return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
  }

  std::vector<int> ints(int count, int from, int to) {
    std::vector<int> values(static_cast<std::size_t>(count));
    for (int& value : values) value = from + below(to - from + 1);
    return values;
  }

  std::vector<MPI_Aint> places(int count) {
    std::vector<MPI_Aint> values(static_cast<std::size_t>(count));
    for (MPI_Aint& value : values) value = below(400) - 100;
    return values;
  }

  Mapped construct(const Mapped& child) {
    const int choice = below(10);
    text_ += std::to_string(choice) + " ";
    switch (choice) {
      case 0:
        return make_same(child);
      case 1:
      case 2:
        return make_vector(child, choice == 1);
      case 3:
      case 4:
        return make_indexed(child, choice == 3);
      case 5:
      case 6:
        return make_indexed_block(child, choice == 5);
      case 7:
        return make_struct(child);
      case 8:
        return make_subarray(child);
      default:
        return make_darray(child);
    }
  }

  Mapped make_same(const Mapped& child) {
    Mapped made{.map = child.map};
    if (below(3) == 0) {
      MPI_Type_dup(child.type, &made.type);
    } else {
      MPI_Type_create_resized(child.type, below(40) - 20, below(200), &made.type);
    }
    return made;
  }

  Mapped make_vector(const Mapped& child, bool in_bytes) {
    Mapped made;
    const int count = below(5);
    const int length = below(4);
    const int stride = in_bytes ? below(300) - 150 : below(9) - 4;
    if (in_bytes) {
      MPI_Type_create_hvector(count, length, stride, child.type, &made.type);
    } else {
      MPI_Type_vector(count, length, stride, child.type, &made.type);
    }
    const std::int64_t unit = in_bytes ? 1 : extent_of(child.type);
    for (int i = 0; i < count; ++i) append_row(made.map, child, i * stride * unit, length);
    return made;
  }

  Mapped make_indexed(const Mapped& child, bool in_bytes) {
    Mapped made;
    const int count = below(5);
    const std::vector<int> lengths = ints(count, 0, 3);
    std::vector<MPI_Aint> at = places(count);
    if (in_bytes) {
      MPI_Type_create_hindexed(count, lengths.data(), at.data(), child.type, &made.type);
    } else {
      const std::vector<int> indices = ints(count, -5, 9);
      MPI_Type_indexed(count, lengths.data(), indices.data(), child.type, &made.type);
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = indices[i] * extent_of(child.type);
    }
    for (std::size_t i = 0; i < at.size(); ++i) append_row(made.map, child, at[i], lengths[i]);
    return made;
  }

  Mapped make_indexed_block(const Mapped& child, bool in_bytes) {
    Mapped made;
    const int count = below(5);
    const int length = below(4);
    std::vector<MPI_Aint> at = places(count);
    if (in_bytes) {
      MPI_Type_create_hindexed_block(count, length, at.data(), child.type, &made.type);
    } else {
      const std::vector<int> indices = ints(count, -5, 9);
      MPI_Type_create_indexed_block(count, length, indices.data(), child.type, &made.type);
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = indices[i] * extent_of(child.type);
    }
    for (const MPI_Aint place : at) append_row(made.map, child, place, length);
    return made;
  }

  Mapped make_struct(const Mapped& child) {
    Mapped made;
    const int count = below(5);
    const std::vector<int> lengths = ints(count, 0, 3);
    const std::vector<MPI_Aint> at = places(count);
    std::vector<MPI_Datatype> children;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const MPI_Datatype other = basic();
      const bool same = below(2) == 0;
      children.push_back(same ? child.type : other);
      append_row(made.map, same ? child : Mapped{other, map_of_basic(other)}, at[i], lengths[i]);
    }
    made.type = structure(lengths, at, children);
    return made;
  }

  int order() { return below(2) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN; }

  Mapped make_subarray(const Mapped& child) {
    std::vector<Dimension> dimensions(static_cast<std::size_t>(1 + below(3)));
    std::vector<int> sizes;
    std::vector<int> parts;
    std::vector<int> starts;
    for (Dimension& dimension : dimensions) {
      dimension.from = below(3);
      dimension.part = 1 + below(4);
      dimension.size = dimension.from + dimension.part + below(3);
      sizes.push_back(dimension.size);
      parts.push_back(dimension.part);
      starts.push_back(dimension.from);
    }
    const int order_of_array = order();
    return {subarray(sizes, parts, starts, order_of_array, child.type),
            map_of_array(dimensions, order_of_array, child, [&](std::size_t at, int index) {
              return index >= dimensions[at].from && index < dimensions[at].from + dimensions[at].part;
            })};
  }

  Mapped make_darray(const Mapped& child) {
    std::vector<Dimension> dimensions(static_cast<std::size_t>(1 + below(3)));
    int processes = 1;
    for (Dimension& dimension : dimensions) {
      dimension.grid = 1 + below(3);
      const int choice = below(3);
      dimension.deal = choice == 0 ? MPI_DISTRIBUTE_NONE : choice == 1 ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
      if (choice == 0) dimension.grid = 1;
      // Every process holds something: libraries do not agree on those that do not.
      dimension.size = 2 * dimension.grid * dimension.grid + below(4);
      const int block = (dimension.size + dimension.grid - 1) / dimension.grid;
      if (choice != 0 && below(2) == 0) dimension.argument = choice == 1 ? block : 1 + below(2);
      processes *= dimension.grid;
    }
    const int rank = below(processes);
    std::vector<int> sizes;
    std::vector<int> deals;
    std::vector<int> arguments;
    std::vector<int> grid;
    for (const Dimension& dimension : dimensions) {
      sizes.push_back(dimension.size);
      deals.push_back(dimension.deal);
      arguments.push_back(dimension.argument);
      grid.push_back(dimension.grid);
    }
    const int order_of_array = order();
    Mapped made;
    MPI_Type_create_darray(processes, rank, static_cast<int>(grid.size()), sizes.data(), deals.data(), arguments.data(),
                           grid.data(), order_of_array, child.type, &made.type);
    std::vector<int> coordinates(grid.size());
    int rest = rank;
    for (std::size_t i = grid.size(); i-- > 0;) {
      coordinates[i] = rest % grid[i];
      rest /= grid[i];
    }
    made.map = map_of_array(dimensions, order_of_array, child,
                            [&](std::size_t at, int index) { return dimensions[at].owner(index) == coordinates[at]; });
    return made;
  }

  std::mt19937_64 random_;
  std::string text_;
  bool hollow_ = false;
};

void expect_bytes_of_map(const Mapped& mapped, int count) {
  const FlatType flat = flattened(mapped.type);
  Layout layout;
  ASSERT_TRUE(layout.set(flat.bytes, flat.extent, static_cast<std::size_t>(count)));
  TypeMap expected;
  for (int i = 0; i < count; ++i) append(expected, mapped.map, i * flat.extent);
  TypeMap seen;
  for_each_piece(layout, [&](std::int64_t offset, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) seen.push_back(offset + static_cast<std::int64_t>(i));
  });
  EXPECT_EQ(layout.bytes(), expected.size());
  EXPECT_TRUE(seen == expected);
}

std::uint64_t first_seed() {
  const char* text = std::getenv("FARSUM_TEST_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

// Whether the library packs what the type map says. Each has a few shapes that it gets wrong (a vector whose blocks
// touch backwards, say), so it may differ now and then, but not from the map.
bool packs_as_library(const Mapped& mapped, int count) {
  const FlatType flat = flattened(mapped.type);
  const Numbered buffer(flat, static_cast<std::size_t>(count));
  Layout layout;
  if (!layout.set(flat.bytes, flat.extent, static_cast<std::size_t>(count))) return false;
  return gathered(layout, buffer.base()) == packed(buffer.base(), count, mapped.type);
}

TEST(RandomTypes, flatten_to_the_bytes_of_their_type_maps) {
  const std::uint64_t rounds = std::getenv("FARSUM_TEST_SEED") == nullptr ? 6000 : 1;
  int compared = 0;
  int different = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + rounds; ++seed) {
    RandomTypes types(seed);
    const Mapped mapped = types.make(1 + types.below(5));
    if (mapped.type == MPI_DATATYPE_NULL) continue;
    const Type type(mapped.type);
    const int count = 1 + types.below(3);
    expect_bytes_of_map(mapped, count);
    ASSERT_FALSE(HasFailure()) << "FARSUM_TEST_SEED=" << seed << " constructors, innermost first: " << types.text();
    if (types.hollow() || mapped.map.empty() || extent_of(mapped.type) == 0) continue;
    ++compared;
    different += packs_as_library(mapped, count) ? 0 : 1;
  }
  EXPECT_LE(different, compared / 50) << "of " << compared;
  if (rounds > 1) {
    EXPECT_GT(compared, 2000);
  }
}

// ---- the cache ------------------------------------------------------------------------------------------------------

const FlatType* looked_up(MPI_Datatype type, std::optional<FlatType>& scratch) {
  FlattenResult result = FlattenResult::ok;
  const FlatType* flat = datatypes().flat(type, scratch, result);
  EXPECT_EQ(result, FlattenResult::ok);
  return flat;
}

TEST(Cache, gives_the_same_flattened_type_again_while_the_type_lives) {
  std::optional<FlatType> scratch;
  std::vector<int> places(1000);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(i * i);
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  MPI_Type_create_indexed_block(1000, 1, places.data(), MPI_INT, &handle);
  const std::size_t before = datatypes().cached();
  {
    const Type type(handle);
    const FlatType* first = looked_up(type.get(), scratch);
    EXPECT_TRUE(!scratch || first != &*scratch);
    EXPECT_EQ(looked_up(type.get(), scratch), first);
    EXPECT_EQ(datatypes().cached(), before + 1);
  }
  EXPECT_EQ(datatypes().cached(), before);
}

TEST(Cache, tells_a_new_type_from_the_old_one_with_its_handle) {
  for (int round = 1; round < 2000; ++round) {
    const Type type(vector(1 + round % 7, 1, 2 + round % 5, MPI_DOUBLE));
    std::optional<FlatType> scratch;
    EXPECT_EQ(looked_up(type.get(), scratch)->bytes.bytes, 8u * static_cast<unsigned>(1 + round % 7));
    const FlatType* again = looked_up(type.get(), scratch);
    EXPECT_EQ(again->bytes.bytes, 8u * static_cast<unsigned>(1 + round % 7));
    if (round % 7 != 0) {
      EXPECT_EQ(again->bytes.strides[0], 8 * (2 + round % 5));
    }
  }
}

TEST(Cache, keeps_many_types_at_once_and_forgets_each_when_it_goes) {
  const std::size_t before = datatypes().cached();
  std::vector<std::unique_ptr<Type>> types;
  for (int i = 0; i < 5000; ++i) types.push_back(std::make_unique<Type>(vector(3, 1, 2 + i, MPI_INT)));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5000; ++i) {
      std::optional<FlatType> scratch;
      EXPECT_EQ(looked_up(types[static_cast<std::size_t>(i)]->get(), scratch)->bytes.strides[0], 4 * (2 + i));
    }
  }
  EXPECT_GT(datatypes().cached(), before);
  types.clear();
  EXPECT_EQ(datatypes().cached(), before);
}

TEST(Cache, serves_several_threads) {
  int provided = 0;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) GTEST_SKIP() << "this library has no MPI_THREAD_MULTIPLE";
  std::vector<std::unique_ptr<Type>> shared;
  for (int i = 0; i < 200; ++i) shared.push_back(std::make_unique<Type>(vector(3, 1, 2 + i, MPI_INT)));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 20000; ++round) {
        const int i = (round * (thread + 3)) % 200;
        std::optional<FlatType> scratch;
        FlattenResult result = FlattenResult::ok;
        const FlatType* flat = datatypes().flat(shared[static_cast<std::size_t>(i)]->get(), scratch, result);
        if (flat == nullptr || flat->bytes.strides[0] != 4 * (2 + i)) ++wrong;
        if (round % 4 != 0) continue;
        const Type own(vector(2, 1, 3 + round % 50, MPI_DOUBLE));
        std::optional<FlatType> own_scratch;
        const FlatType* own_flat = datatypes().flat(own.get(), own_scratch, result);
        if (own_flat == nullptr || own_flat->bytes.strides[0] != 8 * (3 + round % 50)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

int count_deletion(MPI_Datatype, int, void* counter, void*) {
  ++*static_cast<int*>(counter);
  return MPI_SUCCESS;
}

TEST(Flattening, gives_back_the_types_that_it_looked_into) {
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, count_deletion, &keyval, nullptr);
  int deleted = 0;
  MPI_Datatype child = vector(2, 1, 3, MPI_INT);
  MPI_Type_set_attr(child, keyval, &deleted);
  {
    const Type type(structure({1, 2}, {0, 100}, {child, child}));
    MPI_Type_free(&child);
    static_cast<void>(flattened(type.get()));
    static_cast<void>(flattened(type.get()));
  }
  EXPECT_EQ(deleted, 1);
  MPI_Type_free_keyval(&keyval);
}

}  // namespace
}  // namespace farsum::mpi

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  // A type that the library refuses to make shows as one that is not there.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  farsum::mpi::load_library();
  ::testing::InitGoogleTest(&argc, argv);
  if (!farsum::mpi::datatypes().open()) return 1;
  const int result = RUN_ALL_TESTS();
  farsum::mpi::datatypes().close();
  MPI_Finalize();
  return result;
}
