// Reads of other nodes' memory that are answered from copies, in windows that allow it (read_age_ms of
// farsum_window_options): blocks of a target's part that were read again and again since this process last heard of
// others are fetched whole, and answer what is read of them until it hears again, or they are too old. It decides and
// remembers; the window sends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/function_ref.hpp"
#include "base/units.hpp"
#include "protocol/origin/engine.hpp"
#include "protocol/origin/hearing.hpp"

namespace farsum {

class ReadAhead;

// What the copies of a process hold, and did. Bounds are for all windows together.
class alignas(cache_line_bytes) ReadCopies {
 public:
  static constexpr std::uint64_t most_blocks = 4096;  // 64 MiB
  static constexpr std::uint64_t most_known = 65536;

  // Lets go, in all windows, what no read has touched since the process had heard less. Once for each such number.
  void reclaim(std::uint64_t heard);
  // Whether there has been a window with copies. Relaxed: as for those who read from it.
  bool are_used() const { return are_used_.load(std::memory_order_relaxed); }
  void join(ReadAhead& copies);
  void leave(ReadAhead& copies);

  std::atomic<std::uint64_t> blocks{0};
  std::atomic<std::uint64_t> known{0};     // these, and others that were read
  std::atomic<std::uint64_t> fetched{0};   // blocks, each as often as it was fetched
  std::atomic<std::uint64_t> answered{0};  // operations

 private:
  std::atomic<bool> are_used_{false};
  std::mutex mutex_;  // guards what follows
  std::vector<ReadAhead*> all_;
  std::uint64_t reclaimed_ = 0;
};

// Any thread may call. Fetches under way write into it: it must outlive them.
class ReadAhead {
 public:
  static constexpr std::uint64_t block_bytes = 16384;
  static constexpr std::uint64_t most_read_bytes = 8192;  // longer ones are worth their round trip

  struct Options {
    std::uint64_t age_ns = 0;
    const Hearing* hearing = nullptr;
    ReadCopies* copies = nullptr;
    std::uint64_t (*now_ns)() = nullptr;
    bool only_gets = false;  // reads by NO_OP are left alone
  };
  // `part_bytes` by target.
  ReadAhead(const Options& options, const std::vector<std::uint64_t>& part_bytes);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Whether operations of this kind may be answered, and are worth it.
  bool is_read(const Operation& operation) const;
  // Answers it, if there are copies of all that it reads. `operation` is one that is_read, checked.
  bool answer(std::uint32_t target, const Operation& operation);
  // It was sent instead.
  void sent(std::uint32_t target, const Operation& operation) noexcept;
  // Somebody is about to wait for what was sent to the target: what is read from then on may depend on it. `fetch`
  // starts a whole block that shall answer in future, with what is told when it is here; false: it has not, for want of
  // room. Answers how many were started.
  using Fetch = FunctionRef<bool(const Operation& block, Outstanding& fetches, RequestState& told)>;
  std::size_t end_round(std::uint32_t target, Fetch fetch) noexcept;
  // This process has sent what changes bytes from `low` to `high` of the target.
  void changed(std::uint32_t target, std::uint64_t low, std::uint64_t high);
  // What is under way: nobody flushes it, but it must have ended before this does.
  const Outstanding& fetches(std::uint32_t target) const { return parts_[target].fetches; }
  // What was touched and fetched before the process had heard so often, but for what is under way.
  void drop_older_than(std::uint64_t heard);

 private:
  struct Moment {
    std::uint64_t heard = 0;
    std::uint64_t ns = 0;
  };
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    Moment moment;                    // when it was fetched
    std::uint64_t touched_heard = 0;  // when an operation that was sent read of it last
    std::uint64_t touched_round = 0;
    std::uint32_t answers = 0;  // since it was fetched
    bool is_valid = false;
    bool is_wanted = false;   // at the end of the round
    bool is_atomic = false;   // no element of it is torn, or shall be
    bool is_fetched = false;  // under way
    bool is_spoiled = false;  // what is under way is older than what this process has done since
    bool is_refused = false;  // the owner does not give it
    RequestState told;
  };
  struct Part {
    std::mutex mutex;  // guards what is neither atomic nor the engine's
    std::uint64_t bytes = 0;
    std::uint64_t round = 1;
    std::vector<std::uint64_t> wanted;
    Outstanding fetches;
    std::atomic<bool> has_blocks{false};  // has had
    std::unordered_map<std::uint64_t, Block> blocks;
  };

  Moment moment() const { return {options_.hearing->times(), options_.now_ns()}; }
  // Relaxed: bounds that threads may pass by a block each.
  bool is_full() const { return options_.copies->blocks.load(std::memory_order_relaxed) >= ReadCopies::most_blocks; }
  bool knows_too_many() const {
    return options_.copies->known.load(std::memory_order_relaxed) >= ReadCopies::most_known;
  }
  Block* find_valid(Part& part, std::uint64_t index, const Moment& moment, bool atomic);
  bool is_valid(const Block& block, const Moment& moment, bool atomic) const;
  void touch(Part& part, std::uint64_t index, const Moment& moment, bool atomic);
  void start(Part& part, std::uint64_t index, Block& block, const Moment& moment, Fetch fetch);
  static void finish_fetch(Block& block);
  void let_go(const Block& block);

  Options options_;
  std::unique_ptr<Part[]> parts_;
  std::size_t size_;
};

}  // namespace farsum
