#include "job.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "collectives/node_rounds.hpp"

namespace farsum::faults {

std::uint64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::uint64_t Random::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

namespace {

// The caller's allgather of these jobs: through the control page. Fails once the test has killed a rank.
int gather(const void* mine, void* all, std::size_t bytes, void* user) {
  const Rank& self = *static_cast<const Rank*>(user);
  Control& control = *self.control;
  if (bytes > self.words().gathered.size()) return 1;
  std::memcpy(self.words().gathered.data(), mine, bytes);
  // Jobs here join once, so one round is enough. Acquire and release: whoever sees the count sees the bytes.
  control.arrived.fetch_add(1, std::memory_order_acq_rel);
  while (control.arrived.load(std::memory_order_acquire) < static_cast<std::uint32_t>(self.size)) {
    if (control.killed.load(std::memory_order_acquire) != 0) return 1;
    sched_yield();
  }
  for (int rank = 0; rank < self.size; ++rank) {
    std::memcpy(static_cast<char*>(all) + static_cast<std::size_t>(rank) * bytes,
                control.ranks[static_cast<std::size_t>(rank)].gathered.data(), bytes);
  }
  return 0;
}

int exit_code(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

// Names in a folder that speak of us.
std::string farsum_files(const char* folder) {
  std::string found;
  DIR* directory = opendir(folder);
  if (directory == nullptr) return found;
  while (const dirent* entry = readdir(directory)) {
    if (std::strstr(entry->d_name, "farsum-") != nullptr && std::strstr(entry->d_name, "farsum-node") != nullptr) {
      found += fmt::format(" {}/{}", folder, entry->d_name);
    }
  }
  closedir(directory);
  return found;
}

// Processes, this one aside, that hold the file with that inode open or mapped.
std::string holders_of(ino_t inode) {
  std::string found;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    const std::string folder = fmt::format("/proc/{}/fd", pid);
    DIR* descriptors = opendir(folder.c_str());
    if (descriptors == nullptr) continue;
    while (const dirent* descriptor = readdir(descriptors)) {
      struct stat status {};
      const std::string path = folder + "/" + descriptor->d_name;
      std::array<char, 256> target{};
      if (readlink(path.c_str(), target.data(), target.size() - 1) <= 0) continue;
      if (std::strstr(target.data(), "farsum-node") == nullptr) continue;
      if (stat(path.c_str(), &status) == 0 && status.st_ino == inode) found += fmt::format(" pid {}", pid);
    }
    closedir(descriptors);
  }
  closedir(proc);
  return found;
}

}  // namespace

farsum_status Rank::init(farsum_init_options* options) const {
  farsum_init_options own{};
  own.struct_bytes = sizeof own;
  if (options == nullptr) options = &own;
  if (by_allgather) {
    options->rank = rank;
    options->size = size;
    options->allgather = gather;
    options->allgather_user = const_cast<Rank*>(this);
  }
  return farsum_init(options);
}

bool Rank::ok(farsum_status status) const {
  if (status == FARSUM_OK) return true;
  RankWords& own = words();
  if (own.status.load() == FARSUM_OK) {
    std::strncpy(own.text.data(), farsum_last_error(), own.text.size() - 1);
    own.ended_ns.store(now_ns());
    own.status.store(status);
  }
  return false;
}

Job::Job(JobOptions options) : options_(std::move(options)) {
  void* memory = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  control_ = new (memory) Control;
  // Orphans come to us, where leftovers() finds them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!options_.by_allgather) {
    // Not close-on-exec: the ranks inherit it as they do from the launcher.
    node_fd_ = memfd_create("farsum-node", 0);
    const auto ranks = static_cast<std::uint32_t>(options_.ranks);
    auto segment = NodeSegment::open(dup(node_fd_), {.ranks = ranks, .team_bytes = GroupBlock::footprint(ranks)});
    if (segment.is_ok()) segment_ = std::move(segment.value());
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const RankBlock& block = segment_->rank(rank);
      membership_.emplace_back(segment_->offset_of(&block.pid), segment_->offset_of(&block.left));
    }
  }
}

Job::~Job() {
  for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
    if (exits_[rank] >= 0) continue;
    kill(pids_[rank], SIGKILL);
    waitpid(pids_[rank], nullptr, __WALL);
  }
  if (node_fd_ >= 0) close(node_fd_);
  munmap(control_, sizeof(Control));
}

void Job::start(const std::function<int(const Rank&)>& body) {
  for (int rank = 0; rank < options_.ranks; ++rank) {
    std::fflush(nullptr);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(99);
      for (const auto& [name, value] : options_.environment) setenv(name.c_str(), value.c_str(), 1);
      if (options_.environment_of) {
        for (const auto& [name, value] : options_.environment_of(rank)) setenv(name.c_str(), value.c_str(), 1);
      }
      if (!options_.by_allgather) {
        setenv("FARSUM_RANK", std::to_string(rank).c_str(), 1);
        setenv("FARSUM_SIZE", std::to_string(options_.ranks).c_str(), 1);
        setenv("FARSUM_NODE_FD", std::to_string(node_fd_).c_str(), 1);
      }
      const Rank self{rank, options_.ranks, control_, options_.by_allgather};
      _exit(body(self));
    }
    pids_.push_back(pid);
    exits_.push_back(-1);
  }
}

bool Job::wait_for(const std::function<bool()>& condition, std::uint64_t timeout_ns) {
  const std::uint64_t begin = now_ns();
  while (!condition()) {
    if (now_ns() - begin > timeout_ns) return false;
    for (int rank = 0; rank < static_cast<int>(pids_.size()); ++rank) {
      if (exits_[static_cast<std::size_t>(rank)] < 0) (void)wait_rank(rank, 0);
    }
    if (std::any_of(exits_.begin(), exits_.end(), [](int code) { return code >= 0; })) return condition();
    usleep(200);
  }
  return true;
}

void Job::kill_rank(int rank, bool reap) {
  killed_ns_ = now_ns();
  kill(pid(rank), SIGKILL);
  control_->killed.store(1);
  if (reap) (void)wait_rank(rank, now_ns() + report_deadline_ns);
}

bool Job::stop_inside_context(int rank) {
  kill(pid(rank), SIGSTOP);
  int status = 0;
  if (waitpid(pid(rank), &status, WUNTRACED | __WALL) != pid(rank) || !WIFSTOPPED(status)) return false;
  // Through the file: a context that has ended leaves no memory to look at.
  std::int32_t joined = 0;
  std::uint32_t left = 1;
  const auto [pid_at, left_at] = membership_[static_cast<std::size_t>(rank)];
  if (pread(node_fd_, &joined, sizeof joined, pid_at) == sizeof joined && joined == pid(rank) &&
      pread(node_fd_, &left, sizeof left, left_at) == sizeof left && left == 0) {
    return true;
  }
  kill(pid(rank), SIGCONT);
  return false;
}

int Job::wait_rank(int rank, std::uint64_t deadline_ns) {
  int& code = exits_[static_cast<std::size_t>(rank)];
  while (code < 0) {
    int status = 0;
    const pid_t ended = waitpid(pid(rank), &status, WNOHANG | __WALL);
    if (ended == pid(rank) && (WIFEXITED(status) || WIFSIGNALED(status))) {
      code = exit_code(status);
      break;
    }
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) return -1;
    // Readable when the process has ended.
    pollfd process{.fd = static_cast<int>(syscall(SYS_pidfd_open, pid(rank), 0)), .events = POLLIN, .revents = 0};
    poll(&process, 1, static_cast<int>((deadline_ns - now) / 1'000'000) + 1);
    close(process.fd);
  }
  return code;
}

std::string Job::leftovers() {
  for (int rank = 0; rank < static_cast<int>(pids_.size()); ++rank) {
    if (exits_[static_cast<std::size_t>(rank)] < 0) {
      kill(pid(rank), SIGKILL);
      (void)wait_rank(rank, now_ns() + report_deadline_ns);
    }
  }
  std::string left;
  if (waitpid(-1, nullptr, WNOHANG | __WALL) != -1 || errno != ECHILD) left += " a child process";
  struct stat status {};
  if (node_fd_ >= 0 && fstat(node_fd_, &status) == 0) left += holders_of(status.st_ino);
  left += farsum_files("/dev/shm") + farsum_files("/tmp");
  return left;
}

std::string judge_death(Job& job, int dead) {
  std::string wrong;
  const std::string name = fmt::format("rank {} of the job died", dead);
  const std::uint64_t deadline = job.killed_ns() + report_deadline_ns;
  for (int rank = 0; rank < job.size(); ++rank) {
    if (rank == dead) continue;
    const int code = job.wait_rank(rank, deadline);
    RankWords& words = job.words(rank);
    if (code == -1) {
      wrong += fmt::format("\n  rank {} neither reported nor ended within 5 s (round {})", rank, words.rounds.load());
    } else if (code != 0) {
      wrong += fmt::format("\n  rank {} ended with {} instead of reporting; its last words: {}", rank, code,
                           words.text.data());
    } else if (words.status.load() != FARSUM_ERR_PEER_FAILED) {
      wrong += fmt::format("\n  rank {} reported {}: {}", rank,
                           farsum_status_name(static_cast<farsum_status>(words.status.load())), words.text.data());
    } else if (std::strstr(words.text.data(), name.c_str()) == nullptr) {
      wrong += fmt::format("\n  rank {} does not name rank {}: {}", rank, dead, words.text.data());
    }
  }
  if (!wrong.empty()) return wrong;
  const std::string left = job.leftovers();
  return left.empty() ? "" : "\n  left behind:" + left;
}

}  // namespace farsum::faults
