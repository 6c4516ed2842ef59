#include "witness.hpp"

#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "guard.hpp"
#include "library.hpp"
#include "witness_words.h"

namespace farsum::mpi {
namespace {

// Stays open as long as the process has not finished. The program's threads may abort together.
constinit std::atomic<int> connection = -1;

template <class What>
void say(int to, const What& what) {
  static_cast<void>(!send(to, &what, sizeof what, MSG_NOSIGNAL | MSG_DONTWAIT));
}

// As Hydra and Open MPI tell their ranks.
int ranks_here() {
  for (const char* name : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  return 0;
}

void say_last(std::int32_t what) {
  // Relaxed: the number alone is what threads pass on, and only one of them gets it.
  const int to = connection.exchange(-1, std::memory_order_relaxed);
  if (to < 0) return;
  say(to, what);
  close(to);
}

int abort_job(MPI_Comm comm, int code) {
  tell_witness_of_abort();
  return library().Abort(comm, code);
}

}  // namespace

void report_to_witness() {
  const char* name = std::getenv(FARSUM_MPI_WITNESS_SETTING);
  if (name == nullptr || *name == '\0') return;
  sockaddr_un address{};
  const socklen_t bytes = farsum_witness_address(name, &address);
  if (bytes == 0) return;
  const int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  int rank = 0;
  if (to < 0 || connect(to, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      library().Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) {
    if (to >= 0) close(to);
    return;
  }
  say(to, farsum_witness_arrival{rank, ranks_here()});
  // Until it watches this process. One that cannot is not waited for long.
  const timeval patience{1, 0};
  std::int32_t watched = 0;
  setsockopt(to, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  static_cast<void>(!recv(to, &watched, sizeof watched, 0));
  connection.store(to, std::memory_order_relaxed);  // see say_last
}

void tell_witness_of_end() { say_last(farsum_witness_has_finished); }
void tell_witness_of_abort() { say_last(farsum_witness_ends_the_job); }

void put_abort(farsum_mpi_calls& active) { active.Abort = guard::Abort<abort_job>::call; }

}  // namespace farsum::mpi
