// Which ranks of a communicator get a group of the engine's, with a library that knows who they are, and no engine.
#include "groups.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace farsum::mpi {
namespace {

// Of the communicator that is asked about, by rank of the context.
std::vector<int> members;
int provided;
bool has_other_nodes;
// The agreements about groups that the ranks came to, and what this rank brought to the last one.
enum : std::size_t { too_few, no_room = 3, unbound };
int agreements;
std::vector<std::uint64_t> here;
bool another_has_no_memory;
bool another_is_unbound;

// The ranks of this node have a communicator of this handle.
const MPI_Comm node = MPI_COMM_WORLD;

int comm_size(MPI_Comm comm, int* size) {
  *size = comm == node && has_other_nodes ? 1 : static_cast<int>(members.size());
  return MPI_SUCCESS;
}

int comm_rank(MPI_Comm, int* rank) {
  *rank = 0;
  return MPI_SUCCESS;
}

int comm_group(MPI_Comm, MPI_Group*) { return MPI_SUCCESS; }

int group_free(MPI_Group*) { return MPI_SUCCESS; }

int translate(MPI_Group, int count, const int* ranks, MPI_Group, int* in_context) {
  for (int i = 0; i < count; ++i) in_context[i] = members[static_cast<std::size_t>(ranks[i])];
  return MPI_SUCCESS;
}

int split(MPI_Comm, int, int, MPI_Info, MPI_Comm* split_off) {
  *split_off = node;
  return MPI_SUCCESS;
}

int duplicate(MPI_Comm comm, MPI_Comm* copy) {
  *copy = comm;
  return MPI_SUCCESS;
}

int comm_free(MPI_Comm*) { return MPI_SUCCESS; }

int query_thread(int* level) {
  *level = provided;
  return MPI_SUCCESS;
}

int allreduce(const void* mine, void* all, int count, MPI_Datatype type, MPI_Op, MPI_Comm) {
  const bool is_about_groups = type == MPI_UINT64_T;
  std::memcpy(all, mine, static_cast<std::size_t>(count) * (is_about_groups ? sizeof(std::uint64_t) : sizeof(int)));
  if (!is_about_groups) return MPI_SUCCESS;
  ++agreements;
  auto* const any = static_cast<std::uint64_t*>(all);
  here.assign(any, any + count);
  if (another_has_no_memory) any[too_few] = 1;
  if (another_is_unbound) any[unbound] = 1;
  return MPI_SUCCESS;
}

int allgather(const void* mine, int bytes, MPI_Datatype, void* all, int, MPI_Datatype, MPI_Comm) {
  std::memcpy(all, mine, static_cast<std::size_t>(bytes));
  return MPI_SUCCESS;
}

int broadcast(void*, int, MPI_Datatype, int, MPI_Comm) { return MPI_SUCCESS; }

// One communicator, with one key.
MPI_Comm_delete_attr_function* unbind;
void* attribute;

int create_key(MPI_Comm_copy_attr_function*, MPI_Comm_delete_attr_function* deleted, int* keyval, void*) {
  unbind = deleted;
  *keyval = 1;
  return MPI_SUCCESS;
}

int set_attribute(MPI_Comm, int, void* value) {
  attribute = value;
  return MPI_SUCCESS;
}

int get_attribute(MPI_Comm, int, void* value, int* is_there) {
  *is_there = attribute != nullptr ? 1 : 0;
  std::memcpy(value, static_cast<void*>(&attribute), sizeof attribute);
  return MPI_SUCCESS;
}

class GroupsOfALibrary : public testing::Test {
 protected:
  GroupsOfALibrary() : library_before_(the_library) {
    the_library.Comm_size = comm_size;
    the_library.Comm_rank = comm_rank;
    the_library.Comm_group = comm_group;
    the_library.Group_free = group_free;
    the_library.Group_translate_ranks = translate;
    the_library.Comm_split_type = split;
    the_library.Comm_free = comm_free;
    the_library.Query_thread = query_thread;
    the_library.Allreduce = allreduce;
    the_library.Allgather = allgather;
    the_library.Bcast = broadcast;
    the_library.Comm_dup = duplicate;
    the_library.Comm_create_keyval = create_key;
    the_library.Comm_set_attr = set_attribute;
    the_library.Comm_get_attr = get_attribute;
    provided = MPI_THREAD_SINGLE;
    has_other_nodes = false;
    agreements = 0;
    another_has_no_memory = false;
    another_is_unbound = false;
    attribute = nullptr;
    begin({0, 1, 2});
  }
  ~GroupsOfALibrary() override {
    if (attribute != nullptr) unbind(MPI_COMM_SELF, 1, std::exchange(attribute, nullptr), nullptr);
    the_library = library_before_;
  }

  // Over a context of these ranks: of one node, or, where there are other nodes, of one each.
  void begin(std::vector<int> ranks) {
    members = std::move(ranks);
    const std::optional<Job> job = Job::of(MPI_COMM_SELF);
    ranks_.ask_for_threads();
    ranks_.prepare(*job);
    ranks_.begin(*job);
    groups_.prepare(job->size());
  }

  farsum_mpi_library library_before_;
  ContextRanks ranks_;
  CommunicatorBindings bindings_;
  Notices notices_;
  Introductions introductions_{ranks_, notices_};
  Groups groups_{ranks_, bindings_, introductions_};
};

TEST_F(GroupsOfALibrary, are_the_engines_world_where_the_communicator_has_all_ranks) {
  const GroupLease lease = groups_.lease(MPI_COMM_SELF, Groups::Reach::all_nodes);
  EXPECT_TRUE(lease);
  EXPECT_EQ(lease.refusal(), GroupLease::Refusal::none);
}

TEST_F(GroupsOfALibrary, are_refused_to_communicators_with_ranks_outside_the_context) {
  members = {0, MPI_UNDEFINED};
  EXPECT_EQ(groups_.lease(MPI_COMM_SELF, Groups::Reach::all_nodes).refusal(), GroupLease::Refusal::has_strangers);
  members = {0, 1, 2, 3};
  EXPECT_EQ(groups_.lease(MPI_COMM_SELF, Groups::Reach::all_nodes).refusal(), GroupLease::Refusal::has_strangers);
}

TEST_F(GroupsOfALibrary, ask_the_other_ranks_once_where_one_thread_at_a_time_makes_windows) {
  EXPECT_TRUE(groups_.lease(MPI_COMM_SELF, Groups::Reach::all_nodes));
  EXPECT_EQ(agreements, 1);
  EXPECT_TRUE(groups_.lease(MPI_COMM_SELF, Groups::Reach::all_nodes));
  EXPECT_EQ(agreements, 1);
}

TEST_F(GroupsOfALibrary, are_refused_to_all_ranks_where_one_has_no_memory) {
  another_has_no_memory = true;
  const GroupLease lease = groups_.lease(MPI_COMM_SELF, Groups::Reach::all_nodes);
  EXPECT_FALSE(lease);
  EXPECT_EQ(lease.refusal(), GroupLease::Refusal::no_memory);
}

TEST_F(GroupsOfALibrary, are_refused_to_threads_where_the_communicator_can_remember_nothing) {
  provided = MPI_THREAD_MULTIPLE;
  begin({0, 1, 2});
  EXPECT_EQ(groups_.lease(MPI_COMM_SELF, Groups::Reach::all_nodes).refusal(), GroupLease::Refusal::no_memory);
}

TEST_F(GroupsOfALibrary, are_free_again_once_a_lease_has_ended) {
  GroupLease lease = groups_.lease(MPI_COMM_SELF, Groups::Reach::all_nodes);
  EXPECT_TRUE(lease);
  lease.end();
  EXPECT_FALSE(lease);
  EXPECT_TRUE(groups_.lease(MPI_COMM_SELF, Groups::Reach::this_node));
  EXPECT_EQ(agreements, 1) << "the one instance is used again";
}

// Without an engine no rank can be reached over the network.
TEST_F(GroupsOfALibrary, keep_no_lists_of_ranks_that_cannot_reach_each_other) {
  has_other_nodes = true;
  std::vector<int> ranks(Groups::most_kept + 2);
  std::iota(ranks.begin(), ranks.end(), 0);
  begin(ranks);
  for (const int other : ranks) {
    if (other == 0) continue;
    members = {0, other};
    const GroupLease lease = groups_.lease(MPI_COMM_SELF, Groups::Reach::all_nodes);
    EXPECT_FALSE(lease);
    EXPECT_EQ(lease.refusal(), GroupLease::Refusal::none);
    ASSERT_GT(here.size(), 4U);
    EXPECT_EQ(here[no_room], 0U) << "list " << other;
  }
}

TEST_F(GroupsOfALibrary, are_asked_for_once_by_a_communicator_whose_ranks_cannot_reach_each_other) {
  has_other_nodes = true;
  begin({0, 1, 2});
  ASSERT_TRUE(bindings_.open());
  for (int time = 0; time < 2; ++time) {
    EXPECT_FALSE(groups_.lease(MPI_COMM_SELF, Groups::Reach::all_nodes));
    EXPECT_EQ(here[unbound], 0U);
    EXPECT_EQ(agreements, 1);
  }
}

// A rank that remembers an answer would not come to the agreement, and that other one would wait for it.
TEST_F(GroupsOfALibrary, are_asked_for_again_where_another_rank_could_remember_nothing) {
  has_other_nodes = true;
  begin({0, 1, 2});
  ASSERT_TRUE(bindings_.open());
  another_is_unbound = true;
  for (int time = 1; time <= 2; ++time) {
    EXPECT_FALSE(groups_.lease(MPI_COMM_SELF, Groups::Reach::all_nodes));
    EXPECT_EQ(agreements, time);
  }
}

}  // namespace
}  // namespace farsum::mpi
