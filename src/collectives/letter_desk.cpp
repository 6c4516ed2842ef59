#include "collectives/letter_desk.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "cost/meeting_model.hpp"
#include "os/uncancelled.hpp"
#include "transport/letter_rules.hpp"

namespace farsum {
namespace {

// Where it does not hold, letters would be written into memory that is no team's any more, or be waited for for ever.
void require_of_desk(bool condition, const char* otherwise) {
  if (condition) [[likely]]
    return;
  std::fprintf(stderr, "farsum: internal error: %s\n", otherwise);
  std::abort();
}

}  // namespace

LetterNeighbours LetterNeighbours::of(std::uint32_t nodes, std::uint32_t my_node, std::uint32_t degree) {
  LetterNeighbours found{.my_node = my_node, .by_node = std::vector<std::uint32_t>(nodes, none), .ranks = {}};
  std::uint32_t count = 0;
  const auto add = [&](std::uint32_t node) {
    if (node != my_node && found.by_node[node] == none) found.by_node[node] = count++;
  };
  if (cost::meet_at_once(nodes)) {
    for (std::uint32_t node = 0; node < nodes; ++node) add(node);
  } else {
    const auto add_both = [&](std::uint64_t apart) {
      add(static_cast<std::uint32_t>((my_node + apart) % nodes));
      add(static_cast<std::uint32_t>((my_node + nodes - apart) % nodes));
    };
    for (std::uint64_t apart = 1; apart < nodes; apart *= 2) add_both(apart);
    for (std::uint64_t stride = 1; degree > 2 && stride < nodes; stride *= degree) {
      for (std::uint64_t digit = 1; digit < degree && digit * stride < nodes; ++digit) add_both(digit * stride);
    }
  }
  found.ranks.resize(count);
  return found;
}

std::uint32_t LetterNeighbours::of_rank(Rank rank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? none : static_cast<std::uint32_t>(found - ranks.begin());
}

LetterDesk::Entry::Entry(LetterNeighbours neighbours, std::byte* block, const Letters::Shape& shape)
    : neighbours_(std::move(neighbours)), letters_(block, shape), owes_(shape.channels()) {
  Teams brought;
  brought.try_emplace(0, this);
  node_ = brought.extract(brought.begin());
}

LetterDesk::Entry::~Entry() { require_of_desk(!is_added(), "a team ends whose letters still come"); }

void LetterDesk::add(Entry& entry, std::uint64_t team) noexcept {
  require_of_desk(!entry.is_added(), "a team's letters are to come that come already");
  entry.team_ = team;
  entry.node_.key() = team;
  const MutexGuard lock(mutex_);
  entry.node_ = teams_.insert(std::move(entry.node_)).node;
  require_of_desk(entry.is_added(), "two teams of one name take in letters");
}

void LetterDesk::remove(Entry& entry) noexcept {
  // A thread that waits for a condition may be cancelled there, and then the process would stop.
  const os::Uncancelled uncancelled;
  MutexLock lock(mutex_);
  if (!entry.is_added()) return;
  entry.node_ = teams_.extract(entry.team_);
  // Nobody begins to look from here on, for what is not added is put on no list.
  take_off_lists(entry);
  while (entry.lookers_ != 0) lock.wait(looks_ended_);
}

void LetterDesk::take_off_lists(Entry& entry) {
  const auto unlink = [&](Entry*& first, Entry* Entry::*next, bool Entry::*is_listed) {
    if (!std::exchange(entry.*is_listed, false)) return;
    Entry** at = &first;
    while (*at != &entry) at = &((*at)->*next);
    *at = entry.*next;
  };
  unlink(touched_, &Entry::next_touched_, &Entry::is_touched_);
  unlink(refused_entries_, &Entry::next_refused_, &Entry::is_refused_);
}

// ---- what comes

void LetterDesk::on_letter(Rank from, std::span<const std::byte> letter) noexcept {
  Header header{};
  const bool has_header = letter.size() >= sizeof header;
  if (!letter.empty()) std::memcpy(&header, letter.data(), std::min(letter.size(), sizeof header));
  const OddLetter unknown{OddLetter::Fault::unknown_team, from, header.address.team};
  const OddLetter odd{OddLetter::Fault::breaks_rules, from, header.address.team};
  if (!has_header) return count(refused_, odd);
  MutexLock lock(mutex_);
  const auto found = teams_.find(header.address.team);
  if (found == teams_.end()) {
    lock.unlock();
    if (header.head.number != LetterHead::credit_alone) count(unknown_, unknown);
    return;
  }
  Entry& entry = *found->second;
  if (file(entry, from, header, letter.subspan(sizeof header)) == Letters::Filed::refused) {
    lock.unlock();
    return count(refused_, odd);
  }
  if (std::exchange(entry.is_touched_, true)) return;
  entry.next_touched_ = std::exchange(touched_, &entry);
  has_touched_.store(true, std::memory_order_relaxed);
}

Letters::Filed LetterDesk::file(Entry& entry, Rank from, const Header& header, std::span<const std::byte> content) {
  const LetterAddress& address = header.address;
  const LetterNeighbours& neighbours = entry.neighbours_;
  const bool is_credit = header.head.number == LetterHead::credit_alone;
  const std::uint32_t neighbour =
      address.from_node < neighbours.by_node.size() ? neighbours.by_node[address.from_node] : LetterNeighbours::none;
  const bool is_whole = address.kind == LetterAddress::Kind::of_call && neighbour != LetterNeighbours::none &&
                        neighbours.ranks[neighbour] == from && address.place < entry.shape().places &&
                        (is_credit || content.size() >= sizeof(std::uint64_t));
  if (!is_whole) return Letters::Filed::refused;
  return entry.letters_.file(entry.letters_.channel(neighbour, address.place), header.head, content);
}

void LetterDesk::count(std::atomic<std::uint64_t>& faults, const OddLetter& letter) noexcept {
  if (faults.fetch_add(1, std::memory_order_relaxed) == 0) tell_of_(letter);
}

void LetterDesk::wake_touched() noexcept {
  if (!has_touched_.load(std::memory_order_relaxed)) return;
  MutexLock lock(mutex_);
  has_touched_.store(false, std::memory_order_relaxed);
  while (touched_ != nullptr) {
    Entry& entry = *touched_;
    touched_ = entry.next_touched_;
    entry.is_touched_ = false;
    ++entry.lookers_;
    lock.unlock();
    entry.look_again();
    lock.lock();
    end_look(entry);
  }
}

// Whoever removes it waits for this.
void LetterDesk::end_look(Entry& entry) {
  if (--entry.lookers_ == 0) looks_ended_.notify_all();
}

// ---- what is sent

std::optional<std::size_t> LetterDesk::most_content(const Entry& entry) const {
  std::size_t most = entry.shape().slot_bytes + sizeof(Header);
  for (const Rank rank : entry.neighbours_.ranks) most = std::min(most, transport_.capabilities(rank).max_letter_bytes);
  if (most < overhead_bytes) return std::nullopt;
  return most - overhead_bytes;
}

LetterAddress LetterDesk::address_of(const Entry& entry, std::uint32_t channel) const {
  return {.team = entry.team_,
          .from_node = entry.neighbours_.my_node,
          .place = static_cast<std::uint16_t>(channel / entry.shape().neighbours),
          .kind = LetterAddress::Kind::of_call};
}

LetterDesk::Sent LetterDesk::send(Entry& entry, std::uint32_t neighbour, std::uint32_t place,
                                  const Letter& letter) noexcept {
  require_of_letter(neighbour < entry.shape().neighbours && place < entry.shape().places,
                    "goes to no neighbour of its team, or to no place of it");
  require_of_letter(letter.content.size() + sizeof letter.round <= entry.shape().slot_bytes,
                    "is longer than a slot of its team");
  const std::uint32_t channel = entry.letters_.channel(neighbour, place);
  if (!entry.letters_.has_room(channel)) return Sent::no_slot;
  const Header header{address_of(entry, channel), entry.letters_.head_of_next(channel)};
  std::array<std::byte, overhead_bytes> front;
  std::memcpy(front.data(), &header, sizeof header);
  std::memcpy(front.data() + sizeof header, &letter.round, sizeof letter.round);
  try {
    if (!transport_.try_letter(entry.neighbours_.ranks[neighbour], front, letter.content)) return Sent::no_room;
  } catch (const std::bad_alloc&) {
    come_back(entry, std::nullopt);
    return Sent::no_room;
  }
  entry.letters_.sent(channel);
  sent_.fetch_add(1, std::memory_order_relaxed);
  return Sent::yes;
}

std::optional<LetterDesk::Letter> LetterDesk::take(const Entry& entry, std::uint32_t neighbour,
                                                   std::uint32_t place) const {
  const auto found = entry.letters_.take(entry.letters_.channel(neighbour, place));
  if (!found) return std::nullopt;
  Letter letter{};
  std::memcpy(&letter.round, found->data(), sizeof letter.round);
  letter.content = found->subspan(sizeof letter.round);
  return letter;
}

void LetterDesk::consumed(Entry& entry, std::uint32_t neighbour, std::uint32_t place) noexcept {
  const std::uint32_t channel = entry.letters_.channel(neighbour, place);
  entry.letters_.consumed(channel);
  if (!entry.letters_.owes_credit(channel)) return;
  entry.letters_.credit_sent(channel);
  if (!try_credit(entry, channel)) come_back(entry, channel);
}

void LetterDesk::refuse(Entry& entry, std::uint32_t neighbour, std::uint32_t place) noexcept {
  count(refused_, {OddLetter::Fault::breaks_rules, entry.neighbours_.ranks[neighbour], entry.team_});
  consumed(entry, neighbour, place);
}

bool LetterDesk::try_credit(const Entry& entry, std::uint32_t channel) noexcept {
  const Header header{address_of(entry, channel), entry.letters_.credit(channel)};
  const Rank to = entry.neighbours_.ranks[channel % entry.shape().neighbours];
  try {
    return transport_.try_letter(to, std::as_bytes(std::span(&header, 1)), {});
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// ---- what was refused

void LetterDesk::come_back(Entry& entry, std::optional<std::uint32_t> owed_channel) noexcept {
  {
    const MutexGuard lock(mutex_);
    if (!entry.is_added()) return;
    if (owed_channel) {
      entry.owes_[*owed_channel] = true;
    } else {
      entry.lacks_memory_ = true;
    }
    if (std::exchange(entry.is_refused_, true)) return;
    entry.next_refused_ = std::exchange(refused_entries_, &entry);
    if (has_refused_.exchange(true, std::memory_order_relaxed)) return;
  }
  rouse_();
}

void LetterDesk::look_after_refused(Agenda& agenda, std::uint64_t now_ns) noexcept {
  if (agenda.take_due("refused letters", now_ns)) retry_refused();
  if (has_refused()) {
    agenda.come_back_for("refused letters", now_ns);
  } else {
    agenda.strike("refused letters");
  }
}

// Each once: what is refused again is for the next time. A second thread would find nothing owed while the first has
// the credit in its hands, and then take an entry off the list with credit that was refused again.
void LetterDesk::retry_refused() noexcept {
  if (!has_refused()) return;
  const MutexGuard lock(mutex_);
  require_of_desk(!std::exchange(is_retrying_, true), "two threads try again what was refused");
  std::size_t left = 0;
  for (Entry* entry = refused_entries_; entry != nullptr; entry = entry->next_refused_) ++left;
  for (; left != 0 && refused_entries_ != nullptr; --left) {
    Entry& entry = *refused_entries_;
    refused_entries_ = entry.next_refused_;
    entry.is_refused_ = false;
    ++entry.lookers_;
    retry(entry);
    end_look(entry);
  }
  has_refused_.store(refused_entries_ != nullptr, std::memory_order_relaxed);
  is_retrying_ = false;
}

bool LetterDesk::try_credit_meanwhile(const Entry& entry, std::uint32_t channel) noexcept {
  const MutexPause pause(mutex_);
  return try_credit(entry, channel);
}

void LetterDesk::retry(Entry& entry) noexcept {
  bool is_refused_again = false;
  for (std::uint32_t channel = 0; channel < entry.shape().channels(); ++channel) {
    if (!entry.owes_[channel]) continue;
    entry.owes_[channel] = false;
    if (try_credit_meanwhile(entry, channel)) continue;
    entry.owes_[channel] = true;
    is_refused_again = true;
  }
  // Nobody waits for credit to have gone.
  if (std::exchange(entry.lacks_memory_, false)) {
    const MutexPause pause(mutex_);
    entry.look_again();
  }
  if (!is_refused_again || !entry.is_added() || std::exchange(entry.is_refused_, true)) return;
  // Last, so that others have their turn.
  Entry** end = &refused_entries_;
  while (*end != nullptr) end = &(*end)->next_refused_;
  *end = &entry;
  entry.next_refused_ = nullptr;
}

}  // namespace farsum
