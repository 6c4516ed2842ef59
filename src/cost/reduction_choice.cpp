#include "cost/reduction_choice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace farsum::cost {
namespace {

std::uint32_t whole_ns(double us) {
  constexpr double most = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::lround(std::clamp(us * 1000, 0.0, most)));
}

// As combine_us(), rounded down.
std::uint64_t combine_ns(const ReductionTable::Row& row, std::uint64_t elements) {
  if (elements == 0) return 0;
  std::size_t upper = 1;
  while (upper + 1 < listed_elements.size() && listed_elements[upper] < elements) ++upper;
  const auto from = static_cast<std::int64_t>(listed_elements[upper - 1]);
  const auto to = static_cast<std::int64_t>(listed_elements[upper]);
  const std::int64_t from_ns = row.combine_ns[upper - 1];
  const std::int64_t more_ns = row.combine_ns[upper] - from_ns;
  const std::int64_t ns = from_ns + (static_cast<std::int64_t>(elements) - from) * more_ns / (to - from);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, ns));
}

std::uint64_t message_ns(const ReductionTable& costs, const ReducedVector& vector) {
  const std::uint64_t elements = std::min(vector.elements, most_told_apart);
  const std::uint64_t packet = std::max<std::uint32_t>(1, costs.packet_bytes);
  const std::uint64_t packets = (elements * ops::size_of(vector.type) + packet - 1) / packet;
  const std::uint64_t receive = std::max<std::uint64_t>(1, packets) * costs.receive_ns;
  for (const ReductionTable::Row& row : costs.rows())
    if (row.op == vector.op && row.type == vector.type) return receive + combine_ns(row, elements);
  return receive;
}

// FNV-1a, the same on every machine.
class Hash {
 public:
  void add(std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) hash_ = (hash_ ^ (number >> 8 * byte & 0xff)) * 0x100000001b3;
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace

ReductionTable table_of(const ReductionModel& model) {
  ReductionTable costs;
  costs.latency_ns = whole_ns(model.latency_us);
  costs.receive_ns = whole_ns(model.receive_us);
  costs.packet_bytes = static_cast<std::uint32_t>(model.packet_bytes);
  for (const CombineParameters& combine : model.combines) {
    if (costs.row_count == ReductionTable::most_rows) break;
    ReductionTable::Row& row = costs.row[costs.row_count++];
    row.op = combine.op;
    row.type = combine.type;
    std::transform(combine.combine_us.begin(), combine.combine_us.end(), row.combine_ns.begin(), whole_ns);
  }
  return costs;
}

std::uint64_t hash_of(const ReductionTable& costs) {
  Hash hash;
  for (const std::uint32_t number : {costs.latency_ns, costs.receive_ns, costs.packet_bytes}) hash.add(number);
  for (const ReductionTable::Row& row : costs.rows()) {
    hash.add(static_cast<std::uint64_t>(row.op) << 8 | static_cast<std::uint64_t>(row.type));
    for (const std::uint32_t ns : row.combine_ns) hash.add(ns);
  }
  return hash.value();
}

std::uint64_t tree_ns(const ReductionTable& costs, const ReducedVector& vector, std::uint64_t nodes,
                      std::uint64_t degree) {
  const TreePhases phases = phases_of(nodes, degree);
  const std::uint64_t messages = phases.full * (degree - 1) + phases.last_children;
  return std::uint64_t{phases.all} * costs.latency_ns + messages * message_ns(costs, vector);
}

std::uint64_t choose_degree(const ReductionTable& costs, const ReducedVector& vector, std::uint64_t nodes,
                            std::uint64_t forced) {
  if (nodes <= 2) return 2;
  if (forced != 0) return std::clamp<std::uint64_t>(forced, 2, nodes);
  std::uint64_t best = 2;
  const auto try_one = [&](std::uint64_t degree) {
    if (tree_ns(costs, vector, nodes, degree) < tree_ns(costs, vector, nodes, best)) best = degree;
  };
  if (nodes >= 4) try_one(4);
  if (nodes <= most_flat_nodes) try_one(nodes);
  return best;
}

}  // namespace farsum::cost
