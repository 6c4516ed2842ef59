// How threads of the application wait (progress/waiter.hpp), but for network cards (transport/rdma.hpp): they spin, or
// yield on a crowded node, and then sleep with a longest gap.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "liveness/peer_watch.hpp"
#include "progress/waiter.hpp"

namespace farsum {

class ThreadWaiter : public Waiter {
 public:
  struct Options {
    std::uint64_t spin_ns = 20'000;
    std::uint64_t gap_ns = 100'000'000;
    std::function<void()> idle;  // called between sleeps, at most idle_gap_ns apart, and in looks for other hosts
    std::uint64_t idle_gap_ns = 1'000'000;
    bool is_crowded = false;  // some rank waits for another's processor: threads yield to it, then sleep
    std::function<std::uint64_t()> now_ns = monotonic_ns;  // for the hook, for yields, and for what is told
    // A wait that lasts so long is told of, once; 0: none is. The next waits have to last twice as long each time.
    std::uint64_t told_after_ns = 0;
    std::function<void(const char* doing, std::uint64_t waited_ns)> tell_of_wait = {};
    std::function<void()> yield = std::this_thread::yield;
  };

  ThreadWaiter(Options options, PeerWatch& watch, EventCount& own)
      : options_(std::move(options)), watch_(watch), own_(own), told_after_ns_(options_.told_after_ns) {}

  Status wait(EventCount& where, FunctionRef<bool()> done, const char* doing) override;
  Status wait_served(EventCount& where, FunctionRef<bool()> done, const char* doing) override;
  Status wait_for_grant(LockGrant& grant, const char* doing) override;
  void note_come() override;
  Status looked_in_vain(const char* doing) override;
  bool is_crowded() const override { return options_.is_crowded; }
  // Whether a thread looks at all before it yields or sleeps.
  bool would_look() const { return !options_.is_crowded && options_.spin_ns != 0; }
  EventCount& own_events() override { return own_; }
  // Called by a thread once a wait, before it first sleeps where replies wake it. Set before anybody waits.
  void before_sleep(std::function<void()> hook) { before_sleep_ = std::move(hook); }
  // The same for each look at how the other ranks are.
  void before_look(std::function<void()> hook) { before_look_ = std::move(hook); }
  // How a thread that looks attends to the network (progress/attendance.hpp). Both begin and attend answer whether it
  // does.
  struct Attending {
    std::function<bool()> begin;
    std::function<bool()> attend;
    std::function<void()> end;
  };
  // Set before anybody waits; else nobody serves.
  void attend_by(Attending attending) { attending_ = std::move(attending); }
  // Known when the ranks of the node have met, and not changed when they have met once more.
  void be_crowded(bool is_crowded) { options_.is_crowded = is_crowded; }
  // From now on replies may come from other hosts, whose agents wake up first, and have the way there and back.
  // A stream of them that falters goes on soon, and a thread that slept would leave it to the agent, which is woken for
  // each piece, and wakes the thread for each.
  void expect_remote_replies() { are_replies_remote_.store(true, std::memory_order_relaxed); }
  // Threads in a wait in which they have slept so, or are about to.
  std::uint32_t sleepers() const { return sleepers_.load(std::memory_order_seq_cst); }
  // Threads that look, and have not slept, where replies, posts or notifications from other hosts are to wake them, or
  // would look if they had a processor: the agent, on theirs, had better not do it for them. Relaxed: who has just
  // begun, or ended, may be missed.
  std::uint32_t lookers() const { return lookers_.load(std::memory_order_relaxed); }
  // One in a count, from begin() to end() or the end of its life.
  class Counted {
   public:
    explicit Counted(std::atomic<std::uint32_t>& count) : count_(count) {}
    ~Counted() { end(); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

    // Whether it was not counted before. seq_cst for sleepers: see wait(); for the others it costs no more.
    bool begin() {
      if (std::exchange(is_counted_, true)) return false;
      count_.fetch_add(1, std::memory_order_seq_cst);
      return true;
    }
    void end() {
      if (std::exchange(is_counted_, false)) count_.fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    std::atomic<std::uint32_t>& count_;
    bool is_counted_ = false;
  };
  // From begin() to its end, no thread of this rank starts the idle hook.
  class Quiet : public Counted {
   public:
    explicit Quiet(ThreadWaiter& waiter) : Counted(waiter.quiet_) {}
  };

  std::uint64_t slept() const { return slept_.load(std::memory_order_relaxed); }
  std::uint64_t yielded() const { return yielded_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t stream_factor = 10;

  // For how long a thread looks before it sleeps.
  struct Looking {
    std::uint64_t ns = 0;
    std::uint64_t in_a_stream_ns = 0;  // once something of what it waits for has come
    bool is_remote = false;            // what it waits for has some way to go
  };

  class Serving;

  Status wait_looking(EventCount& where, FunctionRef<bool()> done, FunctionRef<bool()> look,
                      FunctionRef<void()> end_looking, const char* doing);
  bool look_for(FunctionRef<bool()> done, const Looking& looking);
  bool yield_for(FunctionRef<bool()> done, const Looking& looking);
  bool look_for_grant(LockGrant& grant, std::uint64_t& idle_at);
  Status sleep_for_grant(LockGrant& grant, std::uint64_t& idle_at, std::uint64_t& last_look, const char* doing);
  void be_idle_in_queue(std::uint64_t& idle_at);
  Status look_and_sleep(FunctionRef<bool()> done, FunctionRef<bool()> look,
                        FunctionRef<void(std::uint64_t gap_ns)> sleep, const char* doing, const Looking& looking);
  // Runs the hook, unless it began less than so long ago.
  void be_idle(std::uint64_t longest_ago_ns);
  Looking looking_here() const { return {.ns = options_.spin_ns, .in_a_stream_ns = options_.spin_ns}; }
  // Relaxed: nothing is ordered by how a thread looks.
  bool are_replies_remote() const { return are_replies_remote_.load(std::memory_order_relaxed); }
  Looking looking_for_replies() const {
    return are_replies_remote() ? Looking{.ns = 2 * options_.spin_ns,
                                          .in_a_stream_ns = stream_factor * options_.spin_ns,
                                          .is_remote = true}
                                : looking_here();
  }
  void tell_of_long_wait(std::uint64_t& began_ns, const char* doing);
  Status check_peers(const char* doing);
  Status check_known_deaths(FunctionRef<bool()> done, const char* doing);
  Status check_now_and_then(std::uint64_t& last_look, FunctionRef<bool()> done, const char* doing);
  std::uint64_t gap_ns() const {
    return options_.idle ? std::min(options_.idle_gap_ns, options_.gap_ns) : options_.gap_ns;
  }

  Options options_;
  PeerWatch& watch_;
  EventCount& own_;
  std::function<void()> before_sleep_;
  std::function<void()> before_look_;
  Attending attending_;
  std::atomic<bool> are_replies_remote_{false};
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> lookers_{0};
  std::atomic<std::uint64_t> slept_{0};
  std::atomic<std::uint64_t> yielded_{0};
  std::atomic<std::uint64_t> last_vain_look_ns_{0};
  std::atomic<std::uint64_t> last_idle_ns_{0};
  std::atomic<std::uint64_t> told_after_ns_{0};
  // What matters is that the thread that makes a Quiet does not run the hook itself.
  std::atomic<std::uint32_t> quiet_{0};
};

}  // namespace farsum
