#include "collectives/copied_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace farsum {

// What a member has found that copied; it lies in its room of the call.
struct CopiedCall::Copied {
  std::uint32_t has_missed;
  PeerCopy how;
  std::uint32_t member;  // between whose memory and its own
  std::uint64_t address;
};

CopiedCall::CopiedCall(NodeRounds& rounds, CopiedShares& copies, Waiter& waiter,
                       const std::vector<std::uint32_t>& ranks, std::uint32_t me, const char* doing)
    : rounds_(rounds), copies_(copies), waiter_(waiter), ranks_(ranks), me_(me), doing_(doing) {}

void CopiedCall::tell(std::span<const std::byte> mine, std::span<std::byte> result) {
  const CopiedShares::Told told = copies_.tell(mine, result);
  std::memcpy(rounds_.piece(me_), &told, sizeof told);
}

void CopiedCall::tell_that_it_cannot() {
  const CopiedShares::Told told{};
  std::memcpy(rounds_.piece(me_), &told, sizeof told);
}

bool CopiedCall::can_all() {
  for (std::uint32_t member = 0; member < rounds_.ranks(); ++member)
    std::memcpy(&told_[member], rounds_.piece(member), sizeof told_[member]);
  return std::ranges::all_of(members(), [](const CopiedShares::Told& one) { return one.can != 0; });
}

std::byte* CopiedCall::copied_by(std::uint32_t member, int part) const {
  return rounds_.room(member) + part * cache_line_bytes;
}

Status CopiedCall::end(const std::optional<CopiedShares::Missed>& missed, int part) {
  Copied mine{};
  if (missed) mine = {1, missed->how, missed->member, missed->address};
  std::memcpy(copied_by(me_, part), &mine, sizeof mine);
  has_left(me_).store(0, std::memory_order_relaxed);
  if (Status status = rounds_.next_step(doing_); !status.is_ok()) return leave(std::move(status));
  for (std::uint32_t member = 0; member < rounds_.ranks(); ++member) {
    // Acquire: what this rank has copied from that one's memory was its own until then.
    if (has_left(member).load(std::memory_order_acquire) != 0) return told_of_death();
  }
  for (std::uint32_t member = 0; member < rounds_.ranks(); ++member) {
    Copied copied;
    std::memcpy(&copied, copied_by(member, part), sizeof copied);
    if (copied.has_missed == 0) continue;
    return copied.how == PeerCopy::gone ? told_of_death() : not_copied(member, copied);
  }
  return {};
}

// Whoever waits is told which rank it was.
Status CopiedCall::told_of_death() {
  return waiter_.wait(
      waiter_.own_events(), [] { return false; }, doing_);
}

// This rank has come to a step and does not wait for the others: its program has its memory back, from and to which
// they may be copying. A death they learn of as this one has, and by whom.
Status CopiedCall::leave(Status why) {
  if (why.code() == Code::peer_failed)
    has_left(me_).store(1, std::memory_order_release);
  else
    rounds_.give_up(why);
  return why;
}

std::atomic_ref<std::uint32_t> CopiedCall::has_left(std::uint32_t member) const {
  constexpr int behind_both_parts = 2;
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(copied_by(member, behind_both_parts)));
}

Status CopiedCall::not_copied(std::uint32_t by, const Copied& copied) const {
  const std::string which =
      fmt::format("{}: rank {} of the group could not copy between its memory and that of rank {} at {:#x}", doing_,
                  ranks_[by], ranks_[copied.member], copied.address);
  switch (copied.how) {
    case PeerCopy::refused:
      return {Code::unreachable, which +
                                     ": the kernel refuses it; results are torn, and the next such call goes through "
                                     "shared memory"};
    case PeerCopy::not_mapped:
    case PeerCopy::gone:
    case PeerCopy::done:
      break;
  }
  return {Code::argument, which + ", of which some is not mapped, or not for that; results are torn"};
}

}  // namespace farsum
