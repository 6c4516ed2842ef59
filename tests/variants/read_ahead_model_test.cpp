// Reads from copies all together, at random, against a model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "read_ahead_parts.hpp"
#include "sim/seeds.hpp"

namespace farsum {
namespace {

// Words of an owner that anybody changes: each value is the time of its writing. What is sent to the owner arrives in
// order; what it answers arrives in order, too, and a block in two halves.
class Model {
 public:
  explicit Model(std::uint64_t seed) : random_(seed), words_(words), least_(words) {}

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      switch (random_() % 12) {
        case 0:
          words_[any_word()] = ++time_;
          break;
        case 1:
          if (random_() % 4 == 0) hear();
          break;
        case 2:
          if (random_() % 4 == 0) change();
          break;
        case 3:
        case 4:
          serve();
          break;
        case 5:
        case 6:
          deliver();
          break;
        case 7:
          wait();
          break;
        case 8:
          if (random_() % 50 == 0) grow_old();
          break;
        default:
          read();
      }
    }
    while (!sent_.empty()) serve();
    while (!answers_.empty()) deliver();
  }
  std::uint64_t answered() const { return copies_.answered.load(); }

 private:
  static constexpr std::uint64_t words = (2 * block_bytes + 256) / 8;

  struct Change {
    std::uint64_t first, last;
  };
  struct Sent {
    bool is_fetch;
    Fetch fetch;
    Change change;
  };
  struct Answer {
    Fetch fetch;
    Bytes bytes;
    bool is_half_here;
  };

  // Few places, so that they meet.
  std::uint64_t any_word() {
    const std::uint64_t near[] = {0, block_bytes / 8 - 2, block_bytes / 8, 2 * block_bytes / 8 - 1, words - 4};
    return random_() % 4 == 0 ? random_() % words : std::min(words - 1, near[random_() % 5] + random_() % 4);
  }
  void hear() {
    hearing_.hear();
    least_ = words_;
    born_.clear();
  }
  void grow_old() {
    clock_ns += age_ns / 2;
    born_.push_back(words_);
    // What was there two steps ago, and no less, must be seen.
    if (born_.size() > 2) born_.pop_front();
    if (born_.size() == 2) {
      for (std::uint64_t i = 0; i < words; ++i) least_[i] = std::max(least_[i], born_.front()[i]);
    }
  }
  void change() {
    const std::uint64_t first = any_word();
    const std::uint64_t last = std::min(words - 1, first + random_() % 3);
    sent_.push_back({false, {}, {first, last}});
    ahead_.changed(0, 8 * first, 8 * last + 8);
  }
  void serve() {
    if (sent_.empty()) return;
    const Sent sent = sent_.front();
    sent_.pop_front();
    if (!sent.is_fetch) {
      for (std::uint64_t i = sent.change.first; i <= sent.change.last; ++i) words_[i] = least_[i] = ++time_;
      return;
    }
    Bytes bytes(sent.fetch.block.bytes);
    std::memcpy(bytes.data(), words_.data() + sent.fetch.block.offset / 8, bytes.size());
    answers_.push_back({sent.fetch, std::move(bytes), false});
  }
  void deliver() {
    if (answers_.empty()) return;
    Answer& answer = answers_.front();
    const std::size_t half = answer.bytes.size() / 2;
    const std::size_t from = answer.is_half_here ? half : 0, to = answer.is_half_here ? answer.bytes.size() : half;
    std::memcpy(answer.fetch.block.result + from, answer.bytes.data() + from, to - from);
    if (!answer.is_half_here) {
      answer.is_half_here = true;
      return;
    }
    end_fetch(answer.fetch, Code::ok);
    answers_.pop_front();
  }
  void read() {
    const std::uint64_t first = any_word();
    const std::uint64_t count = std::min(words - first, 1 + random_() % 4);
    std::vector<std::uint64_t> result(count, 0);
    Operation operation;
    operation.kind = random_() % 2 == 0 ? OperationKind::get : OperationKind::get_accumulate;
    operation.op = ops::Operator::no_op;
    operation.type = ops::ElementType::uint64;
    operation.offset = 8 * first;
    operation.bytes = 8 * count;
    operation.target_layout = operation.operand_layout = operation.result_layout =
        ops::LayoutView::contiguous(8 * count);
    operation.result = reinterpret_cast<std::byte*>(result.data());
    ASSERT_TRUE(ahead_.is_read(operation));
    if (!ahead_.answer(0, operation)) return ahead_.sent(0, operation);
    for (std::uint64_t i = 0; i < count; ++i) {
      ASSERT_GE(result[i], least_[first + i]) << "word " << first + i;
      ASSERT_LE(result[i], words_[first + i]) << "word " << first + i;
      ASSERT_FALSE(is_changing(first + i)) << "word " << first + i << " was read without an own change";
    }
  }
  void wait() {
    ahead_.end_round(0, [this](const Operation& block, Outstanding& fetches, RequestState& told) {
      if (random_() % 8 == 0) return false;
      fetches.count.fetch_add(1, std::memory_order_relaxed);
      std::fill_n(block.result, block.bytes, garbage);
      sent_.push_back({true, {block, &fetches, &told}, {}});
      return true;
    });
  }
  bool is_changing(std::uint64_t word) const {
    return std::any_of(sent_.begin(), sent_.end(), [word](const Sent& sent) {
      return !sent.is_fetch && sent.change.first <= word && word <= sent.change.last;
    });
  }

  std::mt19937_64 random_;
  std::uint64_t time_ = 0;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> least_;  // that a read may answer
  std::deque<std::vector<std::uint64_t>> born_;
  std::deque<Sent> sent_;
  std::deque<Answer> answers_;
  Hearing hearing_;
  ReadCopies copies_;
  ReadAhead ahead_{{age_ns, &hearing_, &copies_, read_clock}, {8 * words}};
};

TEST(ReadAheadModel, answers_nothing_older_than_the_last_hearing_or_the_last_own_change) {
  std::uint64_t answered = 0, seeds = 0;  // fewer of them with a sanitizer
  for_each_seed(40, [&](std::uint64_t seed) {
    ++seeds;
    clock_ns = 1;
    Model model(seed);
    model.run(20'000);
    answered += model.answered();
  });
  EXPECT_GT(answered, 50 * seeds);
}

}  // namespace
}  // namespace farsum
