// How many messages an epoch costs, counted by the trace beneath the protocol, and how long its origin waits. Each test
// makes a row of the table in docs/reference/wire.md and demands that it stands there.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "remote_windows.hpp"

namespace farsum {
namespace {

const std::string& page() {
  static const std::string text = [] {
    std::ifstream file(FARSUM_SOURCE_DIR "/docs/reference/wire.md");
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }();
  return text;
}

// One origin, rank 0, and a target on each other node.
class Epoch {
 public:
  explicit Epoch(const SimWindowOptions& wish = {}, Rank targets = 1) : windows(targets + 1, wish), targets_(targets) {}

  void begin_count() {
    posted_ = posted(0);
    answered_ = windows.job.rank(0).trace.total().replies;
    posted_by_targets_ = posted_by_targets();
    begin_ns_ = windows.now_ns();
  }
  void expect_row(const std::string& epoch) {
    const SimTime waited_ns = windows.now_ns() - begin_ns_;
    windows.settle();
    windows.job.rank(0).engine.progress(1);
    const std::uint64_t sent = posted(0) - posted_;
    const SimTime halves = (waited_ns + latency_ns / 2) / latency_ns;
    const std::string row =
        fmt::format("| {} | {} | {} | {}{} |", epoch, sent, posted_by_targets() - posted_by_targets_, halves / 2,
                    halves % 2 != 0 ? ".5" : "");
    EXPECT_NE(page().find(row), std::string::npos) << "docs/reference/wire.md should say\n" << row;
    EXPECT_EQ(windows.job.rank(0).trace.total().replies - answered_, sent) << "each request is answered once";
  }

  void put(Rank target = 1) { operate(put_of(data_), target); }
  void notify() {
    Operation operation = put_of(data_);
    operation.notify = true;
    operate(operation, 1);
  }
  void sum() { operate(sum_operation(), 1); }
  void fetch() {
    Operation operation = sum_operation();
    operation.kind = OperationKind::get_accumulate;
    operation.result = reinterpret_cast<std::byte*>(&fetched_);
    operation.result_layout = ops::LayoutView::contiguous(8);
    operate(operation, 1);
  }
  Window& origin() { return windows[0]; }

  RemoteWindows windows;

 private:
  Operation sum_operation() {
    Operation operation = put_of(data_);
    operation.kind = OperationKind::accumulate;
    operation.type = ops::ElementType::uint64;
    operation.op = ops::Operator::sum;
    return operation;
  }
  void operate(const Operation& operation, Rank target) {
    EXPECT_TRUE(fine(origin().operate(operation, target, Completion::implicit, nullptr)));
  }
  std::uint64_t posted(Rank rank) { return windows.job.rank(rank).trace.total().posted; }
  std::uint64_t posted_by_targets() {
    std::uint64_t sum = 0;
    for (Rank target = 1; target <= targets_; ++target) sum += posted(target);
    return sum;
  }

  std::vector<std::byte> data_ = ones(8);
  std::uint64_t fetched_ = 0;
  Rank targets_;
  std::uint64_t posted_ = 0, answered_ = 0, posted_by_targets_ = 0;
  SimTime begin_ns_ = 0;
};

void lock_with_puts(int puts, const std::string& name) {
  Epoch epoch;
  epoch.begin_count();
  EXPECT_TRUE(fine(epoch.origin().locks().lock(1, LockMode::exclusive)));
  for (int i = 0; i < puts; ++i) epoch.put();
  EXPECT_TRUE(fine(epoch.origin().locks().unlock(1)));
  epoch.expect_row(name);
}

TEST(MessagesPerEpoch, of_a_lock) {
  lock_with_puts(1, "lock, put, unlock");
  lock_with_puts(10, "lock, 10 puts, unlock");
}

// The first is waited for before the second is asked for: see window/asked_locks.hpp.
TEST(MessagesPerEpoch, of_two_locks) {
  Epoch epoch({}, 2);
  epoch.begin_count();
  EXPECT_TRUE(fine(epoch.origin().locks().lock(1, LockMode::exclusive)));
  EXPECT_TRUE(fine(epoch.origin().locks().lock(2, LockMode::exclusive)));
  for (const Rank target : {1u, 2u}) epoch.put(target);
  for (const Rank target : {1u, 2u}) EXPECT_TRUE(fine(epoch.origin().locks().unlock(target)));
  epoch.expect_row("two locks at once, a put under each, unlocked");
}

TEST(MessagesPerEpoch, of_a_mutex) {
  Epoch epoch;
  epoch.begin_count();
  EXPECT_TRUE(fine(epoch.origin().locks().lock_mutex(1, 0)));
  EXPECT_TRUE(fine(epoch.origin().locks().unlock_mutex(1, 0)));
  epoch.expect_row("a mutex locked and unlocked");
}

TEST(MessagesPerEpoch, of_a_lock_all) {
  Epoch epoch({}, 4);
  epoch.begin_count();
  EXPECT_TRUE(fine(epoch.origin().all_locks().lock()));
  EXPECT_TRUE(fine(epoch.origin().all_locks().unlock()));
  epoch.expect_row("lock_all, unlock_all, 4 targets on other nodes");
}

// The operations of an epoch of lock_all, ended by a flush of its target.
void flushed(const SimWindowOptions& wish, const std::string& name, const std::function<void(Epoch&)>& operations) {
  Epoch epoch(wish);
  EXPECT_TRUE(fine(epoch.origin().all_locks().lock()));
  epoch.begin_count();
  operations(epoch);
  EXPECT_TRUE(fine(epoch.origin().flush_one_target(1)));
  epoch.expect_row(name);
  EXPECT_TRUE(fine(epoch.origin().all_locks().unlock()));
}

void times(int count, const std::function<void()>& act) {
  for (int i = 0; i < count; ++i) act();
}

TEST(MessagesPerEpoch, of_flushes_in_a_lock_all) {
  flushed({}, "in lock_all: put, flush", [](Epoch& epoch) { epoch.put(); });
  flushed({}, "in lock_all: 10 puts, flush", [](Epoch& epoch) { times(10, [&] { epoch.put(); }); });
  flushed({}, "in lock_all: fetch-and-op, flush", [](Epoch& epoch) { epoch.fetch(); });
  flushed({.path = PathChoice::aggregated}, "in lock_all: 100 accumulates of 8 bytes, flush, `aggregated`",
          [](Epoch& epoch) { times(100, [&] { epoch.sum(); }); });
  flushed({.path = PathChoice::caller}, "in lock_all: accumulate, flush, `caller`", [](Epoch& epoch) { epoch.sum(); });
}

TEST(MessagesPerEpoch, of_local_flushes) {
  Epoch epoch;
  EXPECT_TRUE(fine(epoch.origin().all_locks().lock()));
  epoch.begin_count();
  times(10, [&] { epoch.put(); });
  EXPECT_TRUE(fine(epoch.origin().flush_one_target(1, Window::Reach::local)));
  epoch.expect_row("in lock_all: 10 puts, local flush");
  EXPECT_TRUE(fine(epoch.origin().all_locks().unlock()));
}

TEST(MessagesPerEpoch, of_a_notification) {
  Epoch epoch;
  EXPECT_TRUE(fine(epoch.origin().all_locks().lock()));
  epoch.begin_count();
  epoch.notify();
  const SimTime sent_ns = epoch.windows.now_ns();
  EXPECT_TRUE(fine(epoch.windows[1].notifications().wait(0, 1)));
  EXPECT_EQ(epoch.windows.now_ns() - sent_ns, latency_ns) << "the target waits for one message, not for a round trip";
  epoch.expect_row("in lock_all: put with a notification; notify_wait at the target");
  EXPECT_TRUE(fine(epoch.origin().all_locks().unlock()));
}

void post_and_start(Rank targets, const std::string& name) {
  Epoch epoch({}, targets);
  std::vector<std::uint32_t> group;
  for (Rank target = 1; target <= targets; ++target) group.push_back(target);
  epoch.begin_count();
  for (const Rank target : group) EXPECT_TRUE(fine(epoch.windows[target].posts().post({{0}})));
  EXPECT_TRUE(fine(epoch.origin().posts().start(group)));
  for (const Rank target : group) epoch.put(target);
  EXPECT_TRUE(fine(epoch.origin().posts().complete()));
  for (const Rank target : group) EXPECT_TRUE(fine(epoch.windows[target].posts().wait()));
  epoch.expect_row(name);
}

TEST(MessagesPerEpoch, of_post_and_start) {
  post_and_start(1, "post, start, put, complete, wait");
  post_and_start(4, "the same with 4 targets, a put each");
}

}  // namespace
}  // namespace farsum
