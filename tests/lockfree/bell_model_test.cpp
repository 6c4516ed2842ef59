// Every interleaving of what ends an agent's sleep with the agent's own steps: the code of lockfree/bell.hpp that
// ships, over descriptors of the model's.
#include "lockfree/bell.hpp"

#include "model_atomics.hpp"
#include "model_check.hpp"

namespace farsum::model {
namespace {

// ---- what the bell sleeps on ----

// What can come. The first is the doorbell's own.
constexpr std::uint32_t own = 1;
constexpr std::uint32_t request = 2;
constexpr std::uint32_t reply = 4;
constexpr std::uint32_t card = 8;  // of a source that is added later

// As a network has them: one tells of what comes only if it was armed since it told last. Each step is a system call,
// and so whole and a barrier.
class ModelDescriptors {
 public:
  // What a bell must see once it knows of a network: plain data, on which the model finds races.
  void open() { opened_ = 1; }
  void add(std::uint32_t source) {
    step([=](Kernel& k) { k.sources |= source; });
  }

  bool arm() { return arm_those(request | card); }
  bool arm_replies() { return arm_those(reply); }
  WaitEnd wait(bool watches, std::uint64_t timeout_ns) {
    require(opened_ == 1, "a sleep on a network that is not there");
    const bool of_watch = watches && has_deadline;
    for (;;) {
      const Kernel seen = step([](Kernel&) {});
      const std::uint32_t waited = own | (seen.sources & (watches ? reply | request | card : request | card));
      if (const std::uint32_t ready = seen.readable & waited; ready != 0) {
        step([=](Kernel& k) { k.readable &= ~ready; });
        return (ready & reply) != 0 ? WaitEnd::watch_is_over : WaitEnd::something;
      }
      if (ModelAtomics<>::wait(word_, word_of(seen), of_watch ? 1 : timeout_ns) == WaitResult::timed_out)
        return of_watch ? WaitEnd::watch_is_over : WaitEnd::time_is_up;
    }
  }
  void wake() {
    ++wakes;
    step([](Kernel& k) { k.readable |= own; });
    ModelAtomics<>::wake(word_, 1);
  }

  // The network's.
  void bring(std::uint32_t what) {
    const Kernel before = step([=](Kernel& k) {
      k.there |= what;
      k.readable |= k.armed & what;
      k.armed &= ~what;
    });
    if ((before.armed & what) != 0) ModelAtomics<>::wake(word_, 1);
  }
  // The agent's, who serves.
  std::uint32_t take(std::uint32_t which) {
    return step([=](Kernel& k) { k.there &= ~which; }).there & which;
  }

  std::uint32_t wakes = 0;  // system calls of wake()
  bool has_deadline = false;

 protected:
  bool has(std::uint32_t which) {
    return (step([](Kernel&) {}).there & which) != 0;
  }
  void empty_own() {
    step([](Kernel& k) { k.readable &= ~own; });
  }
  bool arm_those(std::uint32_t which) {
    const Kernel before = step([=](Kernel& k) { k.armed |= k.sources & which; });
    return (before.sources & before.there & which) == 0;
  }

 private:
  // Sets of what can come, in one word.
  struct Kernel {
    std::uint32_t sources, there, armed, readable;
  };
  static std::uint32_t word_of(const Kernel& k) { return k.sources | k.there << 8 | k.armed << 16 | k.readable << 24; }
  static Kernel kernel_of(std::uint32_t word) { return {word & 0xff, word >> 8 & 0xff, word >> 16 & 0xff, word >> 24}; }

  // Returns what was before.
  template <class F>
  Kernel step(F&& f) {
    const auto changed = [&](std::uint32_t word) {
      Kernel kernel = kernel_of(word);
      f(kernel);
      return word_of(kernel);
    };
    Explorer* const explorer = Explorer::active();
    if (explorer == nullptr) {
      const std::uint32_t before = word_.raw();
      word_.raw() = changed(before);
      return kernel_of(before);
    }
    const std::uint64_t before =
        explorer->modify(&word_, sizeof word_, std::memory_order_seq_cst, std::memory_order_seq_cst, true,
                         [&](std::uint64_t old, std::uint64_t& value) {
                           value = changed(static_cast<std::uint32_t>(old));
                           return value != old;
                         });
    return kernel_of(static_cast<std::uint32_t>(before));
  }

  ModelGuarded<std::uint32_t> opened_{};
  ModelAtomic<std::uint32_t, Mutation::none> word_{};
};

// ---- who takes part ----

enum class Begins : std::uint8_t { without_network, with_network, watching };

template <Begins B, class Policy, class Descriptors, class Doorbell>
struct Shared {
  Doorbell doorbell{};
  Descriptors descriptors{};
  BasicBell<Policy, Descriptors, Doorbell> bell{doorbell, descriptors};
  ModelAtomics<>::Atomic<std::uint32_t> work{};     // of a sender, who rings
  ModelAtomics<>::Atomic<std::uint32_t> left[2]{};  // by threads, each of which asks for a look
  ModelGuarded<std::uint32_t> plainly_left{};
  std::uint32_t looks = 0;

  Shared() {
    if (B != Begins::without_network) add_network();
    if (B == Begins::watching) bell.watch();
  }
  void add_network() {
    descriptors.open();
    descriptors.add(request | reply);
    bell.add_network();
  }
};

// What the agent goes on until.
constexpr std::uint32_t rung = 1;
constexpr std::uint32_t served = 2;
constexpr std::uint32_t replied = 4;
constexpr std::uint32_t card_served = 8;
constexpr std::uint32_t first_look = 16;
constexpr std::uint32_t second_look = 32;
constexpr std::uint32_t plain_look = 64;
constexpr std::uint32_t any_look = 128;
constexpr std::uint32_t stopped = 256;
// It watches on after a look that found no reply.
constexpr std::uint32_t watches_on = 512;

// One turn of the agent, as progress/agent.cpp takes it; what it met.
template <class State>
std::uint32_t serve_once(State& state, std::uint32_t awaited) {
  std::uint32_t met = 0;
  state.doorbell.collect([&](std::uint32_t) { met |= state.work.load(std::memory_order_acquire) != 0 ? rung : 0U; });
  const std::uint32_t came = state.descriptors.take(request | card);
  if ((came & request) != 0) met |= served;
  if ((came & card) != 0) met |= card_served;
  if (state.bell.take_look()) {
    ++state.looks;
    met |= any_look;
    if (state.left[0].load(std::memory_order_relaxed) != 0) met |= first_look;
    if (state.left[1].load(std::memory_order_relaxed) != 0) met |= second_look;
    if (state.descriptors.take(reply) != 0) met |= replied;
    if ((awaited & plain_look) != 0 && state.plainly_left == 1) met |= plain_look;
    // As the chores do while there is something under way.
    if ((awaited & watches_on) != 0 && (met & replied) == 0) state.bell.watch();
  }
  if (state.bell.stopped()) met |= stopped;
  return met;
}

template <class State>
void serve(State& state, std::uint32_t awaited, bool sleeps) {
  std::uint32_t met = awaited & watches_on;
  for (;;) {
    forget_all_but({met});
    met |= serve_once(state, awaited) & awaited;
    if (met == awaited) break;
    if (sleeps) {
      require(state.bell.sleep(0), "a sleep without a time whose time was up");
    } else {
      state.bell.pass();
      ModelAtomics<>::pause();
    }
  }
  if ((awaited & stopped) != 0) require(state.bell.sleep(0), "a sleep after the stop found nothing to do");
}

// A check says what its state begins with and what its pieces are, so that each can be replaced by a wrong one.
template <Begins B, class Policy = ModelAtomics<>, class Descriptors = ModelDescriptors,
          class Doorbell = BasicDoorbell<Policy>>
struct Check {
  using State = Shared<B, Policy, Descriptors, Doorbell>;
  using Body = std::function<void(State&)>;
  using Bodies = std::vector<Body>;

  static void rings(State& state) {
    state.work.store(1, std::memory_order_release);
    state.doorbell.ring(0, [&] { state.descriptors.wake(); });
  }
  template <std::size_t Which>
  static void asks(State& state) {
    state.left[Which].store(1, std::memory_order_relaxed);
    state.bell.ask_for_look();
  }
  static void asks_plainly(State& state) {
    state.plainly_left = 1;
    state.bell.ask_for_look();
  }
  static void watches(State& state) { state.bell.watch(); }
  static void stops(State& state) { state.bell.stop(); }
  template <std::uint32_t What>
  static void brings(State& state) {
    state.descriptors.bring(What);
  }
  static void adds_network(State& state) {
    state.add_network();
    state.descriptors.bring(request);
  }
  static void adds_card(State& state) {
    state.descriptors.add(card);
    state.bell.add_network();
    state.descriptors.bring(card);
  }

  // The agent, until it has met all that it awaits, and the others.
  static Outcome agent_and(
      Bodies others, std::uint32_t awaited, const Body& finish = [](State&) {}) {
    return run(std::move(others), awaited, {.finds_races = false}, true, finish);
  }
  static Outcome run(
      Bodies others, std::uint32_t awaited, const Options& options, bool sleeps, const Body& finish = [](State&) {}) {
    Bodies bodies{[=](State& state) { serve(state, awaited, sleeps); }};
    bodies.insert(bodies.end(), others.begin(), others.end());
    return explore<State>(options, bodies, finish);
  }

  static Outcome network_comes() { return agent_and({adds_network, rings}, served | rung); }
  static Outcome request_comes() { return agent_and({brings<request>, rings}, served | rung); }
  static Outcome two_ask() { return agent_and({asks<0>, asks<1>}, first_look | second_look); }
  static Outcome two_ask_sparingly() {
    return agent_and({asks<0>, asks<1>}, first_look | second_look, [](State& state) {
      const std::uint32_t due = state.bell.take_look() ? 1 : 0;
      require(state.descriptors.wakes <= state.looks + due, "a needless wake-up: more of them than looks");
    });
  }
  static Outcome one_asks() { return agent_and({asks<0>}, first_look); }
  static Outcome reply_is_watched() { return agent_and({watches, brings<reply>}, replied); }
  static Outcome stop_comes() { return agent_and({stops}, stopped); }
  static Outcome left_is_seen() { return run({asks_plainly}, plain_look, {}, true); }
};

using Bare = Check<Begins::without_network>;
using Networked = Check<Begins::with_network>;
using Watching = Check<Begins::watching>;

// ---- wrong pieces ----

// What each mistake is made in: the doorbell, and what is slept on.
struct RousesNobody : BasicDoorbell<ModelAtomics<>> {
  template <class WakeDescriptor>
  bool rouse(WakeDescriptor&&) {
    return false;
  }
};

struct DoesNotLookAgain : BasicDoorbell<ModelAtomics<>> {
  template <class MaySleep>
  bool sleep(std::uint64_t timeout_ns, MaySleep&&) {
    return BasicDoorbell::sleep(timeout_ns);
  }
  template <class MaySleep, class Wait>
  bool sleep_on_descriptor(MaySleep&&, Wait&& wait) {
    return BasicDoorbell::sleep_on_descriptor([] { return true; }, wait);
  }
};

struct StopsWithoutDescriptor : BasicDoorbell<ModelAtomics<>> {
  template <class WakeDescriptor>
  void wake(WakeDescriptor&&) {
    BasicDoorbell::wake();
  }
};

struct EmptiesBeforeItSleeps : ModelDescriptors {
  WaitEnd wait(bool watches, std::uint64_t timeout_ns) {
    empty_own();
    return ModelDescriptors::wait(watches, timeout_ns);
  }
};

struct DoesNotArm : ModelDescriptors {
  bool arm() { return !has(request); }
};

struct TakesArmingForQuiet : ModelDescriptors {
  bool arm() {
    (void)ModelDescriptors::arm();
    return true;
  }
};

struct WatchesNoReplies : ModelDescriptors {
  bool arm_replies() { return true; }
};

// The atomics of the bell's own state alone, which its doorbell does not share.
enum class Slip : std::uint8_t { sets_by_a_store, takes_by_a_store, thinks_each_bit_new, orders_nothing };

template <class T, Slip S>
class SlippingAtomic : public ModelAtomic<T, Mutation::none> {
 public:
  T load(std::memory_order order) const { return ModelAtomic<T, Mutation::none>::load(weakened(order)); }
  T fetch_or(T value, std::memory_order order) {
    if (S == Slip::sets_by_a_store) return load_and_store([=](T old) { return old | value; });
    const T old = ModelAtomic<T, Mutation::none>::fetch_or(value, weakened(order));
    return S == Slip::thinks_each_bit_new ? T{0} : old;
  }
  T fetch_and(T value, std::memory_order order) {
    if (S == Slip::takes_by_a_store) return load_and_store([=](T old) { return old & value; });
    return ModelAtomic<T, Mutation::none>::fetch_and(value, weakened(order));
  }

 private:
  static std::memory_order weakened(std::memory_order order) {
    return S == Slip::orders_nothing ? std::memory_order_relaxed : order;
  }
  template <class F>
  T load_and_store(F&& f) {
    const T old = this->load(std::memory_order_acquire);
    this->store(f(old), std::memory_order_release);
    return old;
  }
};

template <Slip S>
struct Slipping : ModelAtomics<> {
  template <class T>
  using Atomic = SlippingAtomic<T, S>;
};

template <Begins B, Slip S>
using WithSlip = Check<B, Slipping<S>, ModelDescriptors, BasicDoorbell<ModelAtomics<>>>;
template <Begins B, class Doorbell>
using WithDoorbell = Check<B, ModelAtomics<>, ModelDescriptors, Doorbell>;
template <Begins B, class Descriptors>
using WithDescriptors = Check<B, ModelAtomics<>, Descriptors>;

constexpr Begins without = Begins::without_network;
constexpr Begins with = Begins::with_network;
constexpr Begins watching = Begins::watching;
constexpr Options three_switches{.max_preemptions = 3, .finds_races = false};

// ---- the checks ----

// In make test-all: the explorer goes through all its states.
TEST(BellModel, loses_neither_a_ring_nor_a_network_that_is_added) { expect_holds(Bare::network_comes()); }

TEST(BellModel, loses_neither_a_ring_nor_a_request) { expect_holds(Networked::request_comes()); }

TEST(BellModel, looks_at_what_is_added_to_sleep_on_later) {
  expect_holds(Networked::agent_and({Networked::adds_card}, card_served));
  expect_holds(Watching::agent_and({Watching::adds_card}, card_served));
  expect_holds(Networked::run({Networked::adds_card, Networked::rings}, card_served | rung, three_switches, true));
}

// In make test-all: the explorer goes through all its states.
TEST(BellModel, loses_no_look_that_is_asked_for_and_makes_no_needless_call) {
  expect_holds(Networked::one_asks());
  expect_holds(Networked::two_ask_sparingly());
  expect_holds(Watching::two_ask_sparingly());
}

TEST(BellModel, loses_no_look_beside_a_ring) {
  expect_holds(Networked::agent_and({Networked::asks<0>, Networked::rings}, first_look | rung));
}

TEST(BellModel, shows_who_looks_what_was_left_before) { expect_holds(Networked::left_is_seen()); }

TEST(BellModel, loses_no_reply_that_is_watched) {
  expect_holds(Networked::reply_is_watched());
  expect_holds(Watching::agent_and({Watching::brings<reply>, Watching::rings}, replied | rung));
}

TEST(BellModel, ends_a_watch_with_a_look_that_is_asked_for) {
  expect_holds(Networked::agent_and({Networked::watches, Networked::asks<0>}, first_look));
  expect_holds(Watching::agent_and({Watching::asks<0>, Watching::brings<reply>}, first_look | replied | watches_on));
}

TEST(BellModel, ends_a_watch_when_it_is_time) {
  using State = Watching::State;
  expect_holds(explore<State>({.finds_races = false}, {[](State& state) {
                                state.descriptors.has_deadline = true;
                                require(state.bell.sleep(0), "a watch that ended unnoticed");
                                require(state.bell.take_look(), "a watch that ended without a look");
                                require(!state.bell.take_look(), "a second look for one watch");
                                require(!state.bell.sleep(1), "a watch that has not ended");
                              }},
                              [](State&) {}));
}

TEST(BellModel, sleeps_through_replies_that_nobody_watches) {
  using State = Networked::State;
  expect_holds(explore<State>({.finds_races = false},
                              {[](State& state) {
                                 require(!state.bell.sleep(1), "a sleep that a reply has ended");
                                 require(!state.bell.take_look(), "a look that nobody asked for");
                               },
                               Networked::brings<reply>},
                              [](State& state) { require(state.descriptors.wakes == 0, "a needless wake-up"); }));
}

TEST(BellModel, makes_no_call_where_the_agent_does_not_sleep) {
  using State = Networked::State;
  expect_holds(explore<State>({.finds_races = false}, {Networked::asks<0>, Networked::asks<1>, Networked::watches},
                              [](State& state) {
                                require(state.descriptors.wakes == 0, "a needless wake-up");
                                require(state.bell.take_look(), "a look that was lost");
                                require(!state.bell.take_look(), "a look too many");
                              }));
}

TEST(BellModel, asks_nothing_of_an_agent_without_a_network) {
  using State = Bare::State;
  expect_holds(explore<State>(
      {.finds_races = false},
      {[](State& state) { require(!state.bell.sleep(1), "a sleep that was ended"); }, Bare::asks<0>, Bare::watches},
      [](State& state) { require(!state.bell.take_look(), "a look without a network"); }));
}

TEST(BellModel, has_an_agent_that_never_sleeps_look) {
  const Options options{.finds_races = false};
  expect_holds(Networked::run({Networked::watches, Networked::rings}, any_look | rung, options, false));
  expect_holds(Networked::run({Networked::asks<0>, Networked::asks<1>}, first_look | second_look, options, false));
}

// In make test-all: the explorer goes through all its states.
TEST(BellModel, ends_every_sleep_by_a_stop) {
  expect_holds(Bare::stop_comes());
  expect_holds(Bare::agent_and({Bare::stops, Bare::rings}, stopped));
  expect_holds(Bare::agent_and({Bare::stops, Bare::adds_network}, stopped));
  expect_holds(Networked::agent_and({Networked::stops, Networked::asks<0>}, stopped));
  expect_holds(Networked::run({Networked::stops, Networked::adds_card}, stopped, three_switches, true));
  expect_holds(Networked::agent_and({Networked::stops, Networked::watches}, stopped));
  expect_holds(Watching::agent_and({Watching::stops, Watching::brings<reply>}, stopped));
}

TEST(BellModel, catches_what_is_set_without_rousing) {
  expect_caught(WithDoorbell<without, RousesNobody>::network_comes(), "deadlock");
  expect_caught(WithDoorbell<with, RousesNobody>::one_asks(), "deadlock");
  expect_caught(WithDoorbell<watching, RousesNobody>::one_asks(), "deadlock");
  expect_caught(WithDoorbell<with, RousesNobody>::reply_is_watched(), "deadlock");
  expect_caught(WithDoorbell<with, RousesNobody>::agent_and({WithDoorbell<with, RousesNobody>::adds_card}, card_served),
                "deadlock");
}

TEST(BellModel, catches_an_agent_that_does_not_look_again_once_it_is_armed) {
  expect_caught(WithDoorbell<without, DoesNotLookAgain>::network_comes(), "deadlock");
  expect_caught(WithDoorbell<with, DoesNotLookAgain>::one_asks(), "deadlock");
  expect_caught(WithDoorbell<with, DoesNotLookAgain>::reply_is_watched(), "deadlock");
}

TEST(BellModel, catches_a_stop_that_wakes_by_the_futex_only) {
  expect_caught(WithDoorbell<with, StopsWithoutDescriptor>::stop_comes(), "deadlock");
}

TEST(BellModel, catches_a_descriptor_that_is_emptied_before_the_sleep) {
  expect_caught(WithDescriptors<with, EmptiesBeforeItSleeps>::one_asks(), "deadlock");
  expect_caught(WithDescriptors<with, EmptiesBeforeItSleeps>::request_comes(), "deadlock");
  expect_caught(WithDescriptors<with, EmptiesBeforeItSleeps>::stop_comes(), "deadlock");
}

TEST(BellModel, catches_a_network_that_is_not_armed) {
  expect_caught(WithDescriptors<with, DoesNotArm>::request_comes(), "deadlock");
  expect_caught(WithDescriptors<with, WatchesNoReplies>::reply_is_watched(), "deadlock");
}

TEST(BellModel, catches_a_request_that_came_before_arming_and_is_slept_on) {
  expect_caught(WithDescriptors<with, TakesArmingForQuiet>::request_comes(), "deadlock");
}

TEST(BellModel, catches_a_state_that_is_set_by_a_store) {
  expect_caught(WithSlip<with, Slip::sets_by_a_store>::one_asks(), "deadlock");
}

TEST(BellModel, catches_a_look_that_is_taken_by_a_store) {
  expect_caught(WithSlip<with, Slip::takes_by_a_store>::two_ask(), "deadlock");
}

TEST(BellModel, catches_a_needless_wake_up) {
  expect_caught(WithSlip<with, Slip::thinks_each_bit_new>::two_ask_sparingly(), "needless");
}

TEST(BellModel, catches_a_state_that_orders_nothing) {
  expect_caught(WithSlip<with, Slip::orders_nothing>::left_is_seen(), "race");
}

TEST(BellModel, catches_arming_without_a_barrier) {
  expect_caught(Check<with, ModelAtomics<Mutation::exchange_is_a_store>>::one_asks(), "deadlock");
}

TEST(BellModel, catches_a_lost_wake) {
  expect_caught(Check<without, ModelAtomics<Mutation::wake_is_lost>>::network_comes(), "deadlock");
}

}  // namespace
}  // namespace farsum::model
