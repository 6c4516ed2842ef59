// Every interleaving of two members that make two calls in one place, with an agent that folds whatever call it finds:
// each slice is folded once, from what was brought to its call, before the call ends, and nobody writes to what another
// one reads.
#include "lockfree/call_place.hpp"

#include "model_atomics.hpp"
#include "model_check.hpp"

namespace farsum::model {
namespace {

constexpr std::uint32_t members = 2;
constexpr std::uint64_t calls = 2;
constexpr std::uint64_t most_slices = 2;

// How a place went wrong once: slices are counted up, to a number in another word.
template <class Policy>
class CountingUp : public BasicCallPlace<Policy> {
 public:
  using Slice = typename BasicCallPlace<Policy>::Slice;
  static constexpr unsigned bits = BasicCallPlace<Policy>::slice_bits;

  void offer(std::uint64_t call, std::uint64_t slices) {
    slices_.store(slices, std::memory_order_relaxed);
    folded_.store(0, std::memory_order_relaxed);
    taken_.store((call + 1) << bits, std::memory_order_release);
  }
  std::optional<Slice> take_slice() {
    const std::uint64_t tag = taken_.load(std::memory_order_acquire) >> bits;
    if (tag == 0) return std::nullopt;
    return take_slice(tag - 1);
  }
  std::optional<Slice> take_slice(std::uint64_t of_call) {
    constexpr std::uint64_t of_slice = (std::uint64_t{1} << bits) - 1;
    std::uint64_t seen = taken_.load(std::memory_order_acquire);
    do {
      if (seen >> bits != of_call + 1 || (seen & of_slice) >= slices_.load(std::memory_order_relaxed))
        return std::nullopt;
    } while (!taken_.compare_exchange_strong(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_acquire));
    return Slice{of_call, seen & of_slice};
  }
  bool end_slice() {
    return folded_.fetch_add(1, std::memory_order_acq_rel) + 1 == slices_.load(std::memory_order_relaxed);
  }

 private:
  typename Policy::template Atomic<std::uint64_t> slices_{}, folded_{}, taken_{};
};

enum class Fault : std::uint8_t {
  none,
  ends_a_slice_before_it_folds,
  goes_before_it_reads,
  comes_before_it_brings,
};

// Slices of each call.
struct Plan {
  std::uint64_t slices[calls] = {1, 1};
  Fault fault = Fault::none;
};

template <class Policy, template <class> class Place>
struct Shared {
  Place<Policy> place;
  std::uint64_t brought[members];
  std::uint64_t answer[most_slices];
};

template <class Policy, template <class> class Place>
class Folder {
 public:
  using State = Shared<Policy, Place>;
  Folder(State& state, const Plan& plan) : state_(state), plan_(plan) {}

  void be_member(std::uint32_t me) {
    for (std::uint64_t call = 0; call < calls; ++call) {
      forget_all_but({me, call});
      while (!state_.place.is_open(call)) Policy::pause();
      if (plan_.fault != Fault::comes_before_it_brings) bring(me, call);
      const bool is_last = state_.place.come(members);
      if (plan_.fault == Fault::comes_before_it_brings) bring(me, call);
      if (is_last) begin(call);
      for (;;) {
        forget_all_but({me, call});
        if (fold(state_.place.take_slice(call))) continue;
        // A pause ends by what changes after the last look.
        if (state_.place.has_ended(call)) break;
        Policy::pause();
      }
      if (plan_.fault != Fault::goes_before_it_reads) read(call);
      const bool is_last_to_go = state_.place.go(members);
      if (plan_.fault == Fault::goes_before_it_reads) read(call);
      if (is_last_to_go) state_.place.open_next();
    }
  }
  void be_agent() {
    for (;;) {
      forget_all_but({});
      if (fold(state_.place.take_slice())) continue;
      if (state_.place.is_open(calls)) return;
      Policy::pause();
    }
  }

 private:
  void bring(std::uint32_t me, std::uint64_t call) {
    Policy::writes(&state_.brought[me], sizeof state_.brought[me]);
    state_.brought[me] = call + 1;
  }
  void begin(std::uint64_t call) {
    state_.place.offer(call, plan_.slices[call]);
    if (plan_.slices[call] == 0) state_.place.end(call);
  }
  template <class Slice>
  bool fold(const std::optional<Slice>& slice) {
    if (!slice) return false;
    bool is_last = false;
    if (plan_.fault == Fault::ends_a_slice_before_it_folds) is_last = state_.place.end_slice();
    Policy::reads(state_.brought, sizeof state_.brought);
    for (const std::uint64_t brought : state_.brought) require(brought == slice->call + 1, "it is of another call");
    require(slice->index < plan_.slices[slice->call], "there is no such slice");
    Policy::writes(&state_.answer[slice->index], sizeof(std::uint64_t));
    require(state_.answer[slice->index] != slice->call + 1, "a slice is folded twice");
    state_.answer[slice->index] = slice->call + 1;
    if (plan_.fault != Fault::ends_a_slice_before_it_folds) is_last = state_.place.end_slice();
    if (is_last) state_.place.end(slice->call);
    return true;
  }
  void read(std::uint64_t call) {
    for (std::uint64_t i = 0; i < plan_.slices[call]; ++i) {
      Policy::reads(&state_.answer[i], sizeof state_.answer[i]);
      require(state_.answer[i] == call + 1, "a call ends before all is folded");
    }
    Policy::reads(state_.brought, sizeof state_.brought);
  }

  State& state_;
  const Plan& plan_;
};

template <Mutation M = Mutation::none, template <class> class Place = BasicCallPlace>
Outcome all_fold(const Plan& plan) {
  using State = Shared<ModelAtomics<M>, Place>;
  using Who = Folder<ModelAtomics<M>, Place>;
  return explore<State>(
      {.max_preemptions = 2},
      {[&plan](State& s) { Who(s, plan).be_member(0); }, [&plan](State& s) { Who(s, plan).be_member(1); },
       [&plan](State& s) { Who(s, plan).be_agent(); }},
      [](State& s) { require(s.place.is_open(calls), "a call has not ended"); });
}

// Takes seconds: the explorer goes through all its states.
TEST(CallPlaceModel, folds_each_slice_once_and_of_its_own_call) {
  expect_holds(all_fold({.slices = {1, 1}}));
  expect_holds(all_fold({.slices = {1, 2}}));
  expect_holds(all_fold({.slices = {2, 1}}));
  expect_holds(all_fold({.slices = {2, 2}}));
}

TEST(CallPlaceModel, ends_calls_that_have_nothing_to_fold) {
  expect_holds(all_fold({.slices = {0, 2}}));
  expect_holds(all_fold({.slices = {1, 0}}));
}

TEST(CallPlaceModel, catches_slices_that_are_counted_up_to_a_number_in_another_word) {
  EXPECT_NE((all_fold<Mutation::none, CountingUp>({.slices = {1, 2}}).failure), "");
  EXPECT_NE((all_fold<Mutation::none, CountingUp>({.slices = {0, 1}}).failure), "");
}

TEST(CallPlaceModel, catches_who_ends_a_slice_before_it_folds) {
  EXPECT_NE(all_fold({.slices = {2, 2}, .fault = Fault::ends_a_slice_before_it_folds}).failure, "");
}

TEST(CallPlaceModel, catches_who_goes_before_it_reads) {
  EXPECT_NE(all_fold({.fault = Fault::goes_before_it_reads}).failure, "");
}

TEST(CallPlaceModel, catches_who_comes_before_it_brings) {
  EXPECT_NE(all_fold({.fault = Fault::comes_before_it_brings}).failure, "");
}

TEST(CallPlaceModel, catches_a_slice_that_is_taken_by_a_plain_store) {
  EXPECT_NE(all_fold<Mutation::compare_exchange_is_torn>({.slices = {2, 2}}).failure, "");
}

TEST(CallPlaceModel, catches_a_release_that_orders_nothing) {
  EXPECT_NE(all_fold<Mutation::release_is_relaxed>({.slices = {2, 2}}).failure, "");
}

}  // namespace
}  // namespace farsum::model
