#include "cli/info/info_nodes.hpp"

#include <farsum.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "os/usable_processors.hpp"

namespace farsum::cli {

namespace {

class SharedMeeting {
 public:
  explicit SharedMeeting(int nodes) {
    void* const memory =
        mmap(nullptr, sizeof(NodeHere::Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    meeting_ = static_cast<NodeHere::Meeting*>(memory);
    meeting_->nodes = nodes;
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&meeting_->barrier, &attributes, static_cast<unsigned>(nodes));
    pthread_barrierattr_destroy(&attributes);
  }
  // The barrier is not destroyed: that would wait for nodes that died in it.
  ~SharedMeeting() { munmap(meeting_, sizeof *meeting_); }
  SharedMeeting(const SharedMeeting&) = delete;
  SharedMeeting& operator=(const SharedMeeting&) = delete;
  [[nodiscard]] NodeHere::Meeting& get() const { return *meeting_; }

 private:
  NodeHere::Meeting* meeting_ = nullptr;
};

[[noreturn]] void be_node(int node, NodeHere::Meeting& meeting, const std::function<void(NodeHere&)>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const char* name : {"FARSUM_RANK", "FARSUM_SIZE", "FARSUM_NODE_FD"}) unsetenv(name);
  setenv("FARSUM_NODE_NAME", fmt::format("node-{}", node).c_str(), 1);
  // Farsum sees one rank on each node, and would have it look for answers where another needs the processor.
  if (meeting.nodes > static_cast<int>(os::report_processors().usable)) setenv("FARSUM_SPIN_NS", "0", 1);
  try {
    NodeHere here(node, meeting);
    work(here);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "farsum info: node {}: {}\n", node, failure.what());
    _exit(1);
  }
  _exit(0);
}

bool wait_for_all(std::span<const pid_t> started) {
  std::vector<pid_t> living(started.begin(), started.end());
  bool is_good = true;
  while (!living.empty()) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0) return false;
    std::erase(living, ended);
    const bool ends_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ends_well || !is_good) continue;
    is_good = false;
    for (const pid_t other : living) kill(other, SIGKILL);
  }
  return is_good;
}

}  // namespace

void NodeHere::open(int degree) {
  setenv("FARSUM_REDUCE_DEGREE", std::to_string(degree).c_str(), 1);
  farsum_init_options options{};
  options.struct_bytes = sizeof options;
  options.rank = node_;
  options.size = meeting_.nodes;
  options.allgather = [](const void* mine, void* all, std::size_t bytes, void* self) {
    return static_cast<NodeHere*>(self)->gather(mine, all, bytes);
  };
  options.allgather_user = this;
  if (farsum_init(&options) != FARSUM_OK) throw std::runtime_error(farsum_last_error());
}

int NodeHere::gather(const void* mine, void* all, std::size_t bytes) {
  const std::size_t total = bytes * static_cast<std::size_t>(meeting_.nodes);
  if (total > meeting_.gathered.size()) return 1;
  meet();
  std::memcpy(meeting_.gathered.data() + static_cast<std::size_t>(node_) * bytes, mine, bytes);
  meet();
  std::memcpy(all, meeting_.gathered.data(), total);
  return 0;
}

void NodeHere::tell(std::span<const double> results) {
  if (results.size() > meeting_.result.size()) throw std::length_error("more results than there is room for");
  std::copy(results.begin(), results.end(), meeting_.result.begin());
  meeting_.results = results.size();
}

std::optional<std::vector<double>> run_nodes_here(int nodes, const std::function<void(NodeHere&)>& work) {
  const SharedMeeting meeting(nodes);
  std::fflush(nullptr);  // lest a process writes again what waits here
  std::vector<pid_t> started;
  for (int node = 0; node < nodes; ++node) {
    const pid_t child = fork();
    if (child == 0) be_node(node, meeting.get(), work);
    if (child > 0) started.push_back(child);
  }
  if (started.size() < static_cast<std::size_t>(nodes))
    for (const pid_t child : started) kill(child, SIGKILL);
  if (!wait_for_all(started) || started.size() < static_cast<std::size_t>(nodes)) return std::nullopt;
  const NodeHere::Meeting& ended = meeting.get();
  return std::vector<double>(ended.result.data(), ended.result.data() + ended.results);
}

}  // namespace farsum::cli
