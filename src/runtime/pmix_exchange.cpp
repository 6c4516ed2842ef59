#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/units.hpp"
#include "liveness/job_map.hpp"
#include "runtime/pmix.hpp"

namespace farsum {
namespace {

constexpr Pmix::Patience patience_for_each{500};
constexpr std::size_t most_named = 4;  // each is waited for

// The server knows who has published, also of those who have left since.
Status who_is_missing(Pmix& pmix, const std::string& key, Pmix::Patience waited) {
  std::vector<Rank> missing;
  Rank rank = 0;
  for (; rank < pmix.size() && missing.size() < most_named; ++rank) {
    if (pmix.look_up(rank, key, patience_for_each).empty()) missing.push_back(rank);
  }
  const char* const perhaps = !missing.empty()
                                  ? ""
                                  : ", though the launcher's PMIx server has something of each, perhaps of a "
                                    "program before; or the server has lost a fence";
  return {Code::peer_failed,
          fmt::format("farsum_init: {}{} of {} did not come to farsum_init within {} s (FARSUM_WIREUP_TIMEOUT){}",
                      missing.empty() ? "some rank" : text_of_ranks(missing),
                      rank < pmix.size() ? " and perhaps others" : "", pmix.size(),
                      std::chrono::duration<double>(waited).count(), perhaps)};
}

}  // namespace

// What was published stays: each round has a key of its own.
Status PmixExchange::gather(const void* mine, void* all, std::size_t bytes) {
  Pmix& pmix = *pmix_;
  const std::string key = fmt::format("farsum.card.{}", round_++);
  if (Status status = pmix.publish(key, mine, bytes); !status.is_ok()) return status;
  if (Status status = pmix.fence(patience_); !status.is_ok()) {
    return status.code() == Code::pending ? who_is_missing(pmix, key, patience_) : std::move(status);
  }
  for (std::uint32_t rank = 0; rank < pmix.size(); ++rank) {
    const std::vector<std::byte> card = pmix.look_up(rank, key, patience_);
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
