#include "collectives/split_reduce.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "collectives/letter_walk.hpp"

namespace farsum {

std::uint64_t SplitReduce::parts(std::uint32_t nodes, std::uint32_t splits) {
  const auto halvings = static_cast<std::uint32_t>(std::bit_width(nodes) - 1);
  return std::uint64_t{1} << std::min(splits, halvings);
}

// The steps are those of as many elements as there are parts: a part of a vector has more elements, or none.
SplitReduce::SplitReduce(const GroupTeam& team, std::uint32_t splits, std::uint32_t degree, std::size_t most_bytes)
    : parts_(parts(team.places().nodes(), splits)),
      stages_(trees::stages_of_reduce({.kind = trees::Kind::reduce,
                                       .nodes = team.places().nodes(),
                                       .elements = parts_,
                                       .degree = degree,
                                       .splits = splits},
                                      team.places().my_node())),
      other_(std::make_unique_for_overwrite<std::byte[]>(most_bytes)) {}

// Parts of the piece, which a step counts.
class SplitReduce::Halves final : public LetterContent {
 public:
  Halves(SplitReduce& reduce, const Piece& piece) : reduce_(reduce), piece_(piece) {}

  std::span<const std::byte> held(const trees::Step& step) override { return part(step); }

  Status take(const trees::Step& step, std::span<const std::byte> letter) override {
    const std::span<std::byte> mine = part(step);
    if (letter.size() != mine.size()) return piece_.odd(step.peer);
    if (mine.empty()) return {};
    if (step.action == trees::Action::receive_copy) {
      std::memcpy(mine.data(), letter.data(), letter.size());
    } else if (step.mine_left) {
      piece_.fold.one_more(mine.data(), letter.data(), letter.size());
    } else {
      std::byte* const left = reduce_.other_.get();
      std::memcpy(left, letter.data(), letter.size());
      piece_.fold.one_more(left, mine.data(), letter.size());
      std::memcpy(mine.data(), left, letter.size());
    }
    return {};
  }

 private:
  std::span<std::byte> part(const trees::Step& step) const {
    const std::size_t element = piece_.fold.element_bytes();
    const std::uint64_t elements = piece_.held.size() / element;
    const auto begin_of = [&](std::uint64_t number) { return elements * number / reduce_.parts_ * element; };
    const std::size_t begin = begin_of(step.first);
    return piece_.held.subspan(begin, begin_of(step.first + step.count) - begin);
  }

  SplitReduce& reduce_;
  const Piece& piece_;
};

// A stage is a round: in all of them together a node may send another one two letters.
Status SplitReduce::run(GroupTeam& team, const Piece& piece, const char* doing) {
  Halves halves(*this, piece);
  for (const std::vector<trees::Step>& stage : stages_) {
    if (Status status = piece.begin_round(); !status.is_ok()) return status;
    if (Status status = team.walk_on(stage, halves, doing); !status.is_ok()) return status;
  }
  return {};
}

}  // namespace farsum
