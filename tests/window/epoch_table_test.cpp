// Every call in every state with every answer to the facts, against the rules as the standard has them.
#include "window/epoch_table.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace farsum {
namespace {

struct KnownFacts final : EpochFacts {
  explicit KnownFacts(unsigned bits) : bits_(bits) {}
  bool never_locked() const override { return (bits_ & 1u) != 0; }
  bool holds_locks() const override { return (bits_ & 2u) != 0; }
  bool is_target_open() const override { return (bits_ & 4u) != 0; }
  bool was_fence_used() const override { return (bits_ & 8u) != 0; }

 private:
  unsigned bits_;
};

constexpr unsigned all_states = 32, all_facts = 16;

struct Open {
  explicit Open(EpochState state)
      : fence((state & epoch_fence) != 0),
        started((state & epoch_started) != 0),
        exposed((state & epoch_exposed) != 0),
        all_locked((state & epoch_all_locked) != 0),
        freed((state & epoch_freed) != 0) {}
  bool fence, started, exposed, all_locked, freed;
};

// Whether the call may be: written from what epochs mean, not from the table.
bool may_be(EpochCall call, const Open& open, const EpochFacts& facts) {
  const bool locks = open.all_locked || (!open.fence && facts.holds_locks());
  const bool fence_stays = open.fence && facts.was_fence_used();
  switch (call) {
    case EpochCall::fence:
      return !open.freed && !locks && !open.started && !open.exposed;
    case EpochCall::start:
      return !open.freed && !locks && !open.started && !fence_stays;
    case EpochCall::post:
      return !open.freed && !open.exposed;
    case EpochCall::complete:
      return open.started;
    case EpochCall::wait:
      return open.exposed;
    case EpochCall::lock:
      return !facts.never_locked() && !open.all_locked && !open.started && !open.freed && !fence_stays &&
             (open.fence || !facts.is_target_open());
    case EpochCall::lock_all:
      return !facts.never_locked() && !locks && !open.started && !open.freed && !fence_stays;
    case EpochCall::unlock_all:
      return open.all_locked;
    case EpochCall::count:
      break;
  }
  return false;
}

template <class F>
void for_each_case(F&& f) {
  for (unsigned call = 0; call < static_cast<unsigned>(EpochCall::count); ++call)
    for (unsigned state = 0; state < all_states; ++state)
      for (unsigned facts = 0; facts < all_facts; ++facts)
        f(static_cast<EpochCall>(call), static_cast<EpochState>(state), KnownFacts(facts));
}

TEST(EpochTable, lets_begin_what_the_rules_allow_and_nothing_else) {
  for_each_case([](EpochCall call, EpochState state, const KnownFacts& facts) {
    EXPECT_EQ(why_not(call, state, facts) == nullptr, may_be(call, Open(state), facts))
        << "call " << static_cast<int>(call) << " in state " << static_cast<int>(state);
  });
}

TEST(EpochTable, changes_its_own_bit_and_that_of_a_fence_that_made_way) {
  for (unsigned state = 0; state < all_states; ++state) {
    const auto of = [state](EpochCall call) { return after(call, static_cast<EpochState>(state)); };
    const unsigned without_fence = state & ~unsigned{epoch_fence};
    EXPECT_EQ(of(EpochCall::fence), state) << "set_fence does it";
    EXPECT_EQ(of(EpochCall::start), without_fence | epoch_started);
    EXPECT_EQ(of(EpochCall::complete), state & ~unsigned{epoch_started});
    EXPECT_EQ(of(EpochCall::post), state | epoch_exposed);
    EXPECT_EQ(of(EpochCall::wait), state & ~unsigned{epoch_exposed});
    EXPECT_EQ(of(EpochCall::lock), without_fence);
    EXPECT_EQ(of(EpochCall::lock_all), without_fence | epoch_all_locked);
    EXPECT_EQ(of(EpochCall::unlock_all), state & ~unsigned{epoch_all_locked});
  }
}

// From nothing open no order of calls leads to two access epochs that exclude each other.
TEST(EpochTable, never_has_two_access_epochs) {
  bool reached[all_states] = {true};
  for (bool grows = true; grows;) {
    grows = false;
    for_each_case([&](EpochCall call, EpochState state, const KnownFacts& facts) {
      if (!reached[state] || why_not(call, state, facts) != nullptr) return;
      const unsigned next = after(call, state);
      // A fence opens its epoch or ends it.
      for (const unsigned one : {next, call == EpochCall::fence ? next ^ epoch_fence : next}) {
        grows = grows || !reached[one];
        reached[one] = true;
      }
    });
  }
  for (unsigned state = 0; state < all_states; ++state) {
    const Open open(static_cast<EpochState>(state));
    const int access = (open.fence ? 1 : 0) + (open.started ? 1 : 0) + (open.all_locked ? 1 : 0);
    EXPECT_EQ(reached[state], access <= 1 && !open.freed) << "state " << state;
  }
}

TEST(EpochTable, names_what_is_in_the_way_in_the_order_of_the_program) {
  const KnownFacts none(0), locked(2), target_open(4), used(8);
  const auto says = [](EpochCall call, unsigned state, const EpochFacts& facts) {
    const char* const why = why_not(call, static_cast<EpochState>(state), facts);
    return std::string(why == nullptr ? "" : why);
  };
  EXPECT_EQ(says(EpochCall::lock, epoch_started, none), epoch_says::start_open);
  EXPECT_EQ(says(EpochCall::lock, 0, target_open), epoch_says::held_already);
  EXPECT_EQ(says(EpochCall::lock, epoch_started, target_open), epoch_says::start_open);
  EXPECT_EQ(says(EpochCall::lock, epoch_fence, used), epoch_says::fence_used);
  EXPECT_EQ(says(EpochCall::lock_all, 0, locked), epoch_says::others_held);
  EXPECT_EQ(says(EpochCall::fence, 0, locked), epoch_says::lock_held);
  EXPECT_EQ(says(EpochCall::fence, epoch_fence, locked), "");
  EXPECT_EQ(says(EpochCall::fence, epoch_started | epoch_exposed, none), epoch_says::start_open);
  EXPECT_EQ(says(EpochCall::fence, epoch_exposed, none), epoch_says::post_open);
  EXPECT_EQ(says(EpochCall::start, epoch_freed | epoch_started, none), epoch_says::being_freed);
}

}  // namespace
}  // namespace farsum
