// What carries the collectives of a group that nobody waits for: its place in the node segment, and what it needs of
// this process. The agent takes the turns of all groups.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "collectives/carry.hpp"
#include "runtime/network_side.hpp"
#include "transport/shm/node_segment.hpp"
#include "transport/shm/shm_transport.hpp"

namespace farsum {

// Those of a process.
class Carries {
 public:
  void add(Carry& carry);
  // Waits for a turn of the agent's at most; it takes none of this one any more.
  void remove(Carry& carry);
  // Relaxed: it is counted before its rank comes to it and walks, and who rings the agent for it, or files a letter
  // that this walk has not found, comes behind these.
  void count_under_way(int more) { under_way_.fetch_add(more, std::memory_order_relaxed); }

  // By the agent, or a thread that serves in its stead.
  Carry::Turn take_turns() noexcept;

 private:
  std::atomic<int> under_way_{0};
  std::mutex mutex_;  // guards what follows
  std::vector<Carry*> all_;
};

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
  };
  // `here`: of each member of the group on this node, its place there.
  GroupCarry(const Parts& parts, std::vector<std::uint32_t> here, const Of& of);
  ~GroupCarry() override;

  Carry& carry() { return carry_; }
  // In the block that the anchor tells of, which the first member to come asks for.
  Status open(CarriedAnchor& anchor);
  bool is_open() const { return is_listed_; }
  // No agent of this process touches the block any more.
  void shut();
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
  bool is_listed_ = false;
};

}  // namespace farsum
