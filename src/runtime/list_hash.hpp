// What names the meetings of ranks that share nothing but their list: a hash of that, of how often it came before, and
// of what they meet for. Owner: runtime.
#pragma once

#include <cstdint>

namespace farsum {

// FNV-1a over words.
class ListHash {
 public:
  enum Purpose : std::uint64_t { of_list, of_team, of_making, of_numbered_team, of_numbered_making };

  // The purpose is a word of its own: were it combined with the first rank, that of one list could make up for it.
  explicit ListHash(Purpose purpose) { add(purpose); }
  void add(std::uint64_t word) { value_ = (value_ ^ word) * 1099511628211ULL; }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037ULL;
};

}  // namespace farsum
