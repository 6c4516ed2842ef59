#include "collectives/group_team.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace farsum {

bool GroupPlaces::is_here(std::uint32_t rank) const { return std::binary_search(here.begin(), here.end(), rank); }

std::uint32_t GroupPlaces::place_of(std::uint32_t rank) const {
  return static_cast<std::uint32_t>(std::lower_bound(here.begin(), here.end(), rank) - here.begin());
}

GroupTeam::GroupTeam(GroupPlaces places, std::uint32_t my_rank, TeamPost* post, Waiter& waiter)
    : places_(std::move(places)), my_rank_(my_rank), post_(post), waiter_(waiter) {}

void GroupTeam::begin(NodeTeamBlock& block, std::uint64_t key) noexcept {
  key_ = key;
  node_.emplace(block, static_cast<std::uint32_t>(places_.here.size()), places_.place_of(my_rank_), waiter_);
}

std::uint32_t GroupTeam::size() const {
  std::size_t members = places_.here.size();
  for (const GroupPlaces::Node& node : places_.elsewhere) members += node.members.size();
  return static_cast<std::uint32_t>(members);
}

// The first ranks of all nodes tell each other; called by them alone. No one gets more than a round ahead.
Status GroupTeam::exchange(std::span<const std::byte> mine,
                           FunctionRef<Status(const GroupPlaces::Node&, std::span<const std::byte>)> take,
                           const char* doing) {
  ++round_;
  for (const GroupPlaces::Node& node : places_.elsewhere) {
    if (Status status = post_->send(node.first, key_, round_, mine, doing); !status.is_ok()) return status;
  }
  std::vector<std::byte> theirs;
  for (const GroupPlaces::Node& node : places_.elsewhere) {
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
  for (const GroupPlaces::Node& node : places_.elsewhere) most_members = std::max(most_members, node.members.size());
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

// Member r's piece goes to all[r * stride].
Status GroupTeam::gather_piece(std::span<const std::byte> piece, std::span<std::byte> all, std::size_t stride,
                               const char* doing) {
  std::vector<std::byte> here(piece.size() * places_.here.size());
  if (Status status = node_->allgather(piece, here, doing); !status.is_ok()) return status;
  std::vector<std::byte> packed(piece.size() * size());
  const auto put_in = [&](const std::vector<std::uint32_t>& members, std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < members.size(); ++i)
      std::memcpy(packed.data() + members[i] * piece.size(), bytes.data() + i * piece.size(), piece.size());
  };
  if (is_first_here()) {
    const auto take = [&](const GroupPlaces::Node& node, std::span<const std::byte> bytes) -> Status {
      const std::size_t expected = node.members.size() * piece.size();
      if (bytes.size() != expected) return wrong_length(doing, node.first, bytes.size(), expected);
      put_in(node.members, bytes);
      return {};
    };
    if (Status status = exchange(here, take, doing); !status.is_ok()) return status;
    put_in(places_.here, here);
  }
  if (Status status = node_->broadcast(packed, 0, doing); !status.is_ok()) return status;
  for (std::size_t rank = 0; rank < size(); ++rank)
    std::memcpy(all.data() + rank * stride, packed.data() + rank * piece.size(), piece.size());
  return {};
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
