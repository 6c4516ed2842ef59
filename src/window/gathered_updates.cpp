#include "window/gathered_updates.hpp"

#include <cstring>

#include "ops/layout.hpp"
#include "protocol/packed_sides.hpp"

namespace farsum {

bool GatheredUpdates::OfTarget::is_like(const Operation& operation) const {
  return type == operation.type && op == operation.op &&
         (operation.alpha == nullptr || std::memcmp(alpha, operation.alpha, ops::size_of(type)) == 0);
}

// The element goes behind those whose offsets are there, whatever one that found no memory has left.
void GatheredUpdates::OfTarget::add(std::uint64_t offset, const std::byte* element, std::uint64_t bytes) {
  const std::size_t at = offsets.size() * bytes;
  elements.resize(at + bytes);
  if (element != nullptr) std::memcpy(elements.data() + at, element, bytes);
  offsets.push_back(offset);
}

bool GatheredUpdates::try_add(const Update& update, std::uint32_t target) {
  OfTarget& gathered = of_targets_[target];
  const MutexGuard lock(gathered.mutex);
  if (gathered.offsets.empty() || gathered.offsets.size() + 1 >= limit_) return false;
  if (gathered.type != update.type || gathered.op != update.op) return false;
  gathered.add(update.offset, update.operand, update.bytes);
  return true;
}

Status GatheredUpdates::run(const Operation& operation, std::uint32_t target) {
  OfTarget& gathered = of_targets_[target];
  bool full = false;
  {
    MutexLock lock(gathered.mutex);
    const std::uint64_t size = ops::size_of(operation.type);
    // It looks again, because another thread may gather something else while the lock is free.
    while (!gathered.offsets.empty() && !gathered.is_like(operation)) {
      lock.unlock();
      if (Status status = send(target); !status.is_ok()) return status;
      lock.lock();
    }
    gathered.type = operation.type;
    gathered.op = operation.op;
    if (operation.alpha != nullptr) std::memcpy(gathered.alpha, operation.alpha, size);
    // One element, so one piece on each side.
    ops::PieceCursor target_piece(operation.target_layout, size);
    const PackedOperand operand(operation);
    gathered.add(operation.offset + static_cast<std::uint64_t>(target_piece.next().offset), operand.data(), size);
    full = gathered.offsets.size() >= limit_;
  }
  return full ? send(target) : Status();
}

Status GatheredUpdates::send(std::uint32_t target) {
  OfTarget& gathered = of_targets_[target];
  const MutexGuard lock(gathered.mutex);
  if (gathered.offsets.empty()) return {};
  if (Status status = locks_.learn(target, "farsum_accumulate"); !status.is_ok()) return status;
  gathered.elements.resize(gathered.offsets.size() * ops::size_of(gathered.type));
  const OwnerMessages::Elements elements{gathered.type, gathered.op, gathered.alpha, gathered.offsets,
                                         gathered.elements};
  if (Status status = messages_.send_elements(elements, target); !status.is_ok()) return status;
  gathered.offsets.clear();
  gathered.elements.clear();
  return {};
}

}  // namespace farsum
