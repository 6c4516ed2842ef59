// One process as far as looking for replies goes: an agent, two threads, two peers, a network and a clock, one step at
// a time, with ReplyCare between them. The agent's steps are those of Chores and RankBell, a thread's those of
// OriginEngine and ThreadWaiter; a thread's timeouts, which would hide that nobody wakes it, are left out.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "transport/link/reply_care.hpp"

namespace farsum::link {

// Times are in steps of the clock, and relative: what has passed is 0.
inline constexpr ReplyCare::Pace model_pace{.ask_again_after_ns = 1, .longest_gap_ns = 2, .polls_beside_agent = 2};
inline constexpr std::uint64_t model_longest_watch = 2;  // see RankBell
// Each thread asks a peer of its own, one request at a time.
inline constexpr std::size_t world_threads = 2, nobody = world_threads;

enum class Request : std::uint8_t { none, unsent, sent, answered, undelivered };

// As RankBell::sleep, Chores::run and NetworkSide::look_after have it.
enum class AgentAt : std::uint8_t { begins, ticks, visits_first, visits_last, counts, asks, arms, lies_down, asleep };

enum class ThreadAt : std::uint8_t {
  away,         // computes
  looks,        // in a wait, between two polls
  polls,        // has the peer's mutex
  leaves,       // has the mutex still, and has polled
  helps,        // has it without a wait, and takes what has come
  helps_other,  // has that of the other's peer, and takes what has come for that
  leaves_other,
  lies_down,  // is counted as a sleeper
  last_look,  // has handed over, if it was to
  sleeps,
};

// Steps are numbers: the agent's, what wakes it, the clock's, answers of the peers, and those among which a thread may
// choose.
inline constexpr std::size_t agent_step = 0, descriptor_step = 1, timer_step = 2, request_step = 3, clock_step = 4;
inline constexpr std::size_t choices_of_thread = 5, answers_at = 5, threads_at = answers_at + world_threads;
inline constexpr std::size_t step_count = threads_at + world_threads * choices_of_thread;

template <class Care>
class ReplyWorld {
 public:
  // 128 bits tell states apart.
  using Key = std::pair<std::uint64_t, std::uint64_t>;

  // False where this step cannot be taken now.
  bool take(std::size_t step) {
    switch (step) {
      case agent_step:
        return step_agent();
      case descriptor_step:
        return wake_by_descriptor();
      case timer_step:
        return wake_by_timer();
      case request_step:
        return wake_by_request();
      case clock_step:
        return pass_time();
      default:
        break;
    }
    if (step < threads_at) return answer(step - answers_at);
    return step_thread((step - threads_at) / choices_of_thread, (step - threads_at) % choices_of_thread);
  }

  // What must not be, or null.
  const char* failure() const { return failure_; }
  bool is_agent_asleep() const { return agent_.at == AgentAt::asleep; }
  bool is_agent_woken_by_replies() const { return is_agent_asleep() && agent_.is_watching && has_answers(); }
  bool has_timer() const { return agent_.timer != ReplyCare::never; }
  ReplyCare::State care_state() const { return care_.state; }
  bool is_in_call(std::size_t thread) const {
    const ThreadAt at = threads_[thread].at;
    return threads_[thread].is_to_rouse || (at != ThreadAt::away && at != ThreadAt::looks && at != ThreadAt::sleeps);
  }
  bool is_asleep(std::size_t thread) const {
    return threads_[thread].at == ThreadAt::sleeps && !threads_[thread].is_notified;
  }
  bool is_at(std::size_t thread, ThreadAt at) const { return threads_[thread].at == at; }
  bool has_mutex(std::size_t thread) const {
    const ThreadAt at = threads_[thread].at;
    return at == ThreadAt::polls || at == ThreadAt::helps || at == ThreadAt::leaves || at == ThreadAt::helps_other ||
           at == ThreadAt::leaves_other;
  }
  // One that has a peer's mutex, and does not count as one that looks.
  bool is_stoppable(std::size_t thread) const { return has_mutex(thread) && !threads_[thread].is_in_wait; }
  // It sleeps, its reply is here, and the agent comes but at the end of its watch.
  bool is_forgotten(std::size_t thread) const {
    return is_asleep(thread) && requests_[thread] == Request::undelivered && care_.ask_at_ns == ReplyCare::never;
  }
  Request request(std::size_t thread) const { return requests_[thread]; }

  Key key() const {
    ReplyWorld world = *this;
    world.forget_what_no_longer_matters();
    return world.whole_key();
  }

 private:
  struct Agent {
    AgentAt at = AgentAt::asleep;
    ReplyCare::Threads threads = ReplyCare::Threads::away;
    bool is_watching = false, has_watch_ended = false, is_look_due = false;  // of RankBell
    bool is_timer_of_watch = false, notifies = false;
    std::uint64_t comes_back = ReplyCare::never;  // the network's time on the Agenda
    std::uint64_t timer = ReplyCare::never;       // of its sleep
  };
  struct Thread {
    ThreadAt at = ThreadAt::away;
    bool is_in_wait = false, is_sleeper = false;
    bool is_to_rouse = false;  // the care has said so, and its lock has been left
    bool is_notified = false;  // its event count has moved since it began to lie down
    bool notifies = false;     // it has taken replies, and moves that of the others when it leaves the mutex
  };
  struct Bits {
    struct Field {
      std::uint64_t value;
      unsigned bits;
    };
    void add(std::initializer_list<Field> fields) {
      for (const Field& field : fields) {
        key.second = key.second << field.bits | key.first >> (64 - field.bits);
        key.first = key.first << field.bits | field.value;
      }
    }
    Key key{};
  };
  // What is written anew before it is read again would tell states apart that have the same future.
  void forget_what_no_longer_matters() {
    if (care_.undelivered == 0) care_.has_more_undelivered = false;
    if (care_.undelivered == 0 || care_.has_more_undelivered) care_.due_ns = care_.gap_ns = 0;
    const bool has_agent = Care(care_, model_pace).has_agent();
    if (!has_agent) care_.polls_beside_agent = polls_beside_ = 0;
    const bool is_up = agent_.at != AgentAt::begins && agent_.at != AgentAt::arms && agent_.at != AgentAt::lies_down &&
                       agent_.at != AgentAt::asleep;
    const bool will_ask = is_up || agent_.is_look_due || agent_.has_watch_ended;
    if (will_ask || !agent_.is_watching) care_.ask_at_ns = ReplyCare::never;
    if (!will_ask) return;
    agent_.comes_back = agent_.timer = ReplyCare::never;
    agent_.is_timer_of_watch = false;
  }
  Key whole_key() const {
    Bits bits;
    for (const Request request : requests_) bits.add({{static_cast<unsigned>(request), 3}});
    for (const Thread& thread : threads_) {
      bits.add({{static_cast<unsigned>(thread.at), 4}, {thread.is_in_wait, 1}, {thread.is_sleeper, 1}});
      bits.add({{thread.is_to_rouse, 1}, {thread.is_notified, 1}, {thread.notifies, 1}});
    }
    bits.add({{static_cast<unsigned>(agent_.at), 4}, {agent_.is_watching, 1}, {agent_.has_watch_ended, 1}});
    bits.add({{agent_.is_look_due, 1}, {agent_.is_timer_of_watch, 1}, {agent_.notifies, 1}});
    bits.add({{static_cast<unsigned>(agent_.threads), 2}, {time(agent_.comes_back), 3}, {time(agent_.timer), 3}});
    bits.add({{polls_beside_, 3}, {was_taken_, 1}, {was_polled_, 1}});
    bits.add(
        {{static_cast<unsigned>(care_.state), 3}, {care_.is_left, 1}, {care_.was_polled, 1}, {care_.was_taken, 1}});
    bits.add({{care_.has_more_undelivered, 1}, {care_.polls_beside_agent, 3}, {time(care_.ask_at_ns), 3}});
    bits.add({{care_.undelivered, 2}, {time(care_.due_ns), 3}, {care_.gap_ns, 3}});
    return bits.key;
  }
  static std::uint64_t time(std::uint64_t time) { return time == ReplyCare::never ? 7 : time; }

  void fail(const char* what) {
    if (failure_ == nullptr) failure_ = what;
  }
  template <class Event>
  ReplyCare::Action tell(Event event) {
    Care care(care_, model_pace);
    const ReplyCare::Action action = event(care);
    care_ = care.data();
    return action;
  }
  ReplyCare::UnderWay under_way() const {
    const bool any = std::any_of(requests_.begin(), requests_.end(), [](Request request) {
      return request != Request::none && request != Request::undelivered;
    });
    return any ? ReplyCare::UnderWay::something : ReplyCare::UnderWay::nothing;
  }
  bool has_answers() const { return std::count(requests_.begin(), requests_.end(), Request::answered) != 0; }
  // Whether nobody has the mutex of a thread's peer.
  bool is_free(std::size_t peer) const {
    const auto is_in_own = [](ThreadAt at) {
      return at == ThreadAt::polls || at == ThreadAt::helps || at == ThreadAt::leaves;
    };
    const auto is_in_others = [](ThreadAt at) { return at == ThreadAt::helps_other || at == ThreadAt::leaves_other; };
    return !is_in_own(threads_[peer].at) && !is_in_others(threads_[other(peer)].at);
  }
  static std::size_t other(std::size_t thread) { return world_threads - 1 - thread; }

  // The worker's: sends what has not left and takes in what has come.
  void drive() {
    for (Request& request : requests_) {
      if (request == Request::unsent) request = Request::sent;
      if (request != Request::answered) continue;
      request = Request::undelivered;
      tell([](Care& care) { return care.undelivered_came(), ReplyCare::Action::none; });
    }
  }
  std::size_t deliver(std::size_t peer) {
    if (requests_[peer] != Request::undelivered) return 0;
    requests_[peer] = Request::none;
    tell([](Care& care) { return care.undelivered_went(), ReplyCare::Action::none; });
    return 1;
  }
  void notify_all() {
    for (Thread& thread : threads_) thread.is_notified = thread.is_notified || thread.is_sleeper;
  }

  // ---- the agent

  bool step_agent() {
    switch (agent_.at) {
      case AgentAt::begins:
        begin();
        return true;
      case AgentAt::ticks:
        tell([](Care& care) { return care.agent_came(), ReplyCare::Action::none; });
        drive();
        agent_.at = AgentAt::visits_first;
        return true;
      case AgentAt::visits_first:
        visit(0);
        agent_.at = AgentAt::visits_last;
        return true;
      case AgentAt::visits_last:
        visit(1);
        agent_.at = AgentAt::counts;
        return true;
      case AgentAt::counts:
        if (std::exchange(agent_.notifies, false)) notify_all();
        agent_.threads = threads();
        agent_.at = AgentAt::asks;
        return true;
      case AgentAt::asks:
        ask();
        return true;
      case AgentAt::arms:
        arm();
        return true;
      case AgentAt::lies_down:
        if (agent_.is_look_due) {
          wake();
        } else {
          agent_.at = AgentAt::asleep;
        }
        return true;
      case AgentAt::asleep:
        if (!agent_.is_look_due) return false;
        wake();
        return true;
    }
    return false;
  }
  void wake() {
    agent_.at = AgentAt::begins;
    agent_.timer = ReplyCare::never;
    agent_.is_timer_of_watch = false;
  }
  void end_watch() {
    agent_.is_watching = false;
    agent_.has_watch_ended = true;
  }
  void begin() {
    if (std::exchange(agent_.is_look_due, false)) end_watch();
    const bool is_to_look = std::exchange(agent_.has_watch_ended, false) || agent_.comes_back == 0;
    agent_.at = is_to_look ? AgentAt::ticks : AgentAt::arms;
  }
  void visit(std::size_t peer) {
    if (!is_free(peer)) return;
    drive();
    const std::size_t taken = deliver(peer);
    agent_.notifies = agent_.notifies || taken != 0;
    was_taken_ = was_taken_ || taken != 0;
    if (tell([&](Care& care) { return care.taken_beside(taken); }) == ReplyCare::Action::rouse) {
      // By itself: see begin().
      agent_.is_look_due = true;
    }
  }
  ReplyCare::Threads threads() const {
    const auto any = [this](auto which) { return std::any_of(threads_.begin(), threads_.end(), which); };
    if (any([](const Thread& thread) { return thread.is_sleeper; })) return ReplyCare::Threads::sleep;
    return any([](const Thread& thread) { return thread.is_in_wait; }) ? ReplyCare::Threads::look
                                                                       : ReplyCare::Threads::away;
  }
  void ask() {
    agent_.comes_back = ReplyCare::never;
    tell([&](Care& care) { return care.agent_asks(agent_.threads, under_way(), 0), ReplyCare::Action::none; });
    const bool sleeps_on_replies = Care(care_, model_pace).has_agent();
    const bool is_soon = care_.ask_at_ns <= model_pace.ask_again_after_ns;
    if (agent_.threads == ReplyCare::Threads::sleep) {
      if (was_taken_ && !is_soon) fail("the agent sleeps on for threads that may have gone");
    } else if (sleeps_on_replies && (was_polled_ || agent_.threads == ReplyCare::Threads::look)) {
      fail("the agent sleeps on replies beside a thread that looks");
    }
    polls_beside_ = 0;
    was_taken_ = was_polled_ = false;
    // Nobody else changes when it is to ask again.
    agent_.is_watching = agent_.is_watching || sleeps_on_replies;
    if (!sleeps_on_replies) agent_.comes_back = care_.ask_at_ns;
    agent_.at = AgentAt::arms;
    // It no longer matters.
    agent_.threads = ReplyCare::Threads::away;
  }
  void arm() {
    if (agent_.is_watching && has_answers()) {
      end_watch();
      agent_.at = AgentAt::begins;
      return;
    }
    agent_.at = AgentAt::lies_down;
    agent_.timer = agent_.comes_back;
    if (!agent_.is_watching) return;
    const std::uint64_t of_watch = std::min(model_longest_watch, care_.ask_at_ns);
    agent_.is_timer_of_watch = of_watch <= agent_.timer;
    agent_.timer = std::min(agent_.timer, of_watch);
  }
  bool wake_by_descriptor() {
    if (!is_agent_woken_by_replies()) return false;
    end_watch();
    wake();
    return true;
  }
  bool wake_by_timer() {
    if (!is_agent_asleep() || agent_.timer != 0) return false;
    if (agent_.is_timer_of_watch) end_watch();
    wake();
    return true;
  }
  // Of another rank, which it serves.
  bool wake_by_request() {
    if (!is_agent_asleep()) return false;
    wake();
    return true;
  }

  // ---- the clock, and the network

  // It moves while the agent sleeps only: its steps take no time.
  bool pass_time() {
    if (!is_agent_asleep() || agent_.timer == 0) return false;
    for (std::uint64_t* time : {&agent_.timer, &agent_.comes_back, &care_.ask_at_ns, &care_.due_ns}) {
      if (*time != 0 && *time != ReplyCare::never) --*time;
    }
    return true;
  }
  bool answer(std::size_t peer) {
    if (requests_[peer] != Request::sent) return false;
    requests_[peer] = Request::answered;
    return true;
  }

  // ---- threads

  bool step_thread(std::size_t number, std::size_t choice) {
    Thread& thread = threads_[number];
    if (thread.is_to_rouse) {
      if (choice != 0) return false;
      thread.is_to_rouse = false;
      agent_.is_look_due = true;
      return true;
    }
    switch (thread.at) {
      case ThreadAt::away:
        return go_on(number, choice);
      case ThreadAt::looks:
        return look(number, choice);
      default:
        return choice == 0 && end_call(number);
    }
  }
  void act(Thread& thread, ReplyCare::Action action) { thread.is_to_rouse = action == ReplyCare::Action::rouse; }

  // 0 and 1: asks its peer, and it has left at once or not; 2: waits for that; 3: takes what has come for it
  // on its way; 4: what has come for the other.
  bool go_on(std::size_t number, std::size_t choice) {
    Thread& thread = threads_[number];
    Request& request = requests_[number];
    if (choice < 2) {
      if (request != Request::none || !is_free(number)) return false;
      request = choice == 0 ? Request::sent : Request::unsent;
      if (choice == 1) act(thread, tell([&](Care& care) { return care.left_behind(under_way()); }));
    } else if (choice == 2) {
      if (request == Request::none) return false;
      thread.is_in_wait = true;
      thread.at = ThreadAt::looks;
    } else {
      const std::size_t peer = choice == 3 ? number : other(number);
      if (choice > 4 || requests_[peer] == Request::none || !is_free(peer)) return false;
      thread.at = choice == 3 ? ThreadAt::helps : ThreadAt::helps_other;
    }
    return true;
  }
  // 0: polls; 1: goes away; 2: lies down.
  bool look(std::size_t number, std::size_t choice) {
    Thread& thread = threads_[number];
    if (choice == 0) {
      if (!is_free(number)) return false;
      thread.at = ThreadAt::polls;
    } else if (choice == 1) {
      thread = {};
    } else if (choice == 2) {
      thread.is_in_wait = false;
      thread.is_sleeper = true;
      thread.at = ThreadAt::lies_down;
    } else {
      return false;
    }
    return true;
  }
  bool end_call(std::size_t number) {
    Thread& thread = threads_[number];
    switch (thread.at) {
      case ThreadAt::polls:
        poll(number);
        return true;
      case ThreadAt::helps:
        help(thread, number);
        thread.at = ThreadAt::leaves;
        return true;
      case ThreadAt::helps_other:
        help(thread, other(number));
        thread.at = ThreadAt::leaves_other;
        return true;
      case ThreadAt::leaves:
      case ThreadAt::leaves_other:
        leave(number);
        return true;
      case ThreadAt::lies_down:
        drive();
        act(thread, tell([](Care& care) { return care.hand_over(); }));
        thread.at = ThreadAt::last_look;
        return true;
      case ThreadAt::last_look:
        if (!is_free(number)) return false;
        thread.at = ThreadAt::polls;
        return true;
      case ThreadAt::sleeps:
        if (!thread.is_notified) return false;
        thread.is_notified = false;
        thread.at = ThreadAt::last_look;
        return true;
      default:
        return false;
    }
  }
  void help(Thread& thread, std::size_t peer) {
    drive();
    const std::size_t taken = deliver(peer);
    thread.notifies = taken != 0;
    was_taken_ = was_taken_ || thread.notifies;
    act(thread, tell([&](Care& care) { return care.taken_beside(taken); }));
  }
  void poll(std::size_t number) {
    Thread& thread = threads_[number];
    const bool had_agent = Care(care_, model_pace).has_agent();
    const bool was_for_absent = care_.state == ReplyCare::State::agent_for_absent;
    drive();
    const std::size_t taken = deliver(number);
    thread.notifies = taken != 0;
    thread.at = ThreadAt::leaves;
    if (had_agent && taken != 0 && polls_beside_ < 7) ++polls_beside_;
    const ReplyCare::Action action = tell([&](Care& care) { return care.polled(taken, under_way()); });
    act(thread, action);
    was_polled_ = true;
    const bool is_over = was_for_absent && taken != 0 && under_way() == ReplyCare::UnderWay::nothing;
    if (action == ReplyCare::Action::rouse) {
      if (!had_agent) fail("an agent is roused that comes anyway, or is not to come");
      if (care_.undelivered == 0 && !is_over && polls_beside_ < model_pace.polls_beside_agent)
        fail("an agent is roused though nothing is there for it");
    } else if (had_agent && polls_beside_ >= model_pace.polls_beside_agent) {
      fail("replies wake an agent again and again though a thread takes them");
    } else if (had_agent && is_over) {
      fail("the agent sleeps on replies though none will come");
    }
  }
  void leave(std::size_t number) {
    Thread& thread = threads_[number];
    if (std::exchange(thread.notifies, false)) notify_all();
    const bool is_in_wait = thread.is_in_wait || thread.is_sleeper;
    if (!is_in_wait || requests_[number] == Request::none) {
      thread = {};
    } else {
      thread.at = thread.is_sleeper ? ThreadAt::sleeps : ThreadAt::looks;
    }
  }

  std::array<Request, world_threads> requests_{};  // of each thread
  std::array<Thread, world_threads> threads_;
  Agent agent_;
  ReplyCare::Data care_;
  // What the check itself knows of what has happened since the agent last asked.
  std::uint32_t polls_beside_ = 0;
  bool was_taken_ = false, was_polled_ = false;
  const char* failure_ = nullptr;
};

}  // namespace farsum::link
