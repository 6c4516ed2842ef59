// Every interleaving of ranks that lock all by bias, of one that wants a lock for itself, and of one that makes the
// next offer; and of the death of one of them between any two writes.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lockfree/lock_bias.hpp"
#include "lockfree/shared_lock.hpp"
#include "model_atomics.hpp"
#include "model_check.hpp"
#include "shared_lock_model.hpp"

namespace farsum::model {
namespace {

using Policy = ModelAtomics<>;

constexpr std::uint32_t ranks = 3;
constexpr std::uint32_t killable_id = 1;

template <class P>
struct OneLock {
  BasicSharedLockState<P> state;
  SlotOnItsLine<P> slots[ranks];
  std::uint32_t data;
};

enum class Begins : std::uint8_t { offered, ended };

template <class P, std::uint32_t locks, Begins begins>
struct Window {
  BasicLockBiasState<P> bias{};
  BasicLockBiasMember<P> members[ranks]{};
  OneLock<P> lock[locks]{};

  Window() {
    if (begins == Begins::ended) return;
    BasicLockBias<P>(bias, ranks).begin();
    for (OneLock<P>& one : lock) BasicLockQueue<P>(one.state.queue, one.state.slots(), ranks).allow_bias();
  }
};

// ---- what each rank does; a mutant leaves one thing out ----

enum class Slip : std::uint8_t {
  none,
  releases_without_looking,
  offers_over_a_waiter,
  offers_without_announcing,
};

template <class P, class Bias, Slip slip, class Window>
class Rank {
 public:
  Rank(Window& window, std::uint32_t id, bool deaths)
      : window_(window), who_(id, id - 1), bias_(window.bias, ranks), hears_of_deaths_(deaths) {}

  void lock_all_once() {
    ++round_;
    std::uint64_t epoch = 0;
    switch (bias_.hold(who_, epoch)) {
      case Bias::Hold::held:
        touch_all();
        if (bias_.release(who_.place, epoch) || slip == Slip::releases_without_looking) return;
        return leave_all();
      case Bias::Hold::revoked:
        leave_all();
        break;
      case Bias::Hold::not_offered:
        break;
    }
    hold_in_queues();
    touch_all();
    for (std::uint32_t i = 0; i < locks; ++i) require(view(i).unlock(who_, LockMode::shared), "not held at unlock");
  }

  void lock_one_once(std::uint32_t i) {
    take(i, LockMode::exclusive);
    forget_all_but({who_.id, i});
    touch<P>(window_.lock[i].data, LockMode::exclusive);
    require(view(i).unlock(who_, LockMode::exclusive), "not held at unlock");
  }

  void lock_last_once() { lock_one_once(locks - 1); }

  void lock_all_and_offer() {
    hold_in_queues();
    offer();
    for (std::uint32_t i = 0; i < locks; ++i) require(view(i).unlock(who_, LockMode::shared), "not held at unlock");
  }

 private:
  BasicSharedLock<P, ExplorerKnowsTheDead, Bias> view(std::uint32_t i) {
    return {window_.lock[i].state, ranks, ExplorerKnowsTheDead{}, bias_};
  }

  void touch_all() {
    for (std::uint32_t i = 0; i < locks; ++i) touch<P>(window_.lock[i].data, LockMode::shared);
  }
  void leave_all() {
    for (std::uint32_t i = 0; i < locks; ++i) (void)view(i).unlock(who_, LockMode::shared);
  }
  void hold_in_queues() {
    for (std::uint32_t i = 0; i < locks; ++i) take(i, LockMode::shared);
  }

  void offer() {
    std::optional<std::uint64_t> prepared;
    if (slip != Slip::offers_without_announcing) {
      prepared = bias_.prepare();
      if (!prepared) return;
    }
    bool all = true;
    for (std::uint32_t i = 0; i < locks; ++i) all = view(i).allow_bias(who_.id) && all;
    if (slip == Slip::offers_without_announcing) prepared = bias_.prepare();
    if (!prepared) return;
    if (all || slip == Slip::offers_over_a_waiter)
      (void)bias_.confirm(*prepared);
    else
      bias_.give_up(*prepared);
  }

  // With somebody killable the sleeps end in time-outs, after which the dead are looked for.
  void take(std::uint32_t i, LockMode mode) {
    const auto wait = [&](auto& grant) {
      forget_all_but({who_.id, round_, reinterpret_cast<std::uintptr_t>(grant.word()), hears_of_deaths_});
      if (!grant.fall_asleep()) {
        (void)grant.answer_call();
        return true;
      }
      const WaitResult result = grant.sleep(hears_of_deaths_ ? 1 : 0);
      (void)grant.answer_call();
      if (result == WaitResult::timed_out && ExplorerKnowsTheDead{}(killable_id)) hear_of_death();
      return true;
    };
    require(view(i).lock(who_, mode, wait) == LockResult::acquired, "not acquired");
  }
  void hear_of_death() {
    bias_.remove_dead(killable_id - 1);
    for (std::uint32_t i = 0; i < locks; ++i) view(i).remove_dead(killable_id, who_.id);
    hears_of_deaths_ = false;
  }

  static constexpr std::uint32_t locks = std::size(decltype(Window::lock){});

  Window& window_;
  Contender who_;
  Bias bias_;
  std::uint32_t round_ = 0;
  bool hears_of_deaths_;
};

enum class Part : std::uint8_t { locks_all, locks_all_twice, locks_first, locks_last, offers };

template <class P, class Bias, Slip slip, class Window>
void play(Window& window, std::uint32_t id, Part part, bool deaths) {
  Rank<P, Bias, slip, Window> rank(window, id, deaths);
  switch (part) {
    case Part::locks_all_twice:
      rank.lock_all_once();
      return rank.lock_all_once();
    case Part::locks_all:
      return rank.lock_all_once();
    case Part::locks_first:
      return rank.lock_one_once(0);
    case Part::locks_last:
      return rank.lock_last_once();
    case Part::offers:
      return rank.lock_all_and_offer();
  }
}

template <class P, class Window>
void require_free_in_the_end(Window& window) {
  BasicLockBias<P> bias(window.bias, ranks);
  const bool killed = Explorer::current->was_killed();
  bias.for_each_holder([&](Contender who) { require(killed && who.id == killable_id, "a living rank is named"); });
  if (killed) bias.remove_dead(killable_id - 1);
  for (OneLock<P>& lock : window.lock) {
    BasicSharedLock<P, ExplorerKnowsTheDead> view(lock.state, ranks, {}, bias);
    if (killed) view.remove_dead(killable_id, 9);
    view.for_each_holder([&](std::uint32_t, LockMode) { require(false, "a living holder is left"); });
    require(view.try_lock(9, LockMode::exclusive), "not free in the end");
  }
}

struct Setting {
  std::size_t max_preemptions = ~std::size_t{0};
  std::size_t killable = no_thread;
};

template <Begins begins = Begins::offered, std::uint32_t locks = 1, class Bias = BasicLockBias<Policy>,
          Slip slip = Slip::none, class P = Policy>
Outcome each_plays(std::vector<Part> parts, Setting setting = {}) {
  using State = Window<P, locks, begins>;
  const bool deaths = setting.killable != no_thread;
  std::vector<std::function<void(State&)>> bodies;
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    bodies.emplace_back(
        [=, part = parts[i]](State& window) { play<P, Bias, slip, State>(window, i + 1, part, deaths); });
  }
  return explore<State>({.killable = setting.killable, .max_preemptions = setting.max_preemptions}, bodies,
                        require_free_in_the_end<P, State>);
}

// ---- mutants of the class ----

// The words of the bias are the only atomics of this size.
struct WritesWithoutBarrier : ModelAtomics<> {
  template <class T>
  using Atomic = ModelAtomic<T, sizeof(T) == 8 ? Mutation::exchange_is_a_store : Mutation::none>;
};

struct DoesNotLookAgain : BasicLockBias<Policy> {
  using BasicLockBias::BasicLockBias;
  Hold hold(Contender who, std::uint64_t& epoch) {
    epoch = state_->word.load(std::memory_order_relaxed);
    if (state_of(epoch) != offered) return Hold::not_offered;
    member(who.place).holder.exchange(word_of(who), std::memory_order_seq_cst);
    return Hold::held;
  }
};

struct LooksAtHoldersFirst : BasicLockBias<Policy> {
  using BasicLockBias::BasicLockBias;
  void end() {}
  template <class F>
  void for_each_holder(F&& f) {
    BasicLockBias::for_each_holder(f);
    BasicLockBias::end();
  }
};

// Who made use of an offer that has been ended before is taken to have been entered then.
struct EntersNobodyTwice : BasicLockBias<Policy> {
  using BasicLockBias::BasicLockBias;
  void end() {
    ends_ = state_of(state_->word.load(std::memory_order_seq_cst)) != none;
    BasicLockBias::end();
  }
  template <class F>
  void for_each_holder(F&& f) {
    if (ends_) BasicLockBias::for_each_holder(f);
  }
  bool ends_ = false;
};

// ---- the checks ----

constexpr Part all = Part::locks_all;
constexpr Part twice = Part::locks_all_twice;
constexpr Part first = Part::locks_first;
constexpr Part last = Part::locks_last;
constexpr Part offers = Part::offers;

TEST(LockBiasModel, grants_no_exclusive_lock_over_one_who_locked_all) {
  expect_holds(each_plays({all, first}));
  expect_holds(each_plays({twice, first}, {3}));
  expect_holds(each_plays({all, first, first}, {1}));
  expect_holds(each_plays({all, all, first}, {1}));
}

TEST(LockBiasModel, ends_for_every_lock_of_the_window) {
  expect_holds(each_plays<Begins::offered, 2>({all, first, last}, {1}));
  expect_holds(each_plays<Begins::offered, 2>({twice, last}, {2}));
}

TEST(LockBiasModel, offers_anew_beside_those_that_lock_all_or_one) {
  expect_holds(each_plays<Begins::ended>({twice, offers}, {2}));
  expect_holds(each_plays<Begins::ended>({offers, first, all}, {1}));
  expect_holds(each_plays<Begins::ended>({offers, first, offers}, {1}));
  expect_holds(each_plays<Begins::offered>({twice, first, offers}, {1}));
  expect_holds(each_plays<Begins::ended, 2>({all, last, offers}, {1}));
}

TEST(LockBiasModel, survives_one_killed_who_holds_or_is_about_to) {
  expect_holds(each_plays({all, first}, {2, 0}));
  expect_holds(each_plays({all, first, all}, {0, 0}));
  expect_holds(each_plays<Begins::offered, 2>({all, last}, {1, 0}));
}

TEST(LockBiasModel, survives_one_killed_who_ends_it) {
  expect_holds(each_plays({first, all}, {2, 0}));
  expect_holds(each_plays({first, all, first}, {0, 0}));
}

TEST(LockBiasModel, survives_one_killed_who_makes_an_offer) {
  expect_holds(each_plays<Begins::ended>({offers, first}, {2, 0}));
  expect_holds(each_plays<Begins::ended>({offers, first, all}, {0, 0}));
}

TEST(LockBiasModel, catches_a_holder_that_does_not_look_again) {
  expect_caught(each_plays<Begins::offered, 1, DoesNotLookAgain>({all, first}), "race");
}

// The release of one who reads the offer before its word is seen to be clear stays unseen by who enters it.
TEST(LockBiasModel, catches_a_word_that_is_written_without_a_barrier) {
  using Bias = BasicLockBias<WritesWithoutBarrier>;
  expect_caught(each_plays<Begins::offered, 1, Bias, Slip::none, WritesWithoutBarrier>({all, first}), "deadlock");
}

// Whoever is read as a holder releases before the offer ends, and never hears that it was entered.
TEST(LockBiasModel, catches_words_that_are_read_before_the_offer_ends) {
  expect_caught(each_plays<Begins::offered, 1, LooksAtHoldersFirst>({all, first}), "deadlock");
}

TEST(LockBiasModel, catches_holders_who_are_entered_in_one_lock_only) {
  expect_caught(each_plays<Begins::offered, 2, EntersNobodyTwice>({all, first, last}, {2}), "race");
}

TEST(LockBiasModel, catches_a_release_that_does_not_look) {
  expect_caught(each_plays<Begins::offered, 1, BasicLockBias<Policy>, Slip::releases_without_looking>({all, first}),
                "deadlock");
}

TEST(LockBiasModel, catches_an_offer_over_a_waiter) {
  expect_caught(
      each_plays<Begins::ended, 1, BasicLockBias<Policy>, Slip::offers_over_a_waiter>({offers, first, all}, {2}),
      "race");
}

TEST(LockBiasModel, catches_an_offer_that_was_not_announced) {
  expect_caught(
      each_plays<Begins::ended, 1, BasicLockBias<Policy>, Slip::offers_without_announcing>({offers, first, all}, {2}),
      "race");
}

}  // namespace
}  // namespace farsum::model
