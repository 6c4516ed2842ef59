// The reasons why memory may not be promoted or turned back now. Each function gives a sentence part, empty if it finds
// none; they change nothing.
#pragma once

#include <string>

#include "os/memory_map.hpp"
#include "promotion/page_move.hpp"
#include "promotion/promotion.hpp"

namespace farsum::os {

// All reasons that are cheap to look for.
[[nodiscard]] std::string refuse_pages(const Stretch& pages, const PromotionRules& rules);

// Those that lie in properties of the map.
[[nodiscard]] std::string refuse_flags(const SpecialFlags& flags);

// A thread of the program besides the caller, 0 if there is none: its stores between copy and exchange would be lost.
[[nodiscard]] pid_t other_thread(const PromotionRules& rules);

// The same as a reason, `why` they cannot be held.
[[nodiscard]] std::string refuse_threads(pid_t thread, const std::string& why);

// Other threads where the rules forbid to hold them.
[[nodiscard]] std::string refuse_threads(const PromotionRules& rules);

// Devices, rings and native asynchronous I/O keep physical pages: they would go on reading and writing the old ones.
[[nodiscard]] std::string refuse_page_holders(const std::vector<Map>& maps);

}  // namespace farsum::os
