#include "os/memory_map.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <memory>
#include <thread>

#include "own_map.hpp"

namespace farsum::os {
namespace {

constexpr int read_write = PROT_READ | PROT_WRITE;

char zeroed_data[1 << 20];
int initialized_data[100'000] = {1};
const int constant_data[100'000] = {1};

TEST(MemoryMap, tells_a_line_of_maps_apart) {
  const std::vector<Map> maps = parse_maps(
      "55d0c0000000-55d0c0021000 rw-p 00000000 00:00 0                          [heap]\n"
      "7f0000000000-7f0000002000 r-xs 00001000 fd:01 1234                       /usr/lib/with a space.so (deleted)\n"
      "not a map\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]");

  ASSERT_EQ(maps.size(), 3U);
  EXPECT_EQ(maps[0].name, "[heap]");
  EXPECT_TRUE(maps[0].readable && maps[0].writable && !maps[0].executable && !maps[0].shared);
  EXPECT_EQ(maps[0].bytes(), 0x21000U);
  EXPECT_EQ(maps[1].begin, 0x7f0000000000U);
  EXPECT_TRUE(maps[1].shared && maps[1].executable && !maps[1].writable);
  EXPECT_EQ(maps[1].file_offset, 0x1000U);
  EXPECT_EQ(maps[1].inode, 1234U);
  EXPECT_EQ(maps[1].name, "/usr/lib/with a space.so (deleted)");
  EXPECT_FALSE(maps[2].readable);
}

TEST(MemoryMap, knows_the_stack_of_the_first_and_of_another_thread) {
  int local = 0;
  EXPECT_EQ(classify(&local, sizeof(local)).kind, MemoryKind::stack);
  MemoryKind kind = MemoryKind::unmapped;
  std::thread([&kind] {
    int other = 0;
    kind = classify(&other, sizeof(other)).kind;
  }).join();
  EXPECT_EQ(kind, MemoryKind::stack);
}

TEST(MemoryMap, knows_static_data_initialized_or_not) {
  EXPECT_EQ(classify(zeroed_data, sizeof(zeroed_data)).kind, MemoryKind::static_data);
  EXPECT_EQ(classify(initialized_data, sizeof(initialized_data)).kind, MemoryKind::static_data);
  EXPECT_EQ(classify(constant_data, sizeof(constant_data)).kind, MemoryKind::read_only);
}

TEST(MemoryMap, knows_the_break_segment) {
  void* before = sbrk(static_cast<intptr_t>(test_page_bytes()));
  ASSERT_NE(before, reinterpret_cast<void*>(-1));
  EXPECT_EQ(classify(before, test_page_bytes()).kind, MemoryKind::heap);
}

// Above the largest threshold that malloc ever sets itself for taking memory from the break segment.
TEST(MemoryMap, takes_a_large_malloc_block_for_private_anonymous_memory) {
  constexpr std::size_t bytes = std::size_t{40} << 20;
  const std::unique_ptr<void, decltype(&std::free)> block(std::calloc(bytes, 1), &std::free);
  const MappedRange range = classify(block.get(), bytes);
  EXPECT_EQ(range.kind, MemoryKind::anonymous_private);
  EXPECT_TRUE(range.readable && range.writable);
}

TEST(MemoryMap, knows_anonymous_memory_private_and_shared) {
  const OwnMap own(8192, read_write, MAP_PRIVATE | MAP_ANONYMOUS);
  const OwnMap shared(8192, read_write, MAP_SHARED | MAP_ANONYMOUS);
  EXPECT_EQ(classify(own.data(), own.bytes()).kind, MemoryKind::anonymous_private);
  EXPECT_EQ(classify(shared.data(), shared.bytes()).kind, MemoryKind::anonymous_shared);
}

TEST(MemoryMap, knows_maps_of_files_private_and_shared) {
  const SharedFile file(8192);
  const OwnMap own(8192, read_write, MAP_PRIVATE, file.fd());
  const OwnMap shared(8192, read_write, MAP_SHARED, file.fd());
  EXPECT_EQ(classify(own.data(), own.bytes()).kind, MemoryKind::file_private);
  EXPECT_EQ(classify(shared.data(), shared.bytes()).kind, MemoryKind::file_shared);
}

TEST(MemoryMap, calls_memory_read_only_if_any_byte_of_it_is) {
  const OwnMap map = OwnMap::alone(4 * test_page_bytes());
  ASSERT_EQ(mprotect(map.middle() + test_page_bytes(), test_page_bytes(), PROT_READ), 0);
  const MappedRange range = classify(map.middle(), 4 * test_page_bytes());
  EXPECT_EQ(range.kind, MemoryKind::read_only);
  EXPECT_TRUE(range.readable);
  EXPECT_FALSE(range.writable);
  EXPECT_EQ(range.maps.size(), 3U);
}

TEST(MemoryMap, tells_unmapped_from_partly_mapped) {
  const OwnMap map = OwnMap::alone(8 * test_page_bytes());
  const std::size_t page = test_page_bytes();
  ASSERT_EQ(munmap(map.middle() + 4 * page, 2 * page), 0);
  EXPECT_EQ(classify(map.middle() + 4 * page, 2 * page).kind, MemoryKind::unmapped);
  EXPECT_EQ(classify(map.middle(), 4 * page).kind, MemoryKind::anonymous_private);
  EXPECT_EQ(classify(map.middle(), 4 * page + 1).kind, MemoryKind::partly_mapped);
  EXPECT_EQ(classify(map.middle(), 8 * page).kind, MemoryKind::partly_mapped);
  EXPECT_EQ(classify(map.middle() + 5 * page, 2 * page).kind, MemoryKind::partly_mapped);
}

TEST(MemoryMap, says_mixed_of_neighbours_of_two_kinds) {
  const std::size_t page = test_page_bytes();
  const OwnMap map = OwnMap::alone(2 * page);
  ASSERT_NE(mmap(map.middle() + page, page, read_write, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0), MAP_FAILED);
  EXPECT_EQ(classify(map.middle(), 2 * page).kind, MemoryKind::mixed);
}

TEST(MemoryMap, knows_huge_pages) {
  const std::size_t bytes = std::size_t{2} << 20;
  const OwnMap map(bytes, read_write, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB);
  if (!map.is_mapped()) GTEST_SKIP() << "no huge pages are set aside on this machine";
  EXPECT_EQ(classify(map.data(), bytes).kind, MemoryKind::huge_pages);
}

TEST(MemoryMap, knows_huge_pages_by_their_name) {
  const std::vector<Map> maps = parse_maps("200000-600000 rw-p 00000000 00:0e 77 /anon_hugepage (deleted)\n");
  EXPECT_EQ(classify(reinterpret_cast<void*>(0x200000), 0x1000, maps).kind, MemoryKind::huge_pages);
}

TEST(MemoryMap, takes_a_length_that_wraps_around_to_reach_to_the_end) {
  int local = 0;
  EXPECT_EQ(classify(&local, SIZE_MAX).kind, MemoryKind::partly_mapped);
}

TEST(MemoryMap, describes_a_range_in_words) {
  const OwnMap map = OwnMap::alone(test_page_bytes());
  EXPECT_EQ(classify(map.middle(), 1).describe(), "private anonymous memory, readable and writable, in 1 map");
}

TEST(SpecialFlags, tell_of_locked_memory_and_of_memory_left_out_of_fork) {
  const OwnMap map = OwnMap::alone(4 * test_page_bytes());
  const SpecialFlags plain = special_flags(map.middle(), test_page_bytes());
  if (!plain.known) GTEST_SKIP() << "/proc/self/smaps cannot be read";
  EXPECT_FALSE(plain.locked || plain.left_out_of_fork || plain.huge_pages || plain.fault_handled_by_user);

  ASSERT_EQ(madvise(map.middle(), test_page_bytes(), MADV_DONTFORK), 0);
  EXPECT_TRUE(special_flags(map.middle(), 4 * test_page_bytes()).left_out_of_fork);
  EXPECT_FALSE(special_flags(map.middle() + test_page_bytes(), test_page_bytes()).left_out_of_fork);
  // The address sanitizer turns mlock() into nothing.
  if (syscall(SYS_mlock, map.middle() + 2 * test_page_bytes(), test_page_bytes()) != 0)
    GTEST_SKIP() << "no memory may be locked";
  EXPECT_TRUE(special_flags(map.middle(), 4 * test_page_bytes()).locked);
}

TEST(SpecialFlags, are_read_from_the_maps_of_the_range_alone) {
  constexpr std::string_view smaps =
      "1000-2000 rw-p 00000000 00:00 0 \nSize: 4 kB\nProtectionKey:         0\nVmFlags: rd wr lo um \n"
      "2000-3000 rw-p 00000000 00:00 0 \nSize: 4 kB\nProtectionKey:         3\nVmFlags: rd wr ht dc\n"
      "3000-4000 rw-p 00000000 00:00 0 \nVmFlags: rd wr io gd mg \n";
  const SpecialFlags middle = parse_special_flags(smaps, 0x2000, 0x3000);
  EXPECT_TRUE(middle.known && middle.huge_pages && middle.left_out_of_fork && middle.protection_key);
  EXPECT_FALSE(middle.locked || middle.fault_handled_by_user || middle.device || middle.grows_down || middle.mergeable);
  const SpecialFlags outer = parse_special_flags(smaps, 0x1fff, 0x2000);
  EXPECT_TRUE(outer.locked && outer.fault_handled_by_user && !outer.protection_key);
  EXPECT_FALSE(parse_special_flags(smaps, 0x4000, 0x5000).known);
}

TEST(SpecialFlags, count_what_the_maps_of_the_range_have_on_transparent_huge_pages) {
  constexpr std::string_view smaps =
      "200000-400000 rw-p 00000000 00:00 0 \nAnonHugePages:      2048 kB\nVmFlags: rd wr \n"
      "400000-800000 rw-p 00000000 00:00 0 \nAnonHugePages:      4096 kB\nVmFlags: rd wr hg \n"
      "800000-a00000 rw-p 00000000 00:00 0 \nAnonHugePages:         0 kB\nVmFlags: rd wr \n";
  EXPECT_EQ(parse_special_flags(smaps, 0x200000, 0x400001).transparent_huge_bytes, std::size_t{6} << 20);
  EXPECT_EQ(parse_special_flags(smaps, 0x400000, 0x900000).transparent_huge_bytes, std::size_t{4} << 20);
  EXPECT_EQ(parse_special_flags(smaps, 0x800000, 0x900000).transparent_huge_bytes, 0U);
}

}  // namespace
}  // namespace farsum::os
