#include "groups.hpp"

#include <array>
#include <new>
#include <optional>

namespace farsum::mpi {
namespace {

// Agrees with the other ranks on how many instances of their list there are to be, which all of them have then: `have`
// says how many this rank has when there should be a number of them, 0 where it cannot. False: nothing is agreed on.
// One that was never used needs memory, and so does what the communicator remembers: whoever has none says so before
// any rank waits for the others.
template <class Have>
bool agree_on_count(MPI_Comm comm, std::size_t& count, bool& no_memory, Have&& have) {
  enum : std::size_t { too_few, needed, missing, facts };
  for (std::size_t least = 0; least < count;) {
    const std::size_t mine = have(count);
    std::array<std::uint64_t, facts> here{};
    here[too_few] = mine < count ? 1 : 0;
    here[needed] = count;
    here[missing] = ~std::uint64_t{mine};
    std::array<std::uint64_t, facts> any{};
    if (library().Allreduce(here.data(), any.data(), facts, MPI_UINT64_T, MPI_MAX, comm) != MPI_SUCCESS) return false;
    no_memory = any[too_few] != 0;
    if (no_memory) return false;
    count = any[needed];
    least = ~any[missing];
  }
  return true;
}

}  // namespace

GroupLease Groups::lease(MPI_Comm comm, Reach reach) {
  if (const Binding* const known = bindings_.find(comm); known != nullptr && known->instance != nullptr) {
    if (reach == Reach::this_node && !known->on_this_node) return {};
    std::unique_lock held(known->instance->in_use);
    return {known->instance->group, std::move(held)};
  }
  const Found found = find(comm);
  if (!found.in_context) return GroupLease(GroupLease::Refusal::has_strangers);
  if (!found.on_this_node) {
    if (reach == Reach::this_node) return {};
    const Introductions::Outcome outcome =
        introductions_.introduce(comm, found.list == nullptr ? nullptr : &found.list->second.acquaintance);
    if (outcome.no_memory) return GroupLease(GroupLease::Refusal::no_memory);
    if (!outcome.are_acquainted) return {};
  }
  return choose(comm, found);
}

Groups::Found Groups::find(MPI_Comm comm) {
  Found found;
  int size = 0;
  MPI_Group members = MPI_GROUP_NULL;
  if (library().Comm_size(comm, &size) != MPI_SUCCESS || size > ranks_.size() ||
      library().Comm_group(comm, &members) != MPI_SUCCESS) {
    return found;
  }
  const std::lock_guard lock(mutex_);
  const std::span<int> ranks(looked_up_.data(), static_cast<std::size_t>(size));
  found.in_context = ranks_.find(members, ranks);
  library().Group_free(&members);
  if (!found.in_context) return found;
  found.on_this_node = ranks_.are_on_this_node(ranks);
  auto entry = lists_.find(ranks);
  try {
    if (entry == lists_.end()) entry = lists_.try_emplace({ranks.begin(), ranks.end()}).first;
    found.list = &*entry;
  } catch (const std::bad_alloc&) {
  }
  return found;
}

// With one thread at a time all ranks take the same instance by themselves. With several, the first rank takes one that
// no communicator of its own has and tells the others, once for the communicator's life; there it can only be in the
// last steps of an earlier use, which wait for nobody.
GroupLease Groups::choose(MPI_Comm comm, const Found& found) {
  int rank = 0;
  library().Comm_rank(comm, &rank);
  const bool has_threads = ranks_.threads_multiple();
  const bool chooses = !has_threads || rank == 0;
  GroupInstances::Unused unused;
  if (chooses && found.list != nullptr) unused = found.list->second.instances.take_unused();
  Binding* const binding = bindings_.bind(comm);
  const auto have = [&](std::size_t count) -> std::size_t {
    if (found.list == nullptr || (has_threads && binding == nullptr)) return 0;
    if (!chooses) return found.list->second.instances.grow(count);
    return unused.instance == nullptr ? 0 : count;
  };
  const bool is_known = !has_threads && unused.instance != nullptr && unused.instance->made;
  bool no_memory = false;
  if (!is_known && !agree_on_count(comm, unused.count, no_memory, have))
    return no_memory ? GroupLease(GroupLease::Refusal::no_memory) : GroupLease();
  const auto make_one = [&](std::size_t index, farsum_group* group) { return make(found.list->first, index, group); };
  GroupInstance* const instance = found.list->second.instances.made(unused.count - 1, make_one);
  if (instance == nullptr) return {};
  if (!chooses) unused.held = std::unique_lock(instance->in_use);
  if (binding != nullptr) {
    binding->takes_instance = has_threads && chooses;
    // Relaxed: who looks at it takes `in_use` first.
    if (binding->takes_instance) instance->is_taken.store(true, std::memory_order_relaxed);
    binding->on_this_node = found.on_this_node;
    binding->instance = instance;
  }
  return {instance->group, std::move(unused.held)};
}

bool Groups::make(std::span<const int> ranks, std::size_t index, farsum_group* group) const {
  if (index == 0 && ranks_.are_on_one_node() && ranks_.are_all(ranks)) {
    *group = farsum_world();
    return true;
  }
  return farsum_group_create(farsum_world(), ranks.data(), static_cast<int>(ranks.size()), group) == FARSUM_OK;
}

}  // namespace farsum::mpi
