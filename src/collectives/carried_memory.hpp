// Where the ranks of one node leave what they say and bring of the calls that nobody waits for, and find what they get:
// the group's block in the node segment, and extents of it for what is long. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "base/units.hpp"
#include "collectives/carried_block.hpp"
#include "collectives/carried_call.hpp"
#include "collectives/carried_request.hpp"
#include "collectives/carry_help.hpp"
#include "collectives/group_team.hpp"

namespace farsum {

// One member's view. Who may read or write what lies there, CarriedPlace says.
class CarriedMemory {
 public:
  static constexpr std::uint64_t places = CarriedPlace::most_under_way;

  // Both live longer.
  CarriedMemory(const GroupTeam& team, std::uint32_t my_rank, CarryHelp& help);
  void open(std::byte* block) noexcept { block_ = block; }

  const GroupPlaces& group() const { return group_; }
  std::uint32_t my_rank() const { return my_rank_; }
  std::uint32_t size() const { return size_; }
  // On this node, and my place among them.
  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t me() const { return me_; }
  bool is_first() const { return me_ == 0; }

  CarriedBreak& broken() const { return *reinterpret_cast<CarriedBreak*>(block_ + CarriedBlock::break_at); }
  CarriedPlace& place(std::uint64_t number) const {
    return reinterpret_cast<CarriedPlace*>(block_ + CarriedBlock::places_at)[number % places];
  }
  CarriedPart& part(std::uint64_t number, std::uint32_t member) const {
    return reinterpret_cast<CarriedPart*>(block_ + CarriedBlock::parts_at)[number % places * ranks_ + member];
  }
  bool is_open(std::uint64_t number) const { return place(number).calls.is_open(CarriedPlace::turn_of(number)); }
  bool has_outcome(std::uint64_t number) const { return place(number).calls.has_ended(CarriedPlace::turn_of(number)); }

  // Whether what any rank brings fits its slot, and what all get fits the place.
  bool is_short(const CarriedCall& call) const;
  std::size_t part_bytes(const CarriedCall& call, std::uint32_t member) const {
    return call.part_bytes(group_.here[member], size_);
  }
  std::size_t own_bytes(const CarriedCall& call) const { return call.part_bytes(my_rank_, size_); }
  CarriedCall::Share own_share(const CarriedCall& call) const { return call.share_of(my_rank_, size_); }

  // Whatever memory the call needs, before it has a number; what is long is copied there. Where it fails nothing is
  // allocated.
  Status stage(CarriedRequest& request, const char* doing);
  // What this rank says and brings, in the place of the call, which is open.
  void leave(CarriedRequest& request) const;

  // Null where there is no room to map it.
  std::byte* data_of(std::uint64_t number, std::uint32_t member, std::size_t bytes) const;
  std::byte* answer_of(std::uint64_t number, const CarriedCall& call) const;
  // Whether none of these is.
  bool reach_all(std::uint64_t number, const CarriedCall& call) const;

 private:
  std::byte* slot(std::uint64_t number, std::uint32_t member) const {
    return block_ + CarriedBlock::slots_at(ranks_) +
           (number % places * ranks_ + member) * CarriedBlock::slot_bytes(ranks_);
  }
  // Where in the extent of a rank lies what it brings, and in that of the first the answer, behind so many bytes.
  std::size_t part_in_extent() const { return is_first() ? sizeof(CarriedExtentHead) : 0; }
  std::size_t answer_in_extent(std::size_t bytes) const { return part_in_extent() + round_up(bytes, cache_line_bytes); }

  const GroupPlaces& group_;
  CarryHelp& help_;
  std::byte* block_ = nullptr;
  std::uint32_t my_rank_;
  std::uint32_t size_;
  std::uint32_t ranks_;
  std::uint32_t me_;
};

}  // namespace farsum
