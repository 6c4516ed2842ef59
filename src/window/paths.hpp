// Which path each kind of operation takes on a stretch of memory, and why. A pure function of what is known when the
// window is made; nothing here is asked per operation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/settings.hpp"
#include "cost/model.hpp"

namespace farsum {

enum class Path : std::uint8_t { direct = 0, attach = 1, caller = 2, owner = 3, aggregated = 4, offload = 5 };
inline constexpr std::size_t path_count = 6;

const char* name_of(Path path);

struct Reach {
  bool mapped = false;  // addressable here
  bool attach_allowed = false;
  bool atomics_only = false;        // CPU atomics only
  bool mixed_locks = false;         // not all of it is under the same locks
  bool leases = false;              // the owner's agent grants leases: see variants/leases/leased_update.hpp
  std::string_view attach_refusal;  // where not allowed
  std::string_view not_mapped_because;
};

struct PathChoiceResult {
  Path bulk = Path::owner;    // put, get, accumulates of many elements
  Path atomic = Path::owner;  // single elements
};

// What several paths could do is the cost model's to choose, by its thresholds.
PathChoiceResult choose_paths(PathChoice forced, const Reach& reach, const cost::Thresholds& model = {});
// The same choice in words, which are made for those who ask.
std::string explain_choice(PathChoice forced, const Reach& reach, const cost::Thresholds& model = {});

}  // namespace farsum
