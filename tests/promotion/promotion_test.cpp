#include "promotion/promotion.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <future>
#include <thread>
#include <vector>

#include "mib.hpp"
#include "os/memory_map.hpp"
#include "os/own_map.hpp"

namespace farsum::os {
namespace {

using test::mib;
constexpr int read_and_write = PROT_READ | PROT_WRITE;

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// A block of malloc as a window: large ones have a map of their own, with malloc's header in the first page.
class Block {
 public:
  explicit Block(std::size_t bytes) : data_(static_cast<std::byte*>(std::malloc(bytes))) { fill(data_, bytes, 9); }
  ~Block() { std::free(data_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  std::byte* data() const { return data_; }
  std::byte* release() { return std::exchange(data_, nullptr); }

 private:
  std::byte* data_;
};

// Of one kind and with nothing promoted; malloc decides which of the two kinds.
bool is_private(const void* address, std::size_t bytes) {
  const MemoryKind kind = classify(address, bytes).kind;
  return kind == MemoryKind::anonymous_private || kind == MemoryKind::heap;
}

char large_zeroed_data[1 * mib];
char large_initialized_data[1 * mib] = {1};

class PromotionTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(file_.is_made());
    const OwnMap probe = OwnMap::alone(1 * mib);
    const Examination found = examine(probe.middle(), 1 * mib);
    if (!found.ok()) GTEST_SKIP() << "nothing can be promoted here: " << found.refusal;
  }

  // Promotes to an extent that nobody has used, and says what stands in the way if it fails.
  Promotion promote(const void* address, std::size_t bytes) {
    const Examination found = registry_.examine(address, bytes);
    EXPECT_EQ(found.refusal, "");
    PromotionOutcome outcome = registry_.promote(found, file_.fd(), next_offset_);
    EXPECT_EQ(outcome.refusal, "");
    next_offset_ += (found.bytes + 4 * mib - 1) / mib * mib;
    return std::move(outcome.promotion);
  }

  std::string refusal_of(const void* address, std::size_t bytes) const {
    return registry_.examine(address, bytes).refusal;
  }

  void expect_restored(Promotion& promotion) {
    const ReleaseOutcome outcome = registry_.release(promotion);
    EXPECT_EQ(outcome.demotion, Demotion::restored) << outcome.reason;
    EXPECT_TRUE(outcome.extent_is_free());
  }

  SharedFile file_{std::size_t{1} << 40};
  PromotionRegistry registry_;
  std::uint64_t next_offset_ = 3 * mib;
};

class PromotedBlock : public PromotionTest, public testing::WithParamInterface<std::size_t> {};

// The last two straddle the step of 64 MiB in which stretches move.
INSTANTIATE_TEST_SUITE_P(sizes, PromotedBlock,
                         testing::Values(300 * 1024, 720 * 1024, 5 * mib + 77, 64 * mib, 64 * mib + 12'345));

TEST_P(PromotedBlock, keeps_its_contents_and_address_there_and_back) {
  const std::size_t bytes = GetParam();
  const Block block(bytes);
  Promotion promotion = promote(block.data(), bytes);
  ASSERT_TRUE(promotion);
  EXPECT_EQ(classify(reinterpret_cast<void*>(promotion.address()), promotion.bytes()).kind, MemoryKind::file_shared);
  EXPECT_GT(promotion.bytes() + 2 * test_page_bytes(), bytes);
  EXPECT_TRUE(is_filled(block.data(), bytes, 9));

  // The owner's stores are in the file, and a peer's are in the owner's memory.
  fill(block.data(), bytes, 10);
  const std::size_t edge = promotion.address() - address_of(block.data());
  std::vector<std::byte> seen(promotion.bytes());
  ASSERT_EQ(pread(file_.fd(), seen.data(), seen.size(), static_cast<off_t>(promotion.file_offset())),
            static_cast<ssize_t>(seen.size()));
  EXPECT_EQ(std::memcmp(seen.data(), block.data() + edge, seen.size()), 0);

  expect_restored(promotion);
  EXPECT_FALSE(promotion);
  EXPECT_TRUE(is_private(block.data(), bytes));
  EXPECT_TRUE(is_filled(block.data(), bytes, 10));
}

class PromotedInPart : public PromotionTest, public testing::WithParamInterface<TouchedPages::Source> {
 protected:
  std::size_t bytes_of_file() const {
    struct stat status {};
    EXPECT_EQ(fstat(file_.fd(), &status), 0);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  }
};

INSTANTIATE_TEST_SUITE_P(sources, PromotedInPart,
                         testing::Values(TouchedPages::Source::scan, TouchedPages::Source::entries));

TEST_P(PromotedInPart, leaves_pages_alone_that_were_never_touched) {
  const std::size_t page = test_page_bytes();
  const OwnMap map = OwnMap::alone(200 * mib);
  const Stretch all = stretch_of(map.middle(), 200 * mib);
  const std::size_t written[] = {0, 7, 8, 100 * mib / page, 200 * mib / page - 1};
  for (const std::size_t index : written) fill(map.middle() + index * page, page, static_cast<std::uint32_t>(index));
  PromotionRules rules;
  rules.touched_pages = GetParam();
  const Examination found = registry_.examine(map.middle(), 200 * mib, rules);
  ASSERT_EQ(found.refusal, "");
  EXPECT_EQ(found.touched_bytes, std::size(written) * page);
  const std::size_t before = bytes_of_file();
  PromotionOutcome outcome = registry_.promote(found, file_.fd(), 3 * mib, rules);
  ASSERT_EQ(outcome.refusal, "");
  EXPECT_EQ(bytes_of_file(), before + std::size(written) * page);
  // A peer touches one more.
  const std::uint64_t word = 77;
  ASSERT_EQ(pwrite(file_.fd(), &word, sizeof word, static_cast<off_t>(3 * mib + 50 * page)), sizeof word);
  std::uint64_t seen = 0;
  std::memcpy(&seen, map.middle() + 50 * page, sizeof seen);
  EXPECT_EQ(seen, word);
  expect_restored(outcome.promotion);
  EXPECT_EQ(TouchedPages().bytes_in(all), (std::size(written) + 1) * page);
  for (const std::size_t index : written) {
    EXPECT_TRUE(is_filled(map.middle() + index * page, page, static_cast<std::uint32_t>(index)));
  }
  std::memcpy(&seen, map.middle() + 50 * page, sizeof seen);
  EXPECT_EQ(seen, word);
}

TEST_P(PromotedInPart, gives_a_forked_child_what_is_there) {
  const std::size_t page = test_page_bytes();
  const OwnMap map = OwnMap::alone(10 * mib);
  fill(map.middle() + 5 * mib, page, 3);
  Promotion promotion = promote(map.middle(), 10 * mib);
  EXPECT_EQ(run_in_child([&] {
              const bool is_right = is_filled(map.middle() + 5 * mib, page, 3) && map.middle()[9 * mib] == std::byte{};
              return is_right && TouchedPages().bytes_in(stretch_of(map.middle(), 8 * mib)) == page ? 0 : 1;
            }),
            0);
  expect_restored(promotion);
}

// Some programs close all descriptors that they know nothing of, and give out the numbers anew.
TEST_F(PromotionTest, keeps_its_contents_where_the_program_has_closed_the_file) {
  const OwnMap map = OwnMap::alone(4 * mib);
  fill(map.middle(), 4 * mib, 3);
  const int fd = dup(file_.fd());
  const Examination found = registry_.examine(map.middle(), 4 * mib);
  PromotionOutcome outcome = registry_.promote(found, fd, 3 * mib);
  ASSERT_EQ(outcome.refusal, "");
  const SharedFile other(64 * mib);
  ASSERT_EQ(dup2(other.fd(), fd), fd);
  EXPECT_EQ(run_in_child([&] { return is_filled(map.middle(), 4 * mib, 3) ? 0 : 1; }), 0);
  expect_restored(outcome.promotion);
  EXPECT_TRUE(is_filled(map.middle(), 4 * mib, 3));
  close(fd);
}

TEST_F(PromotionTest, lets_a_peer_write_the_owners_memory) {
  const Block block(1 * mib);
  Promotion promotion = promote(block.data(), 1 * mib);
  ASSERT_TRUE(promotion);
  auto* counter = reinterpret_cast<std::uint64_t*>(promotion.address());
  *counter = 41;
  EXPECT_EQ(run_in_child([&] {
              void* mapped = mmap(nullptr, promotion.bytes(), read_and_write, MAP_SHARED, file_.fd(),
                                  static_cast<off_t>(promotion.file_offset()));
              if (mapped == MAP_FAILED) return 1;
              return std::atomic_ref(*static_cast<std::uint64_t*>(mapped)).fetch_add(1) == 41 ? 0 : 2;
            }),
            0);
  EXPECT_EQ(*counter, 42U);
  expect_restored(promotion);
  EXPECT_EQ(*counter, 42U);
}

TEST_F(PromotionTest, leaves_the_edge_pages_private) {
  const OwnMap map = OwnMap::alone(1 * mib);
  const std::size_t page = test_page_bytes();
  Promotion promotion = promote(map.middle() + 1, 1 * mib - 2);
  EXPECT_EQ(promotion.address(), address_of(map.middle() + page));
  EXPECT_EQ(promotion.bytes(), 1 * mib - 2 * page);
  EXPECT_EQ(classify(map.middle(), page).kind, MemoryKind::anonymous_private);
  EXPECT_EQ(classify(map.middle() + 1 * mib - page, page).kind, MemoryKind::anonymous_private);
  expect_restored(promotion);
}

TEST_F(PromotionTest, takes_zeroed_static_data_but_not_data_of_a_file) {
  large_zeroed_data[5000] = 7;
  Promotion promotion = promote(large_zeroed_data, sizeof(large_zeroed_data));
  EXPECT_EQ(large_zeroed_data[5000], 7);
  expect_restored(promotion);
  EXPECT_EQ(large_zeroed_data[5000], 7);
  EXPECT_EQ(refusal_of(large_initialized_data, sizeof(large_initialized_data)),
            "the range is static data that belongs to a file");
}

// Afterwards malloc finds room without moving the break.
void keep_room_in_malloc() {
  constexpr int most = 32 * static_cast<int>(mib);
  mallopt(M_MMAP_THRESHOLD, most);
  mallopt(M_TRIM_THRESHOLD, most);
  std::free(std::malloc(4 * mib));
}

TEST_F(PromotionTest, takes_a_large_part_of_the_break_segment) {
  keep_room_in_malloc();
  auto* heap = static_cast<std::byte*>(sbrk(2 * mib));
  ASSERT_NE(heap, reinterpret_cast<std::byte*>(-1));
  fill(heap, 2 * mib, 4);
  Promotion promotion = promote(heap, 2 * mib);
  // The break goes on growing above, and may shrink below what was promoted.
  const auto* more = static_cast<std::byte*>(sbrk(1 * mib));
  EXPECT_EQ(more, heap + 2 * mib);
  EXPECT_TRUE(is_filled(heap, 2 * mib, 4));
  ASSERT_NE(sbrk(-2 * static_cast<intptr_t>(mib)), reinterpret_cast<void*>(-1));
  expect_restored(promotion);
  EXPECT_TRUE(is_filled(heap, 1 * mib, 4));
  EXPECT_EQ(classify(heap, 1 * mib).kind, MemoryKind::heap);
  ASSERT_NE(sbrk(-static_cast<intptr_t>(mib)), reinterpret_cast<void*>(-1));
}

// ---- refusals ----

TEST_F(PromotionTest, moves_nothing_while_peers_copy_from_and_to_the_process) {
  const Block block(2 * mib), other(2 * mib);
  Promotion promotion = promote(block.data(), 2 * mib);
  ASSERT_TRUE(promotion);
  fill(other.data(), 2 * mib, 11);
  ASSERT_TRUE(registry_.begin_copies());
  const Examination found = registry_.examine(other.data(), 2 * mib);
  const PromotionOutcome outcome = registry_.promote(found, file_.fd(), next_offset_);
  EXPECT_NE(outcome.refusal.find("another thread reduces"), std::string::npos) << outcome.refusal;
  const ReleaseOutcome kept = registry_.release(promotion);
  EXPECT_EQ(kept.demotion, Demotion::kept);
  EXPECT_NE(kept.reason.find("another thread reduces"), std::string::npos) << kept.reason;
  registry_.end_copies();
  const std::vector<ReleaseOutcome> tried = registry_.retry_releases();
  ASSERT_EQ(tried.size(), 1u);
  EXPECT_EQ(tried[0].demotion, Demotion::restored) << tried[0].reason;
  Promotion later = promote(other.data(), 2 * mib);
  EXPECT_TRUE(is_filled(other.data(), 2 * mib, 11));
  expect_restored(later);
}

TEST_F(PromotionTest, refuses_a_range_without_a_whole_page) {
  const OwnMap map = OwnMap::alone(1 * mib);
  const std::size_t page = test_page_bytes();
  EXPECT_EQ(refusal_of(map.middle(), 0), "the range has no whole page");
  EXPECT_EQ(refusal_of(map.middle(), page - 1), "the range has no whole page");
  EXPECT_EQ(refusal_of(map.middle() + 1, 2 * page - 2), "the range has no whole page");
  EXPECT_NE(refusal_of(map.middle() + 1, 2 * page), "the range has no whole page");
}

TEST_F(PromotionTest, refuses_a_small_part_of_a_map_but_not_a_small_map) {
  const std::size_t page = test_page_bytes();
  const OwnMap large = OwnMap::alone(1 * mib);
  EXPECT_EQ(refusal_of(large.middle(), 63 * page), "the range has only 63 whole pages, a small part of its map");
  EXPECT_EQ(refusal_of(large.middle(), 64 * page), "");
  const OwnMap small = OwnMap::alone(8 * page);
  EXPECT_EQ(refusal_of(small.middle(), 8 * page), "");
  EXPECT_EQ(refusal_of(small.middle(), 7 * page), "");
  EXPECT_EQ(refusal_of(small.middle(), 6 * page), "the range has only 6 whole pages, a small part of its map");
}

TEST_F(PromotionTest, refuses_memory_of_other_kinds_by_name) {
  const std::size_t bytes = 1 * mib;
  const OwnMap shared(bytes, read_and_write, MAP_SHARED | MAP_ANONYMOUS);
  const OwnMap file_shared(bytes, read_and_write, MAP_SHARED, file_.fd());
  const OwnMap file_private(bytes, read_and_write, MAP_PRIVATE, file_.fd());
  const OwnMap read_only(bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
  const OwnMap executable(bytes, read_and_write | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS);
  std::array<std::byte, 64 * 1024> on_stack{};
  EXPECT_EQ(refusal_of(shared.data(), bytes), "the range is shared anonymous memory, readable and writable, in 1 map");
  EXPECT_EQ(refusal_of(file_shared.data(), bytes),
            "the range is a shared map of a file, readable and writable, in 1 map");
  EXPECT_EQ(refusal_of(file_private.data(), bytes),
            "the range is a private map of a file, readable and writable, in 1 map");
  EXPECT_EQ(refusal_of(read_only.data(), bytes), "the range is read-only memory, readable and not writable, in 1 map");
  EXPECT_EQ(refusal_of(executable.data(), bytes), "the range is executable or not readable");
  EXPECT_EQ(refusal_of(on_stack.data(), on_stack.size()), "the range is the stack, readable and writable, in 1 map");
}

TEST_F(PromotionTest, refuses_a_range_with_a_hole) {
  const OwnMap map = OwnMap::alone(1 * mib);
  ASSERT_EQ(munmap(map.middle() + 512 * 1024, test_page_bytes()), 0);
  EXPECT_EQ(refusal_of(map.middle(), 1 * mib),
            "the range is partly mapped memory, not readable and not writable, in 2 maps");
}

TEST_F(PromotionTest, refuses_huge_pages) {
  const OwnMap map(2 * mib, read_and_write, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB);
  if (!map.is_mapped()) GTEST_SKIP() << "no huge pages are set aside on this machine";
  EXPECT_EQ(refusal_of(map.data(), 2 * mib), "the range is huge pages, readable and writable, in 1 map");
}

TEST_F(PromotionTest, refuses_memory_with_properties_that_would_be_lost) {
  const OwnMap left_out = OwnMap::alone(1 * mib);
  ASSERT_EQ(madvise(left_out.middle(), 1 * mib, MADV_DONTFORK), 0);
  EXPECT_NE(refusal_of(left_out.middle(), 1 * mib).find("MADV_DONTFORK"), std::string::npos);
  const OwnMap locked = OwnMap::alone(1 * mib);
  if (syscall(SYS_mlock, locked.middle(), test_page_bytes()) != 0) GTEST_SKIP() << "no memory may be locked";
  EXPECT_EQ(refusal_of(locked.middle(), 1 * mib), "the range is locked in memory");
}

TEST_F(PromotionTest, refuses_while_other_threads_run_that_may_not_be_held_unless_they_are_named_as_parked) {
  const OwnMap map = OwnMap::alone(1 * mib);
  std::promise<pid_t> thread_id;
  std::promise<void> leave;
  std::thread other([&] {
    thread_id.set_value(gettid());
    leave.get_future().wait();
  });
  const pid_t id = thread_id.get_future().get();
  PromotionRules rules;
  rules.may_hold_threads = false;
  EXPECT_EQ(examine(map.middle(), 1 * mib, rules).refusal,
            "the process has other threads (" + std::to_string(id) +
                "), and they may not be held (FARSUM_HOLD_THREADS=refuse)");
  rules.parked_threads = {id};
  EXPECT_TRUE(examine(map.middle(), 1 * mib, rules).ok());
  leave.set_value();
  other.join();
}

TEST_F(PromotionTest, refuses_while_something_may_hold_on_to_pages) {
  const OwnMap map = OwnMap::alone(1 * mib);
  aio_context_t context = 0;
  if (syscall(SYS_io_setup, 4, &context) != 0) GTEST_SKIP() << "no native asynchronous I/O here";
  EXPECT_EQ(refusal_of(map.middle(), 1 * mib),
            "the process uses native asynchronous I/O, which may hold on to its pages");
  syscall(SYS_io_destroy, context);
}

TEST_F(PromotionTest, refuses_while_an_io_uring_is_open) {
  const OwnMap map = OwnMap::alone(1 * mib);
  std::array<std::uint64_t, 64> parameters{};  // larger than struct io_uring_params
  const auto ring = static_cast<int>(syscall(SYS_io_uring_setup, 4, parameters.data()));
  if (ring < 0) GTEST_SKIP() << "no io_uring here";
  EXPECT_NE(refusal_of(map.middle(), 1 * mib).find("io_uring"), std::string::npos);
  close(ring);
}

TEST_F(PromotionTest, refuses_when_the_process_has_many_maps) {
  const OwnMap map = OwnMap::alone(1 * mib);
  PromotionRules rules;
  rules.most_share_of_maps = 0.0;
  EXPECT_NE(examine(map.middle(), 1 * mib, rules).refusal.find("maps already"), std::string::npos);
}

TEST_F(PromotionTest, refuses_an_extent_that_does_not_fit_and_changes_nothing) {
  const Block block(1 * mib);
  const Examination found = registry_.examine(block.data(), 1 * mib);
  const SharedFile small(64 * 1024);
  EXPECT_EQ(registry_.promote(found, file_.fd(), 100).refusal, "the extent does not begin at a page");
  EXPECT_EQ(registry_.promote(found, small.fd(), 0).refusal, "the extent lies outside its file");
  EXPECT_FALSE(registry_.promote(found, -1, 0).ok());
  EXPECT_TRUE(is_private(block.data(), 1 * mib));
  EXPECT_TRUE(is_filled(block.data(), 1 * mib, 9));
  EXPECT_EQ(registry_.promoted_bytes(), 0U);
}

TEST_F(PromotionTest, refuses_a_file_above_the_limit_on_file_size_instead_of_dying) {
  const Block block(1 * mib);
  const Examination found = registry_.examine(block.data(), 1 * mib);
  EXPECT_EQ(run_in_child([&] {
              const rlimit limit{.rlim_cur = 64 * 1024, .rlim_max = 64 * 1024};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
              const PromotionOutcome outcome = registry_.promote(found, file_.fd(), 0);
              return outcome.refusal.find("RLIMIT_FSIZE") != std::string::npos ? 0 : 1;
            }),
            0);
}

// The child has a file system with room for 70 MiB: the second step fails.
int promote_into_too_small_a_file_system(PromotionRegistry& registry, const Examination& found) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
  if (mount("none", "/tmp", "tmpfs", 0, "size=70m") != 0) return 77;
  const int fd = open("/tmp/extent", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, 100 * mib) != 0) return 1;
  const PromotionOutcome outcome = registry.promote(found, fd, 0);
  return outcome.refusal == "the range cannot be moved into its extent: No space left on device" ? 0 : 2;
}

// `around` calls what it is given in the child, alone or beside threads.
template <class Around>
void expect_everything_back_when_the_file_is_full(PromotionRegistry& registry, Around around) {
  const std::size_t bytes = 80 * mib;
  const OwnMap map = OwnMap::alone(bytes);
  fill(map.middle(), bytes, 5);
  const int status = run_in_child([&] {
    const int failed =
        around([&] { return promote_into_too_small_a_file_system(registry, registry.examine(map.middle(), bytes)); });
    if (failed != 0) return failed;
    if (classify(map.middle(), bytes).kind != MemoryKind::anonymous_private) return 3;
    return is_filled(map.middle(), bytes, 5) && registry.promoted_bytes() == 0 ? 0 : 4;
  });
  if (status == 77) GTEST_SKIP() << "no file system can be mounted for this test";
  EXPECT_EQ(status, 0);
}

TEST_F(PromotionTest, puts_everything_back_when_the_file_is_full_midway) {
  expect_everything_back_when_the_file_is_full(registry_, [](auto promote) { return promote(); });
}

// ---- sharing ----

TEST_F(PromotionTest, is_shared_by_windows_over_the_same_memory) {
  const OwnMap map = OwnMap::alone(1 * mib);
  Promotion first = promote(map.middle(), 1 * mib);
  EXPECT_EQ(refusal_of(map.middle(), 1 * mib), "part of the range is promoted for another window");
  Promotion same = registry_.share(map.middle(), 1 * mib);
  Promotion inner = registry_.share(map.middle() + 100, 1000);
  ASSERT_TRUE(same && inner);
  EXPECT_EQ(same.file_offset(), first.file_offset());
  EXPECT_EQ(inner.address(), address_of(map.middle() + 100));
  EXPECT_EQ(inner.bytes(), 1000U);
  EXPECT_EQ(inner.file_offset(), first.file_offset() + 100);

  EXPECT_EQ(registry_.release(first).demotion, Demotion::still_shared);
  EXPECT_EQ(registry_.release(inner).demotion, Demotion::still_shared);
  EXPECT_EQ(registry_.promoted_bytes(), 1 * mib);
  expect_restored(same);
  EXPECT_EQ(registry_.promoted_bytes(), 0U);
  EXPECT_EQ(registry_.release(same).demotion, Demotion::kept);
}

TEST_F(PromotionTest, is_not_shared_with_a_window_that_reaches_beyond_it) {
  const OwnMap map = OwnMap::alone(2 * mib);
  Promotion first = promote(map.middle(), 1 * mib);
  EXPECT_FALSE(registry_.share(map.middle(), 1 * mib + test_page_bytes()));
  EXPECT_FALSE(registry_.share(map.middle() + 1 * mib, 100));
  EXPECT_FALSE(registry_.share(map.middle(), 0));
  EXPECT_EQ(refusal_of(map.middle(), 2 * mib), "part of the range is promoted for another window");
  // A window that only sticks out by less than a page shares what there is.
  Promotion wider = registry_.share(map.middle() + 1, 1 * mib);
  EXPECT_EQ(wider.bytes(), 1 * mib - 1);
  EXPECT_EQ(registry_.release(wider).demotion, Demotion::still_shared);
  expect_restored(first);
  EXPECT_EQ(refusal_of(map.middle(), 2 * mib), "");
}

TEST_F(PromotionTest, of_another_registry_is_refused) {
  const OwnMap map = OwnMap::alone(1 * mib);
  Promotion promotion = promote(map.middle(), 1 * mib);
  PromotionRegistry other;
  EXPECT_FALSE(other.share(map.middle(), 1 * mib));
  EXPECT_EQ(other.examine(map.middle(), 1 * mib).refusal,
            "the range is a shared map of a file, readable and writable, in 1 map");
  EXPECT_EQ(other.release(promotion).demotion, Demotion::kept);
}

// ---- going back ----

TEST_F(PromotionTest, is_kept_while_other_threads_run_that_may_not_be_held_and_goes_back_later) {
  const OwnMap map = OwnMap::alone(1 * mib);
  fill(map.middle(), 1 * mib, 5);
  Promotion promotion = promote(map.middle(), 1 * mib);
  std::promise<void> leave;
  std::thread other([&] { leave.get_future().wait(); });
  PromotionRules rules;
  rules.may_hold_threads = false;
  const ReleaseOutcome outcome = registry_.release(promotion, rules);
  EXPECT_EQ(outcome.demotion, Demotion::kept);
  EXPECT_FALSE(outcome.extent_is_free());
  EXPECT_EQ(outcome.reason.find("the process has other threads"), 0U);
  // A new window over it needs no new promotion.
  Promotion again = registry_.share(map.middle(), 1 * mib);
  EXPECT_TRUE(again);
  EXPECT_EQ(registry_.release(again, rules).demotion, Demotion::kept);
  leave.set_value();
  other.join();
  const std::vector<ReleaseOutcome> outcomes = registry_.retry_releases();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].demotion, Demotion::restored);
  EXPECT_EQ(outcomes[0].bytes, 1 * mib);
  EXPECT_TRUE(is_filled(map.middle(), 1 * mib, 5));
  EXPECT_TRUE(registry_.retry_releases().empty());
}

TEST_F(PromotionTest, leaves_memory_alone_that_the_user_has_unmapped_meanwhile) {
  const OwnMap map = OwnMap::alone(4 * mib);
  Promotion promotion = promote(map.middle(), 4 * mib);
  ASSERT_EQ(munmap(map.middle(), 4 * mib), 0);
  // Another tenant moves in.
  void* tenant =
      mmap(map.middle() + mib, mib, read_and_write, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(tenant, map.middle() + mib);
  auto* data = static_cast<std::byte*>(tenant);
  fill(data, mib, 6);
  EXPECT_FALSE(registry_.share(map.middle(), 4 * mib));
  EXPECT_EQ(refusal_of(data, mib), "");
  EXPECT_EQ(run_in_child([&] { return is_filled(data, mib, 6) ? 0 : 1; }), 0);
  expect_restored(promotion);
  EXPECT_TRUE(is_filled(data, mib, 6));
  EXPECT_EQ(classify(map.middle(), mib).kind, MemoryKind::unmapped);
}

TEST_F(PromotionTest, leaves_a_newer_promotion_at_the_same_address_alone) {
  const OwnMap map = OwnMap::alone(1 * mib);
  Promotion old = promote(map.middle(), 1 * mib);
  ASSERT_NE(mmap(map.middle(), 1 * mib, read_and_write, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), MAP_FAILED);
  fill(map.middle(), 1 * mib, 6);
  Promotion newer = promote(map.middle(), 1 * mib);
  EXPECT_NE(old.file_offset(), newer.file_offset());
  Promotion shared = registry_.share(map.middle(), 1 * mib);
  EXPECT_EQ(shared.file_offset(), newer.file_offset());
  EXPECT_EQ(registry_.release(shared).demotion, Demotion::still_shared);
  expect_restored(old);
  EXPECT_EQ(classify(map.middle(), 1 * mib).kind, MemoryKind::file_shared) << "the newer one is still promoted";
  expect_restored(newer);
  EXPECT_TRUE(is_filled(map.middle(), 1 * mib, 6));
}

TEST_F(PromotionTest, survives_the_user_freeing_a_promoted_block) {
  for (const std::size_t bytes : {300 * 1024UL, 4 * mib}) {
    Block block(bytes);
    Promotion promotion = promote(block.data(), bytes);
    std::free(block.release());
    expect_restored(promotion);
    const Block next(bytes);
    EXPECT_TRUE(is_filled(next.data(), bytes, 9));
  }
}

TEST_F(PromotionTest, turns_back_what_is_left_after_the_user_has_unmapped_a_part) {
  const OwnMap map = OwnMap::alone(3 * mib);
  fill(map.middle(), 3 * mib, 6);
  Promotion promotion = promote(map.middle(), 3 * mib);
  ASSERT_EQ(munmap(map.middle() + mib, mib), 0);
  expect_restored(promotion);
  EXPECT_EQ(classify(map.middle(), mib).kind, MemoryKind::anonymous_private);
  EXPECT_EQ(classify(map.middle() + mib, mib).kind, MemoryKind::unmapped);
  std::vector<std::byte> expected(3 * mib);
  fill(expected.data(), expected.size(), 6);
  EXPECT_EQ(std::memcmp(map.middle() + 2 * mib, expected.data() + 2 * mib, mib), 0);
}

TEST_F(PromotionTest, survives_realloc_of_a_promoted_block) {
  Block block(4 * mib);
  Promotion promotion = promote(block.data(), 4 * mib);
  auto* larger = static_cast<std::byte*>(std::realloc(block.release(), 8 * mib));
  ASSERT_NE(larger, nullptr);
  EXPECT_TRUE(is_filled(larger, 4 * mib, 9));
  auto* smaller = static_cast<std::byte*>(std::realloc(larger, 1 * mib));
  EXPECT_TRUE(is_filled(smaller, 1 * mib, 9));
  EXPECT_NE(registry_.release(promotion).demotion, Demotion::still_shared);
  EXPECT_TRUE(is_filled(smaller, 1 * mib, 9));
  std::free(smaller);
}

TEST_F(PromotionTest, is_kept_when_the_user_has_moved_the_memory) {
  const OwnMap map = OwnMap::alone(1 * mib);
  fill(map.middle(), 1 * mib, 6);
  Promotion promotion = promote(map.middle(), 1 * mib);
  void* elsewhere = mmap(nullptr, 1 * mib, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_EQ(mremap(map.middle(), 1 * mib, 1 * mib, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere), elsewhere);
  const ReleaseOutcome outcome = registry_.release(promotion);
  EXPECT_EQ(outcome.demotion, Demotion::kept);
  EXPECT_EQ(outcome.reason, "the user has moved part of the range");
  EXPECT_TRUE(is_filled(static_cast<std::byte*>(elsewhere), 1 * mib, 6));
  munmap(elsewhere, 1 * mib);
  EXPECT_EQ(registry_.retry_releases().at(0).demotion, Demotion::restored);
}

TEST_F(PromotionTest, keeps_the_protection_that_the_user_has_set_meanwhile) {
  const OwnMap map = OwnMap::alone(1 * mib);
  const std::size_t page = test_page_bytes();
  fill(map.middle(), 1 * mib, 6);
  Promotion promotion = promote(map.middle(), 1 * mib);
  ASSERT_EQ(mprotect(map.middle() + page, page, PROT_READ), 0);
  ASSERT_EQ(mprotect(map.middle() + 2 * page, page, PROT_NONE), 0);
  expect_restored(promotion);
  EXPECT_EQ(classify(map.middle() + page, page).kind, MemoryKind::read_only);
  EXPECT_FALSE(classify(map.middle() + 2 * page, page).readable);
  ASSERT_EQ(mprotect(map.middle(), 1 * mib, read_and_write), 0);
  EXPECT_TRUE(is_filled(map.middle(), 1 * mib, 6));
}

// Each cycle has the kernel walk all page tables, the shadow memory of the address sanitizer included.
#ifdef __SANITIZE_ADDRESS__
constexpr int cycles = 500;
#else
constexpr int cycles = 10'000;
#endif

// In make test-all: thousands of moves take seconds.
TEST_F(PromotionTest, there_and_back_thousands_of_times_leaves_no_map_behind) {
  const OwnMap map = OwnMap::alone(1 * mib);
  fill(map.middle(), 1 * mib, 5);
  std::byte* window = map.middle() + 300'000;
  const std::size_t bytes = 262'144 + 4096;
  const auto cycle = [&] {
    const PromotionRules rules;
    const Examination found = registry_.examine(window, bytes, rules);
    PromotionOutcome outcome = registry_.promote(found, file_.fd(), 0, rules);
    return outcome.ok() && registry_.release(outcome.promotion, rules).demotion == Demotion::restored;
  };
  ASSERT_TRUE(cycle());
  const std::size_t before = read_maps().size();
  for (int i = 1; i < cycles; ++i) ASSERT_TRUE(cycle());
  EXPECT_LE(read_maps().size(), before);
  EXPECT_EQ(classify(map.middle(), 1 * mib).maps.size(), 1U) << "the memory merges with its neighbours again";
  EXPECT_TRUE(is_filled(map.middle(), 1 * mib, 5));
}

TEST_F(PromotionTest, blocks_no_signal_for_longer_than_it_moves) {
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  const OwnMap map = OwnMap::alone(1 * mib);
  Promotion promotion = promote(map.middle(), 1 * mib);
  expect_restored(promotion);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < NSIG; ++signal) EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
}

// ---- other threads ----

class PromotionBesideThreads : public PromotionTest {
 protected:
  void SetUp() override {
    PromotionTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const OwnMap probe = OwnMap::alone(1 * mib);
    std::promise<void> leave;
    std::thread other([&] { leave.get_future().wait(); });
    PromotionOutcome outcome = registry_.promote(registry_.examine(probe.middle(), 1 * mib), file_.fd(), 0);
    if (outcome.ok()) expect_restored(outcome.promotion);
    leave.set_value();
    other.join();
    if (!outcome.ok()) GTEST_SKIP() << "no thread can be held here: " << outcome.refusal;
  }

  // There and back while other threads do what they do.
  void cycle(const OwnMap& map, std::size_t bytes, int times) {
    for (int i = 0; i < times; ++i) {
      PromotionOutcome outcome = registry_.promote(registry_.examine(map.middle(), bytes), file_.fd(), 0);
      ASSERT_EQ(outcome.refusal, "");
      ASSERT_EQ(classify(map.middle(), bytes).kind, MemoryKind::file_shared);
      expect_restored(outcome.promotion);
    }
  }
};

// Takes seconds: threads store while memory moves to and fro.
TEST_F(PromotionBesideThreads, loses_none_of_their_stores) {
  constexpr std::size_t bytes = 4 * mib;
  constexpr std::size_t count = bytes / sizeof(std::uint64_t);
  const OwnMap map = OwnMap::alone(bytes);
  auto* words = reinterpret_cast<std::uint64_t*>(map.middle());
  std::atomic<bool> leave{false};
  std::array<std::uint64_t, 3> sweeps{};
  std::vector<std::thread> threads;
  // Each adds to words of its own, one after the other through all pages, with plain stores.
  for (std::size_t mine = 0; mine < sweeps.size(); ++mine) {
    threads.emplace_back([&, mine] {
      while (!leave) {
        for (std::size_t i = mine; i < count; i += 61) {
          auto* word = static_cast<volatile std::uint64_t*>(words + i);
          if (i % 3 == mine) *word = *word + 1;
        }
        ++sweeps[mine];
      }
    });
  }
  cycle(map, bytes, 60);
  leave = true;
  for (std::thread& thread : threads) thread.join();
  for (std::size_t mine = 0; mine < sweeps.size(); ++mine) {
    for (std::size_t i = mine; i < count; i += 61) {
      if (i % 3 != mine) continue;
      ASSERT_EQ(words[i], sweeps[mine]) << "word " << i << " of thread " << mine;
    }
  }
}

TEST_F(PromotionBesideThreads, loses_nothing_that_the_kernel_writes_for_them) {
  constexpr std::size_t bytes = 1 * mib;
  const OwnMap map = OwnMap::alone(bytes);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  constexpr std::uint32_t numbers = 20'000;
  std::atomic<bool> is_right{true};
  // One thread has the kernel write numbers into the memory, mostly after having waited for them.
  std::thread reading([&] {
    for (std::uint32_t expected = 0; expected < numbers; ++expected) {
      auto* place = map.middle() + std::size_t{expected} * 4 * 13 % bytes;
      if (read(ends[0], place, 4) != 4 || std::memcmp(place, &expected, 4) != 0) is_right = false;
    }
  });
  std::thread writing([&] {
    for (std::uint32_t number = 0; number < numbers; ++number) {
      if (write(ends[1], &number, 4) != 4) is_right = false;
      if (number % 16 == 0) std::this_thread::yield();
    }
  });
  cycle(map, bytes, 100);
  reading.join();
  writing.join();
  for (const int end : ends) close(end);
  EXPECT_TRUE(is_right);
}

TEST_F(PromotionBesideThreads, wakes_those_that_wait_on_a_word_of_the_memory) {
  for (const int flags : {0, FUTEX_PRIVATE_FLAG}) {
    const OwnMap map = OwnMap::alone(1 * mib);
    auto* word = reinterpret_cast<std::atomic<std::uint32_t>*>(map.middle() + 5000 * 8);
    std::atomic<bool> is_waiting{false};
    std::thread waiting([&] {
      is_waiting = true;
      while (word->load() == 0) syscall(SYS_futex, word, FUTEX_WAIT | flags, 0, nullptr, nullptr, 0);
    });
    while (!is_waiting) std::this_thread::yield();
    Promotion promotion = promote(map.middle(), 1 * mib);
    ASSERT_TRUE(promotion);
    word->store(1);
    // A waiter of a shared word is found by its page, which is another one now. Without it this test would not end.
    syscall(SYS_futex, word, FUTEX_WAKE | flags, 1, nullptr, nullptr, 0);
    waiting.join();
    expect_restored(promotion);
  }
}

TEST_F(PromotionBesideThreads, stands_beside_forks_of_them) {
  constexpr std::size_t bytes = 1 * mib;
  const OwnMap map = OwnMap::alone(bytes);
  fill(map.middle(), bytes, 5);
  std::atomic<bool> leave{false};
  std::atomic<int> failed{0};
  std::thread forking([&] {
    while (!leave) {
      failed += run_in_child([&] {
        const bool is_whole = is_filled(map.middle(), bytes, 5);
        fill(map.middle(), bytes, 6);
        return is_whole && is_filled(map.middle(), bytes, 6) ? 0 : 1;
      });
    }
  });
  cycle(map, bytes, 100);
  leave = true;
  forking.join();
  EXPECT_EQ(failed, 0);
  EXPECT_TRUE(is_filled(map.middle(), bytes, 5));
}

TEST_F(PromotionBesideThreads, stands_beside_those_that_map_and_unmap) {
  constexpr std::size_t bytes = 1 * mib;
  const OwnMap map = OwnMap::alone(bytes);
  fill(map.middle(), bytes, 5);
  std::atomic<bool> leave{false};
  std::thread mapping([&] {
    while (!leave) {
      const Block block(300 * 1024);
      if (!is_filled(block.data(), 300 * 1024, 9)) std::abort();
    }
  });
  cycle(map, bytes, 100);
  leave = true;
  mapping.join();
  EXPECT_TRUE(is_filled(map.middle(), bytes, 5));
}

TEST_F(PromotionBesideThreads, moves_the_stack_of_one) {
  constexpr std::size_t bytes = 1 * mib;
  const OwnMap map = OwnMap::alone(bytes);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, map.middle(), bytes), 0);
  struct Shared {
    std::atomic<bool> leave{false};
    std::atomic<bool> is_up{false};
    bool is_right = true;
  } shared;
  pthread_t thread{};
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* argument) -> void* {
                  auto* self = static_cast<Shared*>(argument);
                  volatile std::uint64_t count = 0;
                  std::uint64_t expected = 0;
                  while (!self->leave) {
                    count = count + 1;
                    ++expected;
                    self->is_up = true;
                  }
                  self->is_right = count == expected;
                  return nullptr;
                },
                &shared),
            0);
  while (!shared.is_up) std::this_thread::yield();
  cycle(map, bytes, 100);
  shared.leave = true;
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_TRUE(shared.is_right);
}

TEST_F(PromotionBesideThreads, puts_everything_back_when_the_file_is_full_midway) {
  expect_everything_back_when_the_file_is_full(registry_, [](auto promote) {
    std::promise<void> leave;
    std::thread other([&] { leave.get_future().wait(); });
    const int failed = promote();
    leave.set_value();
    other.join();
    return failed;
  });
}

TEST_F(PromotionBesideThreads, is_kept_where_they_cannot_be_held_and_goes_back_later) {
  const OwnMap map = OwnMap::alone(1 * mib);
  fill(map.middle(), 1 * mib, 5);
  Promotion promotion = promote(map.middle(), 1 * mib);
  std::promise<pid_t> thread_id;
  std::promise<void> leave;
  std::thread other([&] {
    thread_id.set_value(gettid());
    leave.get_future().wait();
  });
  const pid_t id = thread_id.get_future().get();
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t tracer = fork();
  if (tracer == 0) {
    const char said = ptrace(PTRACE_SEIZE, id, nullptr, nullptr) == 0 ? 'y' : 'n';
    if (write(ready[1], &said, 1) == 1) pause();
    _exit(0);
  }
  char said = 'n';
  ASSERT_EQ(read(ready[0], &said, 1), 1);
  const ReleaseOutcome outcome = registry_.release(promotion);
  kill(tracer, SIGKILL);
  waitpid(tracer, nullptr, 0);
  if (said == 'y') {
    EXPECT_EQ(outcome.demotion, Demotion::kept);
    EXPECT_NE(outcome.reason.find("they cannot be held: thread " + std::to_string(id) + " is traced"),
              std::string::npos)
        << outcome.reason;
    EXPECT_TRUE(is_filled(map.middle(), 1 * mib, 5));
    ASSERT_EQ(registry_.retry_releases().size(), 1U);
  }
  EXPECT_EQ(registry_.promoted_bytes(), 0U);
  EXPECT_TRUE(is_private(map.middle(), 1 * mib));
  EXPECT_TRUE(is_filled(map.middle(), 1 * mib, 5));
  leave.set_value();
  other.join();
  for (const int end : ready) close(end);
}

// ---- fork ----

TEST_F(PromotionTest, forked_child_has_a_copy_of_its_own) {
  const std::size_t bytes = 70 * mib;
  const OwnMap map = OwnMap::alone(bytes);
  fill(map.middle(), bytes, 5);
  Promotion promotion = promote(map.middle(), bytes);
  ASSERT_TRUE(promotion);
  std::array<int, 2> to_child{};
  std::array<int, 2> to_parent{};
  ASSERT_EQ(pipe(to_child.data()), 0);
  ASSERT_EQ(pipe(to_parent.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    fill(map.middle(), bytes, 6);
    if (write(to_parent[1], "w", 1) != 1 || read(to_child[0], &byte, 1) != 1) _exit(1);
    // The parent has written by now.
    if (!is_filled(map.middle(), bytes, 6)) _exit(2);
    if (classify(map.middle(), bytes).kind != MemoryKind::anonymous_private) _exit(3);
    if (registry_.promoted_bytes() != 0) _exit(4);
    const ReleaseOutcome outcome = registry_.release(promotion);
    _exit(outcome.demotion == Demotion::left_to_parent && !outcome.extent_is_free() ? 0 : 5);
  }
  char byte = 0;
  ASSERT_EQ(read(to_parent[0], &byte, 1), 1);
  EXPECT_TRUE(is_filled(map.middle(), bytes, 5)) << "the child has written by now";
  fill(map.middle(), bytes, 7);
  ASSERT_EQ(write(to_child[1], "w", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(fd);
  EXPECT_TRUE(is_filled(map.middle(), bytes, 7));
  expect_restored(promotion);
  EXPECT_TRUE(is_filled(map.middle(), bytes, 7));
}

TEST_F(PromotionTest, forked_child_sees_the_memory_as_it_was_at_fork) {
  const OwnMap map = OwnMap::alone(8 * mib);
  Promotion promotion = promote(map.middle(), 8 * mib);
  for (std::uint32_t round = 0; round < 20; ++round) {
    fill(map.middle(), 8 * mib, round);
    const pid_t child = fork();
    if (child == 0) _exit(is_filled(map.middle(), 8 * mib, round) ? 0 : 1);
    fill(map.middle(), 8 * mib, 1000);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "round " << round;
  }
  expect_restored(promotion);
}

TEST_F(PromotionTest, grandchildren_have_copies_too_and_a_child_may_promote_for_itself) {
  const OwnMap map = OwnMap::alone(1 * mib);
  fill(map.middle(), 1 * mib, 5);
  Promotion promotion = promote(map.middle(), 1 * mib);
  EXPECT_EQ(run_in_child([&] {
              PromotionRegistry own;
              const SharedFile file(4 * mib);
              PromotionOutcome outcome = own.promote(own.examine(map.middle(), 1 * mib), file.fd(), 0);
              if (!outcome.ok()) return 1;
              fill(map.middle(), 1 * mib, 6);
              const int grandchild = run_in_child([&] {
                const bool has_copy = is_filled(map.middle(), 1 * mib, 6);
                fill(map.middle(), 1 * mib, 7);
                return has_copy ? 0 : 1;
              });
              if (grandchild != 0 || !is_filled(map.middle(), 1 * mib, 6)) return 2;
              return own.release(outcome.promotion).demotion == Demotion::restored ? 0 : 3;
            }),
            0);
  EXPECT_TRUE(is_filled(map.middle(), 1 * mib, 5));
  expect_restored(promotion);
}

TEST_F(PromotionTest, fork_from_another_thread_is_covered) {
  const OwnMap map = OwnMap::alone(1 * mib);
  fill(map.middle(), 1 * mib, 5);
  Promotion promotion = promote(map.middle(), 1 * mib);
  std::thread([&] {
    EXPECT_EQ(run_in_child([&] {
                fill(map.middle(), 1 * mib, 6);
                return 0;
              }),
              0);
  }).join();
  EXPECT_TRUE(is_filled(map.middle(), 1 * mib, 5));
  expect_restored(promotion);
}

TEST_F(PromotionTest, a_fork_that_fails_does_not_hold_up_its_caller) {
  const OwnMap map = OwnMap::alone(1 * mib);
  Promotion promotion = promote(map.middle(), 1 * mib);
  // The child of this test may have no children; root is not bound by that limit.
  EXPECT_EQ(run_in_child([&] {
              PromotionRegistry own;
              const SharedFile file(4 * mib);
              if (!own.promote(own.examine(map.middle(), 1 * mib), file.fd(), 0).ok()) return 1;
              const rlimit none{.rlim_cur = 0, .rlim_max = 0};
              if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setuid(65533) != 0)) return 2;
              const pid_t failed = fork();
              if (failed == 0) _exit(0);
              return failed < 0 ? 0 : 3;
            }),
            0);
  expect_restored(promotion);
}

TEST_F(PromotionTest, forking_leaves_no_descriptor_and_no_map_behind) {
  const OwnMap map = OwnMap::alone(1 * mib);
  Promotion promotion = promote(map.middle(), 1 * mib);
  ASSERT_EQ(run_in_child([] { return 0; }), 0);
  const std::size_t maps = read_maps().size();
  const int next_fd = dup(0);
  close(next_fd);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(run_in_child([] { return 0; }), 0);
  EXPECT_EQ(read_maps().size(), maps);
  const int fd = dup(0);
  EXPECT_EQ(fd, next_fd);
  close(fd);
  expect_restored(promotion);
}

}  // namespace
}  // namespace farsum::os
