// The reasons why memory may not be promoted or turned back now. Each function gives a sentence part, empty if it finds
// none; they change nothing.
#pragma once

#include <string>

#include "os/memory_map.hpp"
#include "os/page_move.hpp"
#include "os/promotion.hpp"

namespace farsum::os {

// All reasons that are cheap to look for.
[[nodiscard]] std::string refuse_pages(const Stretch& pages, const PromotionRules& rules);

// Those that lie in properties of the map.
[[nodiscard]] std::string refuse_flags(const SpecialFlags& flags);

// Other threads that run: their stores between copy and exchange would be lost.
[[nodiscard]] std::string refuse_threads(const PromotionRules& rules);

// Devices, rings and native asynchronous I/O keep physical pages: they would go on reading and writing the old ones.
[[nodiscard]] std::string refuse_page_holders(const std::vector<Map>& maps);

}  // namespace farsum::os
