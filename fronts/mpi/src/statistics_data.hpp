// The numbers behind FARSUM_MPI_STATS in this process. Any thread may count.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "farsum.h"
#include "library.hpp"

namespace farsum::mpi {

struct Tally {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t spent_ns = 0;
  std::uint64_t waited_ns = 0;
  // Of calls that name one target: those to the calling rank itself, the only ones that no network would ever carry.
  std::uint64_t own_count = 0;
  std::uint64_t own_bytes = 0;
  std::uint64_t peer_count = 0;
  std::uint64_t peer_bytes = 0;
  // Of these, those to ranks of other nodes.
  std::uint64_t network_count = 0;
  std::uint64_t network_bytes = 0;

  void add(const Tally& other) {
    count += other.count;
    bytes += other.bytes;
    spent_ns += other.spent_ns;
    waited_ns += other.waited_ns;
    own_count += other.own_count;
    own_bytes += other.own_bytes;
    peer_count += other.peer_count;
    peer_bytes += other.peer_bytes;
    network_count += other.network_count;
    network_bytes += other.network_bytes;
  }
};

// Of one window, also after it was freed.
struct WindowRecord {
  std::uint64_t id = 0;  // the same on all its ranks
  std::string name;
  const char* flavor = "";
  std::uint64_t bytes = 0;
  MPI_Win handle = MPI_WIN_NULL;  // while it lives

  std::mutex mutex;                                                 // guards what follows
  std::map<std::pair<const char*, const char*>, Tally> operations;  // by call and path, both constants
  // The region of each target that was last used.
  struct Region {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    const char* bulk = nullptr;
    const char* atomic = nullptr;
    std::uint32_t uses_left = 0;  // until the engine is asked again, for paths may change
  };
  std::vector<Region> regions;
  enum class Way : std::uint8_t { unknown, memory, network };
  std::vector<Way> ways;  // to each target, once it was one
};

// A collective call: name, operator, type, and the power of two at or below its count of elements.
using CollectiveKey = std::tuple<const char*, MPI_Op, MPI_Datatype, std::uint64_t>;

class Statistics {
 public:
  static Statistics& get();

  std::shared_ptr<WindowRecord> find(MPI_Win handle);
  void add(MPI_Win handle, std::shared_ptr<WindowRecord> record);
  // The handle is about to be freed.
  std::shared_ptr<WindowRecord> take(MPI_Win handle);
  // MPI_Alloc_mem and MPI_Free_mem belong to no window.
  const std::shared_ptr<WindowRecord>& memory() const { return memory_; }
  void count(const CollectiveKey& key, std::uint64_t spent_ns);
  std::uint64_t next_window() { return windows_.fetch_add(1, std::memory_order_relaxed) + 1; }  // only has to differ

  // Everything, as lines of words between tabs; see statistics_report.cpp. It counts no more, but for the windows that
  // live.
  std::string take_lines();

 private:
  Statistics();

  std::mutex mutex_;
  std::atomic<std::uint64_t> windows_{0};
  std::vector<std::shared_ptr<WindowRecord>> all_;
  std::unordered_map<std::uint64_t, std::shared_ptr<WindowRecord>> live_;
  std::map<CollectiveKey, Tally> collectives_;
  std::shared_ptr<WindowRecord> memory_;
};

}  // namespace farsum::mpi
