#include "witness.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "guard.hpp"
#include "library.hpp"

namespace farsum::mpi {
namespace {

// As the witness understands them: the rank's number first, then one of these.
constexpr std::int32_t has_finished = -1;
constexpr std::int32_t ends_the_job = -2;

// Stays open as long as the process has not finished. The program's threads may abort together.
constinit std::atomic<int> connection = -1;

void say(int to, std::int32_t what) { static_cast<void>(!send(to, &what, sizeof what, MSG_NOSIGNAL | MSG_DONTWAIT)); }

void say_last(std::int32_t what) {
  const int to = connection.exchange(-1);
  if (to < 0) return;
  say(to, what);
  close(to);
}

int abort_job(MPI_Comm comm, int code) {
  say_last(ends_the_job);
  return library().Abort(comm, code);
}

}  // namespace

void report_to_witness() {
  const char* name = std::getenv("FARSUM_MPI_WITNESS");
  if (name == nullptr || *name == '\0') return;
  const std::string_view text = name;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (text.size() + 1 > sizeof address.sun_path) return;
  std::memcpy(address.sun_path + 1, text.data(), text.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  const int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  int rank = 0;
  if (to < 0 || connect(to, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      library().Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) {
    if (to >= 0) close(to);
    return;
  }
  say(to, rank);
  // Until it watches this process. One that cannot is not waited for long.
  const timeval patience{1, 0};
  std::int32_t watched = 0;
  setsockopt(to, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  static_cast<void>(!recv(to, &watched, sizeof watched, 0));
  connection.store(to);
}

void tell_witness_of_end() { say_last(has_finished); }

void put_abort(farsum_mpi_calls& active) { active.Abort = guard::Abort<abort_job>::call; }

}  // namespace farsum::mpi
