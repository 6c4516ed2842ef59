// A job whose ranks are threads of the test: one Context each over one NodeSegment, so that a sanitizer sees both sides
// of everything.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/context.hpp"
#include "transport/ucx/network_probe.hpp"

namespace farsum::test {

struct InProcessRank {
  std::uint32_t rank = 0;
  Context& context;
};

inline Settings on_path(PathChoice path, CallerLock lock = CallerLock::stripe) {
  Settings settings;
  settings.path = path;
  settings.model = "none";  // what the user has measured is no matter here
  settings.caller_lock = lock;
  return settings;
}

// What a thread of the test runs as a rank, from its context to the end. A rank that cannot go on ends the test: the
// others may wait for it for ever.
inline void run_as_rank(Membership membership, const Context::Options& options,
                        const std::function<void(InProcessRank)>& body) {
  const std::uint32_t rank = membership.rank;
  Result<std::unique_ptr<Context>> context = Context::create(std::move(membership), options);
  if (context.is_ok()) {
    body({rank, *context.value()});
  } else {
    ADD_FAILURE() << context.take_status().text();
  }
  if (!context.is_ok() || testing::Test::HasFatalFailure()) {
    std::fflush(nullptr);
    std::_Exit(1);
  }
  const Status status = context.value()->finalize();
  EXPECT_TRUE(status.is_ok()) << status.text();
}

// For so many ranks that are threads of this process; null, with the failure told, where there is none.
inline std::shared_ptr<NodeSegment> segment_of(std::uint32_t ranks) {
  Result<std::unique_ptr<NodeSegment>> made = NodeSegment::create(
      {.ranks = ranks, .segment_bytes = std::uint64_t{1} << 28, .team_bytes = GroupBlock::footprint(ranks)});
  if (made.is_ok()) return std::move(made.value());
  ADD_FAILURE() << made.take_status().text();
  return nullptr;
}

// Runs `body` as each rank, with the settings of that rank; there are as many ranks as settings.
inline void run_in_process(const std::vector<Settings>& settings, const std::function<void(InProcessRank)>& body) {
  const auto ranks = static_cast<std::uint32_t>(settings.size());
  const std::shared_ptr<NodeSegment> segment = segment_of(ranks);
  ASSERT_NE(segment, nullptr);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Context::Options options;
      options.settings = settings[rank];
      run_as_rank({rank, ranks, segment}, options, body);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The same on several nodes: rank r on node node_of[r]. What nodes tell each other goes over the network.
inline void run_on_nodes(const std::vector<std::uint32_t>& node_of, const std::vector<Settings>& settings,
                         const std::function<void(InProcessRank)>& body) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "UCX does not run under ThreadSanitizer";
#endif
  const std::string refusal =
      probe_network(settings[0].ucx_library, settings[0].net_tls, settings[0].net_devices).refusal;
  if (!refusal.empty()) GTEST_SKIP() << refusal;
  const auto ranks = static_cast<std::uint32_t>(node_of.size());
  std::map<std::uint32_t, std::vector<Rank>> here;
  for (Rank rank = 0; rank < ranks; ++rank) here[node_of[rank]].push_back(rank);
  std::map<std::uint32_t, std::shared_ptr<NodeSegment>> segments;
  for (const auto& [node, members] : here) {
    const auto count = static_cast<std::uint32_t>(members.size());
    Result<std::unique_ptr<NodeSegment>> made = NodeSegment::create(
        {.ranks = count, .segment_bytes = std::uint64_t{1} << 28, .team_bytes = GroupBlock::footprint(count)});
    ASSERT_TRUE(made.is_ok()) << made.take_status().text();
    segments[node] = std::move(made.value());
  }
  std::vector<std::byte> gathered;
  std::mutex gathering;
  std::barrier<> met(ranks);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Membership membership{rank, ranks, segments.at(node_of[rank])};
      membership.here = NodeRanks(here.at(node_of[rank]));
      membership.allgather = [&, rank](const void* mine, void* all, std::size_t bytes) -> Status {
        {
          const std::lock_guard lock(gathering);
          gathered.resize(ranks * bytes);
          std::memcpy(gathered.data() + rank * bytes, mine, bytes);
        }
        met.arrive_and_wait();
        std::memcpy(all, gathered.data(), ranks * bytes);
        met.arrive_and_wait();
        return {};
      };
      Context::Options options;
      options.settings = settings[rank];
      options.settings.node_name = "node" + std::to_string(node_of[rank]);
      run_as_rank(std::move(membership), options, body);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

inline void run_on_nodes(const std::vector<std::uint32_t>& node_of, const Settings& settings,
                         const std::function<void(InProcessRank)>& body) {
  run_on_nodes(node_of, std::vector<Settings>(node_of.size(), settings), body);
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
