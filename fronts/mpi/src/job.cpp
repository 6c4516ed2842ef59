#include "job.hpp"

#include <sys/random.h>

#include <array>
#include <cstring>
#include <utility>

namespace farsum::mpi {

std::optional<Job> Job::of(MPI_Comm comm) {
  Job job;
  job.comm_ = comm;
  if (library().Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &job.node_) != MPI_SUCCESS) return {};
  library().Comm_rank(comm, &job.rank_);
  library().Comm_size(comm, &job.size_);
  library().Comm_size(job.node_, &job.node_size_);
  return job;
}

Job::Job(Job&& other) noexcept
    : comm_(other.comm_),
      node_(std::exchange(other.node_, MPI_COMM_NULL)),
      rank_(other.rank_),
      size_(other.size_),
      node_size_(other.node_size_) {}

Job::~Job() {
  if (node_ != MPI_COMM_NULL) library().Comm_free(&node_);
}

// Who knows it is one of the job's ranks, also to those that come to know each other later.
bool Job::share_secret(farsum_init_options& options) const {
  struct {
    unsigned char bytes[sizeof options.job_secret];
    unsigned char is_random;
  } secret{};
  if (rank_ == 0) secret.is_random = getrandom(secret.bytes, sizeof secret.bytes, 0) == sizeof secret.bytes;
  library().Bcast(&secret, sizeof secret, MPI_BYTE, 0, comm_);
  std::memcpy(options.job_secret, secret.bytes, sizeof secret.bytes);
  options.job_rank = rank_;
  options.job_size = size_;
  return secret.is_random != 0;
}

Job::Abilities Job::of_all_ranks(const Abilities& mine) const {
  const std::array<int, 2> own = {mine.has_all ? 1 : 0, mine.may_copy ? 1 : 0};
  std::array<int, 2> least{};
  library().Allreduce(own.data(), least.data(), 2, MPI_INT, MPI_MIN, has_other_nodes() ? comm_ : node_);
  return {.has_all = least[0] == 1, .may_copy = least[1] == 1};
}

int gather_over_mpi(const void* mine, void* all, std::size_t bytes, void* comm) {
  const int count = static_cast<int>(bytes);
  const MPI_Comm over = *static_cast<const MPI_Comm*>(comm);
  return library().Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, over) == MPI_SUCCESS ? 0 : 1;
}

}  // namespace farsum::mpi
