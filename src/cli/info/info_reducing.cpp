#include "cli/info/info_reducing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "cli/info/info_timing.hpp"
#include "ops/element_type.hpp"
#include "ops/op_kind.hpp"

namespace farsum::cli {

namespace {

constexpr int calls_to_warm_up = 5;
constexpr int round_trips = 180;

}  // namespace

std::vector<TimedVector> timed_vectors() {
  std::vector<TimedVector> all = {{FARSUM_INT32, FARSUM_SUM, {ops::Operator::no_op, ops::ElementType::int32, 0}}};
  for (const std::uint64_t elements : cost::listed_elements) {
    for (const auto& [op, modelled] : {std::pair(FARSUM_MAX, ops::Operator::max), {FARSUM_SUM, ops::Operator::sum}}) {
      all.push_back({FARSUM_INT32, op, {modelled, ops::ElementType::int32, elements}});
      all.push_back({FARSUM_DOUBLE, op, {modelled, ops::ElementType::float64, elements}});
    }
  }
  return all;
}

SomeNodes::SomeNodes(int nodes) : nodes_(nodes) {
  std::vector<int> members(static_cast<std::size_t>(nodes));
  std::iota(members.begin(), members.end(), 0);
  require(farsum_group_create(farsum_world(), members.data(), nodes, &group_));
  require(farsum_rank(group_, &rank_));
}

SomeNodes::~SomeNodes() { static_cast<void>(farsum_group_free(&group_)); }

void SomeNodes::time(const TimedVector& vector, std::vector<double>& times_us) {
  if (vector.type == FARSUM_INT32)
    time_elements(vector, ints_, times_us);
  else
    time_elements(vector, doubles_, times_us);
}

double SomeNodes::round_trip_us() const {
  std::vector<double> times_us;
  for (int i = 0; i < round_trips; ++i) {
    const double before = now_us();
    std::uint64_t word = 0;
    for (const int root : {0, 1}) require(farsum_broadcast(group_, &word, sizeof word, root));
    times_us.push_back(now_us() - before);
  }
  return lower_decile(std::move(times_us));
}

template <class Element>
void SomeNodes::time_elements(const TimedVector& vector, Buffers<Element>& buffers, std::vector<double>& times_us) {
  const auto count = static_cast<std::size_t>(vector.modelled.elements);
  buffers.mine.fill(static_cast<Element>(rank_ + 1));
  const auto call = [&] {
    require(farsum_allreduce(group_, buffers.mine.data(), buffers.result.data(), count, vector.type, vector.op));
  };
  for (int i = 0; i < calls_to_warm_up; ++i) call();
  const int expected = vector.op == FARSUM_MAX ? nodes_ : nodes_ * (nodes_ + 1) / 2;
  const auto is_right = [&](Element element) { return element == static_cast<Element>(expected); };
  if (!std::all_of(buffers.result.data(), buffers.result.data() + count, is_right))
    throw std::runtime_error(fmt::format("a reduction over {} nodes gave a wrong answer", nodes_));
  for (int i = 0; i < calls_a_round; ++i) {
    const double before = now_us();
    call();
    times_us.push_back(now_us() - before);
  }
}

}  // namespace farsum::cli
