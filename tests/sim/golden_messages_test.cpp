// Each kind of message between ranks of two nodes, as windows send it: the bytes that another build would read.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "golden.hpp"
#include "remote_windows.hpp"
#include "runtime/team_exchange.hpp"

namespace farsum {
namespace {

// What rank 0 hears, one message behind the other.
class Heard {
 public:
  explicit Heard(ProtocolJob& job) {
    job.rank(0).on_message = [this](std::span<const std::byte> message) { text_ += words_of(message); };
  }
  // Puts what was heard since the last call under a heading.
  void note(const std::string& heading) {
    EXPECT_NE(text_, "") << heading << " sends nothing";
    all_ += "# " + heading + "\n" + text_;
    text_.clear();
  }
  const std::string& all() const { return all_; }

 private:
  std::string text_, all_;
};

std::vector<std::byte> counted(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i + 1);
  return bytes;
}

Operation float_sum_of(const std::vector<std::byte>& operand, std::uint64_t offset) {
  Operation operation = put_of(operand, offset);
  operation.kind = OperationKind::accumulate;
  operation.type = ops::ElementType::float64;
  operation.op = ops::Operator::sum;
  return operation;
}

TEST(GoldenMessages, of_locks_and_operations_are_as_recorded) {
  RemoteWindows windows(2);
  Heard heard(windows.job);
  const std::vector<std::byte> operand = counted(32), element = counted(8);
  std::vector<std::byte> result(32);
  const auto operate = [&](const Operation& operation, const std::string& name) {
    EXPECT_TRUE(fine(windows[1].operate(operation, 0, Completion::blocking, nullptr)));
    heard.note(name);
  };
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::exclusive)));
  operate(put_of(operand, 64), "lock, exclusive, and put behind it");
  Operation notifying = put_of(operand, 64);
  notifying.notify = true;
  notifying.notify_slot = 3;
  operate(notifying, "put that notifies");
  Operation get = put_of(operand, 8);
  get.kind = OperationKind::get;
  get.operand = nullptr;
  get.result = result.data();
  get.result_layout = ops::LayoutView::contiguous(32);
  operate(get, "get");
  operate(float_sum_of(operand, 128), "accumulate");
  const double alpha = 0.5;
  Operation scaled = float_sum_of(operand, 128);
  scaled.op = ops::Operator::scaled_sum;
  scaled.alpha = &alpha;
  operate(scaled, "scaled sum");
  Operation fetch = float_sum_of(element, 16);
  fetch.kind = OperationKind::get_accumulate;
  fetch.type = ops::ElementType::int64;
  fetch.result = result.data();
  fetch.result_layout = ops::LayoutView::contiguous(8);
  operate(fetch, "get_accumulate");
  Operation swap = fetch;
  swap.kind = OperationKind::compare_and_swap;
  swap.op = ops::Operator::replace;
  swap.compare = operand.data();
  operate(swap, "compare_and_swap");
  EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
  heard.note("unlock");
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  heard.note("lock_all");
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
  heard.note("unlock_all");
  expect_golden("messages_of_operations", heard.all());
}

TEST(GoldenMessages, of_layouts_are_as_recorded) {
  RemoteWindows windows(2);
  Heard heard(windows.job);
  const std::vector<std::byte> operand = counted(32);
  EXPECT_TRUE(fine(windows[1].locks().lock(0, LockMode::shared)));
  const std::array<std::uint64_t, 1> counts{4};
  const std::array<std::int64_t, 1> strides{24};
  Operation strided = put_of(operand, 64);
  strided.target_layout = ops::LayoutView::strided(8, counts, strides);
  EXPECT_TRUE(fine(windows[1].operate(strided, 0, Completion::blocking, nullptr)));
  heard.note("lock, shared, and put behind it, strided");
  const std::array<ops::Piece, 2> pieces{ops::Piece{-16, 24}, ops::Piece{40, 8}};
  Operation indexed = put_of(operand, 64);
  indexed.target_layout = ops::LayoutView::indexed(pieces);
  EXPECT_TRUE(fine(windows[1].operate(indexed, 0, Completion::blocking, nullptr)));
  heard.note("put, indexed");
  EXPECT_TRUE(fine(windows[1].locks().unlock(0)));
  expect_golden("messages_of_layouts", heard.all());
}

TEST(GoldenMessages, of_exposure_epochs_are_as_recorded) {
  RemoteWindows windows(2);
  Heard heard(windows.job);
  const std::array<std::uint32_t, 1> origin{1}, target{0};
  EXPECT_TRUE(fine(windows[1].posts().post(target)));
  windows.settle();
  heard.note("post");
  EXPECT_TRUE(fine(windows[0].posts().post(origin)));
  windows.settle();
  EXPECT_TRUE(fine(windows[1].posts().start(target)));
  EXPECT_TRUE(fine(windows[1].posts().complete()));
  heard.note("complete");
  expect_golden("messages_of_exposure", heard.all());
}

TEST(GoldenMessages, of_gathered_updates_are_as_recorded) {
  RemoteWindows windows(2, {.path = PathChoice::aggregated});
  Heard heard(windows.job);
  const std::vector<std::byte> element = counted(8);
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  heard.note("lock_all");
  for (const std::uint64_t offset : {64, 8, 4000})
    EXPECT_TRUE(fine(windows[1].operate(float_sum_of(element, offset), 0, Completion::implicit, nullptr)));
  EXPECT_TRUE(fine(windows[1].flush_one_target(0)));
  heard.note("scatter");
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
  expect_golden("messages_of_gathered_updates", heard.all());
}

TEST(GoldenMessages, of_leased_updates_are_as_recorded) {
  RemoteWindows windows(2, {.path = PathChoice::caller});
  Heard heard(windows.job);
  const std::vector<std::byte> operand = counted(128);
  EXPECT_TRUE(fine(windows[1].all_locks().lock()));
  heard.note("lock_all");
  EXPECT_TRUE(fine(windows[1].operate(float_sum_of(operand, 64), 0, Completion::blocking, nullptr)));
  heard.note("lease, lease_put");
  EXPECT_TRUE(fine(windows[1].all_locks().unlock()));
  expect_golden("messages_of_leases", heard.all());
}

TEST(GoldenMessages, of_teams_are_as_recorded) {
  ProtocolJob job(1, 2, ProtocolJobOptions{});
  SteppingWaiter waiter(job.world());
  TeamExchange exchange(job.rank(1).engine, waiter);
  Heard heard(job);
  const std::vector<std::byte> text = counted(20);
  std::size_t sent = 0;
  EXPECT_TRUE(exchange.try_send(0, 5, 7, text, sent));
  job.world().run();
  heard.note("team");
  expect_golden("messages_of_teams", heard.all());
}

}  // namespace
}  // namespace farsum
