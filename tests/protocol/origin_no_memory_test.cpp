// What the origin's half promises where an allocation fails: an operation is done or not done, as it was answered, and
// a flush comes to an end.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "failing_operators.hpp"
#include "protocol/messages.hpp"
#include "protocol/origin/engine.hpp"
#include "scripted_transport.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t words = 30'000;  // of the longest operation: several messages

class OriginWithoutMemory : public testing::Test {
 protected:
  void begin(std::size_t room) {
    transport_ = std::make_unique<Scripted>();
    transport_->can.keeps = true;
    transport_->room = room;
    OriginEngine::Options options;
    options.peers = peer + 1;
    options.on_coalescing = [] {};
    engine_ = std::make_unique<OriginEngine>(options, *transport_);
    outstanding_ = std::make_unique<Outstanding>();
    answered_ = 0;
  }

  Operation accumulate(std::uint64_t elements, bool strided = false) {
    Operation operation;
    operation.kind = OperationKind::accumulate;
    operation.type = ops::ElementType::uint64;
    operation.op = ops::Operator::sum;
    operation.bytes = 8 * elements;
    operation.operand = reinterpret_cast<const std::byte*>(buffer_.data());
    if (strided) {
      static constexpr std::int64_t stride = 16;
      count_ = elements;
      operation.target_layout = operation.operand_layout = ops::LayoutView::strided(8, {&count_, 1}, {&stride, 1});
    }
    return operation;
  }
  Operation accumulate_all_over(std::uint64_t elements) {
    pieces_.clear();
    for (std::uint64_t i = 0; i < elements; ++i) pieces_.push_back({static_cast<std::int64_t>(24 * i), 8});
    Operation operation = accumulate(elements);
    operation.target_layout = ops::LayoutView::indexed(pieces_);
    return operation;
  }
  // How many elements the operation adds, if it is taken.
  std::uint64_t submit(const Operation& operation) {
    return engine_->submit(peer, window, operation, *outstanding_, nullptr) ? operation.bytes / 8 : 0;
  }
  std::uint64_t scatter() {
    const std::uint64_t offsets[] = {0, 8, 16};
    const auto elements = std::as_bytes(std::span(buffer_)).first(24);
    return engine_->submit_scatter(peer, window, ops::ElementType::uint64, ops::Operator::sum, nullptr, offsets,
                                   elements, *outstanding_)
               ? 3
               : 0;
  }
  std::uint64_t control() {
    const std::vector<std::byte> body(100);
    wire::MessageHeader header;
    header.kind = wire::MessageKind::team;
    engine_->submit_control(peer, header, body, *outstanding_, nullptr);
    return 0;
  }

  // Answers what was posted, until nothing more is.
  void finish() {
    transport_->room = 1'000'000;
    for (int round = 0; round < 3 || answered_ != transport_->posted.size(); ++round) {
      while (answered_ != transport_->posted.size()) transport_->reply(answered_++);
      engine_->progress(peer);
    }
  }
  std::uint64_t elements_posted() const {
    std::uint64_t sum = 0;
    for (const Scripted::Posted& posted : transport_->posted) {
      wire::MessageHeader header;
      std::memcpy(&header, posted.bytes.data(), sizeof header);
      if (header.kind != wire::MessageKind::team) sum += header.bytes / 8;
    }
    return sum;
  }

  std::vector<std::uint64_t> buffer_ = std::vector<std::uint64_t>(2 * words, 1);
  std::uint64_t count_ = 0;         // of the strided operation that was made last
  std::vector<ops::Piece> pieces_;  // of the scattered one
  std::unique_ptr<Scripted> transport_;
  std::unique_ptr<OriginEngine> engine_;
  std::unique_ptr<Outstanding> outstanding_;
  std::uint64_t answered_ = 0;
};

// Every allocation of the sequence fails once, each in a run of its own.
TEST_F(OriginWithoutMemory, does_an_operation_or_does_not_do_it) {
  const std::function<std::uint64_t()> steps[] = {
      [&] { return submit(accumulate(1)); },          [&] { return submit(accumulate(1)); },
      [&] { return submit(accumulate(4)); },          [&] { return submit(accumulate(100, true)); },
      [&] { return submit(accumulate(1)); },          [&] { return scatter(); },
      [&] { return submit(accumulate(1)); },          [&] { return control(); },
      [&] { return submit(accumulate(3000, true)); }, [&] { return submit(accumulate_all_over(3000)); },
      [&] { return submit(accumulate(1)); },
  };
  for (const std::size_t room : {std::size_t{1'000'000}, std::size_t{3}}) {
    std::size_t failures = 0;
    for (std::size_t after = 0;; ++after) {
      begin(room);
      std::uint64_t taken = 0, thrown = 0;
      bool has_failed = false;
      {
        const FailingMemory memory(after);
        for (const auto& step : steps) {
          try {
            taken += step();
          } catch (const std::bad_alloc&) {
            ++thrown;
          }
        }
        has_failed = FailingMemory::has_failed();
      }
      finish();
      ASSERT_EQ(elements_posted(), taken) << "allocation " << after << " failed, room for " << room;
      ASSERT_EQ(outstanding_->count.load(), 0u) << "allocation " << after << " failed, room for " << room;
      ASSERT_EQ(outstanding_->borrowing.load(), 0u);
      ASSERT_LE(thrown, 1u);
      if (!has_failed) break;
      failures += thrown;
    }
    EXPECT_GT(failures, 20u);
  }
}

// What has left in part cannot be taken back: it ends, and says so, also where the parts were answered already.
TEST_F(OriginWithoutMemory, ends_what_has_left_in_part) {
  std::size_t in_part = 0;
  for (std::size_t after = 0;; ++after) {
    begin(1'000'000);
    transport_->on_poll = [&] {
      while (answered_ != transport_->posted.size()) transport_->reply(answered_++);
    };
    Operation operation = accumulate(words);
    RequestState request;
    bool is_taken = false, has_failed = false;
    {
      const FailingMemory memory(after);
      try {
        is_taken = engine_->submit(peer, window, operation, *outstanding_, &request);
      } catch (const std::bad_alloc&) {
        EXPECT_EQ(transport_->posted.size(), 0u);
      }
      has_failed = FailingMemory::has_failed();
    }
    finish();
    ASSERT_EQ(outstanding_->count.load(), 0u);
    ASSERT_EQ(request.done.load(), is_taken);
    if (is_taken && elements_posted() != words) {
      EXPECT_EQ(request.code.load(), Code::no_memory);
      ++in_part;
    } else if (is_taken) {
      EXPECT_EQ(request.code.load(), Code::ok);
    }
    if (!has_failed) break;
  }
  EXPECT_GT(in_part, 2u);
}

// The flush that comes first finds no memory, the next does.
TEST_F(OriginWithoutMemory, keeps_what_it_had_taken_for_a_later_flush) {
  std::size_t failures = 0;
  for (std::size_t after = 0;; ++after) {
    begin(1'000'000);
    std::uint64_t taken = 0;
    for (int i = 0; i < 5; ++i) taken += submit(accumulate(1));
    bool has_failed = false;
    {
      const FailingMemory memory(after);
      try {
        engine_->progress(peer);
      } catch (const std::bad_alloc&) {
        ++failures;
      }
      has_failed = FailingMemory::has_failed();
    }
    finish();
    ASSERT_EQ(elements_posted(), taken) << after;
    ASSERT_EQ(outstanding_->count.load(), 0u) << after;
    if (!has_failed) break;
    ASSERT_LT(after, 1000u);
  }
  EXPECT_GT(failures, 2u);
}

// A rank that is lost takes with it what is still kept for it.
TEST_F(OriginWithoutMemory, answers_what_is_kept_for_a_rank_that_fails) {
  begin(1'000'000);
  for (int i = 0; i < 5; ++i) submit(accumulate(1));
  const std::size_t posted = transport_->posted.size();
  engine_->fail_peer(peer);
  EXPECT_EQ(transport_->posted.size(), posted);
  EXPECT_EQ(outstanding_->count.load(), 0u);
  EXPECT_EQ(outstanding_->failure.load(), Code::peer_failed);
}

}  // namespace
}  // namespace farsum
