// Carries the letters of one team between nodes by the process's LetterDesk, in slots of its own; what is longer than a
// slot goes by another post, as does what goes to a node that is no neighbour. A group's calls that nobody waits for
// have a team in each of their places, and one post for all of these. Owner: whoever owns the team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/group_places.hpp"
#include "base/status.hpp"
#include "base/units.hpp"
#include "collectives/letter_desk.hpp"
#include "collectives/team_post.hpp"
#include "os/event_count.hpp"

namespace farsum {

// A letter that tells which round it is of is found wherever it comes: the receiver asks both ways, and knows nothing
// of lengths.
//
// One thread at a time calls. Letters lie in memory of this process, for the rank that takes them files them, too.
class LetterPost final : public TeamPost {
 public:
  // Of letters that a node has sent, so many may wait at another. A broadcast's root finds a slot for each round that
  // it may be ahead and for the meeting behind them, though one less than half of the slots may be free untold
  // (Letters::owes_credit): so nobody waits for a slot who need not wait for a meeting.
  static constexpr std::uint32_t slots = 16;
  static_assert(slots - (slots / 2 - 1) >= TeamPost::most_rounds_ahead + 1);

  // What a team is for. A window's makes meetings alone, of which two letters of a node may wait at another, one of
  // them untold; and there may be many windows. A group's calls that nobody waits for are in several places, of which
  // each has slots of its own. In a place three letters of a node may wait at another: of a list in which no node ends
  // before all have begun, of the last piece of a broadcast behind it, and of the next such list. The broadcast's other
  // pieces are longer than a slot.
  enum class Use : std::uint8_t { group, window, carried };
  static constexpr std::uint32_t slots_of_window = 4;
  static_assert(slots_of_window - (slots_of_window / 2 - 1) >= 2);
  static constexpr std::uint32_t slots_of_carried = 8;
  static_assert(slots_of_carried - (slots_of_carried / 2 - 1) >= 3);

  // Slots for so many neighbours: those of a group the shorter the more there are, but never shorter than a meeting's
  // letter of few ranks, as a window's are. The same on all nodes, since all have as many.
  static Letters::Shape shape_of(std::uint32_t neighbours, Use use);

  // Of a rank that speaks for its node at such places, of several nodes. `others` carries what this does not; `events`
  // is notified when something has come, but for carried calls, with which whoever has served goes on right after. All
  // outlive it. The degree is that of a tree in which all nodes reduce, or 0.
  LetterPost(LetterDesk& desk, TeamPost& others, const GroupPlaces& places, Use use, EventCount& events,
             std::uint32_t reduce_degree = 0);
  ~LetterPost() override { desk_.remove(entry_); }
  LetterPost(const LetterPost&) = delete;
  LetterPost& operator=(const LetterPost&) = delete;

  // From here on letters may come, of the team, or of those that its carried calls have by place. Before any other of
  // its nodes can know that all have begun.
  void begin(std::uint64_t team) noexcept;
  // All nodes have begun: letters leave from here on. Until then `others` carries them, and for good where a
  // neighbour's road carries none.
  void open() noexcept { is_open_ = true; }
  // The longest letter that goes by the desk, if any does.
  std::optional<std::size_t> most_letter_bytes() const { return most_letter_bytes_; }

  bool try_send(Rank to, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                std::size_t& sent) override;
  bool take(Rank from, std::uint64_t team, std::uint64_t round,
            FunctionRef<void(std::span<const std::byte>)> use) override;
  bool take_awaits_answers() override { return std::exchange(awaits_answers_, false); }
  bool has_failed() const override { return others_.has_failed(); }
  Status failure(const char* doing) const override { return others_.failure(doing); }

 private:
  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };
  using Block = std::unique_ptr<std::byte[], Free>;

  class Entry final : public LetterDesk::Entry {
   public:
    // Null: nobody is to be woken.
    Entry(LetterNeighbours neighbours, std::byte* block, const Letters::Shape& shape, EventCount* events)
        : LetterDesk::Entry(std::move(neighbours), block, shape), events_(events) {}

   private:
    void look_again() noexcept override {
      if (events_ != nullptr) events_->notify_all();
    }

    EventCount* events_;
  };

  static Block make_block(const Letters::Shape& shape);

  LetterPost(LetterDesk& desk, TeamPost& others, LetterNeighbours neighbours, Use use, EventCount& events);
  bool goes_by_letter(std::size_t bytes) const {
    return is_open_ && most_letter_bytes_ && bytes <= *most_letter_bytes_;
  }
  std::uint32_t place_of(std::uint64_t team) const;

  LetterDesk& desk_;
  TeamPost& others_;
  Letters::Shape shape_;
  Block block_;
  Entry entry_;
  std::optional<std::size_t> most_letter_bytes_;
  std::vector<std::uint64_t> team_of_place_;
  bool is_open_ = false;
  bool awaits_answers_ = false;  // something has left by `others_`
};

}  // namespace farsum
