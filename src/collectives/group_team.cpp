#include "collectives/group_team.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace farsum {

GroupTeam::GroupTeam(GroupPlaces places, std::uint32_t my_rank, TeamPost* post, Waiter& waiter)
    : places_(std::move(places)), my_rank_(my_rank), post_(post), waiter_(waiter) {
  // A letter has a byte of each member here at least.
  const std::size_t room = std::max(TeamPost::most_bytes, places_.here.size());
  if (!places_.is_one_node() && is_first_here()) letter_ = std::make_unique_for_overwrite<std::byte[]>(room);
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

// The first ranks of all nodes tell each other; called by them alone. No one gets more than a round ahead.
Status GroupTeam::exchange(std::span<const std::byte> mine,
                           FunctionRef<Status(const GroupPlaces::Node&, std::span<const std::byte>)> take,
                           const char* doing) {
  ++round_;
  for (const GroupPlaces::Node& node : places_.remote) {
    if (Status status = post_->send(node.first, key_, round_, mine, doing); !status.is_ok()) return status;
  }
  std::vector<std::byte> theirs;
  for (const GroupPlaces::Node& node : places_.remote) {
    if (Status status = post_->receive(node.first, key_, round_, theirs, doing); !status.is_ok()) return status;
    if (Status status = take(node, theirs); !status.is_ok()) return status;
  }
  return {};
}

namespace {

Status wrong_length(const char* doing, Rank from, std::size_t bytes, std::size_t expected) {
  return {Code::argument,
          fmt::format("{}: rank {} of the job sent {} bytes where {} belong; do all ranks make the same call with the "
                      "same length?",
                      doing, from, bytes, expected)};
}

}  // namespace

Status GroupTeam::barrier(const char* doing) {
  if (Status status = node_->barrier(doing); !status.is_ok() || places_.is_one_node()) return status;
  Status met;
  if (is_first_here()) {
    const auto nothing = [](const GroupPlaces::Node&, std::span<const std::byte>) { return Status(); };
    met = exchange({}, nothing, doing);
    // Whoever failed knows of a death, which the others here learn in their wait.
    if (!met.is_ok()) return met;
  }
  return node_->barrier(doing);
}

Status GroupTeam::allgather(std::span<const std::byte> mine, std::span<std::byte> all, const char* doing) {
  if (places_.is_one_node()) return node_->allgather(mine, all, doing);
  std::size_t most_members = places_.here.size();
  for (const GroupPlaces::Node& node : places_.remote) most_members = std::max(most_members, node.members.size());
  const std::size_t most = std::max<std::size_t>(TeamPost::most_bytes / most_members, 1);
  for (std::size_t done = 0; done < mine.size(); done += most) {
    const std::size_t bytes = std::min(most, mine.size() - done);
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
    if (Status status = exchange_pieces(piece.size(), all, stride, doing); !status.is_ok()) return status;
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

// Exchanges the pieces of this node's members for those of all others'.
Status GroupTeam::exchange_pieces(std::size_t bytes, std::span<std::byte> all, std::size_t stride, const char* doing) {
  for (std::size_t i = 0; i < places_.here.size(); ++i)
    std::memcpy(letter_.get() + i * bytes, all.data() + places_.here[i] * stride, bytes);
  const auto take = [&](const GroupPlaces::Node& node, std::span<const std::byte> theirs) -> Status {
    const std::size_t expected = node.members.size() * bytes;
    if (theirs.size() != expected) return wrong_length(doing, node.first, theirs.size(), expected);
    for (std::size_t i = 0; i < node.members.size(); ++i)
      std::memcpy(all.data() + node.members[i] * stride, theirs.data() + i * bytes, bytes);
    return {};
  };
  return exchange({letter_.get(), places_.here.size() * bytes}, take, doing);
}

Status GroupTeam::broadcast(std::span<std::byte> buffer, std::uint32_t root, const char* doing) {
  const bool root_is_here = places_.is_here(root);
  if (root_is_here) {
    if (Status status = node_->broadcast(buffer, places_.place_of(root), doing);
        !status.is_ok() || places_.is_one_node())
      return status;
  }
  for (std::size_t done = 0; is_first_here() && done < buffer.size(); done += TeamPost::most_bytes) {
    const std::span<std::byte> piece = buffer.subspan(done, std::min(TeamPost::most_bytes, buffer.size() - done));
    const auto take = [&](const GroupPlaces::Node& node, std::span<const std::byte> bytes) -> Status {
      const bool has_root = std::binary_search(node.members.begin(), node.members.end(), root);
      const std::size_t expected = has_root ? piece.size() : 0;
      if (bytes.size() != expected) return wrong_length(doing, node.first, bytes.size(), expected);
      if (has_root) std::memcpy(piece.data(), bytes.data(), bytes.size());
      return {};
    };
    const std::span<const std::byte> mine = root_is_here ? std::span<const std::byte>(piece) : std::span<std::byte>();
    if (Status status = exchange(mine, take, doing); !status.is_ok()) return status;
  }
  return root_is_here ? Status() : node_->broadcast(buffer, 0, doing);
}

}  // namespace farsum
