#include "groups.hpp"

#include <array>
#include <new>

namespace farsum::mpi {

// What the ranks agree on: whether all of them keep the list of ranks, and then how many instances of it there are to
// be, which all of them have then: `have` says how many this rank has when there should be a number of them, 0 where it
// has no memory. One that was never used needs memory, and so does what the communicator remembers: whoever has none
// says so before any rank waits for the others.
template <class Have>
Groups::Agreement Groups::agree(MPI_Comm comm, const Means& means, std::size_t& count, Have&& have) {
  int rank = 0;
  library().Comm_rank(comm, &rank);
  Agreement agreed;
  enum : std::size_t { too_few, needed, missing, no_room, unbound, number, facts };
  for (std::size_t least = 0; least < count;) {
    const std::size_t mine = have(count);
    std::array<std::uint64_t, facts> here{};
    here[too_few] = mine < count ? 1 : 0;
    here[needed] = count;
    here[missing] = ~std::uint64_t{mine};
    here[no_room] = means.has_room ? 0 : 1;
    here[unbound] = means.is_bound ? 0 : 1;
    // Relaxed: a number and nothing else.
    if (rank == 0) here[number] = next_number_.fetch_add(1, std::memory_order_relaxed);
    std::array<std::uint64_t, facts> any{};
    if (library().Allreduce(here.data(), any.data(), facts, MPI_UINT64_T, MPI_MAX, comm) != MPI_SUCCESS) return {};
    agreed = {.is_reached = any[too_few] == 0,
              .no_memory = any[too_few] != 0,
              .is_kept = any[no_room] == 0,
              .are_bound = any[unbound] == 0,
              .number = any[number]};
    if (!agreed.is_reached || !agreed.is_kept) break;
    count = any[needed];
    least = ~any[missing];
  }
  return agreed;
}

GroupLease Groups::lease(MPI_Comm comm, Reach reach) {
  const Binding* const known = bindings_.find(comm);
  if (known != nullptr && known->is_unreachable) return {};
  if (known != nullptr && known->instance != nullptr) {
    if (reach == Reach::this_node && !known->on_this_node) return {};
    std::unique_lock held(known->instance->in_use);
    return {known->instance->group, std::move(held), known->own};
  }
  const Asking asking(*this, comm);
  const Found& found = *asking;
  if (!found.in_context) return GroupLease(GroupLease::Refusal::has_strangers);
  if (!found.on_this_node && reach == Reach::this_node) return {};
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
    ++entry->second.asking;
    found.is_kept = entry->second.is_kept;
    found.has_room = found.is_kept || kept_ < most_kept;
  } catch (const std::bad_alloc&) {
  }
  return found;
}

void Groups::let_go(const Found& found) {
  if (found.list == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (--found.list->second.asking == 0 && !found.list->second.is_kept) lists_.erase(lists_.find(found.list->first));
}

void Groups::keep(List& list) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(list.is_kept, true)) ++kept_;
}

// With one thread at a time each rank chooses an instance of a kept list by itself, and all choose the same one. With
// several, the first rank takes one that no communicator of its own has and tells the others, once for the
// communicator's life; there it can only be in the last steps of an earlier use, which wait for no rank.
GroupLease Groups::choose(MPI_Comm comm, const Found& found) {
  int rank = 0;
  library().Comm_rank(comm, &rank);
  const bool has_threads = ranks_.threads_multiple();
  const bool chooses = !has_threads || rank == 0;
  GroupInstances::Unused unused;
  if (chooses && found.list != nullptr) unused = found.list->second.instances.take_unused();
  Binding* const binding = bindings_.bind(comm);
  const bool is_known = found.is_kept && !has_threads && unused.instance != nullptr && unused.instance->made;
  std::shared_ptr<OwnGroup> own;
  Agreement agreed;
  if (!is_known) {
    try {
      own = std::make_shared<OwnGroup>(bindings_.engine_run());
    } catch (const std::bad_alloc&) {
    }
    const auto have = [&](std::size_t count) -> std::size_t {
      if (found.list == nullptr || own == nullptr || (has_threads && binding == nullptr)) return 0;
      if (!chooses) return found.list->second.instances.grow(count);
      return unused.instance == nullptr ? 0 : count;
    };
    const Means means = {.has_room = found.has_room, .is_bound = binding != nullptr};
    agreed = agree(comm, means, unused.count, have);
    if (!agreed.is_reached) return agreed.no_memory ? GroupLease(GroupLease::Refusal::no_memory) : GroupLease();
    if (const auto refusal = introduce(comm, found)) {
      if (*refusal == GroupLease::Refusal::none && agreed.are_bound) binding->is_unreachable = true;
      return GroupLease(*refusal);
    }
    if (agreed.is_kept) keep(found.list->second);
  }
  if (!agreed.is_kept) {
    own->made = farsum_group_create_numbered(farsum_world(), found.list->first.data(),
                                             static_cast<int>(found.list->first.size()), agreed.number,
                                             &own->group) == FARSUM_OK;
    if (!own->made) return {};
    // A rank that remembers the group asks no other; one that could not would wait for it.
    if (agreed.are_bound) {
      binding->on_this_node = found.on_this_node;
      binding->instance = own.get();
      binding->own = own;
    }
    std::unique_lock held(own->in_use);
    return {own->group, std::move(held), own};
  }
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

// Ranks of several nodes, to each other. Nothing: they know each other.
std::optional<GroupLease::Refusal> Groups::introduce(MPI_Comm comm, const Found& found) {
  if (found.on_this_node) return std::nullopt;
  const Introductions::Outcome outcome = introductions_.introduce(comm, &found.list->second.acquaintance);
  if (outcome.no_memory) return GroupLease::Refusal::no_memory;
  return outcome.are_acquainted ? std::nullopt : std::optional(GroupLease::Refusal::none);
}

bool Groups::make(std::span<const int> ranks, std::size_t index, farsum_group* group) const {
  if (index == 0 && ranks_.are_on_one_node() && ranks_.are_all(ranks)) {
    *group = farsum_world();
    return true;
  }
  return farsum_group_create(farsum_world(), ranks.data(), static_cast<int>(ranks.size()), group) == FARSUM_OK;
}

}  // namespace farsum::mpi
