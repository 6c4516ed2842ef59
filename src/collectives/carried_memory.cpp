#include "collectives/carried_memory.hpp"

#include <memory>
#include <string>

namespace farsum {

CarriedMemory::CarriedMemory(const GroupTeam& team, std::uint32_t my_rank, CarryHelp& help)
    : group_(team.places()),
      help_(help),
      my_rank_(my_rank),
      size_(team.size()),
      ranks_(static_cast<std::uint32_t>(group_.here.size())),
      me_(group_.place_of(my_rank)) {}

bool CarriedMemory::is_short(const CarriedCall& call) const {
  const std::size_t part = call.kind == CarriedCall::Kind::broadcast ? call.bytes() : own_bytes(call);
  return part <= CarriedBlock::slot_bytes(ranks_) && call.answer_bytes(size_) <= CarriedBlock::answer_bytes;
}

Status CarriedMemory::stage(CarriedRequest& request, const char* doing) {
  const CarriedCall& call = request.call;
  const std::size_t bytes = own_bytes(call);
  if (is_short(call)) {
    request.answer = std::make_unique_for_overwrite<std::byte[]>(own_share(call).bytes);
    return {};
  }
  const std::size_t whole = is_first() ? answer_in_extent(bytes) + call.answer_bytes(size_) : bytes;
  if (whole == 0) return {};
  if (Status status = help_.allocate(whole, request.own); !status.is_ok())
    return {status.code(), std::string(doing) + ": " + std::string(status.text())};
  copy_carried(help_.reach(request.own) + part_in_extent(), request.mine, bytes);
  return {};
}

void CarriedMemory::leave(CarriedRequest& request) const {
  const std::size_t bytes = own_bytes(request.call);
  CarriedPart& mine = part(request.number, me_);
  mine = {};
  mine.said = request.said;
  if (is_short(request.call)) {
    copy_carried(slot(request.number, me_), request.staged ? request.staged.get() : request.mine, bytes);
    request.staged.reset();
    return;
  }
  mine.data_at = request.own.offset + part_in_extent();
  if (!is_first()) return;
  mine.extent_at = request.own.offset;
  mine.extent_bytes = request.own.bytes;
  mine.answer_at = request.own.offset + answer_in_extent(bytes);
}

std::byte* CarriedMemory::data_of(std::uint64_t number, std::uint32_t member, std::size_t bytes) const {
  const CarriedPart& theirs = part(number, member);
  return theirs.data_at == 0 ? slot(number, member) : help_.reach({theirs.data_at, bytes});
}

std::byte* CarriedMemory::answer_of(std::uint64_t number, const CarriedCall& call) const {
  const CarriedPart& first = part(number, 0);
  if (first.answer_at != 0) return help_.reach({first.answer_at, call.answer_bytes(size_)});
  return block_ + CarriedBlock::answers_at(ranks_) + number % places * CarriedBlock::answer_bytes;
}

bool CarriedMemory::reach_all(std::uint64_t number, const CarriedCall& call) const {
  for (std::uint32_t member = 0; member < ranks_; ++member) {
    const std::size_t bytes = part_bytes(call, member);
    if (bytes != 0 && data_of(number, member, bytes) == nullptr) return false;
  }
  return answer_of(number, call) != nullptr;
}

}  // namespace farsum
