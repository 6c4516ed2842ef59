// The ranks of a context, with a library that knows who they are and no engine, so that on several nodes nobody is
// here.
#include "context_ranks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>

namespace farsum::mpi {
namespace {

int node_size;
int meetings;
int most_of_others;  // of a number that ranks gather

int comm_size(MPI_Comm, int* size) {
  *size = 3;
  return MPI_SUCCESS;
}

int comm_rank(MPI_Comm, int* rank) {
  *rank = 0;
  return MPI_SUCCESS;
}

// The communicator of the node is MPI_COMM_SELF, the job's MPI_COMM_WORLD.
int size_of_either(MPI_Comm comm, int* size) {
  if (comm != MPI_COMM_SELF) return comm_size(comm, size);
  *size = node_size;
  return MPI_SUCCESS;
}

int split(MPI_Comm, int, int, MPI_Info, MPI_Comm* node) {
  *node = MPI_COMM_SELF;
  return MPI_SUCCESS;
}

int comm_free(MPI_Comm* comm) {
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

int comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  *copy = comm;
  return MPI_SUCCESS;
}

int comm_group(MPI_Comm, MPI_Group*) { return MPI_SUCCESS; }

int group_free(MPI_Group*) { return MPI_SUCCESS; }

// A group's ranks are the context's from its second on; its last is none of them.
int translate(MPI_Group, int count, const int* ranks, MPI_Group, int* in_context) {
  for (int i = 0; i < count; ++i) in_context[i] = ranks[i] < 2 ? ranks[i] + 1 : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

int barrier(MPI_Comm) {
  ++meetings;
  return MPI_SUCCESS;
}

int allgather(const void* mine, int bytes, MPI_Datatype, void* all, int, MPI_Datatype, MPI_Comm) {
  const auto others = static_cast<std::uint64_t>(most_of_others);
  auto* const place = static_cast<std::uint64_t*>(all);
  std::memcpy(place, mine, static_cast<std::size_t>(bytes));
  place[1] = place[2] = others;
  return MPI_SUCCESS;
}

class ContextRanksOfALibrary : public testing::Test {
 protected:
  ContextRanksOfALibrary() : library_before_(the_library) {
    the_library.Comm_size = size_of_either;
    the_library.Comm_rank = comm_rank;
    the_library.Comm_split_type = split;
    the_library.Comm_free = comm_free;
    the_library.Comm_dup = comm_dup;
    the_library.Comm_group = comm_group;
    the_library.Group_free = group_free;
    the_library.Group_translate_ranks = translate;
    the_library.Barrier = barrier;
    the_library.Allgather = allgather;
    meetings = 0;
    most_of_others = 0;
  }
  ~ContextRanksOfALibrary() override { the_library = library_before_; }

  void begin(int ranks_of_node) {
    node_size = ranks_of_node;
    const std::optional<Job> job = Job::of(MPI_COMM_WORLD);
    ASSERT_TRUE(job);
    ranks_.prepare(*job);
    ranks_.begin(*job);
  }

  farsum_mpi_library library_before_;
  ContextRanks ranks_;
};

TEST_F(ContextRanksOfALibrary, are_all_here_on_one_node_and_meet_nobody_else) {
  begin(3);
  EXPECT_EQ(ranks_.size(), 3);
  EXPECT_EQ(ranks_.node_size(), 3);
  EXPECT_TRUE(ranks_.are_on_one_node());
  EXPECT_TRUE(ranks_.are_on_this_node(std::array{0, 1, 2}));
  EXPECT_FALSE(ranks_.is_on_other_node(MPI_GROUP_EMPTY, 1));
  ranks_.wait_for_all();
  EXPECT_EQ(meetings, 0);
}

TEST_F(ContextRanksOfALibrary, are_elsewhere_where_the_engine_shares_no_memory_with_them) {
  begin(1);
  EXPECT_FALSE(ranks_.are_on_one_node());
  EXPECT_FALSE(ranks_.are_on_this_node(std::array{1}));
  EXPECT_TRUE(ranks_.is_on_other_node(MPI_GROUP_EMPTY, 1));
  EXPECT_FALSE(ranks_.is_on_other_node(MPI_GROUP_EMPTY, 2)) << "a stranger is nowhere";
  ranks_.wait_for_all();
  EXPECT_EQ(meetings, 1);
  ranks_.end();
  ranks_.wait_for_all();
  EXPECT_EQ(meetings, 1) << "nobody is met after the end";
}

TEST_F(ContextRanksOfALibrary, are_found_by_their_numbers_in_the_context) {
  begin(3);
  std::array<int, 2> found{};
  EXPECT_TRUE(ranks_.find(MPI_GROUP_EMPTY, found));
  EXPECT_EQ(found, (std::array{1, 2}));
  std::array<int, 3> with_stranger{};
  EXPECT_FALSE(ranks_.find(MPI_GROUP_EMPTY, with_stranger));
  EXPECT_TRUE(ranks_.are_all(std::array{0, 1, 2}));
  EXPECT_FALSE(ranks_.are_all(found));
}

TEST_F(ContextRanksOfALibrary, have_none_left_only_where_no_rank_has_one) {
  begin(1);
  EXPECT_TRUE(ranks_.all_have_none(0));
  EXPECT_FALSE(ranks_.all_have_none(1));
  most_of_others = 2;
  EXPECT_FALSE(ranks_.all_have_none(0));
}

}  // namespace
}  // namespace farsum::mpi
