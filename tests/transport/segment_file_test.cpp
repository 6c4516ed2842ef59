// The file of the node segment, without the segment.
#include "transport/shm/segment_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include <gmock/gmock.h>

#include "base/units.hpp"
#include "mib.hpp"
#include "transport/heap_alone.hpp"
#include "transport/shm/node_header.hpp"

namespace farsum {
namespace {

constexpr SegmentFile::Options of_two_ranks = {.ranks = 2, .segment_bytes = 64 * test::mib, .team_bytes = page_bytes};

int empty_file_in_memory() { return memfd_create("segment", MFD_CLOEXEC); }

std::uint64_t length_of(const SegmentFile& file) { return static_cast<std::uint64_t>(lseek(file.fd(), 0, SEEK_END)); }

TEST(SegmentFileTest, is_initialised_by_the_first_who_comes) {
  SegmentFile file(empty_file_in_memory(), of_two_ranks.segment_bytes);
  EXPECT_EQ(SegmentFile::prepare(file.fd(), of_two_ranks).value(), of_two_ranks.segment_bytes);
  EXPECT_EQ(file.read_word(offsetof(NodeHeader, magic)), segment_magic);
  EXPECT_EQ(file.read_word(offsetof(NodeHeader, segment_bytes)), of_two_ranks.segment_bytes);
  const auto tag = file.read_word(offsetof(NodeHeader, wake_tag));
  EXPECT_EQ(SegmentFile::prepare(file.fd(), of_two_ranks).value(), of_two_ranks.segment_bytes);
  EXPECT_EQ(file.read_word(offsetof(NodeHeader, wake_tag)), tag);
}

TEST(SegmentFileTest, has_words_up_to_its_end) {
  SegmentFile file(empty_file_in_memory(), of_two_ranks.segment_bytes);
  ASSERT_TRUE(SegmentFile::prepare(file.fd(), of_two_ranks).is_ok());
  file.write_word(file.bytes() - 8, 7);
  EXPECT_EQ(file.read_word(file.bytes() - 8), 7U);
  EXPECT_FALSE(file.read_word(file.bytes()).has_value());
  const std::uint64_t resident = file.resident_bytes();
  file.punch({file.bytes() - page_bytes, page_bytes});
  EXPECT_EQ(file.read_word(file.bytes() - 8), 0U);
  EXPECT_EQ(file.resident_bytes(), resident - page_bytes);
}

// A head in this process's memory, of a context of two ranks.
class LeftFile : public ::testing::Test {
 protected:
  LeftFile() {
    EXPECT_TRUE(SegmentFile::prepare(file_.fd(), of_two_ranks).is_ok());
    header_->ranks = 2;
  }

  SegmentFile file_{empty_file_in_memory(), of_two_ranks.segment_bytes};
  std::unique_ptr<NodeHeader> header_ = std::make_unique<NodeHeader>();
  std::vector<RankBlock> ranks_ = std::vector<RankBlock>(2);
};

TEST_F(LeftFile, is_emptied_by_the_last_who_leaves) {
  file_.leave(*header_, ranks_[1], false);
  EXPECT_EQ(ranks_[1].left.load(std::memory_order_relaxed), 1U);
  EXPECT_EQ(length_of(file_), of_two_ranks.segment_bytes);
  file_.leave(*header_, ranks_[0], false);
  EXPECT_EQ(length_of(file_), 0U);
}

TEST_F(LeftFile, stays_where_a_rank_left_memory_of_its_program_in_it) {
  file_.leave(*header_, ranks_[1], true);
  file_.leave(*header_, ranks_[0], false);
  EXPECT_EQ(length_of(file_), of_two_ranks.segment_bytes);
}

TEST_F(LeftFile, that_keeps_such_memory_takes_no_further_context) {
  static_assert(offsetof(NodeHeader, keeps_memory) == offsetof(NodeHeader, left) + 4);
  file_.write_word(offsetof(NodeHeader, left), std::uint64_t{1} << 32 | 1);
  const Status refused = SegmentFile::prepare(file_.fd(), of_two_ranks).take_status();
  EXPECT_EQ(refused.code(), Code::system);
  EXPECT_THAT(refused.text(), testing::HasSubstr("left user memory promoted"));
}

TEST_F(LeftFile, in_which_a_rank_died_takes_no_further_context) {
  const std::uint64_t second = *file_.read_word(offsetof(NodeHeader, rank_blocks)) + sizeof(RankBlock);
  static_assert(offsetof(RankBlock, pid) == offsetof(RankBlock, left) + 4);
  file_.write_word(second + offsetof(RankBlock, left), static_cast<std::uint64_t>(test::ended_process()) << 32);
  file_.write_word(offsetof(NodeHeader, left), 1);
  const Status refused = SegmentFile::prepare(file_.fd(), of_two_ranks).take_status();
  EXPECT_EQ(refused.code(), Code::peer_failed);
  EXPECT_THAT(refused.text(), testing::StartsWith("rank 1 of the job died before it had left"));
}

}  // namespace
}  // namespace farsum
