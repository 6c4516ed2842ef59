// Collectives of a group that nobody waits for. Each rank leaves what it brings in the memory of its node and goes on;
// the last to come folds what is short, and what is long or goes to other nodes is gone on with by the process of the
// node's first rank, its agent where its threads do something else. Owner: collectives.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "base/units.hpp"
#include "collectives/carried_block.hpp"
#include "collectives/carried_call.hpp"
#include "collectives/carried_walk.hpp"
#include "collectives/group_team.hpp"
#include "collectives/rank_order.hpp"
#include "collectives/team_post.hpp"
#include "lockfree/marked_lock.hpp"
#include "ops/kernels.hpp"
#include "progress/waiter.hpp"

namespace farsum {

struct CarriedExtent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// What carrying needs of its rank's process. Any thread may call.
class CarryHelp {
 public:
  virtual ~CarryHelp() = default;
  // A stretch of the node segment, mapped here.
  virtual Status allocate(std::uint64_t bytes, CarriedExtent& extent) = 0;
  virtual void release(CarriedExtent extent) = 0;
  // Where it lies here; null where there is no room to map it.
  virtual std::byte* reach(CarriedExtent extent) = 0;
  // Has the agent of a member of this node take a turn.
  virtual void ring(std::uint32_t member_here) = 0;
  // What was sent to other nodes is looked after by the agent from now on.
  virtual void hand_over() = 0;
  // So many more calls of this process, or less, want turns of its agent.
  virtual void count_under_way(int more) = 0;
};

// A call that this rank has begun.
class CarriedRequest {
 public:
  CarriedCall call;
  const std::byte* mine = nullptr;  // until it has begun
  std::byte* result = nullptr;

 private:
  friend class Carry;
  // Taken over by the thread that makes it its program's result.
  enum class State : std::uint8_t { queued, entered, fetched, taken_over };

  SaidOfCall said_;
  std::uint64_t number_ = 0;
  State state_ = State::queued;          // guarded by the carry's mutex
  CarriedExtent own_;                    // what this rank brings, where that is long
  std::unique_ptr<std::byte[]> staged_;  // the same of a queued call, where it is short
  std::unique_ptr<std::byte[]> answer_;  // what this rank gets, where that is short, once it is fetched
  // Once it is fetched.
  CarriedFinding found_;
  CarriedExtent all_;  // the extent with the answer, where something is long
  std::uint64_t answer_at_ = 0;
};

// What the agent goes on with.
class CarriedTurns {
 public:
  // What it comes back for by the clock is said there.
  struct Turn {
    bool is_unfinished = false;  // something has been folded: there may be more to be done at once
    bool is_refused = false;     // a letter had no room
  };
  enum class Folding : std::uint8_t { done, left };
  // By one thread at a time.
  virtual Turn take_turn(Folding folding) noexcept = 0;

 protected:
  ~CarriedTurns() = default;
};

// One member's view. begin() is called by one thread of a rank at a time, all else by any.
class Carry final : public CarriedTurns {
 public:
  struct Parts {
    GroupTeam& team;  // lives longer
    std::uint32_t my_rank;
    const ops::KernelSet& kernels;
    TeamPost& post;
    Waiter& waiter;
    CarryHelp& help;
    std::uint32_t degree = 0;                // as of ReductionMeans
    ReduceOrder order = ReduceOrder::nodes;  // of all calls that reduce
  };
  explicit Carry(const Parts& parts);
  // Where the members of this node carry; before anything else.
  void open(std::byte* block) noexcept { block_ = block; }

  // Never waits. `calls_before`: how many calls of the group that are not carried this rank has made. Where it fails
  // the others do not learn of the call. SYSTEM once the group is broken for this node: then also of calls to which
  // others have not come.
  Status begin(const std::shared_ptr<CarriedRequest>& request, std::uint64_t calls_before, const char* doing);
  // Whether the call is over; then the result is there or the status says why not, and the request is no more. HANDLE
  // where another thread has been told so.
  Status test(CarriedRequest& request, bool& is_over, const char* doing);
  // The same; a status of a call that is not over is of a rank that died.
  Status wait(CarriedRequest& request, bool& is_over, const char* doing);
  // Requests that are not over. Acquire pairs with the release in take_over(): where there are none, no thread uses
  // this any more for one.
  std::size_t open_requests() const { return open_requests_.load(std::memory_order_acquire); }

  // When no rank of the node does anything for the group any more: gives back what could not be before.
  void give_back_kept();

  Turn take_turn(Folding folding) noexcept override;

  static constexpr std::size_t slice_bytes = 256 << 10;

 private:
  static constexpr std::uint64_t places = CarriedPlace::most_under_way;
  // Calls to which this rank was the last to come.
  struct Whole {
    std::array<std::uint64_t, places> numbers{};
    std::uint32_t count = 0;
  };

  CarriedBreak& broken() const { return *reinterpret_cast<CarriedBreak*>(block_ + CarriedBlock::break_at); }
  CarriedPlace& place(std::uint64_t number) const {
    return reinterpret_cast<CarriedPlace*>(block_ + CarriedBlock::places_at)[number % places];
  }
  CarriedPart& part(std::uint64_t number, std::uint32_t member) const {
    return reinterpret_cast<CarriedPart*>(block_ + CarriedBlock::parts_at)[number % places * ranks_ + member];
  }
  std::byte* slot(std::uint64_t number, std::uint32_t member) const {
    return block_ + CarriedBlock::slots_at(ranks_) +
           (number % places * ranks_ + member) * CarriedBlock::slot_bytes(ranks_);
  }
  bool is_short(const CarriedCall& call) const;
  bool is_first() const { return me_ == 0; }
  bool walks() const { return lists_.has_value(); }
  bool is_open(std::uint64_t number) const;
  bool has_outcome(std::uint64_t number) const;
  // Where in the extent of a rank lies what it brings, and in that of the first the answer, behind so many bytes.
  std::size_t part_in_extent() const { return is_first() ? sizeof(CarriedExtentHead) : 0; }
  std::size_t answer_in_extent(std::size_t bytes) const { return part_in_extent() + round_up(bytes, cache_line_bytes); }
  Status stage(CarriedRequest& request, const char* doing);
  void enter(const std::shared_ptr<CarriedRequest>& request);
  void queue_up(const std::shared_ptr<CarriedRequest>& request);
  template <class Work>
  bool hold(const Work& work);
  bool begin_whole(std::unique_lock<std::mutex> lock);
  void advance();
  bool try_to_advance();
  bool advance_queue();
  bool enter_next();
  bool fetch_wanted();
  void fetch(std::uint64_t of_place);
  void close(CarriedPlace& left);
  void compare_and_begin(std::uint64_t number);
  CarriedFinding compare(std::uint64_t number) const;
  bool reach_all(std::uint64_t number, const CarriedCall& call) const;
  std::size_t bytes_to_fold(const CarriedCall& call) const;
  bool fold_slice(std::uint64_t number);
  bool fold_taken(std::uint64_t of_place, const std::optional<CallPlace::Slice>& slice);
  bool fold(std::uint64_t number, std::uint64_t slice) const;
  void fold_by_ranks(std::uint64_t number, const CarriedCall& call, std::size_t from, std::size_t bytes) const;
  bool reach_parts(std::uint64_t number, const CarriedCall& call);
  void end_fold(std::uint64_t number);
  std::byte* data_of(std::uint64_t number, std::uint32_t member, std::size_t bytes) const;
  std::byte* answer_of(std::uint64_t number, const CarriedCall& call) const;
  void conclude(std::uint64_t number);
  void break_group(const CarriedFinding& found);
  void abandon(CarriedRequest& request, const CarriedFinding& found);
  bool walk() noexcept;
  bool walk_place(std::uint64_t of_place);
  void ring_others() const;
  enum class Seen : std::uint8_t { under_way, over, of_another_thread };
  Seen look(CarriedRequest& request);
  Seen look_with_mutex(CarriedRequest& request);
  Seen claim(CarriedRequest& request);
  Status end(CarriedRequest& request, Seen seen, const char* doing);
  Status take_over(CarriedRequest& request, const char* doing);
  void let_go(CarriedRequest& request);
  void keep(std::vector<CarriedExtent>& among, const CarriedExtent& extent);
  bool count_fetched(const CarriedExtent& all);
  void count_fetched_again();

  GroupTeam& team_;
  const ops::KernelSet& kernels_;
  Waiter& waiter_;
  CarryHelp& help_;
  std::byte* block_ = nullptr;
  std::uint32_t my_rank_;
  std::uint32_t size_;
  std::uint32_t ranks_;  // on this node, and my place among them
  std::uint32_t me_;
  std::vector<RankOrder::Join> joins_here_;  // of several nodes, where ranks decide the order
  std::atomic<std::size_t> open_requests_{0};
  std::atomic<std::uint32_t> is_turned_away_{0};  // 1: the agent, since the mutex was held

  std::mutex mutex_;         // held for copies of what is short at most; guards what follows
  Whole whole_;              // begun behind the mutex
  std::uint64_t begun_ = 0;  // calls
  std::array<std::shared_ptr<CarriedRequest>, places> entered_;  // not fetched, by place
  std::deque<std::shared_ptr<CarriedRequest>> queue_;

  std::atomic<bool> has_uncounted_{false};
  std::mutex keeping_;                    // guards what follows
  std::vector<CarriedExtent> kept_;       // of a broken group: others may read them until its end
  std::vector<CarriedExtent> uncounted_;  // whose head could not be mapped

  // On the first rank of each of several nodes.
  std::optional<CarriedLists> lists_;
  MarkedLock walking_;  // guards what follows
  std::vector<CarriedWalk> walks_;
  std::vector<const std::byte*> parts_;         // by place and member here, of calls in which ranks decide the order
  std::array<std::uint64_t, places> walked_{};  // by place, the tag of the last call that was walked, or is
  std::atomic<bool> is_refused_{false};
};

}  // namespace farsum
