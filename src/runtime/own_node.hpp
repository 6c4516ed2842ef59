// Where this rank is on its node: its place there, and its own part of the memory that the node's ranks share. It
// borrows the membership, which outlives it.
#pragma once

#include <cstdint>

#include "runtime/wireup.hpp"

namespace farsum {

class OwnNode {
 public:
  // The membership says who is here.
  explicit OwnNode(const Membership& membership) : membership_(membership) {}

  Rank rank() const { return membership_.rank; }
  // Ranks of the job.
  std::uint32_t job_size() const { return membership_.size; }
  bool is_whole_job() const { return membership_.here.count() == membership_.size; }
  const NodeRanks& here() const { return membership_.here; }
  std::uint32_t place() const { return membership_.here.place_of(membership_.rank); }
  // What locks in the node segment are held by.
  std::uint32_t id_in_segment() const { return place() + 1; }
  NodeSegment& segment() const { return *membership_.segment; }
  // Ranks that are threads of one process share its maps.
  bool shares_its_maps() const { return membership_.segment.use_count() != 1; }
  RankBlock& block() const { return membership_.segment->rank(place()); }
  RankBlock& block_of(Rank rank) const { return membership_.segment->rank(membership_.here.place_of(rank)); }

 private:
  const Membership& membership_;
};

}  // namespace farsum
