// Which ranks of a communicator get a group of the engine's, with a library that knows who they are, and no engine.
#include "groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace farsum::mpi {
namespace {

// Of the communicator that is asked about, by rank of the context.
std::vector<int> members;
int provided;
int agreements;
bool another_has_no_memory;

int comm_size(MPI_Comm, int* size) {
  *size = static_cast<int>(members.size());
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

int split(MPI_Comm comm, int, int, MPI_Info, MPI_Comm* node) {
  *node = comm;
  return MPI_SUCCESS;
}

int comm_free(MPI_Comm*) { return MPI_SUCCESS; }

int query_thread(int* level) {
  *level = provided;
  return MPI_SUCCESS;
}

int allreduce(const void* mine, void* all, int count, MPI_Datatype, MPI_Op, MPI_Comm) {
  ++agreements;
  std::memcpy(all, mine, static_cast<std::size_t>(count) * sizeof(std::uint64_t));
  if (another_has_no_memory) static_cast<std::uint64_t*>(all)[0] = 1;
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
    provided = MPI_THREAD_SINGLE;
    agreements = 0;
    another_has_no_memory = false;
    begin();
  }
  ~GroupsOfALibrary() override { the_library = library_before_; }

  // Over a context of three ranks of one node.
  void begin() {
    members = {0, 1, 2};
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
  begin();
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

}  // namespace
}  // namespace farsum::mpi
