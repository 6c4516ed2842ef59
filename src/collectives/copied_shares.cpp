#include "collectives/copied_shares.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

namespace farsum {
namespace {

std::uint64_t address_of(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }
std::byte* at(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

}  // namespace

CopiedShares::Told CopiedShares::tell(std::span<const std::byte> mine, std::span<std::byte> result) {
  Told told{.mine = address_of(mine.data()), .result = address_of(result.data()), .place = 0, .can = 0};
  if (peers_ == nullptr || is_refused_ || !peers_->reaches_all()) return told;
  told.place = peers_->my_place();
  if (tiles_ == nullptr) tiles_.reset(new (std::nothrow) std::byte[2 * tile_bytes]);
  if (tiles_ == nullptr || !can_be_copied(mine, result)) return told;
  is_held_ = peers_->hold_pages();
  told.can = is_held_ ? 1 : 0;
  return told;
}

void CopiedShares::end() {
  if (std::exchange(is_held_, false)) peers_->let_go();
}

// What the kernel refuses once it refuses the next time, too.
CopiedShares::Missed CopiedShares::missed_at(std::uint32_t member, std::uint64_t address, PeerCopy how) {
  if (how == PeerCopy::refused) is_refused_ = true;
  return {member, address, how};
}

// A device's memory is reached by loads and stores, and not by the kernel's copies. What begins and ends as the kernel
// can copy it is taken to be so in between.
bool CopiedShares::can_be_copied(std::span<const std::byte> mine, std::span<std::byte> result) {
  const std::array<std::uintptr_t, PeerMemory::most_addresses> ends = {
      address_of(mine.data()), address_of(&mine.back()), address_of(result.data()),
      result.empty() ? 0 : address_of(&result.back())};
  return peers_->can_copy_own(std::span(ends).first(result.empty() ? 2 : 4));
}

std::optional<CopiedShares::Missed> CopiedShares::fold(const Fold& fold, const Share& share, std::uint32_t me,
                                                       std::span<const Told> members, bool is_for_others) {
  const Told& own = members[me];
  const bool can_fold_in_place = own.result != 0 && own.result != own.mine;
  for (std::size_t done = 0; done < share.bytes; done += tile_bytes) {
    const std::size_t bytes = std::min(tile_bytes, share.bytes - done);
    std::byte* const result = own.result == 0 ? nullptr : at(own.result + share.to + done);
    std::byte* const sum = can_fold_in_place ? result : tiles_.get();
    std::optional<Missed> missed =
        fold_tile(fold, {.from = share.from + done, .bytes = bytes, .into = sum}, me, members);
    if (!missed && is_for_others) missed = write_tile({sum, bytes}, share.to + done, me, members);
    if (missed) return missed;
    if (result != nullptr && result != sum) std::memcpy(result, sum, bytes);
  }
  return std::nullopt;
}

// What this member has is read where it lies: nobody else writes there, and it does so itself only when it has folded.
std::optional<CopiedShares::Missed> CopiedShares::fold_tile(const Fold& fold, const Tile& tile, std::uint32_t me,
                                                            std::span<const Told> members) {
  std::optional<Missed> missed;
  const auto part_of = [&](std::uint32_t member) -> const std::byte* {
    const std::uint64_t from = members[member].mine + tile.from;
    if (member == me) return at(from);
    std::byte* const part = member == 0 ? tile.into : tiles_.get() + tile_bytes;
    if (missed) return part;
    const PeerCopy how = peers_->read(members[member].place, from, {part, tile.bytes});
    if (how != PeerCopy::done) missed = missed_at(member, from, how);
    return part;
  };
  fold.all(tile.into, tile.bytes, static_cast<std::uint32_t>(members.size()), part_of);
  return missed;
}

std::optional<CopiedShares::Missed> CopiedShares::write_tile(std::span<const std::byte> sum, std::size_t to,
                                                             std::uint32_t me, std::span<const Told> members) {
  for (std::uint32_t member = 0; member < members.size(); ++member) {
    const Told& told = members[member];
    if (member == me || told.result == 0) continue;
    const PeerCopy how = peers_->write(told.place, told.result + to, sum);
    if (how != PeerCopy::done) return missed_at(member, told.result + to, how);
  }
  return std::nullopt;
}

std::optional<CopiedShares::Missed> CopiedShares::give(const Share& share, std::uint32_t me,
                                                       std::span<const Told> members) {
  return write_tile({at(members[me].mine + share.from), share.bytes}, share.to, me, members);
}

std::optional<CopiedShares::Missed> CopiedShares::take(const Share& share, std::uint32_t member, std::uint32_t me,
                                                       std::span<const Told> members) {
  const std::uint64_t from = members[member].result + share.to;
  if (share.bytes == 0) return std::nullopt;
  const PeerCopy how = peers_->read(members[member].place, from, {at(members[me].result + share.to), share.bytes});
  if (how == PeerCopy::done) return std::nullopt;
  return missed_at(member, from, how);
}

}  // namespace farsum
