// Operations on memory that is mapped here and on memory that only copies reach: the same answers, made without a
// window.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "window/copied_path.hpp"
#include "window/mapped_path.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;

// A peer whose memory is this process's; it can be gone.
class OwnMemory final : public Transport {
 public:
  Transfer answer = Transfer::done;
  int reads = 0;
  int writes = 0;

  Capabilities capabilities(Rank) const override { return {.transfers = true}; }
  std::optional<std::uint64_t> try_post(Rank, std::span<const std::byte>, std::span<const std::byte>,
                                        const PostOptions&) override {
    return std::nullopt;
  }
  std::size_t poll_replies(Rank, ReplyHandler&) override { return 0; }
  std::size_t poll_requests(RequestHandler&, std::size_t) override { return 0; }
  void complete(ReplyToken, Code, std::span<const std::byte>) override {}
  Transfer read(Rank, std::uint64_t address, std::span<std::byte> into, std::uint64_t) override {
    ++reads;
    if (answer == Transfer::done) std::memcpy(into.data(), reinterpret_cast<const void*>(address), into.size());
    return answer;
  }
  Transfer write(Rank, std::uint64_t address, std::span<const std::byte> from, std::uint64_t) override {
    ++writes;
    if (answer == Transfer::done) std::memcpy(reinterpret_cast<void*>(address), from.data(), from.size());
    return answer;
  }
};

enum class Way { mapped, attached, by_caller };

class LocalPaths : public testing::TestWithParam<Way> {
 protected:
  LocalPaths() {
    agent_.id = 1;
    region_.bytes = sizeof words;
    region_.owner_address = reinterpret_cast<std::uintptr_t>(words.data());
    region_.domain.locks = &stripe_;
    if (GetParam() != Way::attached) region_.mapped = reinterpret_cast<std::byte*>(words.data());
  }

  Operation operation_of(OperationKind kind, std::uint64_t bytes) {
    Operation operation;
    operation.kind = kind;
    operation.type = ops::ElementType::int64;
    operation.op = ops::Operator::sum;
    operation.bytes = bytes;
    operation.operand = reinterpret_cast<const std::byte*>(operand.data());
    operation.result = reinterpret_cast<std::byte*>(result.data());
    operation.operand_layout = operation.target_layout = operation.result_layout = ops::LayoutView::contiguous(bytes);
    return operation;
  }
  Status run(const Operation& operation) {
    if (GetParam() == Way::mapped) return mapped_.run(operation, 0, region_);
    return GetParam() == Way::attached ? copied_.attach(operation, 0, region_) : copied_.caller(operation, 0, region_);
  }

  std::array<std::int64_t, 4> words = {10, 20, 30, 40};
  std::array<std::int64_t, 4> operand = {1, 2, 3, 4};
  std::array<std::int64_t, 4> result{};
  OwnMemory peer;

 private:
  std::string name_;
  std::vector<Rank> ranks_ = {6};
  LockAgent agent_;
  StripeLock stripe_;
  Region region_;
  WindowTexts texts_{3, name_, ranks_, nullptr};
  MappedPath mapped_{ops::kernels_for_this_machine(), agent_, texts_};
  CopiedPath copied_{{.ranks = ranks_,
                      .transport = peer,
                      .kernels = ops::kernels_for_this_machine(),
                      .agent = agent_,
                      .mapped = mapped_,
                      .texts = texts_}};
};

INSTANTIATE_TEST_SUITE_P(Ways, LocalPaths, testing::Values(Way::mapped, Way::attached, Way::by_caller));

TEST_P(LocalPaths, put_and_get) {
  EXPECT_TRUE(run(operation_of(OperationKind::put, 16)).is_ok());
  EXPECT_EQ(words, (std::array<std::int64_t, 4>{1, 2, 30, 40}));
  EXPECT_TRUE(run(operation_of(OperationKind::get, 32)).is_ok());
  EXPECT_EQ(result, words);
}

TEST_P(LocalPaths, sum_single_elements_and_many) {
  EXPECT_TRUE(run(operation_of(OperationKind::accumulate, 8)).is_ok());
  EXPECT_TRUE(run(operation_of(OperationKind::accumulate, 32)).is_ok());
  EXPECT_EQ(words, (std::array<std::int64_t, 4>{12, 22, 33, 44}));
}

TEST_P(LocalPaths, answer_what_was_there_before) {
  EXPECT_TRUE(run(operation_of(OperationKind::get_accumulate, 32)).is_ok());
  EXPECT_EQ(result, (std::array<std::int64_t, 4>{10, 20, 30, 40}));
  EXPECT_EQ(words, (std::array<std::int64_t, 4>{11, 22, 33, 44}));
}

TEST_P(LocalPaths, swap_where_the_value_is_the_expected_one) {
  const std::array<std::int64_t, 2> expected = {10, 11};
  Operation swap = operation_of(OperationKind::compare_and_swap, 8);
  for (const std::int64_t& value : expected) {
    swap.compare = reinterpret_cast<const std::byte*>(&value);
    EXPECT_TRUE(run(swap).is_ok());
  }
  EXPECT_EQ(words[0], 1);
  EXPECT_EQ(result[0], 1);
}

TEST_P(LocalPaths, go_through_the_kernel_only_where_nothing_is_mapped) {
  EXPECT_TRUE(run(operation_of(OperationKind::accumulate, 32)).is_ok());
  EXPECT_EQ(peer.reads + peer.writes > 0, GetParam() == Way::attached);
}

TEST_P(LocalPaths, say_whose_memory_is_not_there_and_change_nothing) {
  if (GetParam() != Way::attached) GTEST_SKIP() << "only copies can be refused";
  peer.answer = Transfer::refused;
  const Status status = run(operation_of(OperationKind::accumulate, 32));
  EXPECT_EQ(status.code(), Code::unreachable);
  EXPECT_THAT(status.text(), HasSubstr("farsum_accumulate: window 3, rank 0: the kernel refuses"));
  EXPECT_EQ(words, (std::array<std::int64_t, 4>{10, 20, 30, 40}));
}

}  // namespace
}  // namespace farsum
