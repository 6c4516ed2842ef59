#include "front.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "guard.hpp"
#include "statistics.hpp"
#include "witness.hpp"

namespace farsum::mpi {

farsum_mpi_library the_library;
void* the_library_handle = nullptr;

namespace {

struct Gather {
  MPI_Comm comm;
};

int gather_over_mpi(const void* mine, void* all, std::size_t bytes, void* user) {
  const auto* gather = static_cast<const Gather*>(user);
  const int count = static_cast<int>(bytes);
  return library().Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, gather->comm) == MPI_SUCCESS ? 0 : 1;
}

// Whoever waits in the engine keeps the library going. The thread is one that the program called MPI from, so that no
// level of thread support is needed.
void drive_library(void*) { Front::get().progress.drive(); }

// MPI deletes the attributes of COMM_SELF first when it is finalized.
int shut_down(MPI_Comm, int, void*, void*) {
  try {
    report_at_end();
    Front::get().stop_engine();
    tell_witness_of_end();
    return MPI_SUCCESS;
  } catch (...) {
    return thrown_at_end("MPI_Finalize");
  }
}

}  // namespace

Front::Front() = default;

Front* const Front::the_one = new Front;

// Installed in Init, before the program can install its own: the callbacks run in reverse order, and a program's may
// free windows.
void install_shutdown() {
  int keyval = MPI_KEYVAL_INVALID;
  if (library().Comm_create_keyval(MPI_COMM_NULL_COPY_FN, shut_down, &keyval, nullptr) != MPI_SUCCESS) return;
  library().Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
  library().Comm_free_keyval(&keyval);  // lives until the attribute is deleted
}

void Front::make_self(MPI_Comm comm) {
  if (sessions_only) {
    int rank = 0;
    library().Comm_rank(comm, &rank);
    library().Comm_split(comm, rank, 0, &self_);
  } else {
    library().Comm_dup(MPI_COMM_SELF, &self_);
  }
  progress.open(self_);
}

// Which way works is a matter of the library: Open MPI 4 refuses MPI_Win_create on one process, and Open MPI 5 takes a
// millisecond for what is not shared.
int Front::make_backing(MPI_Win* win) {
  static char byte;
  void* memory = nullptr;
  switch (backing_) {
    case Backing::allocate_shared:
      return library().Win_allocate_shared(1, 1, MPI_INFO_NULL, self_, static_cast<void*>(&memory), win);
    case Backing::allocate:
      return library().Win_allocate(1, 1, MPI_INFO_NULL, self_, static_cast<void*>(&memory), win);
    case Backing::create:
      return library().Win_create(&byte, 1, 1, MPI_INFO_NULL, self_, win);
  }
  return MPI_ERR_OTHER;
}

void Front::find_backing() {
  // What fails here is told with the ranks of the window, not by the handler of a communicator nobody knows.
  library().Comm_set_errhandler(self_, MPI_ERRORS_RETURN);
  std::array ways = {Backing::allocate_shared, Backing::allocate, Backing::create};
  // MPICH 4 and Intel MPI crash in the shared one of a program without MPI_Init.
  if (sessions_only) std::reverse(ways.begin(), ways.end());
  for (const Backing way : ways) {
    backing_ = way;
    MPI_Win win = MPI_WIN_NULL;
    if (make_backing(&win) != MPI_SUCCESS) continue;
    library().Win_free(&win);
    break;
  }
}

void Front::start_engine(MPI_Comm comm) {
  make_self(comm);
  MPI_Comm node = MPI_COMM_NULL;
  if (library().Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) != MPI_SUCCESS) {
    say_once("engine", "the one-sided layer stays the MPI library's own: it did not say which ranks share this node");
    drop_self();
    return;
  }
  farsum_init_options options = {};
  options.struct_bytes = sizeof options;
  library().Comm_rank(node, &options.rank);
  library().Comm_size(node, &options.size);
  Gather gather{node};
  options.allgather = gather_over_mpi;
  options.allgather_user = &gather;
  options.idle = drive_library;
  int provided = MPI_THREAD_MULTIPLE;
  threads_multiple_ = library().Query_thread(&provided) != MPI_SUCCESS || provided == MPI_THREAD_MULTIPLE;
  options.many_threads = threads_multiple_ ? 1 : 0;
  const farsum_status status = farsum_init(&options);
  find_backing();
  // All ranks or none.
  const int mine = status == FARSUM_OK && datatypes.open() ? 1 : 0;
  int all = 0;
  library().Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, node);
  if (all == 1) {
    library().Get_version(&version_, &subversion_);
    library().Comm_group(node, &context_);
    context_size_ = options.size;
    engine_runs_.store(true, std::memory_order_relaxed);
  } else {
    if (mine == 0) {
      const char* why = status == FARSUM_OK ? "the library's datatypes could not be read" : farsum_last_error();
      say_once("engine", std::string("the one-sided layer stays the MPI library's own: ") + why);
    }
    if (status == FARSUM_OK) (void)farsum_finalize_forced();
    drop_self();
  }
  library().Comm_free(&node);
}

void Front::drop_self() {
  progress.close();
  if (self_ != MPI_COMM_NULL) library().Comm_free(&self_);
}

void Front::stop_engine() {
  if (!engine_runs()) return;
  if (sessions_only) collect_at_engines_end();
  requests.close();
  // What the program left; its memory goes with the engine's context. One at a time, for the delete callbacks that run
  // in the library's free may free others.
  for (std::vector<Window*> left = windows.all(); !left.empty(); left = windows.all()) {
    Window* window = left.front();
    MPI_Win handle = window->handle;
    library().Win_free(&handle);
    windows.remove(window);
    if (window->group != MPI_GROUP_NULL) library().Group_free(&window->group);
    delete window;
  }
  if (farsum_finalize_forced() != FARSUM_OK) std::fprintf(stderr, "farsum: %s\n", farsum_last_error());
  engine_runs_.store(false, std::memory_order_relaxed);
  groups_.clear();
  datatypes.close();
  library().Group_free(&context_);
  drop_self();
}

void Front::end_if_unused(int ranks) {
  if (threads_multiple_ || ranks != context_size_) return;
  const std::uint64_t mine = windows.all().size();
  std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks));
  if (farsum_allgather(farsum_world(), &mine, all.data(), sizeof mine) != FARSUM_OK) return;
  if (std::all_of(all.begin(), all.end(), [](std::uint64_t left) { return left == 0; })) stop_engine();
}

// The first window of a program of sessions starts the engine over its ranks. A later one over other ranks, of which
// some are in a context and some are not, stays the library's on all of them. Where threads are at this on several
// communicators at once, one of them gets hold of all its ranks; those that got hold of some try again.
bool Front::begin_together(MPI_Comm comm) {
  for (useconds_t pause_us = 100;; pause_us = std::min<useconds_t>(2 * pause_us, 10'000)) {
    std::unique_lock mine(beginning_, std::try_to_lock);
    const bool runs = engine_runs();
    const int here[3] = {runs ? 1 : 0, runs ? 0 : 1, mine.owns_lock() ? 0 : 1};
    int any[3] = {0, 0, 0};
    if (library().Allreduce(here, any, 3, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS) return false;
    if (any[1] == 0) return true;
    if (any[2] == 0) {
      if (any[0] == 0) start_engine(comm);
      return any[0] == 0;
    }
    if (mine.owns_lock()) mine.unlock();
    // Threads wait for different times, so that they do not stand in each other's way again and again.
    usleep(pause_us + static_cast<useconds_t>(__rdtsc() % pause_us));
  }
}

Front::GroupLease Front::engine_group(MPI_Comm comm) {
  GroupLease lease;
  if (sessions_only && !begin_together(comm)) return lease;
  int size = 0;
  MPI_Group members = MPI_GROUP_NULL;
  if (!engine_runs() || library().Comm_size(comm, &size) != MPI_SUCCESS ||
      library().Comm_group(comm, &members) != MPI_SUCCESS) {
    return lease;
  }
  std::vector<int> theirs(static_cast<std::size_t>(size));
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(theirs.begin(), theirs.end(), 0);
  library().Group_translate_ranks(members, size, theirs.data(), context_, ranks.data());
  library().Group_free(&members);
  if (std::find(ranks.begin(), ranks.end(), MPI_UNDEFINED) != ranks.end()) return lease;
  Groups* groups = nullptr;
  {
    const std::lock_guard lock(groups_mutex_);
    groups = &groups_[ranks];
  }
  GroupInstance* instance = take_instance(comm, *groups, ranks);
  if (instance == nullptr) return lease;
  lease.group = instance->group;
  lease.held_ = std::unique_lock(instance->in_use, std::adopt_lock);
  return lease;
}

// With one thread at a time there is one instance. Otherwise the first rank takes one that no thread of its own uses
// and tells the others; there it can only be in the last steps of an earlier use, which wait for nobody.
Front::GroupInstance* Front::take_instance(MPI_Comm comm, Groups& groups, const std::vector<int>& ranks) {
  std::uint64_t index = 0;
  int rank = 0;
  library().Comm_rank(comm, &rank);
  const bool chooses = threads_multiple_ && rank == 0;
  if (chooses) {
    const std::lock_guard lock(groups.listing);
    while (index < groups.instances.size() && !groups.instances[index]->in_use.try_lock()) ++index;
    if (index == groups.instances.size()) {
      groups.instances.push_back(std::make_unique<GroupInstance>());
      groups.instances.back()->in_use.lock();
    }
  }
  if (threads_multiple_ && library().Bcast(&index, 1, MPI_UINT64_T, 0, comm) != MPI_SUCCESS) return nullptr;
  GroupInstance* instance = instance_of(groups, ranks, index);
  if (instance != nullptr && !chooses) instance->in_use.lock();
  return instance;
}

// The instances of a list are made in order, so that all its ranks mean the same one by an index.
Front::GroupInstance* Front::instance_of(Groups& groups, const std::vector<int>& ranks, std::size_t index) {
  const std::lock_guard making(groups.making);
  for (std::size_t i = 0; i <= index; ++i) {
    GroupInstance* instance = nullptr;
    {
      const std::lock_guard lock(groups.listing);
      if (i == groups.instances.size()) groups.instances.push_back(std::make_unique<GroupInstance>());
      instance = groups.instances[i].get();
    }
    if (!instance->made && !make_group(ranks, i, &instance->group)) return nullptr;
    instance->made = true;
    if (i == index) return instance;
  }
  return nullptr;
}

bool Front::make_group(const std::vector<int>& ranks, std::size_t index, farsum_group* group) const {
  std::vector<int> everyone(static_cast<std::size_t>(context_size_));
  std::iota(everyone.begin(), everyone.end(), 0);
  if (index == 0 && ranks == everyone) {
    *group = farsum_world();
    return true;
  }
  return farsum_group_create(farsum_world(), ranks.data(), static_cast<int>(ranks.size()), group) == FARSUM_OK;
}

std::vector<std::string> Front::said() {
  std::vector<std::string> sentences;
  const std::lock_guard lock(said_mutex_);
  for (const auto& [kind, sentence] : said_) sentences.push_back(sentence);
  return sentences;
}

void Front::say_once(const char* kind, const std::string& sentence, Voice voice) {
  const std::lock_guard lock(said_mutex_);
  if (!said_.emplace(kind, sentence).second || voice == Voice::silent) return;
  std::fprintf(stderr, "farsum: %s\n", sentence.c_str());
}

}  // namespace farsum::mpi
