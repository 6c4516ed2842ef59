// The owner's half on layouts of many pieces whose operands come and whose results go in small chunks.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "mute_transport.hpp"
#include "ops/layout_steps.hpp"
#include "protocol/owner/service.hpp"
#include "scripted_transport.hpp"

namespace farsum {
namespace {

// Everything that is asked for is this process's, and there at once.
class Reaching final : public MuteTransport {
 public:
  Capabilities capabilities(Rank) const override { return between_hosts; }
  Transfer read(Rank, std::uint64_t address, std::span<std::byte> into, std::uint64_t) override {
    std::memcpy(into.data(), reinterpret_cast<const void*>(address), into.size());
    return Transfer::done;
  }
  Transfer write(Rank, std::uint64_t address, std::span<const std::byte> from, std::uint64_t) override {
    std::memcpy(reinterpret_cast<void*>(address), from.data(), from.size());
    return Transfer::done;
  }
};

constexpr std::uint64_t pieces = 2'000;

class TargetPieces : public testing::Test {
 protected:
  static TargetService::Options options() {
    TargetService::Options made;
    made.pull_bytes = 64;  // eight pieces
    made.kernels = &ops::kernels_for_this_machine();
    return made;
  }

  TargetPieces() {
    service_.attach(transport_);
    for (std::uint64_t i = 0; i < pieces; ++i) {
      list_.push_back({static_cast<std::int64_t>((pieces - 1 - i) * 16), 8});
      operand_[i] = i;
    }
    expose(1);
  }

  // The memory, in so many regions that touch.
  void expose(std::uint64_t regions, const ExposedRegion& last_as = {}) {
    auto exposure = std::make_shared<Exposure>();
    const std::uint64_t bytes = memory_.size() * 8 / regions;
    for (std::uint64_t i = 0; i < regions; ++i) {
      ExposedRegion region;
      region.offset = i * bytes;
      region.bytes = bytes;
      region.memory = reinterpret_cast<std::byte*>(memory_.data()) + i * bytes;
      region.domain.locks = locks_.data();
      region.domain.mask = static_cast<std::uint32_t>(locks_.size() - 1);
      region.domain.key_base = reinterpret_cast<std::uintptr_t>(region.memory);
      exposure->regions.push_back(region);
    }
    exposure->regions.back().read_only = last_as.read_only;
    exposure->regions.back().domain.atomics_only = last_as.domain.atomics_only;
    exposures_.set(window, std::move(exposure));
  }

  Bytes message(OperationKind kind) {
    wire::MessageHeader header;
    header.operation = kind;
    header.type = ops::ElementType::uint64;
    header.op = kind == OperationKind::get ? ops::Operator::no_op : ops::Operator::sum;
    header.window = window;
    header.sequence = ++sequence_;
    header.bytes = pieces * 8;
    if (kind != OperationKind::get) header.flags |= wire::flag_pull;
    if (returns_data(kind)) header.flags |= wire::flag_push;
    header.operand_address = reinterpret_cast<std::uintptr_t>(operand_.data());
    header.result_address = reinterpret_cast<std::uintptr_t>(result_.data());
    const ops::LayoutView layout = ops::LayoutView::indexed(list_);
    header.layout_bytes = static_cast<std::uint32_t>(ops::encoded_bytes(layout));
    Bytes made(sizeof header + header.layout_bytes);
    std::memcpy(made.data(), &header, sizeof header);
    EXPECT_TRUE(ops::encode(layout, std::span(made).subspan(sizeof header)));
    return made;
  }

  // 64 bytes of two regions, without a layout.
  Bytes across_two(OperationKind kind, ops::ElementType type) {
    wire::MessageHeader header;
    header.operation = kind;
    header.type = type;
    header.op = ops::Operator::sum;
    header.window = window;
    header.sequence = ++sequence_;
    header.offset = memory_.size() * 4 - 32;
    header.bytes = 64;
    header.flags |= wire::flag_pull;
    header.operand_address = reinterpret_cast<std::uintptr_t>(operand_.data());
    Bytes made(sizeof header);
    std::memcpy(made.data(), &header, sizeof header);
    return made;
  }

  // Pieces that are looked at.
  std::uint64_t serve(const Bytes& bytes) {
    const std::uint64_t before = ops::pieces_looked_at.load();
    const Served served = service_.on_request(peer, bytes, {}, {});
    EXPECT_EQ(served.kind, Served::Kind::done);
    EXPECT_EQ(served.code, Code::ok);
    return ops::pieces_looked_at.load() - before;
  }

  Reaching transport_;
  ExposureTable exposures_;
  TargetService service_{options(), exposures_};
  std::vector<StripeLock> locks_ = std::vector<StripeLock>(16);
  std::vector<std::uint64_t> memory_ = std::vector<std::uint64_t>(pieces * 2, 7);
  std::vector<std::uint64_t> operand_ = std::vector<std::uint64_t>(pieces);
  std::vector<std::uint64_t> result_ = std::vector<std::uint64_t>(pieces);
  std::vector<ops::Piece> list_;
  std::uint64_t sequence_ = 0;
};

TEST_F(TargetPieces, are_walked_once_whatever_the_chunks_of_their_operand) {
  EXPECT_LE(serve(message(OperationKind::accumulate)), 3 * pieces);
  EXPECT_LE(serve(message(OperationKind::get_accumulate)), 3 * pieces);
  for (std::uint64_t i = 0; i < pieces; ++i) {
    ASSERT_EQ(memory_[(pieces - 1 - i) * 2], 7 + 2 * i);
    ASSERT_EQ(memory_[(pieces - 1 - i) * 2 + 1], 7u);
    ASSERT_EQ(result_[i], 7 + i);
  }
}

TEST_F(TargetPieces, are_walked_once_more_where_they_lie_in_several_regions) {
  expose(4);
  EXPECT_LE(serve(message(OperationKind::accumulate)), 4 * pieces);
  EXPECT_LE(serve(message(OperationKind::get)), 4 * pieces);
  for (std::uint64_t i = 0; i < pieces; ++i) ASSERT_EQ(result_[i], 7 + i);
}

TEST_F(TargetPieces, are_refused_where_one_is_not_exposed) {
  list_[pieces / 2].offset = static_cast<std::int64_t>(memory_.size() * 8 - 4);
  const Served served = service_.on_request(peer, message(OperationKind::accumulate), {}, {});
  EXPECT_EQ(served.code, Code::range);
  EXPECT_EQ(memory_, std::vector<std::uint64_t>(pieces * 2, 7));
}

TEST_F(TargetPieces, are_refused_where_they_go_on_in_a_region_that_they_must_not_touch_so) {
  ExposedRegion read_only, atomics_only;
  read_only.read_only = true;
  atomics_only.domain.atomics_only = true;
  expose(2, read_only);
  const Bytes sum = across_two(OperationKind::accumulate, ops::ElementType::uint64);
  EXPECT_EQ(service_.on_request(peer, sum, {}, {}).code, Code::unreachable);
  expose(2, atomics_only);
  const Bytes of_pairs = across_two(OperationKind::accumulate, ops::ElementType::complex128);
  EXPECT_EQ(service_.on_request(peer, of_pairs, {}, {}).code, Code::type);
  EXPECT_EQ(memory_, std::vector<std::uint64_t>(pieces * 2, 7));
}

}  // namespace
}  // namespace farsum
