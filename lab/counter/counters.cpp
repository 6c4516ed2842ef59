// Per-rank words as in paper 3's appendix, the tree of Gropp, Lusk and Thakur ("Using MPI-2", fetchandadd_tree.c), and
// the fetch-and-op that MPI-3 brought. And what they are to be held against: the processor's own.
#include "counters.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lab {
namespace {

constexpr int root = 0;

class CounterBase : public Counter {
 public:
  CounterBase(MemoryKind memory, std::size_t words_at_root, std::size_t word_bytes, MPI_Comm comm)
      : comm_(comm),
        rank_(rank_in(comm)),
        root_bytes_(rank_ == root ? words_at_root * word_bytes : 0),
        window_(memory, root_bytes_, static_cast<int>(word_bytes), comm) {}

  void reset() override {
    MPI_Barrier(comm_);
    taken_ = 0;
    if (rank_ == root) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, root, 0, window_.win());
      std::memset(window_.as<void>(), 0, root_bytes_);
      MPI_Win_unlock(root, window_.win());
    }
    MPI_Barrier(comm_);
  }

 protected:
  static int rank_in(MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
  }
  static int size_of(MPI_Comm comm) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
  }

  [[nodiscard]] MPI_Win win() const { return window_.win(); }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int& taken() { return taken_; }

 private:
  MPI_Comm comm_;
  int rank_;
  std::size_t root_bytes_;
  Window window_;
  int taken_ = 0;  // how many numbers this rank has had
};

// A word per rank at the root says how many numbers that rank has had; their sum is the counter. No word is both read
// and written in one epoch, which MPI-2 forbids.
class PerRankWords : public CounterBase {
 public:
  PerRankWords(MemoryKind memory, MPI_Comm comm)
      : CounterBase(memory, static_cast<std::size_t>(size_of(comm)), sizeof(int), comm),
        words_(static_cast<std::size_t>(size_of(comm))) {}

  long next() override {
    const int before = rank();
    const int after = static_cast<int>(words_.size()) - before - 1;
    int* own = words_.data() + before;
    const int mine = taken() + 1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, root, 0, win());
    MPI_Get(words_.data(), before, MPI_INT, root, 0, before, MPI_INT, win());
    MPI_Get(own + 1, after, MPI_INT, root, before + 1, after, MPI_INT, win());
    MPI_Put(&mine, 1, MPI_INT, root, before, 1, MPI_INT, win());
    MPI_Win_unlock(root, win());
    *own = taken();
    taken() = mine;
    long sum = 0;
    for (const int word : words_) {
      sum += word;
    }
    return sum;
  }

 private:
  std::vector<int> words_;
};

// A binary tree in one array: a rank adds one along its own path and reads the siblings of that path, log2(ranks) words
// each.
class Tree : public CounterBase {
 public:
  Tree(MemoryKind memory, MPI_Comm comm)
      : CounterBase(memory, 2 * static_cast<std::size_t>(leaves_for(comm)), sizeof(int), comm) {
    std::vector<int> own_path;
    std::vector<int> siblings;
    int node = 0;
    int leaf = rank();
    for (int half = leaves_for(comm) / 2; half >= 1; half /= 2) {
      const int left = node + 1;
      const int right = node + 2 * half;
      const bool goes_left = leaf < half;
      own_path.push_back(goes_left ? left : right);
      siblings.push_back(goes_left ? right : left);
      node = own_path.back();
      leaf %= half;
    }
    levels_ = static_cast<int>(own_path.size());
    ones_.assign(own_path.size(), 1);
    read_.assign(own_path.size(), 0);
    MPI_Type_create_indexed_block(levels_, 1, own_path.data(), MPI_INT, &own_type_);
    MPI_Type_create_indexed_block(levels_, 1, siblings.data(), MPI_INT, &sibling_type_);
    MPI_Type_commit(&own_type_);
    MPI_Type_commit(&sibling_type_);
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() override {
    MPI_Type_free(&own_type_);
    MPI_Type_free(&sibling_type_);
  }

  long next() override {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, root, 0, win());
    MPI_Accumulate(ones_.data(), levels_, MPI_INT, root, 0, 1, own_type_, MPI_SUM, win());
    MPI_Get(read_.data(), levels_, MPI_INT, root, 0, 1, sibling_type_, win());
    MPI_Win_unlock(root, win());
    long sum = taken()++;
    for (const int word : read_) {
      sum += word;
    }
    return sum;
  }

 private:
  static int leaves_for(MPI_Comm comm) {
    int leaves = 1;
    while (leaves < size_of(comm)) {
      leaves *= 2;
    }
    return leaves;
  }

  int levels_ = 0;
  std::vector<int> ones_;
  std::vector<int> read_;
  MPI_Datatype own_type_ = MPI_DATATYPE_NULL;
  MPI_Datatype sibling_type_ = MPI_DATATYPE_NULL;
};

class FetchOp : public CounterBase {
 public:
  FetchOp(MemoryKind memory, MPI_Comm comm) : CounterBase(memory, 1, sizeof(std::int64_t), comm) { open(); }
  FetchOp(const FetchOp&) = delete;
  FetchOp& operator=(const FetchOp&) = delete;
  ~FetchOp() override { close(); }

  void reset() override {
    close();
    CounterBase::reset();
    open();
  }

  long next() override {
    const std::int64_t one = 1;
    std::int64_t before = 0;
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, root, 0, MPI_SUM, win());
    MPI_Win_flush(root, win());
    return static_cast<long>(before);
  }

 private:
  void open() { MPI_Win_lock_all(MPI_MODE_NOCHECK, win()); }
  void close() { MPI_Win_unlock_all(win()); }
};

// No MPI call to draw a number: one locked addition to a word that all ranks have mapped. The others are not to be
// faster, and what another rank's draw before it costs them, it costs this too.
class BareWord : public Counter {
 public:
  explicit BareWord(MPI_Comm comm) : comm_(comm) {
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int ranks = 0;
    int ranks_of_node = 0;
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_size(node, &ranks_of_node);
    MPI_Comm_free(&node);
    if (ranks != ranks_of_node) {
      fail("the bare counter is for ranks that share memory");
    }
    void* own = nullptr;
    MPI_Win_allocate_shared(rank_ == root ? line_bytes : 0, 1, MPI_INFO_NULL, comm, &own, &win_);
    MPI_Aint bytes = 0;
    int unit = 0;
    MPI_Win_shared_query(win_, root, &bytes, &unit, &word_);
    reset();
  }
  BareWord(const BareWord&) = delete;
  BareWord& operator=(const BareWord&) = delete;
  ~BareWord() override { MPI_Win_free(&win_); }

  void reset() override {
    MPI_Barrier(comm_);
    if (rank_ == root) {
      std::atomic_ref<std::int64_t>(*word_).store(0);
    }
    MPI_Barrier(comm_);
  }
  long next() override { return std::atomic_ref<std::int64_t>(*word_).fetch_add(1); }

 private:
  static constexpr MPI_Aint line_bytes = 64;

  MPI_Comm comm_;
  int rank_ = 0;
  MPI_Win win_ = MPI_WIN_NULL;
  std::int64_t* word_ = nullptr;
};

constexpr const char* bare = "bare";

}  // namespace

bool has_memory(const std::string& implementation, MemoryKind memory) {
  return implementation != bare || memory == MemoryKind::allocate;
}

const std::vector<std::string>& all_counters() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = counter_implementations();
    all.emplace_back(bare);
    return all;
  }();
  return names;
}

const std::vector<std::string>& counter_implementations() {
  static const std::vector<std::string> names{"per-rank-words", "tree", "fetch-op"};
  return names;
}

std::unique_ptr<Counter> make_counter(const std::string& implementation, MemoryKind memory, MPI_Comm comm) {
  if (implementation == "per-rank-words") {
    return std::make_unique<PerRankWords>(memory, comm);
  }
  if (implementation == "tree") {
    return std::make_unique<Tree>(memory, comm);
  }
  if (implementation == bare) {
    return std::make_unique<BareWord>(comm);
  }
  return std::make_unique<FetchOp>(memory, comm);
}

}  // namespace lab
