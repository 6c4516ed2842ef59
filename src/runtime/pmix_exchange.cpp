#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/units.hpp"
#include "runtime/job_map.hpp"
#include "runtime/pmix.hpp"

namespace farsum {
namespace {

constexpr const char* card_key = "farsum.card";
constexpr Pmix::Patience patience_for_each{1000};

// The server knows who has published, also of those who have left since.
Status who_is_missing(Pmix& pmix, Pmix::Patience waited) {
  std::vector<Rank> missing;
  for (Rank rank = 0; rank < pmix.size(); ++rank) {
    if (pmix.look_up(rank, card_key, patience_for_each).empty()) missing.push_back(rank);
  }
  return {Code::peer_failed,
          fmt::format("farsum_init: {} of {} did not come to farsum_init within {} s (FARSUM_WIREUP_TIMEOUT)",
                      missing.empty() ? "some rank" : text_of_ranks(missing), pmix.size(),
                      std::chrono::duration<double>(waited).count())};
}

}  // namespace

Status exchange_through(Pmix& pmix, const void* mine, void* all, std::size_t bytes, Pmix::Patience patience) {
  if (Status status = pmix.publish(card_key, mine, bytes); !status.is_ok()) return status;
  if (Status status = pmix.fence(patience); !status.is_ok()) {
    return status.code() == Code::pending ? who_is_missing(pmix, patience) : std::move(status);
  }
  for (std::uint32_t rank = 0; rank < pmix.size(); ++rank) {
    const std::vector<std::byte> card = pmix.look_up(rank, card_key, patience);
    if (card.size() != bytes) {
      return {Code::system,
              fmt::format("farsum_init: the PMIx server has {} bytes of rank {} where {} belong; do all ranks run the "
                          "same build of Farsum?",
                          card.size(), rank, bytes)};
    }
    std::memcpy(static_cast<std::byte*>(all) + rank * bytes, card.data(), bytes);
  }
  return {};
}

}  // namespace farsum
