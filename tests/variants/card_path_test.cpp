// What a window's operations ask of a network card, and when they are complete, with a card that the test plays. What
// comes of them in memory is in tests/sim/offload_test.cpp.
#include "variants/cards/card_path.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "executor_parts.hpp"
#include "window/operation_checks.hpp"

namespace farsum {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Takes down what it is asked for. What was started ends when it is waited for.
class ScriptedCard final : public Rdma {
 public:
  std::string description() const override { return "scripted card"; }
  std::span<const std::byte> address() const override { return {}; }
  Result<CardMemory> expose(std::byte*, std::uint64_t) override { return CardMemory(); }
  void conceal(const CardMemory&) override {}
  void introduce(Rank, std::span<const std::byte>) override {}
  Reached reach(Rank, std::span<const std::byte>) override { return 0; }
  void let_go(Reached) override {}
  Status put(Reached part, std::uint64_t, std::span<const std::byte>, CardCompletion& completion) override {
    return ask("put", part, &completion);
  }
  Status get(Reached part, std::uint64_t, std::span<std::byte>, CardCompletion& completion) override {
    return ask("get", part, &completion);
  }
  Status update(Reached part, CardWord, CardUpdate, std::uint64_t) override { return ask("update", part, nullptr); }
  Status fetch(Reached part, CardWord, CardUpdate, std::uint64_t, std::uint64_t, std::byte*,
               CardCompletion& completion) override {
    return ask("fetch", part, &completion);
  }
  Status fence(Rank rank) override { return ask("fence", rank, nullptr); }
  Status flush(Rank rank, CardCompletion& completion) override { return ask("flush", rank, &completion); }
  Status wait(const CardCompletion& completion, FunctionRef<Status()> look) override {
    if (completion.pending.load() == 0) return {};
    note("wait");
    if (Status status = look(); !status.is_ok()) return status;
    if (on_wait) on_wait();
    end(completion);
    return {};
  }
  int descriptor() const override { return -1; }
  Result<bool> arm() override { return true; }
  void look_after() override {}
  void abandon() override { note("abandon"); }

  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, {});
  }

  std::function<void()> on_start;
  std::function<void()> on_wait;
  std::string refuses;        // whatever begins so
  Code ends_with = Code::ok;  // what ends from now on

 private:
  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    asked_.push_back(std::move(what));
  }
  Status ask(const std::string& what, std::uint64_t of_whom, CardCompletion* completion) {
    note(what + " " + std::to_string(of_whom));
    if (!refuses.empty() && what == refuses) return {Code::unsupported, "no"};
    if (completion == nullptr) return {};
    {
      const std::lock_guard lock(mutex_);
      completion->pending.fetch_add(1);
      under_way_.push_back(completion);
    }
    if (on_start) on_start();
    return {};
  }
  void end(const CardCompletion& completion) {
    const std::lock_guard lock(mutex_);
    for (CardCompletion* started : under_way_) {
      if (started != &completion) continue;
      if (ends_with != Code::ok) started->failure.store(ends_with);
      started->pending.fetch_sub(1);
    }
    std::erase_if(under_way_, [&](const CardCompletion* started) { return started == &completion; });
  }

  std::mutex mutex_;  // guards what follows
  std::vector<std::string> asked_;
  std::vector<CardCompletion*> under_way_;
};

// Ranks 5, 3 and 6 of the job, whose parts the card knows as 10, 11 and 12.
class CardsWork : public testing::Test {
 protected:
  static constexpr std::uint32_t here = ScriptedParts::here, there = ScriptedParts::there,
                                 beyond = ScriptedParts::beyond;

  CardsWork() { region_.bytes = 4096; }

  Status run(const Operation& operation, Completion completion = Completion::implicit,
             std::uint32_t of = ScriptedParts::there, RequestState* request = nullptr) {
    return path_for().run(
        {.operation = operation, .target = of, .region = &region_, .completion = completion, .request = request});
  }
  Operation put() const { return ScriptedParts::put(data_, 16); }
  Operation accumulate(ops::Operator op) const {
    Operation operation = ScriptedParts::sum(value_, 16);
    operation.op = op;
    return operation;
  }
  Operation get() { return ScriptedParts::get(into_, 16); }
  std::uint64_t outstanding(std::uint32_t of = ScriptedParts::there) { return parts.outstanding(of).count.load(); }
  std::string failure() { return parts.messages.take_failure(there, "farsum_flush").text(); }

  CardPath& path_for(std::uint32_t promises = 0) {
    if (!path_) path_ = std::make_unique<CardPath>(CardReach{&card, {10, 11, 12}}, parts.services(promises));
    return *path_;
  }

  ExecutorParts parts;
  ScriptedCard card;

 private:
  Region region_;
  const Bytes data_ = Bytes(8, std::byte{1});
  Bytes into_ = Bytes(8);
  const std::uint64_t value_ = 1;
  std::unique_ptr<CardPath> path_;
};

// ---- when it is complete ----

TEST_F(CardsWork, is_outstanding_as_one_until_it_is_settled) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(put()).text(), "");
  EXPECT_EQ(run(accumulate(ops::Operator::sum)).text(), "");
  EXPECT_THAT(card.take(), ElementsAre("put 11", "put 11", "put 11", "update 11"));
  EXPECT_EQ(outstanding(), 1);
  EXPECT_EQ(outstanding(beyond), 0);
  path_for().settle(there, "farsum_flush");
  EXPECT_THAT(card.take(), ElementsAre("flush 3", "wait"));
  EXPECT_EQ(outstanding(), 0);
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(parts.operations_by(Path::offload), 4);
  EXPECT_EQ(parts.bytes_by(Path::offload), 32);
}

TEST_F(CardsWork, is_not_settled_where_there_is_none) {
  path_for().settle(there, "farsum_flush");
  EXPECT_EQ(run(put()).text(), "");
  (void)card.take();
  path_for().settle(beyond, "farsum_flush");
  EXPECT_THAT(card.take(), IsEmpty());
  EXPECT_EQ(outstanding(), 1);
}

TEST_F(CardsWork, that_comes_while_others_is_settled_is_settled_by_the_next) {
  EXPECT_EQ(run(put()).text(), "");
  card.on_wait = [this] {
    card.on_wait = nullptr;
    EXPECT_EQ(run(put()).text(), "");
  };
  path_for().settle(there, "farsum_flush");
  EXPECT_EQ(outstanding(), 1);
  (void)card.take();
  path_for().settle(there, "farsum_flush");
  EXPECT_THAT(card.take(), ElementsAre("flush 3", "wait"));
  EXPECT_EQ(outstanding(), 0);
}

TEST_F(CardsWork, that_starts_while_others_is_settled_is_not_taken_for_settled) {
  EXPECT_EQ(run(put()).text(), "");
  card.on_start = [this] {
    card.on_start = nullptr;
    path_for().settle(there, "another's flush");
  };
  EXPECT_EQ(run(put()).text(), "");
  EXPECT_EQ(outstanding(), 1);
}

TEST_F(CardsWork, of_all_targets_is_asked_for_before_one_is_waited_for) {
  EXPECT_EQ(run(accumulate(ops::Operator::sum), Completion::implicit, there).text(), "");
  EXPECT_EQ(run(accumulate(ops::Operator::sum), Completion::implicit, here).text(), "");
  (void)card.take();
  path_for().settle_all("farsum_flush_all");
  EXPECT_THAT(card.take(), ElementsAre("flush 5", "flush 3", "wait", "wait"));
  EXPECT_EQ(outstanding(here) + outstanding(there), 0);
}

TEST_F(CardsWork, is_told_once_where_it_failed) {
  EXPECT_EQ(run(put()).text(), "");
  card.ends_with = Code::unreachable;
  path_for().settle(there, "farsum_flush");
  EXPECT_EQ(outstanding(), 0);
  EXPECT_THAT(failure(), HasSubstr("farsum_flush: window 9, rank 1: an earlier operation failed"));
  card.ends_with = Code::ok;
  EXPECT_EQ(run(put()).text(), "");
  path_for().settle(there, "farsum_flush");
  EXPECT_EQ(failure(), "") << "it is told of another operation";
}

TEST_F(CardsWork, is_over_where_the_card_refuses_to_flush_and_that_is_told) {
  EXPECT_EQ(run(put()).text(), "");
  card.refuses = "flush";
  path_for().settle(there, "farsum_flush");
  EXPECT_EQ(outstanding(), 0);
  EXPECT_NE(failure(), "");
}

TEST_F(CardsWork, needs_buffers_until_they_were_read_and_no_flush_for_that) {
  EXPECT_EQ(run(put()).text(), "");
  EXPECT_EQ(path_for().await_buffers(there, "farsum_flush_local").text(), "");
  EXPECT_THAT(card.take(), ElementsAre("put 11", "wait"));
  EXPECT_EQ(outstanding(), 1);
  EXPECT_EQ(path_for().await_buffers(there, "farsum_flush_local").text(), "");
  EXPECT_THAT(card.take(), IsEmpty());
}

TEST_F(CardsWork, is_in_memory_when_a_blocking_put_returns_and_here_when_a_blocking_get_does) {
  EXPECT_EQ(run(put(), Completion::blocking).text(), "");
  EXPECT_THAT(card.take(), ElementsAre("put 11", "wait", "flush 3", "wait"));
  EXPECT_EQ(outstanding(), 0);
  EXPECT_EQ(run(get(), Completion::blocking).text(), "");
  EXPECT_THAT(card.take(), ElementsAre("get 11", "wait"));
}

TEST_F(CardsWork, that_failed_is_told_to_whoever_waited_and_to_nobody_else) {
  card.ends_with = Code::unreachable;
  EXPECT_EQ(run(get(), Completion::blocking).text(),
            "farsum_get: window 9, rank 1: an operation of the network card failed: " +
                std::string(explain_code(Code::unreachable)));
  card.ends_with = Code::ok;
  path_for().settle(there, "farsum_flush");
  EXPECT_EQ(failure(), "");
}

TEST_F(CardsWork, has_done_with_the_buffers_when_a_request_is_done) {
  RequestState request;
  EXPECT_EQ(run(put(), Completion::by_request, there, &request).text(), "");
  EXPECT_THAT(card.take(), ElementsAre("put 11", "wait"));
  EXPECT_TRUE(request.done.load());
  RequestState failing;
  card.refuses = "put";
  const Status status = run(put(), Completion::by_request, there, &failing);
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_EQ(status.text(), "farsum_put: window 9, rank 1: the network card: no");
  EXPECT_FALSE(failing.done.load());
}

TEST_F(CardsWork, waits_for_what_it_had_to_copy) {
  const std::vector<ops::Piece> pieces{{0, 4}, {4, 4}};
  Operation operation = put();
  operation.operand_layout = ops::LayoutView::indexed(pieces);
  EXPECT_EQ(run(operation).text(), "");
  EXPECT_THAT(card.take(), ElementsAre("put 11", "wait"));
  EXPECT_EQ(outstanding(), 1);
}

TEST_F(CardsWork, is_abandoned_with_everything_else_where_the_job_is_over) {
  const Bytes data(8);
  ASSERT_EQ(parts.messages.send(ScriptedParts::put(data), beyond, nullptr).text(), "");
  parts.waiter.is_over = true;
  EXPECT_EQ(run(get(), Completion::blocking).text(), "farsum_get: the job is over");
  EXPECT_THAT(card.take(), ElementsAre("get 11", "wait", "abandon"));
  EXPECT_TRUE(parts.messages.is_through(beyond));
}

// ---- two threads ----

// Another thread has taken over what this one started, and waits for the card: until that is through, so does this one.
class CardsWorkOfTwo : public CardsWork, public testing::WithParamInterface<bool> {
 protected:
  void settle() { GetParam() ? path_for().settle_all("farsum_flush_all") : path_for().settle(there, "farsum_flush"); }
};
INSTANTIATE_TEST_SUITE_P(OfAllTargets, CardsWorkOfTwo, testing::Bool());

TEST_P(CardsWorkOfTwo, is_through_when_either_has_settled) {
  EXPECT_EQ(run(put()).text(), "");
  std::atomic<bool> is_at_card{false}, may_end{false};
  card.on_wait = [&] {
    is_at_card.store(true);
    is_at_card.notify_all();
    may_end.wait(false);
  };
  std::thread other([&] { path_for().settle(there, "another's flush"); });
  const auto end_other = [&] {
    may_end.store(true);
    may_end.notify_all();
    other.join();
  };
  is_at_card.wait(false);
  parts.waiter.then([&] {
    EXPECT_EQ(outstanding(), 1);
    end_other();
  });
  settle();
  EXPECT_TRUE(parts.waiter.is_through()) << "it did not wait for the thread that settles";
  EXPECT_EQ(outstanding(), 0);
  EXPECT_THAT(card.take(), ElementsAre("put 11", "flush 3", "wait"));
  if (other.joinable()) end_other();
}

TEST_P(CardsWorkOfTwo, is_waited_for_no_longer_than_it_takes) {
  EXPECT_EQ(run(put()).text(), "");
  std::thread([&] { path_for().settle(there, "another's flush"); }).join();
  settle();
  EXPECT_EQ(parts.waiter.waits, 0);
}

// ---- what no card does ----

TEST_F(CardsWork, is_refused_before_anything_is_asked_where_no_card_does_it) {
  Region region;
  region.bytes = 4096;
  Operation operation = accumulate(ops::Operator::sum);
  EXPECT_EQ(path_for().check(operation, there, region).text(), "");
  operation.offset = 20;
  EXPECT_EQ(path_for().check(operation, there, region).text(),
            "farsum_accumulate: window 9, rank 1: the window is declared network-only, and a network card updates "
            "elements of 8 bytes at multiples of that only; one of these is 4 bytes behind such a place");
  region.offset = 4;
  EXPECT_EQ(path_for().check(operation, there, region).text(), "") << "it lies 16 bytes behind where the memory is";
  operation.type = ops::ElementType::int16;
  const Status status = path_for().check(operation, there, region);
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_THAT(status.text(), HasSubstr("a network card does not do sum on elements of 2 bytes (int16_t) by itself"));
  operation.kind = OperationKind::put;
  EXPECT_EQ(path_for().check(operation, there, region).text(), "") << "bytes are moved";
}

TEST_F(CardsWork, that_is_computed_here_is_written_only_where_all_was_read) {
  card.refuses = "fetch";
  const Status status = run(accumulate(ops::Operator::prod));
  EXPECT_EQ(status.text(), "farsum_accumulate: window 9, rank 1: the network card: no");
  EXPECT_THAT(card.take(), ElementsAre("fetch 11"));
}

// ---- order ----

class CardsOrder : public CardsWork {
 protected:
  bool fences(const Operation& operation) {
    EXPECT_EQ(run(operation).text(), "");
    const std::vector<std::string> asked = card.take();
    const auto fence = std::find(asked.begin(), asked.end(), "fence 3");
    EXPECT_TRUE(fence == asked.end() || fence == asked.begin()) << "the fence comes too late";
    return fence != asked.end();
  }
};

TEST_F(CardsOrder, lets_sums_pass_sums_and_bits_their_like_and_nothing_else) {
  using ops::Operator;
  EXPECT_FALSE(fences(accumulate(Operator::sum))) << "it is the first";
  EXPECT_FALSE(fences(accumulate(Operator::sum)));
  EXPECT_TRUE(fences(accumulate(Operator::bor)));
  EXPECT_FALSE(fences(accumulate(Operator::bor)));
  EXPECT_TRUE(fences(accumulate(Operator::bxor)));
  EXPECT_TRUE(fences(accumulate(Operator::replace)));
  EXPECT_TRUE(fences(accumulate(Operator::replace))) << "the last one is to win";
  EXPECT_TRUE(fences(accumulate(Operator::sum)));
}

TEST_F(CardsOrder, is_none_of_puts_and_gets) {
  EXPECT_FALSE(fences(accumulate(ops::Operator::replace)));
  EXPECT_FALSE(fences(put()));
  EXPECT_FALSE(fences(get()));
  EXPECT_TRUE(fences(accumulate(ops::Operator::sum))) << "they are not what came last";
}

TEST_F(CardsOrder, begins_anew_behind_a_flush) {
  EXPECT_FALSE(fences(accumulate(ops::Operator::replace)));
  path_for().settle(there, "farsum_flush");
  (void)card.take();
  EXPECT_FALSE(fences(accumulate(ops::Operator::sum)));
}

TEST_F(CardsOrder, is_asked_for_once_by_farsum_order) {
  EXPECT_FALSE(fences(put()));
  parts.order.mark_all();
  EXPECT_TRUE(fences(put()));
  EXPECT_FALSE(fences(put()));
  EXPECT_TRUE(parts.order.is_marked(beyond));
}

TEST_F(CardsOrder, is_not_kept_where_the_window_needs_none) {
  (void)path_for(promise_no_ordering);
  EXPECT_FALSE(fences(accumulate(ops::Operator::sum)));
  EXPECT_FALSE(fences(accumulate(ops::Operator::replace)));
  parts.order.mark_all();
  EXPECT_TRUE(fences(accumulate(ops::Operator::sum))) << "the program has asked";
}

TEST_F(CardsOrder, is_told_where_the_card_keeps_none) {
  EXPECT_FALSE(fences(accumulate(ops::Operator::sum)));
  card.refuses = "fence";
  EXPECT_EQ(run(accumulate(ops::Operator::replace)).text(),
            "farsum_accumulate: window 9, rank 1: the network card: no");
  EXPECT_THAT(card.take(), ElementsAre("fence 3")) << "it was done all the same";
}

// ---- locks, notifications, hearing ----

TEST_F(CardsWork, begins_when_the_lock_is_held) {
  ASSERT_EQ(parts.locks.ask(there, LockMode::exclusive).text(), "");
  parts.waiter.then([this] {
    EXPECT_THAT(card.take(), IsEmpty());
    parts.answer(0);
  });
  EXPECT_EQ(run(put()).text(), "");
  EXPECT_THAT(card.take(), ElementsAre("put 11"));
}

TEST_F(CardsWork, is_none_under_a_lock_that_was_refused) {
  ASSERT_EQ(parts.locks.ask(there, LockMode::exclusive).text(), "");
  parts.waiter.then([this] { parts.answer(0, Code::sync); });
  EXPECT_EQ(run(put()).code(), Code::sync);
  EXPECT_THAT(card.take(), IsEmpty());
  EXPECT_EQ(outstanding(), 0);
  EXPECT_EQ(parts.operations_by(Path::offload), 0);
}

TEST_F(CardsWork, is_through_before_a_notification_is_raised_or_sent) {
  Operation notifying = put();
  notifying.notify = true;
  notifying.notify_slot = 1;
  card.on_wait = [this] {
    EXPECT_EQ(parts.shared[here].notifications()[1].load(), 0);
    EXPECT_THAT(parts.transport.posted, IsEmpty());
  };
  EXPECT_EQ(run(notifying, Completion::implicit, here).text(), "");
  EXPECT_THAT(card.take(), ElementsAre("put 10", "flush 5", "wait"));
  EXPECT_EQ(parts.shared[here].notifications()[1].load(), 1);
  card.on_wait = [this] { EXPECT_THAT(parts.transport.posted, IsEmpty()); };
  EXPECT_EQ(run(notifying).text(), "");
  EXPECT_THAT(card.take(), ElementsAre("put 11", "flush 3", "wait"));
  ASSERT_EQ(parts.transport.posted.size(), 1);
  EXPECT_EQ(parts.header(0).flags, wire::flag_notify);
  EXPECT_EQ(parts.header(0).slot, 1);
  EXPECT_EQ(parts.header(0).bytes, 0);
}

TEST_F(CardsWork, that_failed_notifies_nobody) {
  Operation notifying = put();
  notifying.notify = true;
  card.ends_with = Code::unreachable;
  EXPECT_EQ(run(notifying, Completion::implicit, here).code(), Code::unreachable);
  EXPECT_EQ(parts.shared[here].notifications()[0].load(), 0);
}

TEST_F(CardsWork, is_none_where_a_notification_comes_alone) {
  Operation bare;
  bare.notify = true;
  EXPECT_EQ(path_for().run({.operation = bare, .target = here, .region = nullptr}).text(), "");
  EXPECT_THAT(card.take(), IsEmpty());
  EXPECT_EQ(parts.shared[here].notifications()[0].load(), 1);
  EXPECT_EQ(parts.operations_by(Path::offload), 0);
}

TEST_F(CardsWork, is_heard_of_where_it_tells_of_others) {
  const std::uint64_t before = parts.hearing.times();
  EXPECT_EQ(run(put()).text(), "");
  EXPECT_EQ(run(accumulate(ops::Operator::sum)).text(), "");
  EXPECT_EQ(run(get(), Completion::blocking).text(), "");
  EXPECT_EQ(parts.hearing.times(), before) << "what is only moved tells of nobody";
  std::uint64_t old = 0;
  Operation fetching = accumulate(ops::Operator::sum);
  fetching.kind = OperationKind::get_accumulate;
  fetching.result = reinterpret_cast<std::byte*>(&old);
  fetching.result_layout = ops::LayoutView::contiguous(sizeof old);
  EXPECT_EQ(run(fetching, Completion::blocking).text(), "");
  EXPECT_EQ(parts.hearing.times(), before + 1);
}

}  // namespace
}  // namespace farsum
