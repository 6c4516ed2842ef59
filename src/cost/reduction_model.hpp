// What a reduction of one vector from each node costs, by the model of paper 5 (section 5): pure arithmetic, no clock,
// no file. Times are in microseconds. docs/REDUCTIONS.md has what the model misses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"

namespace farsum::cost {

// The numbers of elements for which the time to combine is a parameter.
inline constexpr std::array<std::uint64_t, 4> listed_elements = {1, 2, 4, 8};

// The parameters of one operator on one type.
struct CombineParameters {
  ops::Operator op = ops::Operator::no_op;
  ops::ElementType type = ops::ElementType::int32;
  double overhead_us = 0;                                      // C: once a reduction
  std::array<double, listed_elements.size()> combine_us = {};  // c: of a received vector with one's own
};

struct ReductionModel {
  double latency_us = 0;  // L: from a send until the message can be received
  double receive_us = 0;  // r: to receive one packet
  std::uint64_t packet_bytes = 64;
  std::vector<CombineParameters> combines;
};

// Table 2 of paper 5: cards of Quadrics Elan-3, which emulate floating point. Its operator no_op, of figure 2, is the
// reduction that combines nothing.
const ReductionModel& paper_model();

// What the nodes reduce.
struct ReducedVector {
  ops::Operator op = ops::Operator::sum;
  ops::ElementType type = ops::ElementType::float64;
  std::uint64_t elements = 1;
};

// What the formulas need of a model for one vector.
struct ReductionTerms {
  double overhead_us = 0;        // C
  double latency_us = 0;         // L
  double message_us = 0;         // r + c, which one node does for one message after the other
  bool is_extrapolated = false;  // c is of more elements than any parameter
};

// Nothing where the model has no such operator on this type. Where `ranks_per_processor` exceeds 1, as many share the
// time of each processor, and r + c is so many times as long; latency and overhead are left alone.
std::optional<ReductionTerms> terms_of(const ReductionModel& model, const ReducedVector& vector,
                                       double ranks_per_processor = 1);
// The factor on r + c: 1 where each rank has a processor.
double crowding(double ranks_per_processor);
// r of a message. One without elements is a packet, too.
double receive_us(const ReductionModel& model, const ReducedVector& vector);
// c: between two listed numbers of elements on the line through both, beyond the last on that through the last two.
double combine_us(const CombineParameters& parameters, std::uint64_t elements);

// All nodes send to one, which receives and combines one after the other. A node alone has the overhead only.
double serial_us(const ReductionTerms& terms, std::uint64_t nodes);
// An f-nomial tree, f = `degree` >= 2, of degree^phases nodes.
double full_tree_us(const ReductionTerms& terms, std::uint64_t degree, unsigned phases);
// The same of any number of nodes.
double tree_us(const ReductionTerms& terms, std::uint64_t nodes, std::uint64_t degree);

// log_f P in integers, f >= 2 and P >= 1.
struct TreePhases {
  unsigned full = 0;                // its floor: phases in which the root has f - 1 children
  unsigned all = 0;                 // its ceiling
  std::uint64_t last_children = 0;  // of the root, in the phase that is not full
};
TreePhases phases_of(std::uint64_t nodes, std::uint64_t degree);

// No tree of a higher degree is tried.
inline constexpr std::uint64_t most_degree = 64;

// The fastest tree and the next. Times are compared in whole nanoseconds; of equals the smaller degree is taken.
struct DegreeChoice {
  std::uint64_t degree = 2;
  double us = 0;
  std::uint64_t second = 2;  // as `degree` where there is no other tree
  double second_us = 0;
};
DegreeChoice best_degree(const ReductionTerms& terms, std::uint64_t nodes);
// The same of times that somebody else predicted, the first of them for degree 2. There is at least one.
DegreeChoice best_of(const std::vector<double>& us_by_degree);

// The real f, 1 to 64, at which a full tree is fastest, whatever its nodes: f (ln f - 1) = L / (r + c) - 1 (appendix
// B).
double best_full_degree(const ReductionTerms& terms);

}  // namespace farsum::cost
