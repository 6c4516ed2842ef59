// Windows' memory that moves into the node segment, and turns back: never while the agent serves it. It says why memory
// does not move, keeps what could not be turned back yet, and knows no window. How pages move: src/promotion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "base/thread_mutex.hpp"
#include "promotion/promotion.hpp"
#include "protocol/exposure.hpp"
#include "runtime/agent_side.hpp"
#include "runtime/own_node.hpp"
#include "runtime/promotion_balance.hpp"
#include "runtime/promotion_retries.hpp"
#include "runtime/window_wish.hpp"

namespace farsum {

class WindowPromotions {
 public:
  struct Parts {
    OwnNode& node;
    ExposureTable& exposures;
    AgentSide& agent;
    const Settings& settings;
    os::PromotionRegistry& registry;
  };
  explicit WindowPromotions(const Parts& parts) : parts_(parts) {}

  // What is known without a look at the memory of a window with these promises, so many of whose ranks are here; empty
  // where it may be promoted.
  std::string why_not(const WindowWish& wish, std::uint32_t promises, std::size_t members_here) const;
  // Where memory may not move it is promoted if another window's promotion has it already.
  enum class Moves : std::uint8_t { allowed, too_dear };
  Moves ask_balance();
  // Promotes it, or says why not and returns none. None of the window's ranks runs another runtime. Counted in the
  // balance either way.
  os::Promotion promote(const WindowWish& wish, Moves moves, std::string& refusal);
  // What others have done to memory that is counted so was worth it.
  void spared(std::uint64_t worth_ns);
  // A window of that promotion goes; it is empty afterwards. Turns back what no window exposes any more; the rest waits
  // for the next promoted window to go. Peers have stopped using the windows gone.
  void turn_back(os::Promotion& promotion);

  // Tries once more what could not be turned back: now and then while windows are freed, and at the end.
  void retry_after_free();
  void retry_at_end();

 private:
  os::PromotionRules rules() const;
  os::Promotion move(const WindowWish& wish, MoveCost& cost, std::string& refusal);
  void settle();
  void retry(const os::PromotionRules& rules);
  void discard(const os::ReleaseOutcome& outcome);

  Parts parts_;
  ThreadMutex balance_mutex_;
  PromotionBalance balance_ FARSUM_GUARDED_BY(balance_mutex_);
  // Guarded by a pause of the exposures, as what follows.
  std::vector<os::Promotion> kept_;  // of windows that are gone, over memory that others still expose
  std::size_t of_windows_ = 0;
  ThreadMutex retries_mutex_;
  PromotionRetries retries_ FARSUM_GUARDED_BY(retries_mutex_);  // most frees are not worth a pause
};

}  // namespace farsum
