#include "collectives/group_team.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "cost/meeting_model.hpp"

namespace farsum {
namespace {

Status wrong_length(const char* doing, Rank from, std::size_t bytes, std::size_t expected) {
  return {Code::argument,
          fmt::format("{}: rank {} of the job sent {} bytes where {} belong; do all ranks make the same call with the "
                      "same length?",
                      doing, from, bytes, expected)};
}

// The degree of the tree is that of a meeting's rounds: one node can tell as many at once as it can hear.
std::uint32_t degree_of(std::uint32_t nodes) { return cost::meet_at_once(nodes) ? nodes : 2; }

trees::Shape shape_of_broadcast(std::uint32_t nodes, std::uint32_t root) {
  return {.kind = trees::Kind::broadcast, .nodes = nodes, .root = root, .elements = 1, .degree = degree_of(nodes)};
}

class EmptyLetters final : public LetterContent {
 public:
  std::span<const std::byte> held(const trees::Step&) override { return {}; }
  Status take(const trees::Step&, std::span<const std::byte>) override { return {}; }
};

}  // namespace

// What the members of each node have of a piece of an allgather. Member r's is at all[r * stride].
class GroupTeam::Pieces final : public LetterContent {
 public:
  Pieces(const GroupTeam& team, std::size_t bytes, std::span<std::byte> all, std::size_t stride, const char* doing)
      : team_(team), bytes_(bytes), all_(all), stride_(stride), doing_(doing) {}

  std::span<const std::byte> held(const trees::Step& step) override {
    std::byte* const letter = team_.letter_.get();
    std::size_t packed = 0;
    for_each_member(step, [&](std::uint32_t member) {
      std::memcpy(letter + packed, all_.data() + member * stride_, bytes_);
      packed += bytes_;
    });
    return {letter, packed};
  }

  Status take(const trees::Step& step, std::span<const std::byte> letter) override {
    std::size_t expected = 0;
    for_each_member(step, [&](std::uint32_t) { expected += bytes_; });
    if (letter.size() != expected) {
      return wrong_length(doing_, team_.places_.node(step.peer, team_.my_node_).first, letter.size(), expected);
    }
    for_each_member(step, [&](std::uint32_t member) {
      std::memcpy(all_.data() + member * stride_, letter.data(), bytes_);
      letter = letter.subspan(bytes_);
    });
    return {};
  }

 private:
  void for_each_member(const trees::Step& step, FunctionRef<void(std::uint32_t member)> call) const {
    const std::uint32_t nodes = team_.places_.nodes();
    for (std::uint64_t i = 0; i < step.count; ++i) {
      for (const std::uint32_t member : team_.members_of(static_cast<std::uint32_t>((step.first + i) % nodes)))
        call(member);
    }
  }

  const GroupTeam& team_;
  std::size_t bytes_;
  std::span<std::byte> all_;
  std::size_t stride_;
  const char* doing_;
};

GroupTeam::GroupTeam(GroupPlaces places, std::uint32_t my_rank, TeamPost* post, Waiter& waiter)
    : places_(std::move(places)), my_rank_(my_rank), my_node_(places_.my_node()), post_(post), waiter_(waiter) {
  if (!places_.is_one_node()) make_lists();
}

// They depend on where the members are, and on nothing else. The list of an allgather is that of a barrier as well.
void GroupTeam::make_lists() {
  const std::uint32_t nodes = places_.nodes();
  trees::Shape shape = {.kind = trees::Kind::allgather, .nodes = nodes, .degree = degree_of(nodes)};
  meeting_ = trees::steps_of(shape, my_node_);
  if (most_members_of_a_letter() > TeamPost::most_bytes) {
    shape.degree = nodes;
    meeting_ = trees::steps_of(shape, my_node_);
  }
  piece_bytes_ = std::max<std::size_t>(TeamPost::most_bytes / most_members_of_a_letter(), 1);
  if (!is_first_here()) {
    meeting_ = {};
    return;
  }
  broadcast_.reserve(trees::steps_of(shape_of_broadcast(nodes, my_node_), my_node_).size());
  letter_ = std::make_unique_for_overwrite<std::byte[]>(std::max(TeamPost::most_bytes, most_members_of_a_letter()));
}

// In an allgather, of those of all nodes, whose letters hold as many blocks as this one's.
std::size_t GroupTeam::most_members_of_a_letter() const {
  std::uint64_t blocks = 0;
  for (const trees::Step& step : meeting_) blocks = std::max(blocks, step.count);
  const std::uint32_t nodes = places_.nodes();
  std::size_t members = 0;
  for (std::uint32_t node = 0; node < blocks; ++node) members += members_of(node).size();
  std::size_t most = members;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    members += members_of(static_cast<std::uint32_t>((node + blocks) % nodes)).size() - members_of(node).size();
    most = std::max(most, members);
  }
  return most;
}

void GroupTeam::begin(NodeTeamBlock& block, std::uint64_t key) noexcept {
  key_ = key;
  node_.emplace(block, static_cast<std::uint32_t>(places_.here.size()), places_.place_of(my_rank_), waiter_);
}

std::uint32_t GroupTeam::size() const {
  std::size_t members = places_.here.size();
  for (const GroupPlaces::Node& node : places_.remote) members += node.members.size();
  return static_cast<std::uint32_t>(members);
}

// By the first rank of a node.
Status GroupTeam::walk(std::span<const trees::Step> steps, LetterContent& content, const char* doing) {
  const auto first_of = [&](std::uint32_t node) { return places_.node(node, my_node_).first; };
  const LetterRound round = {.post = *post_, .waiter = waiter_, .team = key_, .number = ++round_, .first_of = first_of};
  return walk_letters(round, steps, content, doing);
}

Status GroupTeam::walk_together(std::span<const trees::Step> steps, LetterContent& content, const char* doing) {
  rounds_ahead_ = 0;
  return walk(steps, content, doing);
}

// By the first rank of a node.
Status GroupTeam::meet_between_nodes(const char* doing) {
  EmptyLetters empty;
  return walk_together(meeting_, empty, doing);
}

Status GroupTeam::barrier(const char* doing) {
  if (Status status = node_->barrier(doing); !status.is_ok() || places_.is_one_node()) return status;
  Status met;
  if (is_first_here()) {
    met = meet_between_nodes(doing);
    // Whoever failed knows of a death, which the others here learn in their wait.
    if (!met.is_ok()) return met;
  }
  return node_->barrier(doing);
}

Status GroupTeam::allgather(std::span<const std::byte> mine, std::span<std::byte> all, const char* doing) {
  if (places_.is_one_node()) return node_->allgather(mine, all, doing);
  for (std::size_t done = 0; done < mine.size(); done += piece_bytes_) {
    const std::size_t bytes = std::min(piece_bytes_, mine.size() - done);
    if (Status status = gather_piece(mine.subspan(done, bytes), all.subspan(done), mine.size(), doing);
        !status.is_ok()) {
      return status;
    }
  }
  return {};
}

namespace {

// Pieces of one length are packed by rank. This calls for each stretch of `packed`, which begins `done` bytes into
// them, that lies within one piece, with where that lies in what has a piece each `stride` bytes.
template <class Bytes>
void for_each_stretch(std::size_t done, std::span<Bytes> packed, std::size_t piece, std::size_t stride,
                      FunctionRef<void(std::size_t at, std::span<Bytes> stretch)> call) {
  while (!packed.empty()) {
    const std::size_t within = done % piece;
    const std::size_t bytes = std::min(piece - within, packed.size());
    call(done / piece * stride + within, packed.first(bytes));
    packed = packed.subspan(bytes);
    done += bytes;
  }
}

}  // namespace

// Member r's piece goes to all[r * stride].
Status GroupTeam::gather_piece(std::span<const std::byte> piece, std::span<std::byte> all, std::size_t stride,
                               const char* doing) {
  const auto take_here = [&](std::uint32_t member, std::size_t done, std::span<const std::byte> bytes) {
    std::memcpy(all.data() + places_.here[member] * stride + done, bytes.data(), bytes.size());
  };
  if (Status status = node_->gather(piece, take_here, doing); !status.is_ok()) return status;
  if (is_first_here()) {
    Pieces pieces(*this, piece.size(), all, stride, doing);
    if (Status status = walk_together(meeting_, pieces, doing); !status.is_ok()) return status;
  }
  const auto fill = [&](std::size_t done, std::span<std::byte> packed) {
    for_each_stretch<std::byte>(done, packed, piece.size(), stride, [&](std::size_t at, std::span<std::byte> stretch) {
      std::memcpy(stretch.data(), all.data() + at, stretch.size());
    });
  };
  const auto take = [&](std::size_t done, std::span<const std::byte> packed) {
    for_each_stretch<const std::byte>(done, packed, piece.size(), stride,
                                      [&](std::size_t at, std::span<const std::byte> stretch) {
                                        std::memcpy(all.data() + at, stretch.data(), stretch.size());
                                      });
  };
  return node_->tell(piece.size() * size(), 0, fill, take, doing);
}

// What goes from the root's node to all others: each passes on what it has been told, and says only then whether it has
// the right length, for those behind it wait.
class GroupTeam::Told final : public LetterContent {
 public:
  Told(const GroupTeam& team, std::span<std::byte> piece) : team_(team), piece_(piece), told_(piece) {}

  std::span<const std::byte> held(const trees::Step&) override { return told_; }
  Status take(const trees::Step& step, std::span<const std::byte> letter) override {
    std::byte* const into = letter.size() == piece_.size() ? piece_.data() : team_.letter_.get();
    if (!letter.empty()) std::memcpy(into, letter.data(), letter.size());
    told_ = {into, letter.size()};
    from_ = step.peer;
    return {};
  }
  Status check_length(const char* doing) const {
    if (told_.size() == piece_.size()) return {};
    return wrong_length(doing, team_.places_.node(from_, team_.my_node_).first, told_.size(), piece_.size());
  }

 private:
  const GroupTeam& team_;
  std::span<std::byte> piece_;
  std::span<const std::byte> told_;
  std::uint32_t from_ = 0;
};

std::uint32_t GroupTeam::node_of(std::uint32_t member) const {
  if (places_.is_here(member)) return my_node_;
  const auto has_it = [&](const GroupPlaces::Node& node) {
    return std::binary_search(node.members.begin(), node.members.end(), member);
  };
  const auto found = std::find_if(places_.remote.begin(), places_.remote.end(), has_it);
  const auto place = static_cast<std::uint32_t>(found - places_.remote.begin());
  return place < my_node_ ? place : place + 1;
}

// By the first rank of a node. Whoever has passed on what it was told goes on; so that nobody gets too far ahead of a
// node that is late, all meet after so many rounds.
Status GroupTeam::broadcast_between_nodes(std::span<std::byte> buffer, std::uint32_t root, const char* doing) {
  const std::uint32_t from = node_of(root);
  broadcast_.clear();
  trees::append_steps_of_broadcast(broadcast_, shape_of_broadcast(places_.nodes(), from), my_node_);
  for (std::size_t done = 0; done < buffer.size(); done += TeamPost::most_bytes) {
    if (rounds_ahead_ == TeamPost::most_rounds_ahead) {
      if (Status status = meet_between_nodes(doing); !status.is_ok()) return status;
    }
    ++rounds_ahead_;
    Told told(*this, buffer.subspan(done, std::min(TeamPost::most_bytes, buffer.size() - done)));
    if (Status status = walk(broadcast_, told, doing); !status.is_ok()) return status;
    if (Status status = told.check_length(doing); !status.is_ok()) return status;
  }
  return {};
}

Status GroupTeam::broadcast(std::span<std::byte> buffer, std::uint32_t root, const char* doing) {
  const bool root_is_here = places_.is_here(root);
  if (root_is_here) {
    if (Status status = node_->broadcast(buffer, places_.place_of(root), doing);
        !status.is_ok() || places_.is_one_node())
      return status;
  }
  if (is_first_here()) {
    if (Status status = broadcast_between_nodes(buffer, root, doing); !status.is_ok()) return status;
  }
  return root_is_here ? Status() : node_->broadcast(buffer, 0, doing);
}

}  // namespace farsum
