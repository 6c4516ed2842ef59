// How often each list of ranks has become a group, or was to: tells the groups of one list apart.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace farsum {

// Threads: the caller's lock. Lists go by a hash of 64 bits.
class GroupRounds {
 public:
  // So that the next so many new lists need no memory.
  void keep_room() {
    if (rounds_.capacity() - rounds_.size() < spare_room) rounds_.reserve(2 * rounds_.size() + 2 * spare_room);
  }
  bool has_room_for(std::uint64_t list) const {
    const auto found = place_of(list);
    return rounds_.size() < rounds_.capacity() || (found != rounds_.end() && found->list == list);
  }
  // How often the list has been told before. Where there is room for it.
  std::uint64_t next(std::uint64_t list) {
    auto found = rounds_.begin() + (place_of(list) - rounds_.cbegin());
    if (found == rounds_.end() || found->list != list) found = rounds_.insert(found, {list, 0});
    return found->told++;
  }

 private:
  static constexpr std::size_t spare_room = 16;

  struct Round {
    std::uint64_t list;
    std::uint64_t told;
  };
  std::vector<Round>::const_iterator place_of(std::uint64_t list) const {
    return std::lower_bound(rounds_.begin(), rounds_.end(), list,
                            [](const Round& round, std::uint64_t sought) { return round.list < sought; });
  }

  std::vector<Round> rounds_;  // by list
};

}  // namespace farsum
