#include "exchanges.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace lab {
namespace {

// Paper 2's figure 1, right: Irecv and Isend, computation, Wait.
class TwoSided : public Exchange {
 public:
  TwoSided(std::size_t width, Neighbours neighbours)
      : neighbours_(neighbours), from_above_(width), from_below_(width) {}

  void begin(const Field& field) override {
    const int width = static_cast<int>(field.width());
    MPI_Irecv(from_above_.data(), width, MPI_DOUBLE, neighbours_.above, downwards, MPI_COMM_WORLD, &requests_[0]);
    MPI_Irecv(from_below_.data(), width, MPI_DOUBLE, neighbours_.below, upwards, MPI_COMM_WORLD, &requests_[1]);
    MPI_Isend(field.first(), width, MPI_DOUBLE, neighbours_.above, upwards, MPI_COMM_WORLD, &requests_[2]);
    MPI_Isend(field.last(), width, MPI_DOUBLE, neighbours_.below, downwards, MPI_COMM_WORLD, &requests_[3]);
  }
  void end() override { MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE); }
  [[nodiscard]] const Cell* from_above() const override { return from_above_.data(); }
  [[nodiscard]] const Cell* from_below() const override { return from_below_.data(); }

 private:
  static constexpr int upwards = 1;
  static constexpr int downwards = 2;

  Neighbours neighbours_;
  std::vector<Cell> from_above_;
  std::vector<Cell> from_below_;
  std::array<MPI_Request, 4> requests_{MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

// What the one-sided ones share: a window with an inbox for each neighbour's row, in two sets that steps use in turn. A
// neighbour may be a step ahead but never two, for it needs our row of this step: so two sets are enough.
class OneSided : public Exchange {
 public:
  OneSided(MemoryKind memory, std::size_t width, Neighbours neighbours)
      : width_(width),
        neighbours_(neighbours),
        distinct_neighbours_{neighbours.above},
        window_(memory, inboxes * width * sizeof(Cell) + counters * sizeof(std::int64_t), 1, MPI_COMM_WORLD) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    if (neighbours.below != neighbours.above) {
      distinct_neighbours_.push_back(neighbours.below);
    }
  }

  [[nodiscard]] const Cell* from_above() const override { return inbox(parity_ ^ 1U, above_side); }
  [[nodiscard]] const Cell* from_below() const override { return inbox(parity_ ^ 1U, below_side); }

 protected:
  static constexpr std::size_t above_side = 0;
  static constexpr std::size_t below_side = 1;

  void put_both(const Field& field) {
    put(field.first(), neighbours_.above, below_side);
    put(field.last(), neighbours_.below, above_side);
  }
  void next_step() { parity_ ^= 1U; }

  // Each neighbour once, though it may be so on both sides.
  [[nodiscard]] const std::vector<int>& distinct_neighbours() const { return distinct_neighbours_; }
  [[nodiscard]] MPI_Aint counter_offset(std::size_t side) const {
    return static_cast<MPI_Aint>(inboxes * width_ * sizeof(Cell) + side * sizeof(std::int64_t));
  }
  [[nodiscard]] MPI_Win win() const { return window_.win(); }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const Neighbours& neighbours() const { return neighbours_; }
  [[nodiscard]] const Window& window() const { return window_; }

 private:
  static constexpr std::size_t inboxes = 4;
  static constexpr std::size_t counters = 2;

  [[nodiscard]] std::size_t inbox_index(std::size_t parity, std::size_t side) const {
    return (2 * parity + side) * width_;
  }
  [[nodiscard]] const Cell* inbox(std::size_t parity, std::size_t side) const {
    return window_.as<Cell>() + inbox_index(parity, side);
  }
  void put(const Cell* row, int target, std::size_t side) {
    const int count = static_cast<int>(width_);
    const auto offset = static_cast<MPI_Aint>(inbox_index(parity_, side) * sizeof(Cell));
    MPI_Put(row, count, MPI_DOUBLE, target, offset, count, MPI_DOUBLE, win());
  }

  std::size_t width_;
  Neighbours neighbours_;
  std::vector<int> distinct_neighbours_;
  Window window_;
  std::size_t parity_ = 0;
  int rank_ = 0;
};

// Paper 2's figure 1, left: Post and Start, Put, computation, Complete and Wait.
class PostStartCompleteWait : public OneSided {
 public:
  PostStartCompleteWait(MemoryKind memory, std::size_t width, Neighbours neighbours)
      : OneSided(memory, width, neighbours) {
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    const std::vector<int>& ranks = distinct_neighbours();
    MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &group_);
    MPI_Group_free(&world);
  }
  PostStartCompleteWait(const PostStartCompleteWait&) = delete;
  PostStartCompleteWait& operator=(const PostStartCompleteWait&) = delete;
  ~PostStartCompleteWait() override { MPI_Group_free(&group_); }

  void begin(const Field& field) override {
    MPI_Win_post(group_, 0, win());
    MPI_Win_start(group_, 0, win());
    put_both(field);
  }
  void end() override {
    MPI_Win_complete(win());
    MPI_Win_wait(win());
    next_step();
  }

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
};

// A lock and an unlock of each neighbour per step. A passive target learns nothing of it, so an empty message follows.
class LockUnlock : public OneSided {
 public:
  using OneSided::OneSided;

  void begin(const Field& field) override {
    if (own_epoch_) {
      MPI_Win_unlock(rank(), win());  // the rows of the last step have been read
      own_epoch_ = false;
    }
    for (const int neighbour : distinct_neighbours()) {
      MPI_Win_lock(MPI_LOCK_SHARED, neighbour, 0, win());
    }
    put_both(field);
  }
  void end() override {
    for (const int neighbour : distinct_neighbours()) {
      MPI_Win_unlock(neighbour, win());
    }
    exchange_notices();
    // In an epoch of its own, a rank sees in its window what others have put there, in either memory model.
    MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win());
    own_epoch_ = true;
    next_step();
  }
  ~LockUnlock() override {
    if (own_epoch_) {
      MPI_Win_unlock(rank(), win());
    }
  }

 private:
  void exchange_notices() const {
    constexpr int upwards = 3;
    constexpr int downwards = 4;
    std::array<MPI_Request, 4> requests{};
    MPI_Irecv(nullptr, 0, MPI_BYTE, neighbours().above, downwards, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(nullptr, 0, MPI_BYTE, neighbours().below, upwards, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(nullptr, 0, MPI_BYTE, neighbours().above, upwards, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(nullptr, 0, MPI_BYTE, neighbours().below, downwards, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }

  bool own_epoch_ = false;
};

// One fence per step: it closes the step's epoch and opens the next one's, whose puts go to the other set of inboxes.
class Fence : public OneSided {
 public:
  Fence(MemoryKind memory, std::size_t width, Neighbours neighbours) : OneSided(memory, width, neighbours) {
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win());
  }
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  ~Fence() override { MPI_Win_fence(MPI_MODE_NOSUCCEED, win()); }

  void begin(const Field& field) override { put_both(field); }
  void end() override {
    MPI_Win_fence(0, win());
    next_step();
  }
};

// When a rank tells its neighbours that their rows are there.
enum class Notice : int { before_inner, after_inner };

// One epoch for the whole run. After the row is flushed, the neighbour's counter of steps goes up; the neighbour waits
// for it. Telling before the inner rows lets a neighbour go ahead of a rank that is late. A library that completes a
// flush only when the target calls MPI does better with telling after them.
class NotifyingCounter : public OneSided {
 public:
  NotifyingCounter(MemoryKind memory, std::size_t width, Neighbours neighbours, Notice notice)
      : OneSided(memory, width, neighbours), notice_(notice) {
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win());
  }
  NotifyingCounter(const NotifyingCounter&) = delete;
  NotifyingCounter& operator=(const NotifyingCounter&) = delete;
  ~NotifyingCounter() override { MPI_Win_unlock_all(win()); }

  void begin(const Field& field) override {
    put_both(field);
    if (notice_ == Notice::before_inner) {
      notify_both();
    }
  }
  void end() override {
    if (notice_ == Notice::after_inner) {
      notify_both();
    }
    ++step_;
    wait_for(above_side);
    wait_for(below_side);
    MPI_Win_sync(win());  // the rows are read only after the counters
    next_step();
  }

 private:
  void notify_both() {
    flush_neighbours();  // the rows before the counters
    notify(neighbours().above, below_side);
    notify(neighbours().below, above_side);
    flush_neighbours();
  }
  void flush_neighbours() const {
    for (const int neighbour : distinct_neighbours()) {
      MPI_Win_flush(neighbour, win());
    }
  }
  void notify(int target, std::size_t side) {
    MPI_Accumulate(&one_, 1, MPI_INT64_T, target, counter_offset(side), 1, MPI_INT64_T, MPI_SUM, win());
  }

  // Looks, and gives the core away between looks: there may be more ranks than cores. The probe lets a library that
  // makes progress only inside MPI calls carry out what neighbours have asked of this rank.
  void wait_for(std::size_t side) const {
    constexpr int looks_before_sleep = 200;
    int looks = 0;
    while (counter(side) < step_) {
      int found = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
      if (++looks < looks_before_sleep) {
        sched_yield();
      } else {
        sleep_us(20);
      }
    }
  }
  [[nodiscard]] std::int64_t counter(std::size_t side) const {
    MPI_Win_sync(win());
    const char* address = window().as<char>() + counter_offset(side);
    return *reinterpret_cast<const volatile std::int64_t*>(address);
  }

  Notice notice_;
  std::int64_t one_ = 1;
  std::int64_t step_ = 0;
};

}  // namespace

const std::vector<std::string>& exchange_names() {
  static const std::vector<std::string> names{"two-sided", "pscw", "lock-unlock", "fence", "notify", "notify-late"};
  return names;
}

std::unique_ptr<Exchange> make_exchange(const std::string& name, MemoryKind memory, std::size_t width,
                                        Neighbours neighbours) {
  if (name == "pscw") {
    return std::make_unique<PostStartCompleteWait>(memory, width, neighbours);
  }
  if (name == "lock-unlock") {
    return std::make_unique<LockUnlock>(memory, width, neighbours);
  }
  if (name == "fence") {
    return std::make_unique<Fence>(memory, width, neighbours);
  }
  if (name == "notify") {
    return std::make_unique<NotifyingCounter>(memory, width, neighbours, Notice::before_inner);
  }
  if (name == "notify-late") {
    return std::make_unique<NotifyingCounter>(memory, width, neighbours, Notice::after_inner);
  }
  return std::make_unique<TwoSided>(width, neighbours);
}

}  // namespace lab
