// Where a process takes in the letters of all teams over nodes of which it speaks for its node, and from where those of
// its teams leave: it finds the team, files, has whoever waits look again, and tells of credit
// (docs/internals/letters.md). Owner: the Context.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_mutex.hpp"
#include "base/units.hpp"
#include "collectives/letters.hpp"
#include "progress/agenda.hpp"
#include "transport/transport.hpp"

namespace farsum {

// Begins each letter on its way.
struct LetterAddress {
  enum class Kind : std::uint16_t { of_call };  // others may follow

  std::uint64_t team;
  std::uint32_t from_node;  // of the team
  std::uint16_t place;
  Kind kind;
};

// The nodes to which a node of a team sends letters: the relation holds both ways.
struct LetterNeighbours {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  // All others where so few meet at once; else those whose number is as far from this one's as a power of two, around
  // the end: each step of dissemination and of a binomial tree goes so far, whatever the root. And at a degree
  // those as far as a step of a tree of it; 0: of no other.
  static LetterNeighbours of(std::uint32_t nodes, std::uint32_t my_node, std::uint32_t degree = 0);
  std::uint32_t of_rank(Rank rank) const;

  std::uint32_t my_node = 0;
  std::vector<std::uint32_t> by_node;  // which neighbour a node is, or none
  std::vector<Rank> ranks;             // of the job: by neighbour, who speaks for it
};

// A letter that nobody who keeps the rules sends.
struct OddLetter {
  enum class Fault : std::uint8_t { unknown_team, breaks_rules };

  Fault fault;
  Rank from;
  std::uint64_t team;  // as far as it is long enough to tell
};

// Who may call: on_letter() whoever serves, one at a time; wake_touched() the agent or a thread that attends, not in
// its turn of serving; look_after_refused() the agent alone; all else of a team one thread at a time. What the desk
// does for a team allocates nothing: what that needs the team's entry has brought.
class LetterDesk final : public LetterHandler {
 public:
  // A team of which this process files the letters. From add() to remove() letters come to it.
  class Entry {
   public:
    // The block is of Letters; it outlives this.
    Entry(LetterNeighbours neighbours, std::byte* block, const Letters::Shape& shape);
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    const LetterNeighbours& neighbours() const { return neighbours_; }
    const Letters::Shape& shape() const { return letters_.shape(); }

   protected:
    // It was removed, or never added: else letters would go on coming to it.
    ~Entry();
    // A letter or credit has come, or one that was refused for want of memory may find some: whoever waits looks again.
    // It may not call remove() of this.
    virtual void look_again() noexcept = 0;

   private:
    friend class LetterDesk;
    using Teams = std::map<std::uint64_t, Entry*>;

    bool is_added() const { return node_.empty(); }

    LetterNeighbours neighbours_;
    Letters letters_;
    Teams::node_type node_;  // while it is not added
    std::uint64_t team_ = 0;
    // Guarded by the desk's mutex.
    Entry* next_touched_ = nullptr;
    Entry* next_refused_ = nullptr;
    bool is_touched_ = false;
    bool is_refused_ = false;
    std::uint32_t lookers_ = 0;
    std::vector<bool> owes_;     // by channel: credit alone that was refused
    bool lacks_memory_ = false;  // a letter found none
  };

  // How much of an entry's calls is told apart by a letter, and what is behind that.
  struct Letter {
    std::uint64_t round;
    std::span<const std::byte> content;
  };
  enum class Sent : std::uint8_t {
    yes,
    no_slot,  // until credit comes, with which the entry is told to look again
    no_room,  // until the transport has some, which wakes whoever sleeps for replies; or until there is memory
  };

  // What of a letter is neither slot nor content.
  static constexpr std::size_t overhead_bytes = sizeof(LetterAddress) + sizeof(LetterHead) + sizeof(std::uint64_t);

  // `rouse` has the agent take a turn; `tell_of` hears of the first letter of each fault, in the turn of serving or by
  // who refuses it, and neither throws nor calls the desk.
  LetterDesk(
      Transport& transport, std::function<void()> rouse,
      std::function<void(const OddLetter&)> tell_of = [](const OddLetter&) {})
      : transport_(transport), rouse_(std::move(rouse)), tell_of_(std::move(tell_of)) {}
  ~LetterDesk() override = default;

  void on_letter(Rank from, std::span<const std::byte> letter) noexcept override;

  // Before any neighbour may send to the team: before the meeting in which it is told to all. The name is no other
  // team's, and never comes again, since letters of the one before may be under way: a second entry of one name stops
  // the process.
  void add(Entry& entry, std::uint64_t team) noexcept;
  // Nobody looks again from here on. Waits for those that do; no agent calls it.
  void remove(Entry& entry) noexcept;

  // Longest content of a letter to the neighbours of the entry; none where a road to one of them carries no letters.
  std::optional<std::size_t> most_content(const Entry& entry) const;
  Sent send(Entry& entry, std::uint32_t neighbour, std::uint32_t place, const Letter& letter) noexcept;
  // The next letter of the channel, if it has come. It stays until consumed(), which may tell the neighbour of credit.
  std::optional<Letter> take(const Entry& entry, std::uint32_t neighbour, std::uint32_t place) const;
  void consumed(Entry& entry, std::uint32_t neighbour, std::uint32_t place) noexcept;
  // In place of consumed(): that letter breaks the rules of its team.
  void refuse(Entry& entry, std::uint32_t neighbour, std::uint32_t place) noexcept;

  // Has those look again for whom something has come.
  void wake_touched() noexcept;
  // Whether a letter was refused that somebody has to try again by the clock: credit alone, for whose sake nobody
  // waits, or any for which there was no memory.
  bool has_refused() const { return has_refused_.load(std::memory_order_relaxed); }
  // Tries these once each, where the agenda says that it is time, and has it come back as long as there are some. It
  // keeps its time whatever turns come between: a team that looks again, and finds no memory again, has the agent
  // roused at once.
  void look_after_refused(Agenda& agenda, std::uint64_t now_ns) noexcept;
  // One thread at a time, or the process stops.
  void retry_refused() noexcept;

  // Statistics. Of letters with a number, those for no team here and those that break the rules: none but of a peer
  // that is mad. Credit alone may come after its team has gone.
  std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }
  std::uint64_t unknown() const { return unknown_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Header {
    LetterAddress address;
    LetterHead head;
  };
  static_assert(sizeof(Header) == 32);

  Letters::Filed file(Entry& entry, Rank from, const Header& header, std::span<const std::byte> content)
      FARSUM_REQUIRES(mutex_);
  LetterAddress address_of(const Entry& entry, std::uint32_t channel) const;
  bool try_credit(const Entry& entry, std::uint32_t channel) noexcept;
  bool try_credit_meanwhile(const Entry& entry, std::uint32_t channel) noexcept FARSUM_REQUIRES(mutex_);
  void come_back(Entry& entry, std::optional<std::uint32_t> owed_channel) noexcept;
  void retry(Entry& entry) noexcept FARSUM_REQUIRES(mutex_);
  void end_look(Entry& entry) FARSUM_REQUIRES(mutex_);
  void take_off_lists(Entry& entry) FARSUM_REQUIRES(mutex_);
  void count(std::atomic<std::uint64_t>& faults, const OddLetter& letter) noexcept;

  Transport& transport_;
  std::function<void()> rouse_;
  std::function<void(const OddLetter&)> tell_of_;
  // Relaxed: statistics, and hints whose readers come again.
  std::atomic<std::uint64_t> sent_{0}, unknown_{0}, refused_{0};
  std::atomic<bool> has_touched_{false}, has_refused_{false};
  ThreadMutex mutex_;  // nobody calls the transport with it
  std::condition_variable looks_ended_;
  Entry::Teams teams_ FARSUM_GUARDED_BY(mutex_);
  Entry* touched_ FARSUM_GUARDED_BY(mutex_) = nullptr;
  Entry* refused_entries_ FARSUM_GUARDED_BY(mutex_) = nullptr;
  bool is_retrying_ FARSUM_GUARDED_BY(mutex_) = false;
};

}  // namespace farsum
