#include "collectives/reduction_letters.hpp"

#include <cstring>
#include <utility>

#include "collectives/reduction_refusals.hpp"

namespace farsum {

using Finding = NodeRoundsBlock::Finding;

struct ReductionLetters::Head {
  static constexpr std::uint64_t of_reductions = 0x736e6f6974637564;  // other collectives' letters begin otherwise

  std::uint64_t tag;
  SaidOfCall said;  // by the sender
  SaidOfCall other;
  std::uint32_t other_rank;  // who has said that, or the first rank of a node that has called no reduction
  Finding finding;
};

const std::size_t ReductionLetters::head_bytes = sizeof(Head);

ReductionLetters::ReductionLetters(const Means& means, const ReductionCall& call, Verdict& verdict, std::size_t bytes,
                                   Folding folding)
    : means_(means), call_(call), verdict_(verdict), bytes_(bytes), folding_(folding) {
  const auto part = [&](std::uint32_t rank) { return means_.rounds.piece(means_.team.places().place_of(rank)); };
  if (by_rank() != nullptr) by_rank()->begin(bytes, part);
}

std::span<const std::byte> ReductionLetters::held(const trees::Step& step) {
  const Head head{.tag = Head::of_reductions,
                  .said = call_.said,
                  .other = verdict_.said,
                  .other_rank = verdict_.rank,
                  .finding = verdict_.finding};
  std::memcpy(means_.letter, &head, sizeof head);
  if (!are_the_same()) return {means_.letter, sizeof head};
  const std::size_t bytes = bytes_with(step, step.peer);
  if (by_rank() != nullptr)
    by_rank()->pack(number_of(step), means_.letter + sizeof head);
  else
    copy_reduced(means_.letter + sizeof head, answer(), bytes);
  return {means_.letter, sizeof head + bytes};
}

Status ReductionLetters::take(const trees::Step& step, std::span<const std::byte> letter) {
  const std::uint32_t sender = means_.team.members_of(step.peer).front();
  if (compares_) compare(sender, letter);
  const std::size_t bytes = bytes_with(step, my_node());
  if (!are_the_same() || bytes_ == 0) return {};
  if (letter.size() != sizeof(Head) + bytes)
    return no_reduction_by({call_.doing, means_.my_rank, call_.said}, name_of_node(sender));
  if (bytes != 0) use(step, letter.data() + sizeof(Head));
  return {};
}

void ReductionLetters::finish() {
  if (!are_the_same()) return;
  if (by_rank() != nullptr) return copy_reduced(answer(), by_rank()->answer(), bytes_);
  if (folding_ == Folding::in_turn) return;
  add_own();
  copy_reduced(answer(), means_.sum, bytes_);
}

// Of elements, in the letter of a step that `to` gets.
std::size_t ReductionLetters::bytes_with(const trees::Step& step, std::uint32_t to) const {
  if (by_rank() != nullptr) return by_rank()->letter_bytes(number_of(step));
  const bool holds = holding_ == Holding::all || (holding_ == Holding::to_root && to == root_node_);
  return holds ? bytes_ : 0;
}

void ReductionLetters::use(const trees::Step& step, const std::byte* theirs) {
  if (by_rank() != nullptr) {
    by_rank()->take(number_of(step), theirs, call_.fold);
  } else if (folding_ == Folding::from_the_lowest) {
    if (step.peer > my_node()) add_own();
    add(theirs);
  } else if (step.action == trees::Action::receive_copy) {
    copy_reduced(answer(), theirs, bytes_);
  } else {
    // All nodes of a subtree come behind its parent.
    call_.fold.one_more(answer(), theirs, bytes_);
  }
}

// Keeps for this node's ranks the first of other nodes that has called something else.
void ReductionLetters::compare(std::uint32_t sender, std::span<const std::byte> theirs) {
  if (!are_the_same()) return;
  Head head{};
  if (theirs.size() >= sizeof head) std::memcpy(&head, theirs.data(), sizeof head);
  if (head.tag != Head::of_reductions || !makes_sense(head.said))
    verdict_ = {{}, sender, Finding::no_reduction};
  else if (head.finding == Finding::no_reduction)
    verdict_ = {{}, head.other_rank, Finding::no_reduction};
  else if (head.said != call_.said)
    verdict_ = {head.said, sender, Finding::another_reduction};
  else if (head.finding != Finding::the_same)
    verdict_ = {head.other, head.other_rank, Finding::another_reduction};
}

void ReductionLetters::add_own() {
  if (!std::exchange(has_own_, true)) add(answer());
}

void ReductionLetters::add(const std::byte* part) {
  if (!std::exchange(has_first_, true))
    copy_reduced(means_.sum, part, bytes_);
  else
    call_.fold.one_more(means_.sum, part, bytes_);
}

}  // namespace farsum
