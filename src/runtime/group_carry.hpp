// What carries the collectives of a group that nobody waits for: its place in the node segment, and what it needs of
// this process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/carry.hpp"
#include "collectives/node_rounds.hpp"
#include "runtime/carries.hpp"
#include "runtime/network_side.hpp"
#include "transport/shm/node_segment.hpp"
#include "transport/shm/shm_transport.hpp"

namespace farsum {

class GroupCarry final : public CarryHelp {
 public:
  struct Parts {
    NodeSegment& segment;
    std::uint32_t id_in_segment;
    ShmTransport& transport;
    NetworkSide& network;
    Carries& carries;
  };
  // The group, and what its calls need.
  struct Of {
    GroupTeam& team;
    std::uint32_t my_rank;
    const ops::KernelSet& kernels;
    TeamPost& post;
    Waiter& waiter;
    std::uint32_t reduce_degree;
    ReduceOrder reduce_order;
  };
  // `here`: of each member of the group on this node, its place there.
  GroupCarry(const Parts& parts, std::vector<std::uint32_t> here, const Of& of);
  ~GroupCarry() override;

  Carry& carry() { return carry_; }
  // In the block that the anchor tells of, which the first member to come asks for.
  Status open(CarriedAnchor& anchor);
  bool is_open() const { return listed_.has_value(); }
  // Before the members meet at the group's end, when this one has no request open: from here on no agent of this
  // process touches what any member has, and there is no further call.
  void shut();
  // Behind that meeting.
  void give_back() { carry_.give_back_kept(); }
  // By each member here, also where there never was a carry. True for the last, when there is a block to give back.
  static bool depart(CarriedAnchor& anchor, std::uint32_t here);
  static HeapExtent block_of(const CarriedAnchor& anchor, std::uint32_t here);

  Status allocate(std::uint64_t bytes, CarriedExtent& extent) override;
  void release(CarriedExtent extent) override;
  std::byte* reach(CarriedExtent extent) override;
  void ring(std::uint32_t member_here) override;
  void hand_over() override;
  void count_under_way(int more) override;

 private:
  Parts parts_;
  std::vector<std::uint32_t> here_;
  Carry carry_;
  std::optional<Carries::Entry> listed_;
  bool is_shut_ = false;
};

}  // namespace farsum
