// A job whose ranks are threads of the test: one Context each over one NodeSegment, so that a sanitizer sees both sides
// of everything.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/context.hpp"

namespace farsum::test {

struct InProcessRank {
  std::uint32_t rank = 0;
  Context& context;
};

inline Settings on_path(PathChoice path, CallerLock lock = CallerLock::stripe) {
  Settings settings;
  settings.path = path;
  settings.caller_lock = lock;
  return settings;
}

// Runs `body` as each rank, with the settings of that rank; there are as many ranks as settings.
inline void run_in_process(const std::vector<Settings>& settings, const std::function<void(InProcessRank)>& body) {
  const auto ranks = static_cast<std::uint32_t>(settings.size());
  Result<std::unique_ptr<NodeSegment>> made = NodeSegment::create(
      {.ranks = ranks, .segment_bytes = std::uint64_t{1} << 28, .team_bytes = NodeTeamBlock::footprint(ranks)});
  ASSERT_TRUE(made.is_ok()) << made.take_status().text();
  const std::shared_ptr<NodeSegment> segment = std::move(made.value());
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Context::Options options;
      options.settings = settings[rank];
      Result<std::unique_ptr<Context>> context = Context::create({rank, ranks, segment}, options);
      ASSERT_TRUE(context.is_ok()) << context.take_status().text();
      body({rank, *context.value()});
      if (testing::Test::HasFatalFailure()) {
        // The other ranks may wait for this one for ever.
        std::fflush(nullptr);
        std::_Exit(1);
      }
      const Status status = context.value()->finalize();
      EXPECT_TRUE(status.is_ok()) << status.text();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A contiguous operation on 64-bit words.
inline Operation words_operation(OperationKind kind, std::uint64_t offset, std::size_t count, ops::Operator op,
                                 const std::uint64_t* operand, std::uint64_t* result = nullptr) {
  Operation operation;
  operation.kind = kind;
  operation.type = ops::ElementType::uint64;
  operation.op = op;
  operation.offset = offset;
  operation.bytes = count * 8;
  operation.operand = reinterpret_cast<const std::byte*>(operand);
  operation.result = reinterpret_cast<std::byte*>(result);
  operation.operand_layout = operation.target_layout = operation.result_layout =
      ops::LayoutView::contiguous(operation.bytes);
  return operation;
}

}  // namespace farsum::test

#define EXPECT_GOOD(call)                                   \
  do {                                                      \
    const farsum::Status good_status = (call);              \
    EXPECT_TRUE(good_status.is_ok()) << good_status.text(); \
  } while (false)
#define ASSERT_GOOD(call)                                   \
  do {                                                      \
    const farsum::Status good_status = (call);              \
    ASSERT_TRUE(good_status.is_ok()) << good_status.text(); \
  } while (false)
