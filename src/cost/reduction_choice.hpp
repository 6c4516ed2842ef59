// Which tree a reduction between nodes takes, by the parameters of a model in whole nanoseconds: in integers alone, so
// that ranks choose alike whatever their compilers and processors do with fractions. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "cost/reduction_model.hpp"
#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"

namespace farsum::cost {

// In a fixed number of bytes without gaps, which ranks can tell each other.
struct ReductionTable {
  struct Row {
    ops::Operator op = ops::Operator::no_op;
    ops::ElementType type = ops::ElementType::int32;
    std::uint16_t unused = 0;
    std::array<std::uint32_t, listed_elements.size()> combine_ns = {};
  };
  static constexpr std::size_t most_rows = 8;

  std::span<const Row> rows() const { return std::span(row).first(row_count); }

  std::uint32_t latency_ns = 0;
  std::uint32_t receive_ns = 0;
  std::uint32_t packet_bytes = 64;
  std::uint32_t row_count = 0;
  std::array<Row, most_rows> row = {};
};
static_assert(std::has_unique_object_representations_v<ReductionTable>);

// Rounded to whole nanoseconds: once, by whoever tells the others. Of a model with more operators and types than there
// is room for, the first.
ReductionTable table_of(const ReductionModel& model);
// Of all that is in it: whose tables have one hash choose alike.
std::uint64_t hash_of(const ReductionTable& costs);

// Up to so many nodes all may send to one; and of more elements than so many it is chosen as for so many.
inline constexpr std::uint64_t most_flat_nodes = 12;
inline constexpr std::uint64_t most_told_apart = std::uint64_t{1} << 24;

// The time of an f-nomial tree by the formula of tree_us(), less the overhead, which no tree changes. Of an operator or
// type that the table has not got, nothing is taken to be combined.
std::uint64_t tree_ns(const ReductionTable& costs, const ReducedVector& vector, std::uint64_t nodes,
                      std::uint64_t degree);
// The degree that takes least: 2, 4, or of few nodes as many as there are, in which all send to one; of equals the
// smallest. It is forced where `forced` is not 0.
std::uint64_t choose_degree(const ReductionTable& costs, const ReducedVector& vector, std::uint64_t nodes,
                            std::uint64_t forced = 0);

}  // namespace farsum::cost
