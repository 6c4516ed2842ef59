#include "front.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <utility>

#include "attending.hpp"
#include "farsum_embed.h"
#include "setting.h"
#include "statistics.hpp"

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

bool make_room_for_cards(MPI_Comm comm, std::vector<unsigned char>& cards) {
  int size = 0;
  library().Comm_size(comm, &size);
  try {
    cards.resize(static_cast<std::size_t>(size) * FARSUM_NETWORK_CARD_BYTES);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// What the engine has just refused; its sentence names the host.
void tell_cause(std::span<char> why) { std::snprintf(why.data(), why.size(), "%s", farsum_last_error()); }

// Whoever waits in the engine keeps the library going. The thread is one that the program called MPI from, so that no
// level of thread support is needed.
void drive_library(void*) { Front::get().progress.drive(); }

}  // namespace

Front::Front() = default;

Front* const Front::the_one = new Front;

void Front::make_self(MPI_Comm comm) {
  if (sessions.are_alone()) {
    int rank = 0;
    library().Comm_rank(comm, &rank);
    library().Comm_split(comm, rank, 0, &self_);
  } else {
    library().Comm_dup(MPI_COMM_SELF, &self_);
  }
  progress.open(self_, !farsum_mpi_setting_is_off("FARSUM_MPI_YIELD"));
}

bool Front::look_at_job(MPI_Comm comm, Job& job) {
  if (library().Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &job.node) != MPI_SUCCESS) return false;
  library().Comm_rank(comm, &job.rank);
  library().Comm_size(comm, &job.size);
  library().Comm_size(job.node, &job.node_size);
  return true;
}

// Who knows it is one of the job's ranks, also to those that come to know each other later.
bool Front::share_secret(MPI_Comm comm, const Job& job, farsum_init_options& options) {
  struct {
    unsigned char bytes[sizeof options.job_secret];
    unsigned char is_random;
  } secret{};
  if (job.rank == 0) secret.is_random = getrandom(secret.bytes, sizeof secret.bytes, 0) == sizeof secret.bytes;
  library().Bcast(&secret, sizeof secret, MPI_BYTE, 0, comm);
  std::memcpy(options.job_secret, secret.bytes, sizeof secret.bytes);
  options.job_rank = job.rank;
  options.job_size = job.size;
  return secret.is_random != 0;
}

// Before anybody of another node is known: whoever the engine knows shares its memory.
void Front::find_who_is_here(const Job& job) {
  is_here_.assign(static_cast<std::size_t>(job.size), false);
  for (int rank = 0; rank < job.size; ++rank) {
    int node = 0;
    is_here_[static_cast<std::size_t>(rank)] = farsum_node(farsum_world(), rank, &node) == FARSUM_OK;
  }
}

bool Front::is_on_other_node(MPI_Group group, int rank) const {
  if (is_here_.empty()) return false;
  int in_context = MPI_UNDEFINED;
  if (library().Group_translate_ranks(group, 1, &rank, context_, &in_context) != MPI_SUCCESS) return false;
  return in_context >= 0 && in_context < static_cast<int>(is_here_.size()) &&
         !is_here_[static_cast<std::size_t>(in_context)];
}

farsum_init_options Front::options_for(const Job& job) {
  farsum_init_options options = {};
  options.struct_bytes = sizeof options;
  library().Comm_rank(job.node, &options.rank);
  options.size = job.node_size;
  options.idle = drive_library;
  int provided = MPI_THREAD_MULTIPLE;
  threads_multiple_ = library().Query_thread(&provided) != MPI_SUCCESS || provided == MPI_THREAD_MULTIPLE;
  options.many_threads = threads_multiple_ ? 1 : 0;
  return options;
}

Front::Abilities Front::of_all_ranks(MPI_Comm comm, const Job& job, const Abilities& mine) {
  const std::array<int, 2> own = {mine.has_all ? 1 : 0, mine.may_copy ? 1 : 0};
  std::array<int, 2> least{};
  library().Allreduce(own.data(), least.data(), 2, MPI_INT, MPI_MIN, job.has_other_nodes() ? comm : job.node);
  return {.has_all = least[0] == 1, .may_copy = least[1] == 1};
}

void Front::take_up(MPI_Comm comm, const Job& job) {
  library().Comm_group(comm, &context_);
  context_size_ = job.size;
  node_size_ = job.node_size;
  node_is_crowded_ = farsum_is_crowded() != 0;
  if (node_is_crowded_) progress.be_in_crowded_job();
  // The program may free its own.
  if (job.has_other_nodes()) library().Comm_dup(comm, &job_);
}

void Front::start_engine(MPI_Comm comm, EngineLife::Claim& claim) {
  make_self(comm);
  Job job;
  if (!look_at_job(comm, job)) {
    notices.say_once("engine",
                     "the one-sided layer stays the MPI library's own: it did not say which ranks share this node");
    drop_self();
    return;
  }
  farsum_init_options options = options_for(job);
  Gather gather{job.node};
  options.allgather = gather_over_mpi;
  options.allgather_user = &gather;
  const bool has_secret = !job.has_other_nodes() || share_secret(comm, job, options);
  const farsum_status status = farsum_init(&options);
  backing.open(self_, !sessions.are_alone());
  const char* const missing = status != FARSUM_OK ? farsum_last_error()
                              : !has_secret       ? "the system has no random bytes"
                                                  : what_is_missing(job);
  // All ranks or none.
  const Abilities all =
      of_all_ranks(comm, job, {.has_all = missing == nullptr, .may_copy = farsum_copies_refused() == nullptr});
  copies_notice.decide({.is_first_rank = job.rank == 0, .all_may_copy = all.may_copy});
  if (all.has_all) {
    take_up(comm, job);
    claim.take_up();
  } else {
    if (missing != nullptr)
      notices.say_once("engine", std::string("the one-sided layer stays the MPI library's own: ") + missing);
    if (status == FARSUM_OK) (void)farsum_finalize_forced();
    drop_self();
  }
  library().Comm_free(&job.node);
}

// Beside the engine, that this rank could not get or make; nullptr: nothing.
const char* Front::what_is_missing(const Job& job) {
  try {
    everyone_.resize(static_cast<std::size_t>(job.size));
    std::iota(everyone_.begin(), everyone_.end(), 0);
    looked_up_.resize(everyone_.size());
    is_here_.clear();
    if (job.has_other_nodes()) find_who_is_here(job);
    // Sessions without threads begin an engine anew with each window after a last one, and ask all ranks anyway.
    const bool binds = !sessions.are_alone() || threads_multiple_;
    if (binds && library().Comm_create_keyval(MPI_COMM_NULL_COPY_FN, unbind, &bindings_, nullptr) != MPI_SUCCESS)
      return "the library made no key for attributes of communicators";
    return datatypes.open() ? nullptr : "the library's datatypes could not be read";
  } catch (const std::bad_alloc&) {
    return "the process has no memory left";
  }
}

void Front::drop_self() {
  progress.close();
  backing.close();
  if (bindings_ != MPI_KEYVAL_INVALID) library().Comm_free_keyval(&bindings_);
  if (self_ != MPI_COMM_NULL) library().Comm_free(&self_);
}

void Front::stop_engine() {
  if (!life.begin_to_end()) return;
  if (sessions.are_alone()) collect_at_engines_end();
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
  // A rank that has not come yet may still use the others' windows, and one that is still here their links.
  if (job_ != MPI_COMM_NULL) library().Barrier(job_);
  LibraryWait::forbid();
  if (farsum_finalize_forced() != FARSUM_OK) std::fprintf(stderr, "farsum: %s\n", farsum_last_error());
  if (job_ != MPI_COMM_NULL) {
    library().Barrier(job_);
    library().Comm_free(&job_);
  }
  // What communicators remember means nothing from here on.
  engine_run_.fetch_add(1, std::memory_order_relaxed);
  groups_.clear();
  datatypes.close();
  library().Group_free(&context_);
  drop_self();
  life.ended();
}

bool Front::gather(const void* mine, void* all, std::size_t bytes) const {
  if (job_ == MPI_COMM_NULL) return farsum_allgather(farsum_world(), mine, all, bytes) == FARSUM_OK;
  // Not all ranks of several nodes may have been introduced to each other.
  Gather gather{job_};
  return gather_over_mpi(mine, all, bytes, &gather) == 0;
}

void Front::end_if_unused(int ranks) {
  if (threads_multiple_ || ranks != context_size_) return;
  const std::uint64_t mine = windows.all().size();
  std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks));
  if (!gather(&mine, all.data(), sizeof mine)) return;
  if (std::all_of(all.begin(), all.end(), [](std::uint64_t left) { return left == 0; })) stop_engine();
}

bool Front::begin_together(MPI_Comm comm) {
  Sessions::Agreement agreed = sessions.agree(comm);
  if (agreed.answer == Sessions::Answer::start) start_engine(comm, agreed.claim);
  return agreed.answer != Sessions::Answer::not_for_all;
}

Front::GroupLease Front::engine_group(MPI_Comm comm, Reach reach) {
  GroupLease lease;
  if (sessions.are_alone() && !begin_together(comm)) {
    lease.has_strangers = true;
    return lease;
  }
  if (!life.engine_runs()) return lease;
  if (const Binding* const known = binding_of(comm); known != nullptr && known->instance != nullptr) {
    if (reach == Reach::this_node && !known->on_this_node) return lease;
    lease.held_ = std::unique_lock(known->instance->in_use);
    lease.group = known->instance->group;
    return lease;
  }
  const Found found = find_groups(comm);
  lease.has_strangers = !found.in_context;
  if (!found.in_context) return lease;
  if (!found.on_this_node && (reach == Reach::this_node || !are_acquainted(comm, found.groups, lease))) return lease;
  agree_on_instance(comm, found, lease);
  return lease;
}

Front::Binding* Front::binding_of(MPI_Comm comm) const {
  void* binding = nullptr;
  int is_bound = 0;
  if (bindings_ == MPI_KEYVAL_INVALID) return nullptr;
  // MPI declares the place of a pointer as void*.
  if (library().Comm_get_attr(comm, bindings_, &binding, &is_bound) != MPI_SUCCESS || is_bound == 0) return nullptr;
  return static_cast<Binding*>(binding);
}

// An earlier one that has no instance, or a new one; nullptr: there is no memory for it.
Front::Binding* Front::bind(MPI_Comm comm) {
  if (bindings_ == MPI_KEYVAL_INVALID) return nullptr;
  if (Binding* const begun = binding_of(comm)) return begun;
  std::unique_ptr<Binding> binding(new (std::nothrow) Binding);
  if (binding == nullptr) return nullptr;
  binding->engine_run = engine_run_.load(std::memory_order_relaxed);
  if (library().Comm_set_attr(comm, bindings_, binding.get()) != MPI_SUCCESS) return nullptr;
  return binding.release();
}

// MPI calls it when the communicator goes, be it after the engine's end.
int Front::unbind(MPI_Comm, int, void* value, void*) {
  const std::unique_ptr<Binding> binding(static_cast<Binding*>(value));
  const bool is_of_this_engine = get().engine_run_.load(std::memory_order_relaxed) == binding->engine_run;
  // Release pairs with the acquire in take_unused.
  if (is_of_this_engine && binding->takes_instance) binding->instance->is_taken.store(false, std::memory_order_release);
  return MPI_SUCCESS;
}

Front::Found Front::find_groups(MPI_Comm comm) {
  Found found;
  int size = 0;
  MPI_Group members = MPI_GROUP_NULL;
  if (library().Comm_size(comm, &size) != MPI_SUCCESS || size > context_size_ ||
      library().Comm_group(comm, &members) != MPI_SUCCESS) {
    return found;
  }
  const std::lock_guard lock(groups_mutex_);
  const std::span<int> ranks(looked_up_.data(), static_cast<std::size_t>(size));
  library().Group_translate_ranks(members, size, everyone_.data(), context_, ranks.data());
  library().Group_free(&members);
  if (std::find(ranks.begin(), ranks.end(), MPI_UNDEFINED) != ranks.end()) return found;
  found.in_context = true;
  const auto is_here = [&](int rank) { return is_here_[static_cast<std::size_t>(rank)]; };
  found.on_this_node = is_here_.empty() || std::all_of(ranks.begin(), ranks.end(), is_here);
  auto entry = groups_.find(ranks);
  try {
    if (entry == groups_.end()) entry = groups_.try_emplace({ranks.begin(), ranks.end()}).first;
    found.groups = &*entry;
  } catch (const std::bad_alloc&) {
  }
  return found;
}

// Of ranks on several nodes, which all of them see. With one thread at a time each knows by itself what became of an
// earlier time; with several, one that is in its midst elsewhere may know on some ranks and not on others.
bool Front::are_acquainted(MPI_Comm comm, GroupsByRanks::value_type* groups, GroupLease& lease) {
  // Relaxed: only says what this rank tells the others.
  Acquaintance now =
      groups == nullptr ? Acquaintance::unknown : groups->second.acquaintance.load(std::memory_order_relaxed);
  if (now != Acquaintance::unknown && !threads_multiple_) return now == Acquaintance::made;
  enum : std::size_t { no_memory, not_yet, never, facts };
  std::vector<unsigned char> cards;
  std::array<int, facts> here{};
  here[no_memory] = groups == nullptr || !make_room_for_cards(comm, cards) ? 1 : 0;
  here[not_yet] = now == Acquaintance::unknown ? 1 : 0;
  here[never] = now == Acquaintance::refused ? 1 : 0;
  std::array<int, facts> any{};
  if (library().Allreduce(here.data(), any.data(), facts, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS) return false;
  lease.no_memory = any[no_memory] != 0;
  if (lease.no_memory) return false;
  now = any[never] == 0 && (any[not_yet] == 0 || make_acquaintance(comm, cards)) ? Acquaintance::made
                                                                                 : Acquaintance::refused;
  groups->second.acquaintance.store(now, std::memory_order_relaxed);
  return now == Acquaintance::made;
}

// All ranks or none. Of several that cannot, the lowest that cannot even be reached itself says why.
bool Front::make_acquaintance(MPI_Comm comm, std::vector<unsigned char>& cards) {
  int rank = 0;
  int size = 0;
  library().Comm_rank(comm, &rank);
  library().Comm_size(comm, &size);
  constexpr int agreed = std::numeric_limits<int>::max();
  std::array<unsigned char, FARSUM_NETWORK_CARD_BYTES> card{};
  std::array<char, 512> why{};
  int mine = agreed;
  if (farsum_network_card(card.data()) != FARSUM_OK) mine = rank;
  if (mine != agreed) tell_cause(why);
  library().Allgather(card.data(), FARSUM_NETWORK_CARD_BYTES, MPI_BYTE, cards.data(), FARSUM_NETWORK_CARD_BYTES,
                      MPI_BYTE, comm);
  if (mine == agreed && farsum_network_introduce(cards.data(), size) != FARSUM_OK) {
    mine = size + rank;
    tell_cause(why);
  }
  int first = agreed;
  library().Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm);
  if (first == agreed) return true;
  library().Bcast(why.data(), static_cast<int>(why.size()), MPI_CHAR, first % size, comm);
  say_unreachable(why.data(), rank == 0 ? Notices::Voice::aloud : Notices::Voice::silent);
  return false;
}

// With one thread at a time all ranks take the same one by themselves. With several, the first rank takes one that no
// communicator of its own has and tells the others, once for the communicator's life; there it can only be in the last
// steps of an earlier use, which wait for nobody. One that was never used needs memory, and so does what the
// communicator remembers: whoever has none says so before any rank waits for the others.
void Front::agree_on_instance(MPI_Comm comm, const Found& found, GroupLease& lease) {
  GroupsByRanks::value_type* const groups = found.groups;
  int rank = 0;
  library().Comm_rank(comm, &rank);
  const bool chooses = !threads_multiple_ || rank == 0;
  std::size_t count = 1;  // of instances that are needed
  GroupInstance* instance = nullptr;
  std::unique_lock<std::mutex> held;
  if (chooses && groups != nullptr) {
    instance = take_unused(*groups, count);
    if (instance != nullptr) held = std::unique_lock(instance->in_use, std::adopt_lock);
  }
  Binding* const binding = bind(comm);
  const bool cannot_bind = threads_multiple_ && binding == nullptr;
  const bool is_known = !threads_multiple_ && instance != nullptr && instance->made;
  for (std::size_t least = is_known ? count : 0; least < count;) {
    enum : std::size_t { too_few, needed, missing, facts };
    const std::size_t have = groups == nullptr ? 0 : chooses ? (instance == nullptr ? 0 : count) : grow(*groups, count);
    std::array<std::uint64_t, facts> here{};
    here[too_few] = have < count || cannot_bind ? 1 : 0;
    here[needed] = count;
    here[missing] = ~std::uint64_t{have};
    std::array<std::uint64_t, facts> any{};
    if (library().Allreduce(here.data(), any.data(), facts, MPI_UINT64_T, MPI_MAX, comm) != MPI_SUCCESS) return;
    lease.no_memory = any[too_few] != 0;
    if (lease.no_memory) return;
    count = any[needed];
    least = ~any[missing];
  }
  instance = make_instance(*groups, count - 1);
  if (instance == nullptr) return;
  if (!chooses) held = std::unique_lock(instance->in_use);
  if (binding != nullptr) {
    binding->takes_instance = threads_multiple_ && chooses;
    // Relaxed: who looks at it takes `in_use` first.
    if (binding->takes_instance) instance->is_taken.store(true, std::memory_order_relaxed);
    binding->on_this_node = found.on_this_node;
    binding->instance = instance;
  }
  lease.group = instance->group;
  lease.held_ = std::move(held);
}

// One that no thread uses and no communicator has, taken for this thread, and how many there are up to it.
Front::GroupInstance* Front::take_unused(GroupsByRanks::value_type& groups, std::size_t& count) {
  auto& [ranks, entry] = groups;
  const std::lock_guard lock(entry.listing);
  for (count = 1; count <= entry.instances.size(); ++count) {
    GroupInstance& instance = *entry.instances[count - 1];
    if (!instance.in_use.try_lock()) continue;
    // Acquire pairs with the release in unbind.
    if (!instance.is_taken.load(std::memory_order_acquire)) return &instance;
    instance.in_use.unlock();
  }
  if (!add_instance(groups)) return nullptr;
  // It is free, for nobody has seen it yet. ThreadSanitizer takes a plain lock for the wrong order: who holds an
  // instance may want `listing`.
  (void)entry.instances.back()->in_use.try_lock();
  return entry.instances.back().get();
}

// How many there are when there should be `count`.
std::size_t Front::grow(GroupsByRanks::value_type& groups, std::size_t count) {
  const std::lock_guard lock(groups.second.listing);
  while (groups.second.instances.size() < count && add_instance(groups)) {
  }
  return groups.second.instances.size();
}

// `listing` is held.
bool Front::add_instance(GroupsByRanks::value_type& groups) {
  try {
    groups.second.instances.push_back(std::make_unique<GroupInstance>());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// The instances of a list are made in order, so that all its ranks mean the same one by an index.
Front::GroupInstance* Front::make_instance(GroupsByRanks::value_type& groups, std::size_t index) {
  auto& [ranks, entry] = groups;
  const std::lock_guard making(entry.making);
  for (std::size_t i = 0; i <= index; ++i) {
    GroupInstance* instance = nullptr;
    {
      const std::lock_guard lock(entry.listing);
      instance = entry.instances[i].get();
    }
    if (!instance->made && !make_group(ranks, i, &instance->group)) return nullptr;
    instance->made = true;
    if (i == index) return instance;
  }
  return nullptr;
}

bool Front::make_group(const std::vector<int>& ranks, std::size_t index, farsum_group* group) const {
  if (index == 0 && ranks == everyone_ && is_here_.empty()) {
    *group = farsum_world();
    return true;
  }
  return farsum_group_create(farsum_world(), ranks.data(), static_cast<int>(ranks.size()), group) == FARSUM_OK;
}

// The other ranks are on their way into the library, also where there is no memory for words.
void Front::say_unreachable(const char* why, Notices::Voice voice) {
  try {
    notices.say_once("network", std::string("windows over several hosts stay the MPI library's own: ") + why, voice);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace farsum::mpi
