#include "window/epoch_table.hpp"

namespace farsum {
namespace {

constexpr EpochState any = 0;
constexpr auto no_question = nullptr;

}  // namespace

using namespace epoch_says;

// A lock of one target is no bit: its word says that it is held. The epoch of a fence includes every target, so that
// none can be locked in it; a fence in which nothing was issued makes way for every other epoch.
constexpr std::array<EpochRule, static_cast<std::size_t>(EpochCall::count)> epoch_table = {{
    // fence
    {{{{epoch_freed, any, no_question, being_freed},
       {epoch_all_locked, any, no_question, lock_held},
       {any, epoch_fence, &EpochFacts::holds_locks, lock_held},
       {epoch_started, any, no_question, start_open},
       {epoch_exposed, any, no_question, post_open}}},
     any,
     any},
    // start
    {{{{epoch_freed, any, no_question, being_freed},
       {epoch_started, any, no_question, "already started; call farsum_complete first"},
       {epoch_all_locked, any, no_question, lock_held},
       {any, epoch_fence, &EpochFacts::holds_locks, lock_held},
       {epoch_fence, any, &EpochFacts::was_fence_used, fence_used}}},
     epoch_fence,
     epoch_started},
    // complete
    {{{{any, epoch_started, no_question, "no farsum_start precedes it"}}}, epoch_started, any},
    // post
    {{{{epoch_freed, any, no_question, being_freed},
       {epoch_exposed, any, no_question, "already posted; call farsum_wait_exposure first"}}},
     any,
     epoch_exposed},
    // wait
    {{{{any, epoch_exposed, no_question, "no farsum_post precedes it"}}}, epoch_exposed, any},
    // lock: without a fence's epoch, and that of start is named below, only a lock's is left
    {{{{any, any, &EpochFacts::never_locked, never_locked},
       {epoch_all_locked, any, no_question, held_already},
       {any, epoch_fence | epoch_started, &EpochFacts::is_target_open, held_already},
       {epoch_started, any, no_question, start_open},
       {epoch_freed, any, no_question, being_freed},
       {epoch_fence, any, &EpochFacts::was_fence_used, fence_used}}},
     epoch_fence,
     any},
    // lock_all
    {{{{any, any, &EpochFacts::never_locked, never_locked},
       {epoch_all_locked, any, no_question, others_held},
       {any, epoch_fence, &EpochFacts::holds_locks, others_held},
       {epoch_started, any, no_question, start_open},
       {epoch_freed, any, no_question, being_freed},
       {epoch_fence, any, &EpochFacts::was_fence_used, fence_used}}},
     epoch_fence,
     epoch_all_locked},
    // unlock_all
    {{{{any, epoch_all_locked, no_question, "no farsum_lock_all precedes it"}}}, epoch_all_locked, any},
}};

const char* why_not(EpochCall call, EpochState state, const EpochFacts& facts) {
  for (const EpochCondition& condition : epoch_table[static_cast<std::size_t>(call)].conditions) {
    if (condition.why == nullptr) return nullptr;
    const bool concerns = (condition.if_any == 0 || (state & condition.if_any) != 0) && (state & condition.unless) == 0;
    if (concerns && (condition.question == nullptr || (facts.*condition.question)())) return condition.why;
  }
  return nullptr;
}

}  // namespace farsum
