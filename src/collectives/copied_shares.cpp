#include "collectives/copied_shares.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace farsum {
namespace {

std::uint64_t address_of(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }

}  // namespace

CopiedShares::Told CopiedShares::tell(std::span<const std::byte> mine, std::span<std::byte> result) {
  Told told{.mine = address_of(mine.data()), .result = address_of(result.data()), .place = 0, .can = 0};
  if (peers_ == nullptr || !peers_->reaches_all()) return told;
  told.place = peers_->my_place();
  if (tiles_ == nullptr) tiles_.reset(new (std::nothrow) std::byte[2 * tile_bytes]);
  told.can = tiles_ != nullptr && can_be_copied(mine, result) ? 1 : 0;
  return told;
}

// A device's memory is reached by loads and stores, and not by the kernel's copies. What begins and ends as the kernel
// can copy it is taken to be so in between.
bool CopiedShares::can_be_copied(std::span<const std::byte> mine, std::span<std::byte> result) {
  const std::array<std::uintptr_t, PeerMemory::most_addresses> ends = {
      address_of(mine.data()), address_of(&mine.back()), address_of(result.data()),
      result.empty() ? 0 : address_of(&result.back())};
  return peers_->can_copy_own(std::span(ends).first(result.empty() ? 2 : 4));
}

std::optional<CopiedShares::Missed> CopiedShares::run(const Fold& fold, const Share& share,
                                                      std::span<const Told> members) {
  missed_.reset();
  for (std::size_t done = 0; done < share.bytes && !missed_; done += tile_bytes) {
    const std::size_t bytes = std::min(tile_bytes, share.bytes - done);
    fold_tile(fold, share.from + done, bytes, members);
    if (!missed_) write_tile(share.to + done, bytes, members);
  }
  return missed_;
}

// What this member has is read where it lies: nobody else writes there, and it does so itself only when it has folded.
void CopiedShares::fold_tile(const Fold& fold, std::size_t from, std::size_t bytes, std::span<const Told> members) {
  const std::uint32_t me = peers_->my_place();
  fold.all(sum(), bytes, static_cast<std::uint32_t>(members.size()), [&](std::uint32_t member) -> const std::byte* {
    const Told& told = members[member];
    if (told.place == me) return reinterpret_cast<const std::byte*>(told.mine + from);
    std::byte* const into = member == 0 ? sum() : part();
    if (!peers_->read(told.place, told.mine + from, {into, bytes})) miss(member, told.mine + from);
    return into;
  });
}

void CopiedShares::write_tile(std::size_t to, std::size_t bytes, std::span<const Told> members) {
  const std::uint32_t me = peers_->my_place();
  for (std::uint32_t member = 0; member < members.size(); ++member) {
    const Told& told = members[member];
    if (told.result == 0) continue;
    if (told.place == me)
      std::memcpy(reinterpret_cast<std::byte*>(told.result + to), sum(), bytes);
    else if (!peers_->write(told.place, told.result + to, {sum(), bytes}))
      miss(member, told.result + to);
  }
}

void CopiedShares::miss(std::uint32_t member, std::uint64_t address) {
  if (!missed_) missed_ = {member, address};
}

}  // namespace farsum
