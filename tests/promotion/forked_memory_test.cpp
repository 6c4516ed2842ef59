#include "promotion/forked_memory.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "mib.hpp"
#include "os/memory_map.hpp"
#include "os/own_map.hpp"
#include "promotion/promoted_files.hpp"
#include "promotion/promotion.hpp"

#pragma weak _Fork
extern "C" pid_t _Fork(void);

namespace farsum::os {
namespace {

using test::mib;

// Runs `body` in a child of fork_bare(_Fork) and gives its exit status.
template <class Body>
int run_in_bare_child(Body body) {
  const pid_t child = fork_bare(_Fork);
  if (child == 0) _exit(body());
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class ForkedMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (_Fork == nullptr) GTEST_SKIP() << "this C library has no _Fork";
    ASSERT_TRUE(file_.is_made());
    const Examination found = registry_.examine(map_.middle(), bytes_);
    if (!found.ok()) GTEST_SKIP() << "nothing can be promoted here: " << found.refusal;
    registry_.leave_out(own_.data(), own_.bytes());
    fill(map_.middle(), bytes_, 5);
  }

  bool promote() {
    PromotionOutcome outcome = registry_.promote(registry_.examine(map_.middle(), bytes_), file_.fd(), mib);
    EXPECT_EQ(outcome.refusal, "");
    promotion_ = std::move(outcome.promotion);
    return outcome.ok();
  }
  bool turn_back() { return registry_.release(promotion_).demotion == Demotion::restored; }
  // For a child: 0, or which of the two is not the kind of memory that it ought to be.
  int wrong_kind() const {
    if (classify(own_.data(), own_.bytes()).kind != MemoryKind::file_shared) return 1;
    return classify(map_.middle(), bytes_).kind == MemoryKind::anonymous_private ? 0 : 2;
  }

  static constexpr std::size_t bytes_ = 2 * mib;
  const OwnMap map_ = OwnMap::alone(bytes_);
  SharedFile file_{64 * mib};
  // As the node's segment is mapped.
  const OwnMap own_{64 * mib, PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd()};
  PromotionRegistry registry_;
  Promotion promotion_;
};

TEST_F(ForkedMemory, is_the_childs_own_and_as_it_was_at_the_fork) {
  ASSERT_TRUE(promote());
  std::array<int, 2> go{};
  ASSERT_EQ(pipe(go.data()), 0);
  const pid_t child = fork_bare(_Fork);
  if (child == 0) {
    char byte = 0;
    if (read(go[0], &byte, 1) != 1) _exit(1);
    const bool is_as_it_was = is_filled(map_.middle(), bytes_, 5);
    fill(map_.middle(), bytes_, 6);
    _exit(is_as_it_was ? 0 : 2);
  }
  fill(map_.middle(), bytes_, 7);
  ASSERT_EQ(write(go[1], "g", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int fd : go) close(fd);
  EXPECT_TRUE(is_filled(map_.middle(), bytes_, 7));
  EXPECT_TRUE(turn_back());
}

TEST_F(ForkedMemory, leaves_the_map_of_the_file_itself_shared) {
  ASSERT_TRUE(promote());
  EXPECT_EQ(run_in_bare_child([&] { return wrong_kind(); }), 0);
  EXPECT_TRUE(turn_back());
}

TEST_F(ForkedMemory, is_looked_for_only_while_there_is_some) {
  EXPECT_TRUE(promoted_files().empty());
  ASSERT_TRUE(promote());
  EXPECT_FALSE(promoted_files().empty());
  EXPECT_TRUE(turn_back());
  EXPECT_TRUE(promoted_files().empty());
}

TEST_F(ForkedMemory, is_found_where_the_program_has_moved_and_protected_it) {
  ASSERT_TRUE(promote());
  const OwnMap place = OwnMap::alone(mib);
  void* const moved = mremap(map_.middle(), mib, mib, MREMAP_MAYMOVE | MREMAP_FIXED, place.middle());
  ASSERT_NE(moved, MAP_FAILED);
  ASSERT_EQ(mprotect(map_.middle() + mib, mib, PROT_READ), 0);
  EXPECT_EQ(run_in_bare_child([&] {
              const MappedRange part = classify(map_.middle() + mib, mib);
              if (part.writable || part.maps.front().shared) return 1;
              return classify(moved, mib).kind == MemoryKind::anonymous_private ? 0 : 2;
            }),
            0);
}

TEST_F(ForkedMemory, is_copied_by_fork_likewise) {
  ASSERT_TRUE(promote());
  EXPECT_EQ(run_in_child([&] { return wrong_kind(); }), 0);
  EXPECT_TRUE(turn_back());
}

// In a handler that interrupts all that promotes and turns back.
const std::byte* handled_memory = nullptr;
std::size_t handled_bytes = 0;
volatile sig_atomic_t children = 0;
volatile sig_atomic_t wrong_children = 0;

void make_a_child(int) {
  const pid_t child = fork_bare(_Fork);
  if (child == 0) {
    auto* const memory = const_cast<std::byte*>(handled_memory);
    const bool is_right = is_filled(memory, handled_bytes, 5);
    memory[handled_bytes / 2] = std::byte{0};
    memory[0] = std::byte{1};
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  children = children + 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) wrong_children = wrong_children + 1;
}

// Takes seconds: children are made again and again.
TEST_F(ForkedMemory, is_never_seen_midway_by_children_of_signal_handlers) {
  handled_memory = map_.middle();
  handled_bytes = bytes_;
  children = 0;
  wrong_children = 0;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = make_a_child;
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  // Rounds take about a millisecond; the signal comes at another place of each.
  for (int round = 0; round < 200; ++round) {
    const itimerval once{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 1 + round * 37 % 2000}};
    ASSERT_EQ(setitimer(ITIMER_REAL, &once, nullptr), 0);
    ASSERT_TRUE(promote());
    ASSERT_TRUE(turn_back());
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_GT(children, 0);
  EXPECT_EQ(wrong_children, 0);
  EXPECT_TRUE(is_filled(map_.middle(), bytes_, 5));
}

TEST_F(ForkedMemory, is_never_seen_midway_by_children_of_other_threads) {
  if (!promote()) GTEST_SKIP() << "nothing can be promoted here";
  ASSERT_TRUE(turn_back());
  std::atomic<bool> has_ended{false};
  std::atomic<int> made{0};
  std::thread forking([&] {
    while (!has_ended) {
      EXPECT_EQ(run_in_bare_child([&] {
                  const bool is_right = is_filled(map_.middle(), bytes_, 5);
                  map_.middle()[bytes_ / 2] = std::byte{0};
                  return is_right ? 0 : 1;
                }),
                0);
      ++made;
    }
  });
  int moves = 0;
  for (int round = 0; round < 40 || made < 20; ++round) {
    PromotionOutcome outcome = registry_.promote(registry_.examine(map_.middle(), bytes_), file_.fd(), mib);
    if (!outcome.ok()) continue;
    ++moves;
    promotion_ = std::move(outcome.promotion);
    if (!turn_back()) {
      while (registry_.retry_releases().front().demotion != Demotion::restored) std::this_thread::yield();
    }
  }
  has_ended = true;
  forking.join();
  EXPECT_TRUE(is_filled(map_.middle(), bytes_, 5));
  if (moves == 0) GTEST_SKIP() << "no thread can be held here";
}

TEST_F(ForkedMemory, that_cannot_be_looked_for_ends_the_child) {
  ASSERT_TRUE(promote());
  const int status = run_in_child([&] {
    PromotionRegistry own;
    const SharedFile file(4 * mib);
    if (!own.promote(own.examine(map_.middle(), bytes_), file.fd(), 0).ok()) return 1;
    // Where there is no /proc.
    if (chroot("/dev/shm") != 0) return 77;
    return run_in_bare_child([] { return 0; });
  });
  EXPECT_TRUE(turn_back());
  if (status == 77) GTEST_SKIP() << "not allowed to change the root folder";
  EXPECT_EQ(status, 127);
}

TEST_F(ForkedMemory, costs_nothing_where_none_is_promoted) {
  EXPECT_EQ(run_in_bare_child([&] { return is_filled(map_.middle(), bytes_, 5) ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace farsum::os
