// A job whose ranks a test starts itself, so that no launcher kills the survivors or cleans up for them: each must
// report the death of another on its own. The ranks are forked from the test and share one page of control words with
// it.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "farsum.h"
#include "transport/shm/node_segment.hpp"

namespace farsum::faults {

constexpr int most_ranks = 64;
// The promise: whoever waits learns of a death within this time.
constexpr std::uint64_t report_deadline_ns = 5'000'000'000;

std::uint64_t now_ns();

// Reproducible numbers: splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::uint64_t below(std::uint64_t limit) { return limit == 0 ? 0 : next() % limit; }

 private:
  std::uint64_t state_;
};

// What a rank and the test tell each other.
struct RankWords {
  // Written by the rank.
  alignas(64) std::atomic<std::uint64_t> rounds{0};
  std::atomic<std::uint32_t> ready{0};
  std::atomic<int> status{FARSUM_OK};
  std::atomic<std::uint64_t> ended_ns{0};
  std::atomic<std::uint64_t> value{0};
  std::atomic<std::uint64_t> address{0};
  std::array<char, 512> text{};
  std::array<char, 512> gathered{};
};

struct Control {
  // Written by the test.
  alignas(64) std::atomic<std::uint32_t> stop{0};
  std::atomic<std::uint32_t> go{0};
  std::atomic<std::uint32_t> killed{0};
  // Written by ranks in the caller's allgather.
  alignas(64) std::atomic<std::uint32_t> arrived{0};
  // For whatever a test wants to count across its ranks.
  alignas(64) std::array<std::atomic<std::uint64_t>, 16> words{};
  std::array<RankWords, most_ranks> ranks;
};

// For ranks that lose another: how long one sleeps before it looks whether its peers live, a tenth of the default.
inline const std::pair<std::string, std::string> soon_looked{"FARSUM_WAIT_GAP_NS", "50000000"};

struct JobOptions {
  int ranks = 3;
  // Joins through a caller's allgather instead of the launcher's variables.
  bool by_allgather = false;
  std::vector<std::pair<std::string, std::string>> environment;
  // Variables of one rank, on top.
  std::function<std::vector<std::pair<std::string, std::string>>(int rank)> environment_of;
};

// What a rank knows about its job.
struct Rank {
  int rank = 0;
  int size = 0;
  Control* control = nullptr;
  bool by_allgather = false;

  RankWords& words() const { return control->ranks[static_cast<std::size_t>(rank)]; }
  // farsum_init the way this job joins. `options` may be null.
  farsum_status init(farsum_init_options* options = nullptr) const;
  // Keeps the outcome of a call, with its sentence, for the test; true when it was FARSUM_OK.
  bool ok(farsum_status status) const;
};

class Job {
 public:
  explicit Job(JobOptions options);
  // Kills what still runs.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Forks the ranks; each calls `body` and leaves by _exit with what it returns.
  void start(const std::function<int(const Rank&)>& body);

  Control& control() { return *control_; }
  RankWords& words(int rank) { return control_->ranks[static_cast<std::size_t>(rank)]; }
  pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }
  int size() const { return options_.ranks; }
  // The node's memory as the ranks see it. Valid for jobs that join by environment.
  NodeSegment& segment() { return *segment_; }

  // Waits until condition() holds; false when the watchdog's time is up or a rank has ended.
  bool wait_for(const std::function<bool()>& condition, std::uint64_t timeout_ns = 60'000'000'000);
  // SIGKILLs a rank. It stays a zombie unless `reap`.
  void kill_rank(int rank, bool reap);
  // Stops a rank and says whether it is inside a context that its peers know it to have joined; lets it go on
  // otherwise. Before that only the launcher knows of it.
  bool stop_inside_context(int rank);
  // When kill_rank was called.
  std::uint64_t killed_ns() const { return killed_ns_; }
  // Waits for a rank's end, at most until now_ns() is `deadline_ns`; its exit status as 128 + signal or code, or -1.
  int wait_rank(int rank, std::uint64_t deadline_ns);
  // Ends what runs and says what is left behind of the job; empty when nothing is.
  std::string leftovers();

 private:
  JobOptions options_;
  Control* control_;
  int node_fd_ = -1;
  std::unique_ptr<NodeSegment> segment_;
  std::vector<std::pair<off_t, off_t>> membership_;  // where the file holds each rank's pid, and that it has left
  std::vector<pid_t> pids_;
  std::vector<int> exits_;
  std::uint64_t killed_ns_ = 0;
};

// The rest of a test's life after a kill: every survivor must have ended with exit code 0, having reported PEER_FAILED
// and the name of the dead within the deadline, and nothing may be left. Returns what is wrong; empty when all is well.
std::string judge_death(Job& job, int dead);

// A number from the environment, or the default.
std::uint64_t environment_number(const char* name, std::uint64_t otherwise);

}  // namespace farsum::faults
