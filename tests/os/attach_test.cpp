#include "os/attach.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <numeric>
#include <vector>

#include "own_map.hpp"

namespace farsum::os {
namespace {

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// A child that does nothing until it is told to go. What was in memory when it was made is in its memory too.
class Peer {
 public:
  Peer() {
    if (pipe(gate_.data()) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      close(gate_[1]);
      char byte = 0;
      _exit(read(gate_[0], &byte, 1) == 0 ? 0 : 1);
    }
  }
  ~Peer() { stop(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  pid_t pid() const { return pid_; }
  void stop() {
    if (pid_ <= 0) return;
    close(gate_[1]);
    close(gate_[0]);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  std::array<int, 2> gate_{-1, -1};
  pid_t pid_ = -1;
};

TEST(Attach, copies_from_and_to_another_process) {
  std::vector<int> data(100'000);
  std::iota(data.begin(), data.end(), 0);
  const std::vector<int> original = data;
  const std::size_t bytes = data.size() * sizeof(int);
  const Peer peer;
  const Attach attach;

  std::fill(data.begin(), data.end(), -1);
  std::vector<int> got(data.size());
  const AttachResult from = attach.copy_from(peer.pid(), address_of(data.data()), got.data(), bytes);
  EXPECT_TRUE(from.ok());
  EXPECT_EQ(from.bytes_done, bytes);
  EXPECT_EQ(got, original);

  EXPECT_TRUE(attach.copy_to(peer.pid(), address_of(data.data()), data.data(), bytes).ok());
  EXPECT_TRUE(attach.copy_from(peer.pid(), address_of(data.data()), got.data(), bytes).ok());
  EXPECT_EQ(got, data);
}

class AttachPieceCount : public testing::TestWithParam<std::size_t> {};

// Batches hold 256 pieces and the kernel takes IOV_MAX.
INSTANTIATE_TEST_SUITE_P(sizes, AttachPieceCount,
                         testing::Values(0, 1, 2, 255, 256, 257, 512, IOV_MAX - 1, IOV_MAX, IOV_MAX + 1, 5000));

TEST_P(AttachPieceCount, pieces_go_both_ways_in_order) {
  const std::size_t count = GetParam();
  std::vector<std::uint64_t> remote(2 * count + 1);
  std::iota(remote.begin(), remote.end(), 1000);
  std::vector<std::uint64_t> local(count + 1);
  std::vector<AttachPiece> pieces;
  for (std::size_t i = 0; i < count; ++i) pieces.push_back({address_of(&remote[2 * i]), &local[count - 1 - i], 8});

  const Attach attach;
  const AttachResult from = attach.copy_from(getpid(), pieces);
  EXPECT_TRUE(from.ok());
  EXPECT_EQ(from.bytes_done, 8 * count);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(local[count - 1 - i], 1000 + 2 * i);

  for (std::uint64_t& value : local) ++value;
  EXPECT_TRUE(attach.copy_to(getpid(), pieces).ok());
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(remote[2 * i], 1001 + 2 * i);
    ASSERT_EQ(remote[2 * i + 1], 1001 + 2 * i);
  }
}

TEST(Attach, passes_over_empty_pieces_wherever_they_stand) {
  std::array<char, 4> remote = {'a', 'b', 'c', 'd'};
  std::array<char, 4> local{};
  const std::array<AttachPiece, 5> pieces = {
      AttachPiece{0, nullptr, 0}, AttachPiece{address_of(&remote[0]), &local[0], 2}, AttachPiece{0, nullptr, 0},
      AttachPiece{address_of(&remote[2]), &local[2], 2}, AttachPiece{0, nullptr, 0}};
  const AttachResult result = Attach().copy_from(getpid(), pieces);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.bytes_done, 4U);
  EXPECT_EQ(local, remote);
}

TEST(Attach, goes_on_after_a_transfer_that_the_kernel_cut_short) {
  static int calls = 0;
  calls = 0;
  // Never more than 3 bytes at once, and interrupted now and then.
  const AttachCalls::Call stingy = [](pid_t pid, const iovec* local, unsigned long, const iovec* remote, unsigned long,
                                      unsigned long flags) -> ssize_t {
    if (++calls % 5 == 0) {
      errno = EINTR;
      return -1;
    }
    const iovec here{local->iov_base, std::min<std::size_t>(local->iov_len, 3)};
    const iovec there{remote->iov_base, here.iov_len};
    return process_vm_readv(pid, &here, 1, &there, 1, flags);
  };
  std::array<std::byte, 1000> remote;
  fill(remote.data(), remote.size(), 1);
  std::array<std::byte, 1000> local{};
  std::vector<AttachPiece> pieces;
  for (std::size_t i = 0; i < 100; ++i) pieces.push_back({address_of(&remote[10 * i]), &local[10 * i], 10});
  const AttachResult result = Attach({stingy, stingy}).copy_from(getpid(), pieces);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(local, remote);
}

TEST(Attach, says_how_far_it_came_when_remote_memory_ends) {
  const std::size_t page = test_page_bytes();
  const OwnMap map = OwnMap::alone(4 * page);
  fill(map.middle(), 4 * page, 7);
  ASSERT_EQ(munmap(map.middle() + 2 * page, page), 0);
  std::vector<std::byte> local(4 * page);
  const std::array<AttachPiece, 2> pieces = {
      AttachPiece{address_of(map.middle()), local.data(), page},
      AttachPiece{address_of(map.middle() + page), local.data() + page, 3 * page}};
  const AttachResult result = Attach().copy_from(getpid(), pieces);
  EXPECT_EQ(result.error, AttachError::bad_remote_address);
  EXPECT_EQ(result.error_number, EFAULT);
  EXPECT_EQ(result.bytes_done, 2 * page);
  EXPECT_EQ(result.failed_piece, 1U);
  EXPECT_EQ(result.failed_address, address_of(map.middle() + 2 * page));
  EXPECT_TRUE(is_filled(local.data(), 2 * page, 7));
}

TEST(Attach, reports_memory_that_the_owner_has_freed_instead_of_crashing) {
  OwnMap map = OwnMap::alone(test_page_bytes());
  const std::uintptr_t freed = address_of(map.middle());
  map.unmap();
  std::uint64_t value = 5;
  EXPECT_EQ(Attach().copy_from(getpid(), freed, &value, 8).error, AttachError::bad_remote_address);
  EXPECT_EQ(Attach().copy_to(getpid(), freed, &value, 8).error, AttachError::bad_remote_address);
  EXPECT_EQ(value, 5U);
}

TEST(Attach, refuses_to_write_read_only_memory_and_changes_nothing) {
  const OwnMap map = OwnMap::alone(test_page_bytes());
  fill(map.middle(), 64, 3);
  ASSERT_EQ(mprotect(map.middle(), test_page_bytes(), PROT_READ), 0);
  const std::uint64_t value = 5;
  const AttachResult result = Attach().copy_to(getpid(), address_of(map.middle()), &value, 8);
  EXPECT_EQ(result.error, AttachError::bad_remote_address);
  EXPECT_EQ(result.bytes_done, 0U);
  EXPECT_TRUE(is_filled(map.middle(), 64, 3));
}

TEST(Attach, tells_a_bad_local_buffer_from_bad_remote_memory) {
  OwnMap map = OwnMap::alone(test_page_bytes());
  std::byte* freed = map.middle();
  map.unmap();
  std::uint64_t remote = 5;
  EXPECT_EQ(Attach().copy_from(getpid(), address_of(&remote), freed, 8).error, AttachError::bad_local_address);
  EXPECT_EQ(Attach().copy_to(getpid(), address_of(&remote), freed, 8).error, AttachError::bad_local_address);
  EXPECT_EQ(remote, 5U);
}

TEST(Attach, says_that_a_dead_process_is_gone) {
  Peer peer;
  const pid_t pid = peer.pid();
  peer.stop();
  std::uint64_t value = 0;
  const AttachResult result = Attach().copy_from(pid, address_of(&value), &value, 8);
  EXPECT_EQ(result.error, AttachError::gone);
  EXPECT_EQ(explain(result.error, pid), "process " + std::to_string(pid) + " does not exist");
}

TEST(Attach, reports_a_refusal_as_the_kernel_words_it) {
  std::uint64_t value = 5;
  const Attach attach(refusing_attach_calls());
  EXPECT_EQ(attach.copy_from(getpid(), address_of(&value), &value, 8).error, AttachError::refused);
  EXPECT_EQ(attach.copy_to(getpid(), address_of(&value), &value, 8).error, AttachError::refused);
  const Attach::Probe probe = attach.probe(getpid(), address_of(&value));
  EXPECT_FALSE(probe.allowed);
  EXPECT_NE(probe.reason.find("process " + std::to_string(getpid())), std::string::npos) << probe.reason;
}

class OwnAttach : public testing::TestWithParam<AttachCalls (*)()> {};

INSTANTIATE_TEST_SUITE_P(ways, OwnAttach, testing::Values(&own_attach_calls, &piped_attach_calls));

TEST_P(OwnAttach, copies_within_this_process_also_what_a_pipe_does_not_hold) {
  const Attach attach(GetParam()());
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{65535}, std::size_t{65536}, std::size_t{1'000'001}}) {
    std::vector<unsigned char> data(bytes);
    std::iota(data.begin(), data.end(), static_cast<unsigned char>(7));
    std::vector<unsigned char> got(bytes);
    EXPECT_EQ(attach.copy_from(getpid(), address_of(data.data()), got.data(), bytes).bytes_done, bytes);
    EXPECT_EQ(got, data);
    std::vector<unsigned char> put(bytes);
    EXPECT_EQ(attach.copy_to(getpid(), address_of(put.data()), data.data(), bytes).bytes_done, bytes);
    EXPECT_EQ(put, data);
  }
}

TEST_P(OwnAttach, copies_pieces_of_other_lengths_than_their_places) {
  const Attach attach(GetParam()());
  std::vector<int> data(3000);
  std::iota(data.begin(), data.end(), 0);
  std::vector<int> got(data.size());
  std::vector<AttachPiece> pieces;
  for (std::size_t i = 0; i < data.size(); i += 3) pieces.push_back({address_of(&data[i]), &got[i], 2 * sizeof(int)});
  ASSERT_TRUE(attach.copy_from(getpid(), pieces).ok());
  for (std::size_t i = 0; i < data.size(); ++i) ASSERT_EQ(got[i], i % 3 == 2 ? 0 : data[i]) << i;
}

TEST_P(OwnAttach, answers_for_memory_that_is_not_there_or_is_read_only) {
  const Attach attach(GetParam()());
  const std::size_t page = test_page_bytes();
  const OwnMap map = OwnMap::alone(2 * page);
  std::byte* const second = map.middle() + page;
  ASSERT_EQ(mprotect(second, page, PROT_NONE), 0);
  std::vector<std::byte> got(2 * page);
  const AttachResult read = attach.copy_from(getpid(), address_of(map.middle()), got.data(), got.size());
  EXPECT_EQ(read.error, AttachError::bad_remote_address);
  EXPECT_EQ(read.failed_address, address_of(second));
  ASSERT_EQ(mprotect(second, page, PROT_READ), 0);
  EXPECT_EQ(attach.copy_to(getpid(), address_of(second), got.data(), 8).error, AttachError::bad_remote_address);
  EXPECT_EQ(attach.copy_from(getpid(), address_of(got.data()), second, 8).error, AttachError::bad_local_address);
}

// Source and place begin at different offsets within their pages, and the hole is in a page that is none of a pipe's.
TEST_P(OwnAttach, says_how_far_it_came_wherever_a_piece_begins) {
  const Attach attach(GetParam()());
  const std::size_t page = test_page_bytes();
  const OwnMap map = OwnMap::alone(4 * page);
  fill(map.middle(), 4 * page, 7);
  std::byte* const hole = map.middle() + 3 * page;
  ASSERT_EQ(munmap(hole, page), 0);
  for (const std::size_t before : {std::size_t{8}, std::size_t{1000}, page + 8, 3 * page - 24}) {
    SCOPED_TRACE(before);
    std::vector<std::byte> own(before + page, std::byte{1});
    const AttachResult read = attach.copy_from(getpid(), address_of(hole - before), own.data(), own.size());
    EXPECT_EQ(read.error, AttachError::bad_remote_address);
    EXPECT_EQ(read.bytes_done, before);
    EXPECT_EQ(read.failed_address, address_of(hole));
    EXPECT_TRUE(std::equal(hole - before, hole, own.begin()));
    std::fill(own.begin(), own.end(), std::byte{2});
    const AttachResult written = attach.copy_to(getpid(), address_of(hole - before), own.data(), own.size());
    EXPECT_EQ(written.error, AttachError::bad_remote_address);
    EXPECT_EQ(written.bytes_done, before);
    EXPECT_TRUE(std::equal(hole - before, hole, own.begin()));
    EXPECT_EQ(written.failed_address, address_of(hole));
  }
}

TEST_P(OwnAttach, moves_the_pieces_before_one_that_is_not_there) {
  const Attach attach(GetParam()());
  const std::size_t page = test_page_bytes();
  const OwnMap map = OwnMap::alone(page);
  ASSERT_EQ(mprotect(map.middle(), page, PROT_NONE), 0);
  const std::array<int, 4> data = {1, 2, 3, 4};
  std::array<int, 4> got{};
  std::vector<AttachPiece> pieces;
  for (std::size_t i : {std::size_t{0}, std::size_t{2}}) pieces.push_back({address_of(&data[i]), &got[i], sizeof(int)});
  pieces.push_back({address_of(map.middle()), &got[3], sizeof(int)});
  const AttachResult result = attach.copy_from(getpid(), pieces);
  EXPECT_EQ(result.error, AttachError::bad_remote_address);
  EXPECT_EQ(result.failed_piece, 2U);
  EXPECT_EQ(got, (std::array<int, 4>{1, 0, 3, 0}));
}

TEST(Attach, cannot_reach_a_process_of_another_user) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  std::uint64_t value = 5;
  const pid_t owner = getpid();
  // An ordinary user looks at a process of root.
  EXPECT_EQ(run_in_child([&] {
              if (setgid(65534) != 0 || setuid(65534) != 0) return 2;
              const Attach::Probe probe = Attach().probe(owner, address_of(&value));
              return !probe.allowed && probe.reason.find("user 0") != std::string::npos ? 0 : 1;
            }),
            0);
}

TEST(Attach, is_told_what_yama_would_have_to_allow) {
  EXPECT_EQ(why_yama_forbids(""), "");
  EXPECT_EQ(why_yama_forbids("0"), "");
  const std::string begin = "Yama forbids it (/proc/sys/kernel/yama/ptrace_scope is ";
  EXPECT_EQ(why_yama_forbids("1"), begin + "1; it takes 0, or the other's leave by PR_SET_PTRACER)");
  EXPECT_EQ(why_yama_forbids("2"), begin + "2; it takes 0 or 1, or CAP_SYS_PTRACE)");
  EXPECT_EQ(why_yama_forbids("3"),
            begin + "3; it takes 0 or 1, which this machine can have only after it has started anew)");
}

TEST(Attach, probe_takes_the_right_process_only) {
  std::uint64_t secret = 0x1234'5678'9abc'def0;
  const Peer peer;
  EXPECT_TRUE(Attach().probe(peer.pid(), address_of(&secret), secret).allowed);
  const Attach::Probe wrong = Attach().probe(peer.pid(), address_of(&secret), secret + 1);
  EXPECT_FALSE(wrong.allowed);
  EXPECT_NE(wrong.reason.find("PID namespace"), std::string::npos);
  EXPECT_FALSE(Attach().probe(peer.pid(), 8, std::nullopt).allowed);
}

TEST(Attach, may_be_allowed_to_all_peers) { EXPECT_TRUE(allow_peers()); }

}  // namespace
}  // namespace farsum::os
