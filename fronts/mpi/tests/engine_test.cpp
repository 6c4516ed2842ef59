// An engine that does not start, of a library that does not say which ranks share the node, and without a front.
#include "engine.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

namespace farsum::mpi {
namespace {

int communicators;
int receives;

int duplicate(MPI_Comm comm, MPI_Comm* copy) {
  ++communicators;
  *copy = comm;
  return MPI_SUCCESS;
}

int split(MPI_Comm comm, int, int, MPI_Comm* part) { return duplicate(comm, part); }

int free_communicator(MPI_Comm* comm) {
  --communicators;
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

int rank_of(MPI_Comm, int* rank) {
  *rank = 0;
  return MPI_SUCCESS;
}

int refuse_to_split(MPI_Comm, int, int, MPI_Info, MPI_Comm*) { return MPI_ERR_OTHER; }

int receive(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request* request) {
  ++receives;
  std::memset(static_cast<void*>(request), 1, sizeof *request);
  return MPI_SUCCESS;
}

int cancel(MPI_Request*) { return MPI_SUCCESS; }

int wait(MPI_Request* request, MPI_Status*) {
  --receives;
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

struct Services {
  Progress progress;
  WindowTable windows;
  Datatypes datatypes;
  Requests requests;
  BackedWindows backed{windows};
  ContextRanks ranks;
  CommunicatorBindings bindings;
  Notices notices;
  CopiesNotice copies_notice;
  EngineLife life;
  Sessions sessions{life};
  Introductions introductions{ranks, notices};
  Groups groups{ranks, bindings, introductions};
};

class EngineOfALibrary : public testing::Test {
 protected:
  EngineOfALibrary() : library_before_(the_library) {
    the_library.Comm_dup = duplicate;
    the_library.Comm_split = split;
    the_library.Comm_free = free_communicator;
    the_library.Comm_rank = rank_of;
    the_library.Comm_split_type = refuse_to_split;
    the_library.Irecv = receive;
    the_library.Cancel = cancel;
    the_library.Wait = wait;
    communicators = receives = 0;
  }
  ~EngineOfALibrary() override { the_library = library_before_; }

  void start() {
    EngineLife::Claim claim = services_->life.claim();
    testing::internal::CaptureStderr();
    engine_.start(MPI_COMM_WORLD, claim);
    said_ = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(claim.is_held()) << "it is left to whoever has it";
  }

  farsum_mpi_library library_before_;
  // Large, for it holds tables.
  std::unique_ptr<Services> services_ = std::make_unique<Services>();
  Engine engine_{{services_->progress, services_->windows, services_->datatypes, services_->requests, services_->backed,
                  services_->ranks, services_->bindings, services_->groups, services_->sessions, services_->notices,
                  services_->copies_notice}};
  std::string said_;
};

TEST_F(EngineOfALibrary, says_once_why_it_does_not_start) {
  start();
  EXPECT_EQ(said_,
            "farsum: the one-sided layer stays the MPI library's own: it did not say which ranks share this node\n");
  start();
  EXPECT_EQ(said_, "");
  EXPECT_FALSE(services_->life.engine_runs());
}

TEST_F(EngineOfALibrary, leaves_nothing_in_the_library_where_it_does_not_start) {
  for (const bool is_of_sessions : {false, true}) {
    services_->sessions.set_are_alone(is_of_sessions);
    start();
    EXPECT_EQ(communicators, 0);
    EXPECT_EQ(receives, 0);
    EXPECT_EQ(engine_.self(), MPI_COMM_NULL);
  }
}

}  // namespace
}  // namespace farsum::mpi
