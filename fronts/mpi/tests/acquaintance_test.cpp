// What ranks of several nodes find out about each other, with a library that answers for the other ranks, and no
// engine.
#include "acquaintance.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "context_ranks.hpp"

namespace farsum::mpi {
namespace {

int provided;
int agreements;
bool another_has_no_memory;
bool another_has_refused;

int one(MPI_Comm, int* size) {
  *size = 1;
  return MPI_SUCCESS;
}

int first(MPI_Comm, int* rank) {
  *rank = 0;
  return MPI_SUCCESS;
}

int query_thread(int* level) {
  *level = provided;
  return MPI_SUCCESS;
}

int allgather(const void* mine, int bytes, MPI_Datatype, void* all, int, MPI_Datatype, MPI_Comm) {
  std::memcpy(all, mine, static_cast<std::size_t>(bytes));
  return MPI_SUCCESS;
}

int broadcast(void*, int, MPI_Datatype, int, MPI_Comm) { return MPI_SUCCESS; }

int allreduce(const void* mine, void* all, int count, MPI_Datatype, MPI_Op operation, MPI_Comm) {
  std::memcpy(all, mine, static_cast<std::size_t>(count) * sizeof(int));
  if (operation == MPI_MIN) return MPI_SUCCESS;
  ++agreements;
  if (another_has_no_memory) static_cast<int*>(all)[0] = 1;
  if (another_has_refused) static_cast<int*>(all)[2] = 1;
  return MPI_SUCCESS;
}

class IntroductionsOfALibrary : public testing::Test {
 protected:
  IntroductionsOfALibrary() : library_before_(the_library) {
    the_library.Comm_size = one;
    the_library.Comm_rank = first;
    the_library.Query_thread = query_thread;
    the_library.Allgather = allgather;
    the_library.Allreduce = allreduce;
    the_library.Bcast = broadcast;
    have_threads(false);
    agreements = 0;
    another_has_no_memory = false;
    another_has_refused = false;
  }
  ~IntroductionsOfALibrary() override { the_library = library_before_; }

  void have_threads(bool several) {
    provided = several ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    ranks_.ask_for_threads();
  }
  bool are_acquainted(Acquaintance before) {
    known_.store(before, std::memory_order_relaxed);
    return introductions_.introduce(MPI_COMM_SELF, &known_).are_acquainted;
  }

  farsum_mpi_library library_before_;
  ContextRanks ranks_;
  Notices notices_;
  Introductions introductions_{ranks_, notices_};
  std::atomic<Acquaintance> known_{Acquaintance::unknown};
};

TEST_F(IntroductionsOfALibrary, are_remembered_without_asking_where_one_thread_at_a_time_makes_windows) {
  EXPECT_TRUE(are_acquainted(Acquaintance::made));
  EXPECT_FALSE(are_acquainted(Acquaintance::refused));
  EXPECT_EQ(agreements, 0);
}

TEST_F(IntroductionsOfALibrary, are_asked_about_where_threads_may_know_more_on_one_rank_than_on_another) {
  have_threads(true);
  EXPECT_TRUE(are_acquainted(Acquaintance::made));
  EXPECT_FALSE(are_acquainted(Acquaintance::refused));
  EXPECT_EQ(agreements, 2);
}

TEST_F(IntroductionsOfALibrary, are_refused_for_good_where_another_rank_has_refused_them) {
  have_threads(true);
  another_has_refused = true;
  EXPECT_FALSE(are_acquainted(Acquaintance::made));
  EXPECT_EQ(known_.load(std::memory_order_relaxed), Acquaintance::refused);
}

TEST_F(IntroductionsOfALibrary, leave_what_is_known_as_it_is_where_a_rank_has_no_memory) {
  another_has_no_memory = true;
  const Introductions::Outcome outcome = introductions_.introduce(MPI_COMM_SELF, &known_);
  EXPECT_TRUE(outcome.no_memory);
  EXPECT_FALSE(outcome.are_acquainted);
  EXPECT_EQ(known_.load(std::memory_order_relaxed), Acquaintance::unknown);
  another_has_no_memory = false;
  EXPECT_TRUE(introductions_.introduce(MPI_COMM_SELF, nullptr).no_memory) << "this rank has none for the list";
}

TEST_F(IntroductionsOfALibrary, say_once_why_a_rank_cannot_be_reached) {
  testing::internal::CaptureStderr();
  EXPECT_FALSE(are_acquainted(Acquaintance::unknown)) << "without an engine there is no card";
  EXPECT_FALSE(are_acquainted(Acquaintance::unknown));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("farsum: windows over several hosts stay the MPI library's own: "), 0U) << said;
  EXPECT_EQ(said.find("farsum:", 1), std::string::npos) << said;
}

}  // namespace
}  // namespace farsum::mpi
