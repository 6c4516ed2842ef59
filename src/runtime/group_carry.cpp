#include "runtime/group_carry.hpp"

#include <utility>

#include "base/units.hpp"
#include "collectives/node_rounds.hpp"

namespace farsum {

GroupCarry::GroupCarry(const Parts& parts, std::vector<std::uint32_t> here, const Of& of)
    : parts_(parts),
      here_(std::move(here)),
      carry_({of.team, of.my_rank, of.kernels, of.post, of.waiter, *this, of.reduce_degree, of.reduce_order}) {}

GroupCarry::~GroupCarry() { shut(); }

Status GroupCarry::open(CarriedAnchor& anchor) {
  if (is_shut_)
    return {Code::handle, "farsum_collect: the group is of no further use, for freeing it has failed half way"};
  const auto here = static_cast<std::uint32_t>(here_.size());
  // Acquire pairs with the release below: the block is zeroed.
  std::uint64_t at = anchor.block_at.load(std::memory_order_acquire);
  if (at == 0) {
    Result<HeapExtent> cut = parts_.segment.allocate(CarriedBlock::footprint(here), parts_.id_in_segment);
    if (!cut.is_ok()) return cut.take_status();
    if (anchor.block_at.compare_exchange_strong(at, cut.value().offset, std::memory_order_acq_rel,
                                                std::memory_order_acquire))
      at = cut.value().offset;
    else
      parts_.segment.release(cut.value(), parts_.id_in_segment);
  }
  if (Status status = parts_.segment.reach(block_of(anchor, here)); !status.is_ok()) return status;
  carry_.open(parts_.segment.at(at));
  listed_ = parts_.carries.add(carry_);
  return {};
}

// Acquire and release: the last to depart comes after everything the others did with the block.
bool GroupCarry::depart(CarriedAnchor& anchor, std::uint32_t here) {
  const bool is_last = anchor.departed.fetch_add(1, std::memory_order_acq_rel) + 1 == here;
  // Relaxed: whoever has set it has departed.
  return is_last && anchor.block_at.load(std::memory_order_relaxed) != 0;
}

// As the heap has cut it.
HeapExtent GroupCarry::block_of(const CarriedAnchor& anchor, std::uint32_t here) {
  // Relaxed: the caller knows of it.
  return {anchor.block_at.load(std::memory_order_relaxed), round_up(CarriedBlock::footprint(here), page_bytes)};
}

void GroupCarry::shut() {
  is_shut_ = true;
  if (listed_) parts_.carries.remove(*listed_);
  listed_.reset();
}

Status GroupCarry::allocate(std::uint64_t bytes, CarriedExtent& extent) {
  Result<HeapExtent> cut = parts_.segment.allocate(bytes, parts_.id_in_segment);
  if (!cut.is_ok()) return cut.take_status();
  Status status = parts_.segment.reach(cut.value());
  if (status.is_ok())
    extent = {cut.value().offset, cut.value().bytes};
  else
    parts_.segment.release(cut.value(), parts_.id_in_segment);
  return status;
}

void GroupCarry::release(CarriedExtent extent) {
  parts_.segment.release({extent.offset, extent.bytes}, parts_.id_in_segment);
}

std::byte* GroupCarry::reach(CarriedExtent extent) {
  try {
    if (parts_.segment.reach({extent.offset, extent.bytes}).is_ok()) return parts_.segment.at(extent.offset);
  } catch (const std::bad_alloc&) {
    // There is not even memory to say so.
  }
  return nullptr;
}

void GroupCarry::ring(std::uint32_t member_here) { parts_.transport.ring(here_[member_here]); }

void GroupCarry::hand_over() { parts_.network.hand_over(); }

void GroupCarry::count_under_way(int more) { parts_.carries.count_under_way(*listed_, more); }

}  // namespace farsum
