#include "updaters.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lab {

const char* const why_no_fence =
    "fence is left out: all accumulates may wait for the closing fence, so that a library may hold back more than the "
    "1024 "
    "updates that the benchmark allows; and the number of fences would have to be the same on all ranks";

namespace {

struct Update {
  Word offset;  // in the owner's part
  Word value;
};

// HPCC's reference: updates travel in messages to their owners, who carry them out.
class TwoSided : public Updater {
 public:
  explicit TwoSided(const UpdateContext& context) : Updater(context) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    buckets_.resize(static_cast<std::size_t>(size_));
    incoming_.resize(static_cast<std::size_t>(context.depth));
  }

  void begin() override {
    open_senders_ = size_ - 1;
    post_receive();
  }

  void update(Word random) override {
    const Word index = context().layout.index_of(random);
    const int owner = context().layout.owner_of(index);
    const Update update{context().layout.offset_of(index), random};
    if (owner == rank_) {
      apply(update);
      return;
    }
    buckets_[static_cast<std::size_t>(owner)].push_back(update);
    if (++waiting_ == context().depth) {
      send_largest();
    }
  }

  void finish() override {
    while (waiting_ != 0) {
      send_largest();
    }
    wait_for_send();
    std::vector<MPI_Request> ends;
    for (int rank = 0; rank < size_; ++rank) {
      if (rank != rank_) {
        MPI_Isend(nullptr, 0, MPI_UINT64_T, rank, end_tag, MPI_COMM_WORLD, &ends.emplace_back());
      }
    }
    while (open_senders_ != 0) {
      serve();
    }
    MPI_Waitall(static_cast<int>(ends.size()), ends.data(), MPI_STATUSES_IGNORE);
    if (receive_ != MPI_REQUEST_NULL) {
      MPI_Cancel(&receive_);
      MPI_Wait(&receive_, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  static constexpr int data_tag = 1;
  static constexpr int end_tag = 2;
  static constexpr int words_per_update = 2;

  void apply(const Update& update) {
    Word& word = context().local[update.offset];
    word = combine(context().op, word, update.value);
  }

  void post_receive() {
    if (open_senders_ != 0) {
      MPI_Irecv(incoming_.data(), words_per_update * context().depth, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG,
                MPI_COMM_WORLD, &receive_);
    }
  }

  // Carries out one message if one is there.
  void serve() {
    int arrived = 0;
    MPI_Status status;
    MPI_Test(&receive_, &arrived, &status);
    if (arrived == 0 || open_senders_ == 0) {
      return;
    }
    if (status.MPI_TAG == end_tag) {
      --open_senders_;
    } else {
      int words = 0;
      MPI_Get_count(&status, MPI_UINT64_T, &words);
      const auto updates = static_cast<std::size_t>(words / words_per_update);
      std::for_each_n(incoming_.begin(), updates, [this](const Update& update) { apply(update); });
    }
    post_receive();
  }

  void wait_for_send() {
    int sent = 0;
    MPI_Test(&send_, &sent, MPI_STATUS_IGNORE);
    while (sent == 0) {
      serve();
      MPI_Test(&send_, &sent, MPI_STATUS_IGNORE);
    }
    serve();
  }

  void send_largest() {
    const auto largest = std::max_element(buckets_.begin(), buckets_.end(), [](const auto& left, const auto& right) {
      return left.size() < right.size();
    });
    wait_for_send();
    outgoing_.clear();
    std::swap(outgoing_, *largest);
    const int count = static_cast<int>(outgoing_.size());
    waiting_ -= count;
    MPI_Isend(outgoing_.data(), words_per_update * count, MPI_UINT64_T, static_cast<int>(largest - buckets_.begin()),
              data_tag, MPI_COMM_WORLD, &send_);
  }

  int rank_ = 0;
  int size_ = 1;
  int waiting_ = 0;
  int open_senders_ = 0;
  std::vector<std::vector<Update>> buckets_;
  std::vector<Update> outgoing_;
  std::vector<Update> incoming_;
  MPI_Request send_ = MPI_REQUEST_NULL;
  MPI_Request receive_ = MPI_REQUEST_NULL;
};

// What the one-sided ones share: where an update goes.
class OneSided : public Updater {
 public:
  using Updater::Updater;
  void finish() override { MPI_Barrier(MPI_COMM_WORLD); }

 protected:
  struct Target {
    int rank;
    MPI_Aint offset;
  };
  [[nodiscard]] Target target_of(Word random) const {
    const Word index = context().layout.index_of(random);
    return {context().layout.owner_of(index), static_cast<MPI_Aint>(context().layout.offset_of(index))};
  }
  [[nodiscard]] MPI_Win win() const { return context().win; }
};

// The paper's section 3.2: an epoch to fetch, the change, an epoch to store. Nothing holds the word between the two.
class GetModifyPut : public OneSided {
 public:
  using OneSided::OneSided;
  void update(Word random) override {
    const Target target = target_of(random);
    Word word = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target.rank, 0, win());
    MPI_Get(&word, 1, MPI_UINT64_T, target.rank, target.offset, 1, MPI_UINT64_T, win());
    MPI_Win_unlock(target.rank, win());
    word = combine(context().op, word, random);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target.rank, 0, win());
    MPI_Put(&word, 1, MPI_UINT64_T, target.rank, target.offset, 1, MPI_UINT64_T, win());
    MPI_Win_unlock(target.rank, win());
  }
};

// The same in one exclusive epoch, which MPI-3's flush allows: no update is lost.
class LockedGetModifyPut : public OneSided {
 public:
  using OneSided::OneSided;
  void update(Word random) override {
    const Target target = target_of(random);
    Word word = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target.rank, 0, win());
    MPI_Get(&word, 1, MPI_UINT64_T, target.rank, target.offset, 1, MPI_UINT64_T, win());
    MPI_Win_flush(target.rank, win());
    word = combine(context().op, word, random);
    MPI_Put(&word, 1, MPI_UINT64_T, target.rank, target.offset, 1, MPI_UINT64_T, win());
    MPI_Win_unlock(target.rank, win());
  }
};

// The paper's section 3.3: each update an accumulate in an epoch of its own.
class Accumulate : public OneSided {
 public:
  using OneSided::OneSided;
  void update(Word random) override {
    const Target target = target_of(random);
    MPI_Win_lock(MPI_LOCK_SHARED, target.rank, 0, win());
    MPI_Accumulate(&random, 1, MPI_UINT64_T, target.rank, target.offset, 1, MPI_UINT64_T, mpi_op(context().op), win());
    MPI_Win_unlock(target.rank, win());
  }
};

// One epoch for all, flushed as often as the benchmark's rules demand.
class AccumulateFlush : public OneSided {
 public:
  explicit AccumulateFlush(const UpdateContext& context)
      : OneSided(context), values_(static_cast<std::size_t>(context.depth)) {}
  void begin() override { MPI_Win_lock_all(MPI_MODE_NOCHECK, win()); }
  void update(Word random) override {
    const Target target = target_of(random);
    Word& value = values_[waiting_];  // the origin's buffer belongs to the library until the flush
    value = random;
    MPI_Accumulate(&value, 1, MPI_UINT64_T, target.rank, target.offset, 1, MPI_UINT64_T, mpi_op(context().op), win());
    if (++waiting_ == values_.size()) {
      MPI_Win_flush_all(win());
      waiting_ = 0;
    }
  }
  void finish() override {
    MPI_Win_unlock_all(win());
    waiting_ = 0;
    OneSided::finish();
  }

 private:
  std::vector<Word> values_;
  std::size_t waiting_ = 0;
};

// The paper's section 4.1: updates to one owner wait, then go as a single accumulate whose target is a datatype.
class AccumulateGathered : public OneSided {
 public:
  explicit AccumulateGathered(const UpdateContext& context) : OneSided(context) {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    buckets_.resize(static_cast<std::size_t>(size));
  }

  void update(Word random) override {
    const Target target = target_of(random);
    buckets_[static_cast<std::size_t>(target.rank)].push_back({static_cast<Word>(target.offset), random});
    if (++waiting_ == context().depth) {
      send_all();
    }
  }
  void finish() override {
    send_all();
    OneSided::finish();
  }

 private:
  void send_all() {
    for (std::size_t rank = 0; rank < buckets_.size(); ++rank) {
      if (!buckets_[rank].empty()) {
        send(static_cast<int>(rank), buckets_[rank]);
        buckets_[rank].clear();
      }
    }
    waiting_ = 0;
  }

  void send(int rank, std::vector<Update>& bucket) {
    merge(bucket);
    values_.clear();
    displacements_.clear();
    for (const Update& update : bucket) {
      values_.push_back(update.value);
      displacements_.push_back(static_cast<MPI_Aint>(update.offset * sizeof(Word)));
    }
    MPI_Datatype type = make_type();
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win());
    MPI_Accumulate(values_.data(), static_cast<int>(values_.size()), MPI_UINT64_T, rank, 0, 1, type,
                   mpi_op(context().op), win());
    MPI_Win_unlock(rank, win());
    MPI_Type_free(&type);
  }

  // MPI forbids entries of one call's target to overlap, so updates of one word become one.
  void merge(std::vector<Update>& bucket) const {
    std::sort(bucket.begin(), bucket.end(),
              [](const Update& left, const Update& right) { return left.offset < right.offset; });
    std::size_t last = 0;
    for (std::size_t i = 1; i < bucket.size(); ++i) {
      if (bucket[i].offset == bucket[last].offset) {
        bucket[last].value = combine(context().op, bucket[last].value, bucket[i].value);
      } else {
        bucket[++last] = bucket[i];
      }
    }
    bucket.resize(last + 1);
  }

  MPI_Datatype make_type() {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    const int count = static_cast<int>(displacements_.size());
    if (context().gathering == Gathering::structure) {
      lengths_.assign(displacements_.size(), 1);
      types_.assign(displacements_.size(), MPI_UINT64_T);
      MPI_Type_create_struct(count, lengths_.data(), displacements_.data(), types_.data(), &type);
    } else {
      MPI_Type_create_hindexed_block(count, 1, displacements_.data(), MPI_UINT64_T, &type);
    }
    MPI_Type_commit(&type);
    return type;
  }

  int waiting_ = 0;
  std::vector<std::vector<Update>> buckets_;
  std::vector<Word> values_;
  std::vector<MPI_Aint> displacements_;
  std::vector<int> lengths_;
  std::vector<MPI_Datatype> types_;
};

template <typename T>
std::unique_ptr<Updater> make(const UpdateContext& context) {
  return std::make_unique<T>(context);
}

}  // namespace

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all{{.name = "two-sided", .exact = true, .make = make<TwoSided>},
                                     {.name = "get-modify-put", .exact = false, .make = make<GetModifyPut>},
                                     {.name = "get-modify-put-locked", .exact = true, .make = make<LockedGetModifyPut>},
                                     {.name = "accumulate", .exact = true, .make = make<Accumulate>},
                                     {.name = "accumulate-flush", .exact = true, .make = make<AccumulateFlush>},
                                     {.name = "accumulate-gathered", .exact = true, .make = make<AccumulateGathered>}};
  return all;
}

}  // namespace lab
