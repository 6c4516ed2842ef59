// What the agent of a rank comes back for by the clock: whether it is time for it, and how long the agent may sleep. It
// decides and does nothing; it has no clock and no lock. docs/internals/agenda.md has a table of its entries.
//
// Owner: the agent's chores, in its thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace farsum {

enum class Lateness : std::uint8_t {
  allowed,    // each turn does it, so its time begins anew with the end of each: no clock is read for it
  forbidden,  // it keeps its time, however many turns come between
};

// A time of 0: whoever sets the entry says when.
struct AgendaEntry {
  std::string_view name;
  std::uint64_t after_ns;
  Lateness lateness;
};

// All that the agent comes back for, a line each.
inline constexpr auto agenda_entries = std::to_array<AgendaEntry>({
    {"unfinished requests", 50'000, Lateness::allowed},   // a stripe was busy: others run meanwhile
    {"awaited grants", 100'000'000, Lateness::allowed},   // who grants rings, unless it dies in between
    {"carried calls", 1, Lateness::allowed},              // what is folded in slices: others are served meanwhile
    {"carried letters", 100'000, Lateness::allowed},      // of collectives that nobody waits for: nobody tells of room
    {"refused letters", 1'000'000, Lateness::forbidden},  // nobody is told when there is memory
    {"kept back", 500'000, Lateness::forbidden},          // it stays for a later message, twice as long at most
    {"network", 0, Lateness::forbidden},                  // a deadline of its own
});

// One of those entries, by its name. A name that the table does not have, or has with the other lateness, does not
// compile.
template <Lateness L>
class EntryOf {
 public:
  // Not explicit: calls read better with the name alone.
  consteval EntryOf(const char* name) : place_(place_of(name)) {}

  constexpr std::size_t place() const { return place_; }

 private:
  static consteval std::size_t place_of(std::string_view name) {
    std::size_t place = 0;
    while (agenda_entries.at(place).name != name) ++place;
    if (agenda_entries.at(place).lateness != L) throw "it is of the other kind";
    return place;
  }

  std::size_t place_;
};
using EachTurnEntry = EntryOf<Lateness::allowed>;
using TimedEntry = EntryOf<Lateness::forbidden>;

// A bit for each that keeps its time.
inline constexpr std::uint32_t agenda_in_time = [] {
  std::uint32_t bits = 0;
  for (std::size_t place = 0; place < agenda_entries.size(); ++place)
    if (agenda_entries[place].lateness == Lateness::forbidden) bits |= std::uint32_t{1} << place;
  return bits;
}();

class Agenda {
 public:
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  // Whether it is to be looked at again. Said in each turn.
  void come_back_for(EachTurnEntry entry, bool is_wanted) {
    set_ = (set_ & ~bit_of(entry.place())) | std::uint32_t{is_wanted} << entry.place();
  }

  // It is due its time from now, unless it has a time.
  void come_back_for(TimedEntry entry, std::uint64_t now_ns) {
    if (!is_set(entry)) come_back_at(entry, now_ns + agenda_entries[entry.place()].after_ns);
  }
  // It is due then and not when it was before; `never` strikes it off.
  void come_back_at(TimedEntry entry, std::uint64_t at_ns) {
    strike(entry);
    if (at_ns == never) return;
    set_ |= bit_of(entry.place());
    at_ns_[entry.place()] = at_ns;
  }
  void strike(TimedEntry entry) { set_ &= ~bit_of(entry.place()); }
  // Whether it is due; then it is struck off, for it is done now.
  bool take_due(TimedEntry entry, std::uint64_t now_ns) {
    const bool is_due = is_set(entry) && at_ns_[entry.place()] <= now_ns;
    if (is_due) strike(entry);
    return is_due;
  }

  // Whether take_due() or sleep_ns() need the time; else any will do.
  bool needs_clock() const { return (set_ & agenda_in_time) != 0; }

  // How long the agent may sleep at most when its turn ends now; 0: until something happens.
  std::uint64_t sleep_ns(std::uint64_t now_ns) const {
    std::uint64_t sleep_ns = never;
    for (std::uint32_t left = set_; left != 0; left &= left - 1)
      sleep_ns = std::min(sleep_ns, wait_ns(static_cast<std::size_t>(std::countr_zero(left)), now_ns));
    return sleep_ns == never ? 0 : sleep_ns;
  }

 private:
  static constexpr std::uint32_t bit_of(std::size_t place) { return std::uint32_t{1} << place; }
  static_assert(agenda_entries.size() <= 32);

  bool is_set(TimedEntry entry) const { return (set_ & bit_of(entry.place())) != 0; }
  // One nanosecond at least, for 0 means for ever.
  std::uint64_t wait_ns(std::size_t place, std::uint64_t now_ns) const {
    if ((bit_of(place) & agenda_in_time) == 0) return agenda_entries[place].after_ns;
    return at_ns_[place] > now_ns ? at_ns_[place] - now_ns : 1;
  }

  std::uint32_t set_ = 0;                                     // the entries that there are at the moment
  std::array<std::uint64_t, agenda_entries.size()> at_ns_{};  // of those that keep their time
};

}  // namespace farsum
