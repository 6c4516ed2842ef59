#include "collectives/group_team.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "cost/meeting_model.hpp"

namespace farsum {
namespace {

// The degree of the tree is that of a meeting's rounds: one node can tell as many at once as it can hear.
trees::Shape shape_of_broadcast(std::uint32_t nodes, std::uint32_t root) {
  return {.kind = trees::Kind::broadcast,
          .nodes = nodes,
          .root = root,
          .elements = 1,
          .degree = cost::meeting_degree(nodes)};
}

// What there is room for behind a letter's head.
constexpr std::size_t most_packed = TeamPost::most_bytes - sizeof(CallHead);

// A letter has a byte of each member that it is about, behind whichever head.
constexpr std::size_t most_members = 32'000;

void copy_bytes(std::byte* to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace

// Letters that are empty where all make the same call.
class GroupTeam::Meeting final : public LetterContent {
 public:
  explicit Meeting(const GroupTeam& team) : team_(team) {}

  std::span<const std::byte> held(const trees::Step&) override {
    if (head_.other.is_none()) return {};
    return std::as_bytes(std::span(&head_, 1));
  }
  Status take(const trees::Step& step, std::span<const std::byte> letter) override {
    if (head_.other.is_none()) head_.other = other_call_in(letter, head_, team_.first_of(step.peer));
    return {};
  }
  const OtherCall& other() const { return head_.other; }

 private:
  const GroupTeam& team_;
  CallHead head_{.call = CallHead::Call::barrier, .bytes = 0, .other = {}};
};

// What the members of each node have of a piece of an allgather. Member r's is at all[r * stride], and is one of
// `stride` bytes in all. Whoever knows of another call walks on, for those behind it wait, and tells them of that.
class GroupTeam::GatheredPiece final : public LetterContent {
 public:
  GatheredPiece(const GroupTeam& team, std::size_t bytes, std::span<std::byte> all, std::size_t stride)
      : team_(team),
        bytes_(bytes),
        all_(all),
        stride_(stride),
        head_{.call = CallHead::Call::allgather, .bytes = stride, .other = {}} {}

  std::span<const std::byte> held(const trees::Step& step) override {
    std::byte* const letter = team_.letter_.get();
    std::memcpy(letter, &head_, sizeof head_);
    std::size_t packed = sizeof head_;
    if (!head_.other.is_none()) return {letter, packed};
    for_each_member(step, [&](std::uint32_t member) {
      copy_bytes(letter + packed, all_.subspan(member * stride_, bytes_));
      packed += bytes_;
    });
    return {letter, packed};
  }

  Status take(const trees::Step& step, std::span<const std::byte> letter) override {
    if (!head_.other.is_none()) return {};
    const Rank sender = team_.first_of(step.peer);
    std::size_t expected = sizeof head_;
    for_each_member(step, [&](std::uint32_t) { expected += bytes_; });
    head_.other = other_call_in(letter, head_, sender);
    if (head_.other.is_none() && letter.size() != expected) head_.other = {OtherCall::What::another_call, sender};
    if (!head_.other.is_none()) return {};
    letter = letter.subspan(sizeof head_);
    for_each_member(step, [&](std::uint32_t member) {
      copy_bytes(all_.data() + member * stride_, letter.first(bytes_));
      letter = letter.subspan(bytes_);
    });
    return {};
  }

  const OtherCall& other() const { return head_.other; }

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
  CallHead head_;
};

// What goes from the root's node to all others, piece by piece: of as many pieces as the root has, whatever this node
// expects. Each passes on what it has received as it is, for those behind it wait.
class GroupTeam::BroadcastPiece final : public LetterContent {
 public:
  BroadcastPiece(const GroupTeam& team, std::span<std::byte> buffer)
      : team_(team), buffer_(buffer), head_{.call = CallHead::Call::broadcast, .bytes = buffer.size(), .other = {}} {}

  // On the root's node.
  void pack() {
    std::memcpy(team_.letter_.get(), &head_, sizeof head_);
    copy_bytes(team_.letter_.get() + sizeof head_, buffer_.subspan(done_, bytes_of_piece()));
    letter_bytes_ = sizeof head_ + bytes_of_piece();
  }
  // False: that was the last.
  bool next() {
    done_ += most_packed;
    return other_.what != OtherCall::What::another_call && done_ < head_.bytes;
  }

  std::span<const std::byte> held(const trees::Step&) override { return {team_.letter_.get(), letter_bytes_}; }
  Status take(const trees::Step& step, std::span<const std::byte> received) override {
    copy_bytes(team_.letter_.get(), received);
    letter_bytes_ = received.size();
    const Rank sender = team_.first_of(step.peer);
    OtherCall other = other_call_in(received, head_, sender);
    if (other.what == OtherCall::What::another_length && done_ == 0) {
      other_ = std::exchange(other, {});
      head_.bytes = other_.bytes;
    }
    if (!other.is_none() || received.size() != sizeof head_ + bytes_of_piece())
      other_ = {OtherCall::What::another_call, sender};
    if (other_.is_none()) copy_bytes(buffer_.data() + done_, received.subspan(sizeof head_));
    return {};
  }

  const OtherCall& other() const { return other_; }

 private:
  std::size_t bytes_of_piece() const { return std::min<std::size_t>(most_packed, head_.bytes - done_); }

  const GroupTeam& team_;
  std::span<std::byte> buffer_;
  CallHead head_;  // its bytes are the root's, once a letter has come
  std::size_t done_ = 0;
  std::size_t letter_bytes_ = 0;
  OtherCall other_;
};

GroupTeam::GroupTeam(GroupPlaces places, std::uint32_t my_rank, TeamPost* post, Waiter& waiter)
    : places_(std::move(places)), my_rank_(my_rank), my_node_(places_.my_node()), post_(post), waiter_(waiter) {
  if (!places_.is_one_node()) make_lists();
}

// They depend on where the members are, and on nothing else. The list of an allgather is that of a barrier as well.
void GroupTeam::make_lists() {
  const std::uint32_t nodes = places_.nodes();
  trees::Shape shape = {.kind = trees::Kind::allgather, .nodes = nodes, .degree = cost::meeting_degree(nodes)};
  meeting_ = trees::steps_of(shape, my_node_);
  if (most_members_of_a_letter() > most_members) {
    shape.degree = nodes;
    meeting_ = trees::steps_of(shape, my_node_);
  }
  piece_bytes_ = most_packed / most_members_of_a_letter();
  if (!is_first_here()) {
    meeting_ = {};
    return;
  }
  broadcast_.reserve(trees::steps_of(shape_of_broadcast(nodes, my_node_), my_node_).size());
  letter_ = std::make_unique_for_overwrite<std::byte[]>(TeamPost::most_bytes);
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

Status GroupTeam::walk_on(std::span<const trees::Step> steps, LetterContent& content, const char* doing) {
  const auto first_there = [&](std::uint32_t node) { return first_of(node); };
  const LetterRound round = {
      .post = *post_, .waiter = waiter_, .team = key_, .number = round_, .first_of = first_there};
  return walk_letters(round, steps, content, doing);
}

// By the first rank of a node.
Status GroupTeam::walk_together(std::span<const trees::Step> steps, LetterContent& content, const char* doing) {
  ++round_;
  note_all_met();
  return walk_on(steps, content, doing);
}

// So that nobody gets too far ahead of a node that is late, all meet after so many rounds.
Status GroupTeam::begin_round(OtherCall& other, const char* doing) {
  if (rounds_ahead_ == TeamPost::most_rounds_ahead) {
    if (Status status = meet_between_nodes(other, doing); !status.is_ok() || !other.is_none()) return status;
  }
  ++rounds_ahead_;
  ++round_;
  return {};
}

void GroupTeam::drop_letters_of(std::uint32_t node) {
  const auto nothing = [](std::span<const std::byte>) {};
  (void)post_->take(first_of(node), key_, round_ - 1, nothing);
}

// By the first rank of a node.
Status GroupTeam::meet_between_nodes(OtherCall& other, const char* doing) {
  Meeting meeting(*this);
  Status status = walk_together(meeting_, meeting, doing);
  other = meeting.other();
  return status;
}

// The first rank of a node comes to no meeting of the node any more: the others cannot know why.
Status GroupTeam::give_up(Status why) {
  node_->stay_away(why);
  return why;
}

// The first rank of a node tells the others of the other call that it knows of, else what `telling` has: it fills them
// in, they take them. The call is one of `bytes` bytes.
Status GroupTeam::tell_here(const OtherCall& known, std::size_t bytes, const Telling& telling, const char* doing) {
  OtherCall other = known;
  const auto fill = [&](std::size_t done, std::span<std::byte> packed) {
    if (done == 0) std::memcpy(packed.data(), &other, sizeof other);
    const std::size_t skipped = done == 0 ? sizeof other : 0;
    if (other.is_none()) telling.fill(done + skipped - sizeof other, packed.subspan(skipped));
  };
  const auto take = [&](std::size_t done, std::span<const std::byte> packed) {
    if (done == 0) std::memcpy(&other, packed.data(), sizeof other);
    const std::size_t skipped = done == 0 ? sizeof other : 0;
    if (other.is_none()) telling.take(done + skipped - sizeof other, packed.subspan(skipped));
  };
  if (Status status = node_->tell(sizeof other + telling.bytes, 0, fill, take, doing); !status.is_ok()) return status;
  return differs(doing, other, bytes);
}

Status GroupTeam::barrier(const char* doing) {
  if (Status status = node_->barrier(doing); !status.is_ok() || places_.is_one_node()) return status;
  OtherCall other;
  if (is_first_here()) {
    if (Status status = meet_between_nodes(other, doing); !status.is_ok()) return give_up(std::move(status));
  }
  const auto fill = [](std::size_t, std::span<std::byte>) {};
  const auto take = [](std::size_t, std::span<const std::byte>) {};
  return tell_here(other, 0, {.bytes = 0, .fill = fill, .take = take}, doing);
}

Status GroupTeam::allgather(std::span<const std::byte> mine, std::span<std::byte> all, const char* doing) {
  if (places_.is_one_node()) return node_->allgather(mine, all, doing);
  // Nothing is a piece, too: others may have brought more.
  std::size_t done = 0;
  do {
    const std::size_t bytes = std::min(piece_bytes_, mine.size() - done);
    if (Status status = gather_piece(mine.subspan(done, bytes), all.subspan(done), mine.size(), doing);
        !status.is_ok()) {
      return status;
    }
    done += bytes;
  } while (done < mine.size());
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
  OtherCall other;
  if (is_first_here()) {
    GatheredPiece gathered(*this, piece.size(), all, stride);
    if (Status status = walk_together(meeting_, gathered, doing); !status.is_ok()) return give_up(std::move(status));
    other = gathered.other();
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
  return tell_here(other, stride, {.bytes = piece.size() * size(), .fill = fill, .take = take}, doing);
}

std::uint32_t GroupTeam::node_of(std::uint32_t member) const {
  if (places_.is_here(member)) return my_node_;
  const auto has_it = [&](const GroupPlaces::Node& node) {
    return std::binary_search(node.members.begin(), node.members.end(), member);
  };
  const auto found = std::find_if(places_.remote.begin(), places_.remote.end(), has_it);
  const auto place = static_cast<std::uint32_t>(found - places_.remote.begin());
  return place < my_node_ ? place : place + 1;
}

// By the first rank of a node. Whoever has passed on what it was told goes on.
Status GroupTeam::broadcast_between_nodes(std::span<std::byte> buffer, std::uint32_t root, OtherCall& other,
                                          const char* doing) {
  const std::uint32_t from = node_of(root);
  broadcast_.clear();
  trees::append_steps_of_broadcast(broadcast_, shape_of_broadcast(places_.nodes(), from), my_node_);
  BroadcastPiece piece(*this, buffer);
  do {
    if (Status status = begin_round(other, doing); !status.is_ok() || !other.is_none()) return status;
    if (from == my_node_) piece.pack();
    if (Status status = walk_on(broadcast_, piece, doing); !status.is_ok()) return status;
  } while (piece.next());
  other = piece.other();
  return {};
}

Status GroupTeam::broadcast(std::span<std::byte> buffer, std::uint32_t root, const char* doing) {
  OtherCall other;
  if (places_.is_here(root)) {
    if (Status status = node_->broadcast(buffer, places_.place_of(root), doing);
        !status.is_ok() || places_.is_one_node() || !is_first_here())
      return status;
    if (Status status = broadcast_between_nodes(buffer, root, other, doing); !status.is_ok()) return status;
    return differs(doing, other, buffer.size());
  }
  if (is_first_here()) {
    if (Status status = broadcast_between_nodes(buffer, root, other, doing); !status.is_ok())
      return give_up(std::move(status));
  }
  const auto fill = [&](std::size_t done, std::span<std::byte> packed) {
    copy_bytes(packed.data(), buffer.subspan(done, packed.size()));
  };
  const auto take = [&](std::size_t done, std::span<const std::byte> packed) {
    copy_bytes(buffer.data() + done, packed);
  };
  return tell_here(other, buffer.size(), {.bytes = buffer.size(), .fill = fill, .take = take}, doing);
}

}  // namespace farsum
